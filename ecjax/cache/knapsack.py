"""The best numbers of chunks of all items: a knapsack with one choice per item, solved exactly."""

import operator

import numpy as np
from numpy.typing import ArrayLike

from ecjax.cache.full_dp import full_dp
from ecjax.errors import UserError

_MOST_CHUNKS = 255  # per item: a choice is stored in a byte


def exact(tau: ArrayLike, capacity: int) -> np.ndarray:
    """Chunks to keep per item so that the sum of their values is largest, and of such plans one with fewest chunks.

    Args:
        tau: value of the j slowest chunks of each item, (M, K + 1), integers or floats, s/s (any unit does): 0 first,
            nondecreasing in each row, not concave in general.
        capacity: C >= 0, chunks.

    Returns:
        Chunks per item, (M,) int64; sum <= C.

    Raises:
        UserError: tau or the capacity is not as above.
    """
    return exact_full(tau, capacity)


def exact_full(tau: ArrayLike, capacity: int) -> np.ndarray:
    """As ``exact``, by the whole dynamic programme: O(M C K) steps and M (C + 1) bytes."""
    values, room = checked(tau, capacity)
    chunks = np.zeros(len(values), np.int64)
    full_dp(values, room, chunks)
    return chunks


def checked(tau: ArrayLike, capacity: int) -> tuple[np.ndarray, int]:
    """Values as (M, K + 1) float64, and a capacity of at most M K.

    Raises:
        UserError: what ``exact`` does not take.
    """
    values = np.asarray(tau)
    if values.ndim != 2 or values.shape[1] < 1 or values.dtype.kind not in "biuf":
        raise UserError(
            f"tau: {values.ndim}-dimensional {values.dtype}; allowed: numbers, one row per item, "
            "columns for 0 to K chunks"
        )
    most = values.shape[1] - 1
    if most > _MOST_CHUNKS:
        raise UserError(f"tau: {most} chunks per item; allowed: at most {_MOST_CHUNKS}")
    values = np.ascontiguousarray(values, np.float64)
    ascending = (values[:, 0] == 0) & (values[:, 1:] >= values[:, :-1]).all(axis=1) & (values[:, -1] < np.inf)
    if not ascending.all():
        row = int(np.argmin(ascending))
        raise UserError(
            f"tau: row {row} is {[float(x) for x in values[row]]}; allowed: finite, 0 first, nondecreasing"
        )
    try:
        room = operator.index(capacity)
    except TypeError:
        raise UserError(f"capacity: found {capacity!r}; allowed: a whole number of chunks >= 0") from None
    if room < 0:
        raise UserError(f"capacity: found {room}; allowed: a whole number of chunks >= 0")
    return values, min(room, most * len(values))
