"""Formulas of the JLCM paper, which need no study."""

import numpy as np

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import exact, refuted
from ecjax.studies.reproduce.evidence import Evidence


def _tight(evidence: Evidence) -> Finding:
    """The two-point laws of (36): a node is up with probability P+, at z + its deviation, else below z."""
    from ecjax.queueing import latency_bound
    from ecjax.queueing.bounds import shared_z
    from ecjax.queueing.mg1 import Delay

    errors = []
    random = np.random.default_rng(1)
    for k in (2, 3, 5, 8):
        mean, variance = random.uniform(1, 3, k), random.uniform(0.5, 4, k)
        bound = float(latency_bound(np.ones(k), Delay(mean, variance)))
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
    return exact(float(max(errors)), 1e-6)


def _homogeneous(evidence: Evidence) -> Finding:
    from ecjax.queueing import latency_bound
    from ecjax.queueing.mg1 import Delay

    mean, variance, nodes = 20.0, 30.0, 12
    counts = np.arange(1, 11)
    bounds = np.array(
        [
            float(
                latency_bound(
                    np.full(nodes, k / nodes), Delay(np.full(nodes, mean), np.full(nodes, variance))
                )
            )
            for k in counts
        ]
    )
    mended = abs(bounds / (mean + np.sqrt((counts - 1) * variance)) - 1).max()
    printed = abs(bounds / (mean + np.sqrt(counts - 1) * variance) - 1).max()
    return refuted(
        bool(printed > 0.01 and mended <= 1e-10),
        float(printed),
        "the printed term sqrt(k - 1) Var has seconds squared beside seconds; with the standard deviation, "
        f"E + sqrt((k - 1) Var), the form is exact (largest difference {mended:.1g} for k = 1 to 10)",
    )


FORMULAS = (
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
