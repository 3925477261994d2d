"""The nodes of whole choices, row by row."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.choice import HOT, NONE

# one program for codes of most lengths: each takes seconds to compile, and what is empty little time
_STEP, _FEW_ROWS = 16, 20_000
_STEP_OF_MANY = 4


class Places(NamedTuple):
    """Nodes of every row in ascending order, m after the last.

    Attributes:
        hot: (R, K) int16, or int32 where there are many nodes: those that reads use; K, as N, is more than needed.
        stored: (R, N), those with a chunk.
    """

    hot: Any
    stored: Any


def places_of(kinds: np.ndarray) -> Places:
    """The nodes of choices (R, m) int8."""
    most_hot, most_stored = _most(kinds)
    rows, m = kinds.shape
    dtype = np.int16 if m < 2**15 else np.int32  # little to hand to a device
    step = _STEP if rows <= _FEW_ROWS else _STEP_OF_MANY
    widths = (step * -(-max(most, 1) // step) for most in (most_hot, most_stored))
    places = Places(*(np.full((rows, width), m, dtype) for width in widths))
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
