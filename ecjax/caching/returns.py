"""How far the mixture of ``experts`` is right about items of a kind: by their reads so far and the age of the last one.

Every law of the mixture expects an item less the longer ago it was read, and its weights follow the many reads that
come again soon. What a cache lets go is older: there it matters whether items of one read come again at all (after a
scan they do not), whether those of many do after so long, and whether items come again after some time (a loop) rather
than soon. So the reads of a kind that came are held against those that the mixture expected. A kind is the octave of
the number of reads, the gap between the last two (five classes of three octaves: the counters do not tell a
burst long ago from as many reads far apart), and the octave of the age, in reads. The mixture is right by the factor

    f = (Q f_0 + c) / (Q + x),     f_0 = (P + came) / (P + expected) of the kind, all gaps,

with x the reads of the kind that were expected, and c those that came, moved towards f_0 x by ``DOUBT`` standard
errors, sqrt(f_0 x + Q), as far as that: of the many kinds some are off by chance. Where the mixture is right, as with
Zipf's law, both factors are 1, and P = 100 and Q = 15 reads hold them there. Sums are halved every ``HALVED`` reads.

With q(a) the mean rate of the mixture in octave a and h(a) = f q(a), the rate of an item is that of the mixture, times
the larger of f and

    max_b [probability of a read in octaves a to b] / [mean time until then, or until b ends] / q(a),

what room for the item gains per read if it is let go at the best time (an index as Gittins's; rates h of later octaves
less ``DOUBT`` standard errors, for the largest of several is too large by chance). Where rates fall with age f is the
larger. In a loop they rise: the item that was just read comes last of all, and to keep some items for a whole round,
whichever, is better than to keep the latest.

What the mixture expects of all items of a kind is sampled: at every read one item of the latest 2^15 reads, at a
uniform age within an octave, the octaves in turn, and one of all items known, which counts where it was read before
these. Both are drawn by multiples of the golden ratio (low discrepancy), so that a replay is the same every time.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.caching.experts import GAP, LAST, NUMBER, next_read
from ecjax.machine_code import njit

OCTAVES = 15  # of ages that are sampled by themselves
RECENT = 1 << OCTAVES  # reads that are remembered
HALVED = 16384  # reads
PRIOR, PRIOR_OF_GAPS = 100.0, 15.0  # P and Q, reads
DOUBT = 2.0  # standard errors that are taken for chance
LOOKED = 64  # reads after which one looks ahead anew
_NUMBERS, _GAPS, _AGES = 6, 5, 32  # octaves that are told apart, and classes of gaps
_GAP_OCTAVES = 3  # of a class
_VANISHED = 1e-200  # rates that are as none
_GOLDEN = 0.6180339887498949


class Returns(NamedTuple):
    """What E edges know of the returns of M items."""

    known: np.ndarray  # (E,) int64, items read so far
    order: np.ndarray  # (E, M) int64, these, by their first read
    recent: np.ndarray  # (E, RECENT) int64, item of the read after which the clock was t, at t modulo RECENT
    came: np.ndarray  # (E, numbers, gaps, ages) reads of items of the kind
    expected: np.ndarray  # (E, numbers, gaps, ages) by the mixture
    exposed: np.ndarray  # (E, numbers, gaps, ages) items of the kind, summed over reads
    ahead: np.ndarray  # (E, numbers, gaps, ages) the second factor; 0 where the first is the larger
    hazard: np.ndarray  # (2, ages) h, and the largest of all later ones; of ``_look_ahead`` only


def begin_returns(edges: int, items: int) -> Returns:
    """Nothing is known; for no items, nothing is remembered."""
    kinds = (edges, _NUMBERS, _GAPS, _AGES)
    return Returns(
        known=np.zeros(edges, np.int64),
        order=np.zeros((edges, items), np.int64),
        recent=np.zeros((edges, RECENT if items else 0), np.int64),
        came=np.zeros(kinds),
        expected=np.zeros(kinds),
        exposed=np.zeros(kinds),
        ahead=np.zeros(kinds),
        hazard=np.zeros((2, _AGES)),
    )


@njit(inline="always")
def _exponent(count):
    """Of the floating-point form: floor(log2(count)), and far below 0 for 0."""
    return (np.float64(count).view(np.int64) >> 52) - 1023


@njit(error_model="numpy")
def _kind(number, gap, age):
    """Octaves of a number of reads, 1 by itself, class of a gap, octave of an age and the read itself."""
    return (
        min(max(_exponent(number - 1) + 1, 0), _NUMBERS - 1),
        min(_exponent(gap + 1) // _GAP_OCTAVES, _GAPS - 1),
        min(_exponent(age + 1), _AGES - 1),
    )


@njit(inline="always", error_model="numpy")
def _kind_of(experts, e, m):
    """Kind of item m, which has been read."""
    memory = experts.memory
    return _kind(memory[e, m, NUMBER], memory[e, m, GAP], experts.clock[e] - memory[e, m, LAST])


@njit(error_model="numpy")
def rate(experts, returns, e, m):
    """How often item m is read at edge e, in parts of a read; 0 where it has never been read."""
    expected = next_read(experts, e, m)
    if expected == 0.0:
        return 0.0
    n, g, a = _kind_of(experts, e, m)
    return expected * max(_right_by(returns, e, n, g, a), returns.ahead[e, n, g, a])


@njit(error_model="numpy")
def _right_by(returns, e, n, g, a):
    """Factor by which the mixture is right about items of a kind."""
    came, expected = returns.came, returns.expected
    all_came, all_expected = PRIOR, PRIOR
    for gap in range(_GAPS):
        all_came += came[e, n, gap, a]
        all_expected += expected[e, n, gap, a]
    of_all = all_came / all_expected
    by_all = of_all * expected[e, n, g, a]
    off = came[e, n, g, a] - by_all
    doubt = DOUBT * math.sqrt(by_all + PRIOR_OF_GAPS)
    if abs(off) <= doubt:
        return of_all
    return of_all + (off - math.copysign(doubt, off)) / (PRIOR_OF_GAPS + expected[e, n, g, a])


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
    clock, memory = experts.clock[e], experts.memory
    if memory[e, m, NUMBER] > 0.0:
        n, g, a = _kind_of(experts, e, m)
        returns.came[e, n, g, a] += 1.0
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
                _expect(experts, returns, e, other, OCTAVES * length)
        other = order[e, int(share * known[e])]
        if memory[e, other, NUMBER] > 0.0 and clock - memory[e, other, LAST] >= RECENT - 1:
            _expect(experts, returns, e, other, known[e])
        if clock % LOOKED == 0:
            for n in range(_NUMBERS):
                for g in range(_GAPS):
                    _look_ahead(returns, e, n, g)
        if clock % HALVED == 0:
            _halve(returns, e)
    recent[e, (clock + 1) & (RECENT - 1)] = m


@njit(error_model="numpy")
def _expect(experts, returns, e, m, items):
    """Count what the mixture expects of so many items, of which m is one that was drawn."""
    n, g, a = _kind_of(experts, e, m)
    returns.expected[e, n, g, a] += items * next_read(experts, e, m)
    returns.exposed[e, n, g, a] += items


@njit(error_model="numpy")
def _halve(returns, e):
    """Forget half of the sums, in loops: of slices Numba compiles the text of an error message, too."""
    came, expected, exposed = returns.came, returns.expected, returns.exposed
    for n in range(_NUMBERS):
        for g in range(_GAPS):
            for a in range(_AGES):
                came[e, n, g, a] *= 0.5
                expected[e, n, g, a] *= 0.5
                exposed[e, n, g, a] *= 0.5


@njit(error_model="numpy")
def _look_ahead(returns, e, n, g):
    """Find the ages at which items of so many reads and such a gap are worth keeping for later ones.

    An octave of which no item was drawn ends the view: nothing is known of what comes then.
    """
    came, expected, exposed = returns.came, returns.expected, returns.exposed
    ahead, hazard = returns.ahead, returns.hazard
    later = 0.0
    for a in range(_AGES - 1, -1, -1):
        hazard[0, a], hazard[1, a] = 0.0, later
        if exposed[e, n, g, a] > 0.0:
            hazard[0, a] = expected[e, n, g, a] / exposed[e, n, g, a] * _right_by(returns, e, n, g, a)
        later = max(later, hazard[0, a]) if hazard[0, a] > _VANISHED else 0.0
    for a in range(_AGES):
        ahead[e, n, g, a] = 0.0
        best = hazard[0, a]
        if best <= _VANISHED or hazard[1, a] <= best:
            continue
        length = 0.5 * 2.0**a  # what is left of an octave in the middle of it
        kept, hits, reads, b = 1.0, 0.0, 0.0, a
        while hazard[0, b] > _VANISHED:
            held = hazard[0, b]
            if b > a:
                held *= max(0.0, 1.0 - DOUBT / math.sqrt(1.0 + came[e, n, g, b]))
            read = -kept * math.expm1(-held * length)
            kept -= read
            hits += read
            reads += read / held if held > 0.0 else kept * length
            if b > a:
                best = max(best, hits / reads)
            if hazard[1, b] <= best:
                break
            b += 1
            length = 2.0**b
        if best > hazard[0, a]:
            ahead[e, n, g, a] = best * exposed[e, n, g, a] / expected[e, n, g, a]
