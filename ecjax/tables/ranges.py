"""Groups of rows one after another, as numbers of their rows."""

import numpy as np


def starts(counts: np.ndarray) -> np.ndarray:
    """Where each group begins, of groups of these sizes one after another."""
    return np.cumsum(counts) - counts


def ranges(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """begin[0], begin[0] + 1, ..., count[0] of them; then count[1] from begin[1], and so on: (sum of count,) int64."""
    return np.repeat(begin - starts(count), count) + np.arange(np.sum(count))
