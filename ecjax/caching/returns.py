"""How far the mixture of ``experts`` is right about items of a kind: by number of reads and age of the last one.

Every law of the mixture expects an item less the longer ago it was read, and its weights follow the many reads that
come again soon. What a cache lets go is older: there it matters whether items of one read come again at all (after a
scan they do not), and whether items come again after some time (a loop) rather than soon. So the rate of an item is
that of the mixture, times

    (P + reads that came) / (P + reads that the mixture expected)

of its kind: the octave of its age in reads, and that of its number of reads. Where the mixture is right, as with Zipf's
law, this is 1, and P = 100 reads hold it there. Both sums are halved every ``HALVED`` reads.

What the mixture expects of all items of a kind is sampled: at every read one item of the latest 2^15 reads, at a
uniform age within an octave, the octaves in turn, and one of all items known, which counts where it was read before
these. Both are drawn by multiples of the golden ratio (low discrepancy), so that a replay is the same every time.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.caching.experts import LAST, NUMBER, next_read
from ecjax.machine_code import njit

OCTAVES = 15  # of ages that are sampled by themselves
RECENT = 1 << OCTAVES  # reads that are remembered
HALVED = 16384  # reads
PRIOR = 100.0  # P, reads
_AGES, _NUMBERS = 48, 6  # octaves that are told apart
_GOLDEN = 0.6180339887498949


class Returns(NamedTuple):
    """What E edges know of the returns of M items."""

    known: np.ndarray  # (E,) int64, items read so far
    order: np.ndarray  # (E, M) int64, these, by their first read
    recent: np.ndarray  # (E, RECENT) int64, item of the read after which the clock was t, at t modulo RECENT
    came: np.ndarray  # (E, numbers, ages) reads of items of the kind
    expected: np.ndarray  # (E, numbers, ages) by the mixture


def begin_returns(edges: int, items: int) -> Returns:
    """Nothing is known; for no items, nothing is remembered."""
    return Returns(
        known=np.zeros(edges, np.int64),
        order=np.zeros((edges, items), np.int64),
        recent=np.zeros((edges, RECENT if items else 0), np.int64),
        came=np.zeros((edges, _NUMBERS, _AGES)),
        expected=np.zeros((edges, _NUMBERS, _AGES)),
    )


@njit(inline="always")
def _exponent(count):
    """Of the floating-point form: floor(log2(count)), and far below 0 for 0."""
    return (np.float64(count).view(np.int64) >> 52) - 1023


@njit(error_model="numpy")
def _kind(number, age):
    """Octaves of a number of reads, 1 by itself, and of an age and the read itself."""
    return min(max(_exponent(number - 1) + 1, 0), _NUMBERS - 1), min(_exponent(age + 1), _AGES - 1)


@njit(error_model="numpy")
def rate(experts, returns, e, m):
    """How often item m is read at edge e, in parts of a read; 0 where it has never been read."""
    expected = next_read(experts, e, m)
    if expected == 0.0:
        return 0.0
    last, number = experts.memory[e, m, LAST], experts.memory[e, m, NUMBER]
    n, a = _kind(number, experts.clock[e] - last)
    return expected * (PRIOR + returns.came[e, n, a]) / (PRIOR + returns.expected[e, n, a])


@njit(error_model="numpy")
def count_return(experts, returns, e, m):
    """Count a read of item m at edge e; to be called before ``experts.learn``.

    Args:
        experts: Experts.
        returns: Returns, updated.
        e: edge.
        m: item.
    """
    known, order, recent = returns.known, returns.order, returns.recent
    came, expected = returns.came, returns.expected
    clock, memory = experts.clock[e], experts.memory
    if memory[e, m, NUMBER] > 0.0:
        n, a = _kind(memory[e, m, NUMBER], clock - memory[e, m, LAST])
        came[e, n, a] += 1.0
    else:
        order[e, known[e]] = m
        known[e] += 1
    if clock > 0:
        turn = clock * _GOLDEN
        share = turn - math.floor(turn)
        octave = clock % OCTAVES
        length = 1 << octave
        age = length + int(share * length) - 1
        if age < clock:
            other = recent[e, (clock - age) & (RECENT - 1)]
            if memory[e, other, LAST] == clock - age:
                n, a = _kind(memory[e, other, NUMBER], age)
                expected[e, n, a] += OCTAVES * length * next_read(experts, e, other)
        other = order[e, int(share * known[e])]
        if memory[e, other, NUMBER] > 0.0 and clock - memory[e, other, LAST] >= RECENT - 1:
            n, a = _kind(memory[e, other, NUMBER], clock - memory[e, other, LAST])
            expected[e, n, a] += known[e] * next_read(experts, e, other)
        if clock % HALVED == 0:
            # in loops: of slices Numba compiles the text of an error message, too
            for n in range(came.shape[1]):
                for a in range(came.shape[2]):
                    came[e, n, a] *= 0.5
                    expected[e, n, a] *= 0.5
    recent[e, (clock + 1) & (RECENT - 1)] = m
