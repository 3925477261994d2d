"""Fig. 9 of the JLCM paper: JLCM against schemes that leave out a dimension."""

import pandas as pd

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import in_shape, judge
from ecjax.studies.reproduce.evidence import Evidence

# how the paper reads each scheme
READ = {
    "certified": "probabilistic",
    "published": "probabilistic",
    "oblivious_lb": "probabilistic",
    "random_cp": "round_robin",
    "max_ec": "round_robin",
}


def _as_read(evidence: Evidence) -> pd.DataFrame:
    """The replays of Fig. 9 as the paper reads each scheme, by method."""
    runs = evidence["fig9"].runs.set_index("method")
    return runs[runs["policy"] == runs.index.map(READ)]


def _latency_order(evidence: Evidence) -> Finding:
    runs = _as_read(evidence)
    means, halves = runs["mean_s"], runs["ci_s"]
    others = ["oblivious_lb", "random_cp", "max_ec"]
    ahead = [means[name] - halves[name] > means["published"] + halves["published"] for name in others]
    ratios = means[others] / means["published"]
    texts = ", ".join(f"{name} {means[name]:.1f} s" for name in others)
    return judge(
        all(ahead),
        float(ratios.min()),
        f"JLCM {means['published']:.1f} s, {texts}",
        ratios.min(),
        ratios.max(),
    )


def _random_large(evidence: Evidence) -> Finding:
    means = _as_read(evidence)["mean_s"]
    ratio = float(means["random_cp"] / means["published"])
    largest = means.drop("certified").idxmax() == "random_cp"
    return in_shape(
        largest and ratio >= 1.3,
        ratio,
        f"no number is printed: random placement has {means['random_cp']:.0f} s, JLCM {means['published']:.0f} s",
    )


BASELINES = (
    Claim(
        "jlcm-fig9-latency-order",
        "Fig. 9",
        "JLCM is faster than oblivious load balancing, random placement and maximum code length.",
        _latency_order,
        ("fig9",),
        quantity="least of the three mean latencies / JLCM's",
    ),
    Claim(
        "jlcm-fig9-random-cp-large",
        "Fig. 9",
        "Random placement raises latency by much.",
        _random_large,
        ("fig9",),
        quantity="its mean latency / JLCM's",
    ),
)
