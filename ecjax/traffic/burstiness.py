"""How bursty arrivals are at every time scale, as far as the clock tells: dispersion of adjacent windows.

With counts by tick and windows of s = tick 2^l, l = 0, 1, ..., in adjacent pairs (n1, n2), n = n1 + n2:

    I(s) = sum (n1 - n2)^2 / sum n        se(s) = sqrt(2 sum n (n - 1)) / sum n        z = (I - 1) / se

Given n, n1 is binomial(n, 1/2) for Poisson arrivals of any rate that is constant over the pair: the mean 1 and the
standard error are exact then, and slow drift does not matter. (It is the Allan factor, normalised by the counts of the
pairs themselves; Allan, Proc. IEEE 54, 1966; Barnes and Allan, same issue.) The weight of the pairs is that of so many
equal ones: (sum n)^2 / sum n^2.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ecjax.machine_code import njit
from ecjax.tables.statistics.ticks import TickCounts

BURSTIER, REGULAR, POISSON, UNKNOWN = "burstier", "more regular", "as Poisson", "cannot tell"
_LEVEL = 0.01  # of false alarms, all scales together
_FAR = 0.1  # from 1, dispersion that matters
_NEAR = 0.3  # from 1, dispersion that would have been seen where arrivals are said to be as Poisson
_LEAST_PAIRS, _MOST_ERROR = 8.0, 1.0
_LEAST_ARRIVALS = 64  # so few cannot show that they are as Poisson, even where no two ever come together


class Dispersion(NamedTuple):
    """Dispersion of counts at every scale, (L,) each; NaN where no window has an arrival.

    Attributes:
        scale_s: length of a window (s), each twice the one before.
        dispersion: I(s); 1 for Poisson arrivals.
        standard_error: of it, for Poisson arrivals.
        pairs: equal pairs of windows that would tell as much.
        arrivals: in complete pairs of windows.
    """

    scale_s: np.ndarray
    dispersion: np.ndarray
    standard_error: np.ndarray
    pairs: np.ndarray
    arrivals: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Standard errors by which the dispersion is above that of Poisson arrivals, (L,); 0 where both vanish."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.standard_error > 0, (self.dispersion - 1) / self.standard_error, 0.0)


@njit()
def _pair_sums(window, count, used, pairs, sums):
    """Pair adjacent windows, in place, and add up complete pairs. Returns how many pairs have an arrival.

    ``sums``: of (n1 - n2)^2, n, n (n - 1) and n^2 over the first ``pairs`` pairs.
    """
    last, i = -1, 0
    while i < used:
        pair = window[i] >> 1
        total = count[i]
        difference = total
        if i + 1 < used and window[i + 1] >> 1 == pair:
            i += 1
            total += count[i]
            difference -= count[i]
        i += 1
        last += 1
        window[last], count[last] = pair, total
        if pair < pairs:
            n, d = float(total), float(difference)
            sums[0] += d * d
            sums[1] += n
            sums[2] += n * (n - 1.0)
            sums[3] += n * n
    return last + 1


def dispersion(counts: TickCounts, segments: Sequence[tuple[int, int]] | None = None) -> Dispersion:
    """Dispersion I(s) at the scales from the tick on of which there is a complete pair of windows.

    Args:
        counts: arrivals by tick.
        segments: ticks from and to (not included) which to look at, each by itself, with windows from its first tick
            on; None: the whole log.
    """
    parts = [(0, counts.length)] if segments is None else segments
    levels = max((end - begin).bit_length() - 1 for begin, end in parts) if parts else 0
    sums = np.zeros((max(levels, 0), 4))
    for begin, end in parts:
        first, last = np.searchsorted(counts.tick, [begin, end])
        window = counts.tick[first:last] - begin
        count = counts.arrivals[first:last].copy()
        used = len(window)
        for level in range((end - begin).bit_length() - 1):
            used = _pair_sums(window, count, used, (end - begin) >> (level + 1), sums[level])
    scale = counts.tick_s * 2.0 ** np.arange(len(sums))
    resolved = scale >= counts.least * counts.tick_s
    squares, arrivals, ordered, weights = sums[resolved].T
    with np.errstate(divide="ignore", invalid="ignore"):
        return Dispersion(
            scale[resolved],
            squares / arrivals,
            np.sqrt(2 * ordered) / arrivals,
            np.where(arrivals > 0, arrivals**2 / weights, 0.0),
            arrivals,
        )


def verdicts(table: Dispersion) -> list[str]:
    """What every scale says: burstier than Poisson, more regular, as Poisson, or that it cannot tell, (L,).

    The first two hold together at a level of 1 % over all scales; ``as Poisson`` says that a dispersion 0.3 away from 1
    would have shown.
    """
    critical = float(-ndtri(_LEVEL / (2 * max(len(table.scale_s), 1))))
    dispersed, z = table.dispersion, table.z
    conditions = (
        ~((table.pairs >= _LEAST_PAIRS) & (table.standard_error <= _MOST_ERROR)),
        (z > critical) & (dispersed > 1 + _FAR),
        (z < -critical) & (dispersed < 1 - _FAR),
        (critical * table.standard_error < _NEAR) & (table.arrivals >= _LEAST_ARRIVALS),
    )
    return np.select(conditions, (UNKNOWN, BURSTIER, REGULAR, POISSON), UNKNOWN).tolist()


class Busiest(NamedTuple):
    """The busiest window of some length.

    Attributes:
        start_s: since the log's first arrival.
        arrivals: in it.
        ratio: of them to the mean number in so long a time.
    """

    start_s: float
    arrivals: int
    ratio: float


@njit()
def _most(tick, count, width):
    """Place of the first tick of the window of ``width`` ticks with the most arrivals, and their number."""
    best, place, first, total = 0, 0, 0, 0
    for i in range(tick.shape[0]):
        total += count[i]
        while tick[i] - tick[first] >= width:
            total -= count[first]
            first += 1
        if total > best:
            best, place = total, first
    return place, best


def busiest(counts: TickCounts, window_s: float, tolerance: float = math.inf) -> Busiest | None:
    """The busiest window of so many seconds in whole ticks, wherever it begins; None where there is none.

    That is where the log is shorter than two of them, where the clock is too coarse, or ``tolerance`` is not kept.

    Args:
        counts: arrivals by tick.
        window_s: length (s).
        tolerance: how far off, as a share of that length, whole ticks may be.
    """
    width = round(window_s / counts.tick_s)
    if width < counts.least or counts.length < 2 * width or not counts.tick.size:
        return None
    if abs(width * counts.tick_s / window_s - 1) > tolerance:
        return None
    # of a window that is no whole number of ticks the mean is that of as many
    place, most = _most(counts.tick, counts.arrivals, width)
    mean = counts.arrivals.sum() * (width / counts.length)
    return Busiest(float(counts.tick[place] * counts.tick_s), int(most), float(most / mean))
