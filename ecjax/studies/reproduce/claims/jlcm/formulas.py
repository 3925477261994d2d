"""Formulas of the JLCM paper, which need no study."""

import numpy as np

from ecjax.studies.reproduce.claim import Claim, Finding, Kind
from ecjax.studies.reproduce.claims.judging import exact, judge, refuted, testbed
from ecjax.studies.reproduce.evidence import Evidence

MEAN_S, STD_S, SECOND_S2, THIRD_S3 = 13.9, 4.3, 211.8, 3476.8  # of a chunk of 12.5 MB, Fig. 6


def _tight(evidence: Evidence) -> Finding:
    """The two-point laws of (36): a node is up with probability P+, at z + its deviation, else below z."""
    from ecjax.queueing import latency_bound
    from ecjax.queueing.bounds import shared_z
    from ecjax.queueing.mg1 import Delay
    from ecjax.queueing.moments import as_float

    errors = []
    random = np.random.default_rng(1)
    for k in (2, 3, 5, 8):
        mean, variance = random.uniform(1, 3, k), random.uniform(0.5, 4, k)
        bound = float(latency_bound(np.ones(k), Delay(as_float(mean), as_float(variance))))
        z = float(shared_z(np.ones(k), mean, variance)[1])
        root = np.sqrt((mean - z) ** 2 + variance)
        up = 0.5 + (mean - z) / (2 * root)
        high, low = z + root, z - root
        errors += [
            abs(up.sum() - 1),  # so that exactly one node may be up at a time
            *abs((up * high + (1 - up) * low) / mean - 1),
            *abs((up * high**2 + (1 - up) * low**2) / (mean**2 + variance) - 1),
            # whichever node is up alone decides the latest chunk
            abs((up * high).sum() / bound - 1),
        ]
    return exact(float(max(errors)), 1e-9)


def _homogeneous(evidence: Evidence) -> Finding:
    from ecjax.queueing import latency_bound
    from ecjax.queueing.mg1 import Delay
    from ecjax.queueing.moments import as_float

    mean, variance, nodes = 20.0, 30.0, 12
    counts = np.arange(1, 11)
    alike = Delay(as_float(np.full(nodes, mean)), as_float(np.full(nodes, variance)))
    bounds = np.array([float(latency_bound(np.full(nodes, k / nodes), alike)) for k in counts])
    mended = abs(bounds / (mean + np.sqrt((counts - 1) * variance)) - 1).max()
    printed = abs(bounds / (mean + np.sqrt(counts - 1) * variance) - 1).max()
    return refuted(
        bool(printed > 0.01 and mended <= 1e-10),
        float(printed),
        "the printed term sqrt(k - 1) Var has seconds squared beside seconds; with the standard deviation, "
        f"E + sqrt((k - 1) Var), the form is exact (largest difference {mended:.1g} for k = 1 to 10)",
    )


def _moments(evidence: Evidence) -> Finding:
    second = MEAN_S**2 + STD_S**2
    return judge(
        abs(second - SECOND_S2) <= 0.1,
        second,
        f"mean and deviation give a second moment of {second:.1f}, printed {SECOND_S2}; third {THIRD_S3} is an input",
    )


def _not_exponential(evidence: Evidence) -> Finding:
    """The distance of a law with these moments from the exponential of equal mean is that of the CDFs."""
    from math import erf

    times = np.linspace(0, 60, 6001)
    # its skewness, 0.2, is near that of a normal law, whose CDF differs from any such law by far less than 0.25
    law = np.array([0.5 * (1 + erf((t - MEAN_S) / (STD_S * 2**0.5))) for t in times])
    distance = float(abs(law - (1 - np.exp(-times / MEAN_S))).max())
    ratio = STD_S / MEAN_S
    return judge(
        abs(ratio - 0.31) <= 0.01 and distance > 0.25,
        ratio,
        f"deviation / mean is {ratio:.3f}, 1 for an exponential law; the CDFs are {distance:.2f} apart",
    )


