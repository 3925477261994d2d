"""A few sizes of chunks that stand for all, and what nodes take to serve them."""

import jax
import numpy as np

_MOST_SIZES = 8  # of full reads, and of small ones, that spreads are chosen by; means stand for more


def few_sizes(size: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most ``_MOST_SIZES`` sizes that stand for all, and which of them each has; exact where there are few."""
    distinct, index = np.unique(size, return_inverse=True)
    if len(distinct) <= _MOST_SIZES:
        return distinct, index
    work = np.cumsum(np.bincount(index, rate * size, len(distinct)))
    # without a read there is no work to divide, and one size stands for all
    part = np.minimum((work / max(work[-1], 1e-300) * _MOST_SIZES).astype(int), _MOST_SIZES - 1)
    part = np.unique(part, return_inverse=True)[1]
    total = np.bincount(part, np.bincount(index, rate, len(distinct)))
    mean = np.bincount(part, np.bincount(index, rate * size, len(distinct))) / np.maximum(total, 1e-300)
    return mean, part[index]


def moments_of(service: jax.Array | np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Raw moments of the service of chunks of these sizes, (C, 3, m)."""
    return np.einsum("npm,cp->cnm", np.asarray(service), np.asarray(sizes)[:, None] ** np.arange(4.0))
