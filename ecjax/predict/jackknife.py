"""How far a figure of a log may be off for another log of its kind: the jackknife over ten blocks of its time.

A log is only as telling as its bursts are many. Leaving out a tenth of the time at a time says so, where a figure's own
confidence interval, which takes reads for independent, does not.
"""

import numpy as np
from scipy import stats

BLOCKS = 10
LEVEL = 0.95


def log_margins(figures: np.ndarray, by_chance: np.ndarray | float = 0.0) -> np.ndarray:
    """Half widths of 95 % intervals of logarithms, (Q,).

    Logarithms, for a figure that few episodes make is known within a factor, and is never below 0.

    Args:
        figures: (n, Q) above 0, each without one of n blocks.
        by_chance: (Q,) variances of the logarithms that do not show in the figures: of services.
    """
    logarithm = np.log(figures)
    count = len(logarithm)
    square = np.sum((logarithm - logarithm.mean(axis=0)) ** 2, axis=0)
    error = np.sqrt((count - 1) / count * square + by_chance)
    return float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * error


def chance(points: np.ndarray, law: np.ndarray, levels: np.ndarray, reads: float) -> np.ndarray:
    """Variances of the logarithms of mean and quantiles of so many independent reads of a law, (1 + Q,).

    Args:
        points: s, (P,).
        law: Pr(T <= x) at the points, (P,).
        levels: of the quantiles, (Q,).
        reads: may be fractional: of dependent reads, as many as tell the same.
    """
    above, steps = 1 - law, np.diff(points)
    mean = points[0] + (above[1:] + above[:-1]) / 2 @ steps
    at = points * above
    square = points[0] ** 2 + (at[1:] + at[:-1]) @ steps
    score, place = -np.log(np.maximum(above, 1e-15)), np.log(points)
    step = 0.1
    high, low = (np.interp(-np.log1p(-levels) + by, score, place) for by in (step, -step))
    slope = 2 * step / np.maximum(high - low, 1e-9)  # density times x, over 1 - level
    quantiles = levels / (1 - levels) / slope**2
    return np.append(square / mean**2 - 1, quantiles) / reads


def without_each(weights: np.ndarray) -> np.ndarray:
    """Weights of all blocks but one, (n, S), from those of each block, (n, S)."""
    return np.maximum(weights.sum(axis=0) - weights, 0.0)