def _stable(evidence: Evidence) -> Finding:
    loads = [rate * bytes_ * MEAN_S / 12.5e6 / 12 for rate, bytes_ in ((0.118, 150e6), (0.125, 200e6))]
    return refuted(
        min(loads) >= 1,
        loads[0],
        f"rate x bytes x 13.9 s / 12.5 MB / 12 nodes is {loads[0]:.2f} at 0.118 /s with 150 MB and {loads[1]:.2f} at "
        "0.125 /s with 200 MB: experiments keep ratios of rates and scale them to a stated load",
        *sorted(loads),
    )


def _tail(evidence: Evidence) -> Finding:
    """A chunk of 25 MB of the (12, 6) files has twice the service time of Fig. 6."""
    from scipy.stats import norm

    once = float(norm.cdf((32 - 2 * MEAN_S) / (2 * STD_S)))
    return testbed(
        once**6,
        "seconds of the authors' deployment, whose law by node is not printed. They contradict "
        "Fig. 6: a chunk of 25 MB "
        f"takes {2 * MEAN_S:.1f} s on average, so that six of them end within 32 s in {once**6:.0%} of reads even "
        "without a queue",
    )


def _sites(evidence: Evidence) -> Finding:
    from ecjax.problem import builtin
    from ecjax.problem.cluster_options import ClusterOptions

    sites = builtin.nodes(ClusterOptions(hardware="tahoe").completed())["site"].value_counts().to_pylist()
    counts = [item["counts"] for item in sites]
    return testbed(
        float(sum(counts)),
        f"round-trip times and bandwidths are in a picture only: the built-in cluster has {len(counts)} sites of "
        f"{counts[0]} nodes with slowdowns and connection delays of our own",
    )


FORMULAS = (
    Claim(
        "jlcm-fig5-testbed",
        "Fig. 5, Sec. V-A",
        "Twelve servers, four at each of three sites; ping does not order bandwidth.",
        _sites,
        paper_value="12 servers, 3 sites",
        quantity="nodes",
        kind=Kind.TESTBED,
    ),
    Claim(
        "jlcm-fig10-p95",
        "Fig. 10",
        "95 % of (10, 7) reads end within 100 s and 95 % of (12, 6) reads within 32 s.",
        _tail,
        paper_value="100 s, 32 s",
        quantity="share of (12, 6) reads within 32 s without a queue",
        kind=Kind.TESTBED,
    ),
    Claim(
        "jlcm-fig6-moments",
        "Fig. 6, Sec. V-B",
        "The printed mean, deviation, second and third moment of a chunk's service time belong together.",
        _moments,
        paper_value="13.9 s, 4.3 s, 211.8 s^2, 3476.8 s^3",
        quantity="second moment from mean and deviation, s^2",
    ),
    Claim(
        "jlcm-fig6-not-exponential",
        "Fig. 6",
        "The measured service law is far from exponential.",
        _not_exponential,
        paper_value="4.3 / 13.9",
        quantity="deviation / mean",
    ),
    Claim(
        "jlcm-rates-stable",
        "Sec. V-B",
        "The system is stable at 0.118 /s with 150 MB files and at 0.125 /s with 200 MB files.",
        _stable,
        paper_value="load < 1",
        quantity="load of a node at 0.118 /s, and of both",
    ),
    Claim(
        "jlcm-lemma2-tight",
        "Lemma 2, eq. 36",
        "Two-point laws of the node delays with the same means and variances attain the bound.",
        _tight,
        quantity="largest relative difference of means, second moments, sum of P+ and expected maximum",
    ),
    Claim(
        "jlcm-eq8-closed-form",
        "eq. 8",
        "With alike nodes the bound is the mean delay plus sqrt(k - 1) times its variance.",
        _homogeneous,
        quantity="largest relative difference of the printed form",
    ),
)
