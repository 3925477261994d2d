"""Distributions of what was counted in bins, as lines."""

import numpy as np
from numpy.typing import ArrayLike


def cumulative(lower: ArrayLike, upper: ArrayLike, count: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The points where a distribution bends: values are even within a bin, and none lie between bins.

    Args:
        lower: lower edges of bins that hold something, in any order; equal bins are added up.
        upper: their upper edges.
        count: what they hold, at least 0, not all 0.

    Returns:
        Values, ascending, and the share of all at or below each, from 0 to 1.
    """
    lower, upper, count = (np.asarray(values, float) for values in (lower, upper, count))
    edges, place = np.unique(np.stack([lower, upper], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(place.ravel(), count, len(edges))
    below = np.cumsum(counts) / counts.sum()
    shares = np.stack([np.concatenate([[0.0], below[:-1]]), below], axis=1)
    first = np.concatenate([[True], edges[1:, 0] > edges[:-1, 1]])  # bins that no other one ends at
    kept = np.stack([first, np.ones(len(edges), bool)], axis=1).ravel()
    return edges.ravel()[kept], shares.ravel()[kept]
