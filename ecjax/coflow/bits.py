"""Sets of up to 64 as words of bits, for loops that have to find the few members of an intersection."""

import numpy as np

from ecjax.machine_code import njit

# a de Bruijn sequence: the upper six bits of its product with a power of two differ for all 64 of them
_SEQUENCE = 0x03F79D71B4CB0A89
_PLACE = np.zeros(64, dtype=np.int64)
for _bit in range(64):
    _PLACE[((_SEQUENCE << _bit) & (2**64 - 1)) >> 58] = _bit
_MULTIPLIER = np.uint64(_SEQUENCE)
_SHIFT = np.uint64(58)
ONE, ZERO = np.uint64(1), np.uint64(0)


@njit(inline="always")
def lowest(word):
    """Place of the lowest bit that is set in ``word``, which is not 0."""
    only = word & (~word + ONE)
    return _PLACE[(only * _MULTIPLIER) >> _SHIFT]
