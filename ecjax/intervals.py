"""Mean, deviation and quantiles of the latencies of one replay, each with its confidence interval.

Intervals come from sections (Asmussen and Glynn, "Stochastic Simulation", Springer 2007, III.5): the requests in their
order are cut into equal parts, and what a statistic varies from part to part tells how well the whole knows it.
"""

import math
from collections.abc import Mapping

import numpy as np
from scipy import special

LEVELS = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
NAMES = ("mean_s", *LEVELS, "std_s")
SECTIONS = 20
_LEAST = 100  # requests per section; a quantile needs as many as leave one beyond it
_ROUNDING = 1e-9
_MOST_CORRELATION = 0.9
_LEVEL = float(special.stdtrit(SECTIONS - 1, 0.975))


def half_width_of(name: str) -> str:
    """Name of the half width of a statistic's interval."""
    return "ci_s" if name == "mean_s" else name.replace("_s", "_ci_s")


HALF_WIDTHS = {name: half_width_of(name) for name in NAMES}


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of the mean of independent values, by Student's t; nan of fewer than two."""
    if len(values) < 2:
        return math.nan
    if values.min() == values.max():
        # a mean of equal numbers is rounded, and so would be how far they are from it
        return 0.0
    return float(special.stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))


def half_width_over_seeds(half_widths: np.ndarray, same_requests: bool) -> float:
    """Of the 95 % interval of a mean over seeds, by those of single replays; nan where one of these is not known.

    Args:
        half_widths: (S,) of the replays.
        same_requests: whether every seed has the same, those of a log: then more seeds tell nothing more of them. Else
            the replays are independent, and squares add up.
    """
    if same_requests:
        return float(half_widths.mean())
    return float(np.linalg.norm(half_widths)) / len(half_widths)


def statistics(latency: np.ndarray, levels: Mapping[str, float] = LEVELS) -> dict[str, float | None]:
    """What is told of latencies, named as in the result tables.

    Args:
        latency: (N,) s, in the order of arrivals, N >= 1.
        levels: of the quantiles, by name.

    Returns:
        mean_s, the quantiles and std_s, and the half width of the 95 % interval of each (``half_width_of``; None of too
        few requests: 2000, or 20 for every one beyond a quantile). What correlation neighbouring sections have is taken
        into account as that of an autoregressive series.
    """
    names, shares = ("mean_s", *levels, "std_s"), list(levels.values())
    whole = _values(latency, shares)
    values: dict[str, float | None] = dict(zip(names, whole.tolist(), strict=True))
    size = len(latency) // SECTIONS
    if size < _LEAST:
        return values | dict.fromkeys(map(half_width_of, names))
    # the first requests are left out of the sections where they do not divide
    parts = latency[len(latency) - SECTIONS * size :].reshape(SECTIONS, size)
    apart = np.array([_values(part, shares) for part in parts]) - whole
    for name, differences in zip(names, apart.T, strict=True):
        enough = size * (1 - levels.get(name, 0.0)) > 1 - _ROUNDING
        values[half_width_of(name)] = _of_sections(differences) if enough else None
    return values


def _values(latency: np.ndarray, shares: list[float]) -> np.ndarray:
    """Of one part: mean, quantiles, deviation, s."""
    return np.array([latency.mean(), *np.quantile(latency, shares), latency.std()])


def _of_sections(apart: np.ndarray) -> float:
    """Of what sections differ from the whole by, (SECTIONS,)."""
    spread = float(apart @ apart)
    if spread == 0:
        return 0.0
    centred = apart - apart.mean()
    around = float(centred @ centred)
    correlation = float(centred[1:] @ centred[:-1]) / around if around > 0 else 0.0
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return _LEVEL * math.sqrt(spread / (SECTIONS - 1) / SECTIONS * (1 + correlation) / (1 - correlation))
