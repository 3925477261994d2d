"""The best numbers of chunks of all items: a knapsack with one choice per item, solved exactly."""

import operator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ecjax.cache.core_dp import core_dp
from ecjax.cache.full_dp import full_dp
from ecjax.errors import UserError

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
    values = checked_values(tau)
    chunks = np.zeros(len(values), np.int64)
    return Plan(chunks, *core_dp(values, checked_capacity(capacity, values.size), chunks))


def exact_full(tau: ArrayLike, capacity: int) -> np.ndarray:
    """As ``exact``, by the whole dynamic programme: O(M C K) steps and M (C + 1) bytes."""
    values = checked_values(tau)
    chunks = np.zeros(len(values), np.int64)
    full_dp(values, checked_capacity(capacity, values.size), chunks)
    return chunks


def checked_values(tau: ArrayLike, dimensions: int = 2) -> np.ndarray:
    """Values as float64, in order of rows.

    Raises:
        UserError: what ``exact`` does not take, or another number of dimensions.
    """
    try:
        values = np.asarray(tau)
    except ValueError:
        raise UserError("tau: rows differ in length; allowed: values of 0 to K chunks in each") from None
    if values.ndim != dimensions or values.shape[-1] < 1 or values.dtype.kind not in "biuf":
        shape = "(M, K + 1)" if dimensions == 2 else "(B, M, K + 1)"
        raise UserError(f"tau: {values.dtype} of shape {values.shape}; allowed: numbers of shape {shape}")
    if values.shape[-1] - 1 > _MOST_CHUNKS:
        raise UserError(f"tau: {values.shape[-1] - 1} chunks per item; allowed: at most {_MOST_CHUNKS}")
    values = np.ascontiguousarray(values, np.float64)
    ascending = (values[..., 0] == 0) & (values[..., -1] < np.inf)
    ascending &= (values[..., 1:] >= values[..., :-1]).all(axis=-1)
    if not ascending.all():
        at = np.unravel_index(np.argmin(ascending), ascending.shape)
        name = "row " if len(at) == 1 else f"cache {at[0]}, row "
        found = ", ".join(f"{x:g}" for x in values[at])
        raise UserError(f"tau: {name}{at[-1]} is [{found}]; allowed: finite, 0 first, nondecreasing")
    return values


def checked_capacity(capacity: int, most: int) -> int:
    """The capacity, at most ``most``.

    Raises:
        UserError: it is no whole number >= 0.
    """
    try:
        room = operator.index(capacity)
    except TypeError:
        raise UserError(f"capacity: found {capacity!r}; allowed: a whole number of chunks >= 0") from None
    if room < 0:
        raise UserError(f"capacity: found {room}; allowed: a whole number of chunks >= 0")
    return min(room, most)
