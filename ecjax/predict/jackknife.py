"""How far a figure of a log may be off for another log of its kind: the jackknife over ten blocks of its reads' time.

A log is only as telling as its bursts are many. Leaving out a tenth of the time at a time says so, where a figure's own
confidence interval, which takes reads for independent, does not.

Where one or two blocks make the spread, it is itself known badly: Student's degrees of freedom are those that the
fourth moment of the blocks' influence leaves (Satterthwaite; n - 1 for normal ones). And a jackknife does not see how
a high quantile moves: without any one block it stays between the episodes of the others. The mean over the log does
move with its longest episodes, so that quantiles above the mean are taken to be no better known than the mean.
"""

import numpy as np
from scipy import special

BLOCKS = 10
UNTOLD = (
    100.0  # factor beyond which an interval is not told: one or two episodes are extrapolated to any length
)
LEVEL = 0.95


def log_margins(figures: np.ndarray, by_chance: np.ndarray | float = 0.0) -> np.ndarray:
    """Half widths of 95 % intervals of logarithms, (Q,).

    Logarithms, for a figure that few episodes make is known within a factor, and is never below 0.

    Args:
        figures: (n, Q) above 0, the mean and then quantiles, each without one of n blocks.
        by_chance: (Q,) variances of the logarithms that do not show in the figures: of services.
    """
    logarithm = np.log(figures)
    count = len(logarithm)
    influence = logarithm - logarithm.mean(axis=0)
    square, fourth = np.sum(influence**2, axis=0), np.sum(influence**4, axis=0)
    part = (count - 1) / count
    variance = part * square + by_chance
    # (sum d^2)^2 / sum d^4, n / 3 of normal influences, more where chance makes most of the variance
    safe = np.where(fourth > 0, fourth, 1.0)
    degrees = 3 * part * (variance / part) ** 2 / safe
    degrees = np.where(fourth > 0, np.clip(degrees, 1.0, count - 1), count - 1)
    margins = special.stdtrit(degrees, (1 + LEVEL) / 2) * np.sqrt(variance)
    return np.where(figures.mean(axis=0) >= figures[:, 0].mean(), np.maximum(margins, margins[0]), margins)


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
    # linear between the points, as for the mean: a law of one value has no variance below 0
    low, high = points[:-1], points[1:]
    square = points[0] ** 2 + ((2 * low + high) * above[:-1] + (low + 2 * high) * above[1:]) / 3 @ steps
    score, place = -np.log(np.maximum(above, 1e-15)), np.log(points)
    step = 0.1
    high, low = (np.interp(-np.log1p(-levels) + by, score, place) for by in (step, -step))
    slope = 2 * step / np.maximum(high - low, 1e-9)  # density times x, over 1 - level
    quantiles = levels / (1 - levels) / slope**2
    return np.append(square / mean**2 - 1, quantiles) / reads


def without_each(weights: np.ndarray) -> np.ndarray:
    """Weights of all blocks but one, (n, S), from those of each block, (n, S)."""
    return np.maximum(weights.sum(axis=0) - weights, 0.0)
