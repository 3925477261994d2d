"""How far a figure of a log may be off for another log of its kind: the jackknife over ten blocks of its time.

A log is only as telling as its bursts are many. Leaving out a tenth of the time at a time says so, where a figure's own
confidence interval, which takes reads for independent, does not.
"""

import numpy as np
from scipy import stats

BLOCKS = 10
LEVEL = 0.95


def log_margins(figures: np.ndarray) -> np.ndarray:
    """Half widths of 95 % intervals of logarithms, (Q,).

    Logarithms, for a figure that few episodes make is known within a factor, and is never below 0.

    Args:
        figures: (n, Q) above 0, each without one of n blocks.
    """
    logarithm = np.log(figures)
    count = len(logarithm)
    square = np.sum((logarithm - logarithm.mean(axis=0)) ** 2, axis=0)
    return float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * np.sqrt((count - 1) / count * square)


def without_each(weights: np.ndarray) -> np.ndarray:
    """Weights of all blocks but one, (n, S), from those of each block, (n, S)."""
    return np.maximum(weights.sum(axis=0) - weights, 0.0)
