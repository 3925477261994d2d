"""The nodes of whole choices, row by row."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import HOT, NONE


class Places(NamedTuple):
    """Nodes of every row in ascending order, m after the last.

    Attributes:
        hot: (R, K) int16, or int32 where there are many nodes: those that reads use.
        stored: (R, N), those with a chunk.
    """

    hot: Any
    stored: Any


def places_of(kinds: np.ndarray) -> Places:
    """The nodes of choices (R, m) int8."""
    most_hot, most_stored = _most(kinds)
    rows, m = kinds.shape
    dtype = np.int16 if m < 2**15 else np.int32  # little to hand to a device
    places = Places(*(np.full((rows, max(width, 1)), m, dtype) for width in (most_hot, most_stored)))
    _fill(kinds, *places)
    return places


@njit()
def _most(kinds):
    """The most hot nodes, and the most nodes, of a row."""
    most_hot, most_stored = 0, 0
    for i in range(len(kinds)):
        hot, stored = 0, 0
        for j in range(kinds.shape[1]):
            hot += kinds[i, j] == HOT
            stored += kinds[i, j] != NONE
        most_hot, most_stored = max(most_hot, hot), max(most_stored, stored)
    return most_hot, most_stored


@njit()
def _fill(kinds, hot, stored):
    for i in range(len(kinds)):
        first, second = 0, 0
        for j in range(kinds.shape[1]):
            if kinds[i, j] != NONE:
                stored[i, second] = j
                second += 1
                if kinds[i, j] == HOT:
                    hot[i, first] = j
                    first += 1
