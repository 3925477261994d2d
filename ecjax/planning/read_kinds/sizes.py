"""A few sizes of chunks that stand for all, and what nodes take to serve them."""

import jax
import numpy as np

_MOST_SIZES = 8  # of full reads, and of small ones, that spreads are chosen by; means stand for more


def few_sizes(size: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most ``_MOST_SIZES`` sizes that stand for all that are read, and which of them each has.

    Exact where few are read. Else means, by rates, of sizes between steps that are even in the logarithm: a size far
    above the others is no part of theirs, however seldom it is read. What is never read has any.

    Args:
        size: above 0.
        rate: 1/s.
    """
    read, of = rate > 0, np.zeros(len(size), np.int64)
    if not read.any():
        return np.array([size.mean()]), of
    distinct, of[read] = np.unique(size[read], return_inverse=True)
    if len(distinct) <= _MOST_SIZES:
        return distinct, of
    steps = np.geomspace(distinct[0], distinct[-1], _MOST_SIZES + 1)[1:-1]
    of[read] = np.unique(np.searchsorted(steps, size[read], side="right"), return_inverse=True)[1]
    return np.bincount(of[read], (rate * size)[read]) / np.bincount(of[read], rate[read]), of


def powers_of(size: np.ndarray) -> np.ndarray:
    """Sizes to the power of 0..3, (..., 4): moments of services are linear in these."""
    return size[..., None] ** np.arange(4.0)


def moments_of(service: jax.Array | np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Raw moments of the service of chunks of these sizes, (C, 3, m)."""
    return np.einsum("npm,cp->cnm", np.asarray(service), powers_of(np.asarray(sizes)))
