"""The best numbers of chunks of all items: a knapsack with one choice per item, solved exactly."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ecjax.caching.core_dp import core_dp
from ecjax.caching.full_dp import full_dp
from ecjax.caching.valuation import checked_valuation, checked_whole
from ecjax.errors import UserError
from ecjax.machine_code import writable

_MOST_CHUNKS = 255  # per item: a choice is stored in a byte


class Plan(NamedTuple):
    """Chunks to keep, and what that is worth, in the unit of tau."""

    chunks: np.ndarray  # (M,) int64
    value: float  # the largest that any plan has
    upper_bound: float  # of the linear relaxation, at least the value


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
    return plan(tau, capacity).chunks


def plan(tau: ArrayLike, capacity: int) -> Plan:
    """As ``exact``, with the value and the bound of the linear relaxation (see ``core_dp`` for how)."""
    values, room = checked(tau), checked_whole("capacity", capacity)
    chunks = np.zeros(len(values), np.int64)
    return Plan(chunks, *core_dp(values, min(room, values.size), chunks))


def exact_full(tau: ArrayLike, capacity: int) -> np.ndarray:
    """As ``exact``, by the whole dynamic programme: O(M C K) steps and M (C + 1) bytes."""
    values, room = checked(tau), checked_whole("capacity", capacity)
    chunks = np.zeros(len(values), np.int64)
    full_dp(values, min(room, values.size), chunks)
    return chunks


def checked(tau: ArrayLike) -> np.ndarray:
    """Values as ``exact`` takes them, (M, K + 1) float64 and writable.

    Raises:
        UserError: they are not as ``checked_valuation`` wants them, or K > 255.
    """
    values = checked_valuation(tau)
    if values.shape[1] - 1 > _MOST_CHUNKS:
        raise UserError(f"tau: found {values.shape[1] - 1} chunks per item; allowed: at most {_MOST_CHUNKS}")
    return writable(values)
