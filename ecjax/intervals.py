"""Mean, deviation and quantiles of the latencies of one replay, each with its confidence interval.

Intervals come from sections (Asmussen and Glynn, "Stochastic Simulation", Springer 2007, III.5): the requests in their
order are cut into equal parts, and what a statistic varies from part to part tells how well the whole knows it.
"""

import math

import numpy as np
from scipy import stats

LEVELS = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
NAMES = ("mean_s", *LEVELS, "std_s")
HALF_WIDTHS = {name: "ci_s" if name == "mean_s" else name.replace("_s", "_ci_s") for name in NAMES}
SECTIONS = 20
_LEAST = 100  # requests per section: a 99 % quantile needs as many
_MOST_CORRELATION = 0.9
_LEVEL = float(stats.t.ppf(0.975, SECTIONS - 1))


def statistics(latency: np.ndarray) -> dict[str, float | None]:
    """What is told of latencies, named as in the result tables.

    Args:
        latency: (N,) s, in the order of arrivals, N >= 1.

    Returns:
        NAMES, and the half width of the 95 % interval of each (HALF_WIDTHS; None of too few requests). What correlation
        neighbouring sections have is taken into account as that of an autoregressive series.
    """
    whole = _values(latency)
    values: dict[str, float | None] = dict(zip(NAMES, whole.tolist(), strict=True))
    size = len(latency) // SECTIONS
    if size < _LEAST:
        return values | dict.fromkeys(HALF_WIDTHS.values())
    # the first requests are left out of the sections where they do not divide
    parts = latency[len(latency) - SECTIONS * size :].reshape(SECTIONS, size)
    apart = np.array([_values(part) for part in parts]) - whole
    for name, differences in zip(NAMES, apart.T, strict=True):
        values[HALF_WIDTHS[name]] = _half_width(differences)
    return values


def _values(latency: np.ndarray) -> np.ndarray:
    """Of one part: NAMES, (5,) s."""
    return np.array([latency.mean(), *np.quantile(latency, list(LEVELS.values())), latency.std()])


def _half_width(apart: np.ndarray) -> float:
    """Of what sections differ from the whole by, (SECTIONS,)."""
    spread = float(apart @ apart)
    if spread == 0:
        return 0.0
    centred = apart - apart.mean()
    around = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / around if around > 0 else 0.0
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return _LEVEL * math.sqrt(spread / (SECTIONS - 1) / SECTIONS * (1 + correlation) / (1 - correlation))
