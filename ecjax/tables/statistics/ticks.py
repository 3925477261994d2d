"""Counts of arrivals by tick of the clock, streamed in bounded memory: only ticks at which something arrived.

All series (reads and writes, or the reads of each class) share a number of ticks; where one has more than its part, its
neighbouring ticks become one, so that what is lost are the shortest times of long logs. The pieces of a log give
together what one pass gives: ticks and counts are integers, and a tick is as long as the whole log needs.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ecjax.machine_code import njit

_TICKS = 1 << 21  # of all series together
_LEAST_TICKS = 1 << 12  # of one
MOST_SERIES = _TICKS // _LEAST_TICKS
_CONTINUOUS_S = 2.0**-20  # ticks of a clock that is as good as continuous
_UNEVEN = 64  # steps of the clock in a window, from which on one more or less does not matter
_NO_GAP = 1 << 62
_TIED = 0.05  # share of arrivals that tie on a clock of long steps
_APART = 20.0  # shortest gap between random times, to its mean; longer ones have a chance of exp(-20)
_LEAST_GAPS = 64  # between times that differ, of which whole numbers of ticks say something
_LEAST_PLACES = 3  # of a tick whose beginnings, each rounded to a place, show that they are regular
_REGULAR = 0.99  # share of gaps that are whole numbers of ticks, but where the clock was set
_SLEWED = 1e-3  # of a tick
_WINDOWS = (1, 2, 4, 8, 16, 32)  # gaps in a row that together are whole numbers of ticks, too
_ROUNDED = 1.5  # places: of both ends of a window, and of the mean tick
_DRIFT = 1e-4  # of the length of a window, as clocks are slewed
_EVEN = 0.5  # of arrivals by tick, variance to mean: random ones have 1, and those in bursts more


class TickCounts(NamedTuple):
    """Arrivals of one series by tick.

    Attributes:
        tick_s: length of a tick (s).
        length: ticks from the log's first arrival to its last, both included.
        tick: (E,) int64, ascending: those at which something arrived; 0 is that of the log's first arrival.
        arrivals: (E,) int64, how many did, at least 1.
        least: shortest window that tells something, in ticks: more than 1 where the clock's steps are longer.
    """

    tick_s: float
    length: int
    tick: np.ndarray
    arrivals: np.ndarray
    least: int = 1


@njit()
def _coarsened(ticks, counts, used, limit):
    """Join neighbouring ticks, in place, until fewer than ``limit`` are left.

    Returns:
        How many there are then, and how many times their length was doubled.
    """
    low, level = 0, 63  # so many doublings are too few, and enough
    while level - low > 1:
        middle = (low + level) // 2
        rest = 1
        for i in range(1, used):
            rest += (ticks[i] >> middle) != (ticks[i - 1] >> middle)
        if rest < limit:
            level = middle
        else:
            low = middle
    last = -1
    for i in range(used):
        tick = ticks[i] >> level
        if last >= 0 and ticks[last] == tick:
            counts[last] += counts[i]
        else:
            last += 1
            ticks[last], counts[last] = tick, counts[i]
    return last + 1, level


@njit()
def _add(places, series, limit, ticks, counts, used, level):
    """Count arrivals at ``places`` (n,) of the clock; a tick of series s is 2^level[s] places."""
    for i in range(places.shape[0]):
        s = series[i]
        if s < 0:
            continue
        while True:
            tick, last = places[i] >> level[s], used[s] - 1
            if last >= 0 and ticks[s, last] == tick:
                counts[s, last] += 1
                break
            if used[s] < limit:
                ticks[s, last + 1], counts[s, last + 1] = tick, 1
                used[s] += 1
                break
            used[s], doublings = _coarsened(ticks[s], counts[s], used[s], limit)
            level[s] += doublings


@njit(inner=True)
def _nearest(value):
    """The nearest whole number, of two the higher one: halves rounded to even would join neighbours in pairs."""
    whole = np.floor(value)
    return whole + 1.0 if value - whole >= 0.5 else whole


@njit()
def _placed(times, first, unit, ticked):
    """Places of times on the clock, (n,) int64; that of ``first`` is 0."""
    places = np.empty(times.shape[0], np.int64)
    origin = _nearest(first / unit)
    for i in range(times.shape[0]):
        # times of a clock with steps are multiples of them, but for their own rounding
        places[i] = np.int64(_nearest(times[i] / unit) - origin if ticked else (times[i] - first) / unit)
    return places


@njit()
def _common_step(places, step):
    """Greatest common divisor of ``step`` and all ``places``."""
    for i in range(places.shape[0]):
        if step == 1:
            break
        value = places[i]
        while value != 0:
            step, value = value, step % value
    return step


@njit()
def _shortest_gap(places, last, shortest):
    """The shortest gap between places that differ, ``last`` being the one before them; at most ``shortest``."""
    for i in range(places.shape[0]):
        gap = places[i] - last
        if 0 < gap < shortest:
            shortest = gap
        last = places[i]
    return shortest


class Clock:
    """The clock of a log: the places of its times, and the longest step that they agree with.

    Args:
        resolution_s: its step (s); 0 where it is as good as continuous.
        first_s: the log's first arrival (s); default: the first of which the place is asked for.
    """

    def __init__(self, resolution_s: float, first_s: float | None = None) -> None:
        self._ticked, self._first_s = resolution_s > 0, first_s
        self.unit_s = resolution_s if self._ticked else _CONTINUOUS_S
        self.step, self.last = 0, 0  # common divisor of all places, and the last one
        self._begin: int | None = None  # the first place that was asked for
        self._shortest = _NO_GAP

    @property
    def step_s(self) -> float:
        """The longest step (s) of which all times since the first arrival are multiples; 0: none shows."""
        return self.unit_s * self.step if self._ticked or self.step > 1 else 0.0

    def uneven_step(self, arrivals: int, ties: int) -> int:
        """Places from tick to tick, where the clock ticks in steps that are no whole number of places; 0: it does not.

        A clock of 64 ticks a second that is written in milliseconds, say. It is told by arrivals that tie, and by
        times that are further apart than any random times are.

        Args:
            arrivals: of requests.
            ties: arrivals at the same time as the one before.
        """
        times = arrivals - ties
        apart = self._shortest > max(self.step, 1) and self._shortest * times**2 > _APART * self.last
        return self._shortest if apart and ties > _TIED * arrivals and self._shortest < _NO_GAP else 0

    def places(self, times: np.ndarray) -> np.ndarray:
        """Places of arrivals in order, in seconds, (n,) -> (n,) int64; that of the log's first arrival is 0."""
        if not times.shape[0]:
            return np.zeros(0, np.int64)
        if self._first_s is None:
            self._first_s = float(times[0])
        places = _placed(times, self._first_s, self.unit_s, self._ticked)
        self.step = int(_common_step(places, np.int64(self.step)))
        if self._begin is None:
            self._begin = self.last = int(places[0])
        self._shortest = int(_shortest_gap(places, np.int64(self.last), np.int64(self._shortest)))
        self.last = int(places[-1])
        return places

    def without_rounding(self, since_s: np.ndarray) -> np.ndarray:
        """Times since the first arrival (s) as the clock has them; times since 1970 are written less exactly."""
        return np.rint(since_s / self.unit_s) * self.unit_s if self._ticked else since_s

    def absorb(self, other: "Clock") -> None:
        """Take in the times of later arrivals of the same log."""
        if other._begin is not None:
            self._shortest = min(self._shortest, other._shortest, other._begin - self.last or _NO_GAP)
            self.step, self.last = math.gcd(self.step, other.step), other.last


class UnevenTicks(NamedTuple):
    """Ticks of a clock that are no whole number of the steps that it is written in: 64 a second in milliseconds.

    Attributes:
        length_s: mean length of a tick (s).
        times_s: (T,) as they are written (s), each once, ascending.
        number: (T,) int64, ticks from the first of them to each.
    """

    length_s: float
    times_s: np.ndarray
    number: np.ndarray

    def on(self, times_s: np.ndarray) -> np.ndarray:
        """When the clock ticked since the first of its times, for times as they are written, s, (n,) each."""
        place = np.maximum(np.searchsorted(self.times_s, times_s, side="right") - 1, 0)
        later = np.rint((times_s - self.times_s[place]) / self.length_s)
        ticked: np.ndarray = (self.number[place] + later) * self.length_s
        return ticked


def uneven_ticks(times: np.ndarray, resolution_s: float) -> UnevenTicks | None:
    """Ticks of the clock of a log, where they are no whole number of its steps; None: they are, or none show.

    Beside what ``Clock.uneven_step`` asks for, all gaps have to be whole numbers of ticks, alone and in a row, as those
    between batches that come by themselves are not, and numbers of arrivals by tick have to vary: a client that sends
    as many at regular times looks like a clock, and the finer one, which takes them to come together, is taken.

    Args:
        times: arrivals in order, s, (n,).
        resolution_s: step in which they are written; 0 where it is as good as continuous.
    """
    clock = Clock(resolution_s)
    gaps = np.diff(clock.places(times), prepend=-1)  # the first time is none that ties
    begins = np.flatnonzero(gaps)
    gaps = gaps[begins[1:]]
    step = clock.uneven_step(len(times), len(times) - len(begins))
    if step < _LEAST_PLACES or len(gaps) < _LEAST_GAPS:
        return None
    lengths, counts = np.unique(gaps, return_counts=True)
    # of single ticks first, then of longer and longer gaps, whose numbers of ticks the mean so far tells
    tick, reach = float(step), 1.5
    while True:
        ticks, near = np.rint(lengths / tick), lengths <= reach * tick
        tick = float((lengths * counts)[near].sum() / (ticks * counts)[near].sum())
        if near.all():
            break
        reach *= 4
    number = np.append(0, np.cumsum(np.rint(gaps / tick).astype(np.int64)))
    arrivals = np.diff(begins, append=len(times))
    if not _is_regular(gaps, number, tick) or _are_even(arrivals, int(number[-1]) + 1):
        return None
    return UnevenTicks(tick * clock.unit_s, times[begins], number)


def _is_regular(gaps: np.ndarray, number: np.ndarray, tick: float) -> bool:
    """Whether times are those of ticks but for their rounding; jitter of a client adds up, or is more than that.

    Args:
        gaps: between times, places, (T - 1,).
        number: of the tick of each time, (T,).
        tick: places of one.
    """
    # both ends of a gap are rounded by half a place, and clocks are slewed
    whole = np.abs(gaps - np.diff(number) * tick) <= 1.0 + _SLEWED * tick
    late, settings = np.append(0, np.cumsum(gaps)) - number * tick, np.append(0, np.cumsum(~whole))
    shares = [float(whole.mean())]
    for window in _WINDOWS:
        off, length = np.abs(late[window:] - late[:-window]), (number[window:] - number[:-window]) * tick
        unset = settings[window:] == settings[:-window]
        shares.append(float(np.mean((off <= _ROUNDED + _DRIFT * length)[unset])) if unset.any() else 1.0)
    return min(shares) >= _REGULAR


def _are_even(arrivals: np.ndarray, ticks: int) -> bool:
    """Whether numbers of arrivals by tick vary less than those of requests that come at random, the others being 0."""
    mean = float(arrivals.sum()) / ticks
    return float(arrivals @ arrivals) / ticks - mean**2 < _EVEN * mean


class TickHistogram:
    """Counts by tick of several series on one clock."""

    def __init__(self) -> None:
        self._series = 0
        self._ticks: np.ndarray = np.zeros((0, 0), np.int64)
        self._counts: np.ndarray = np.zeros((0, 0), np.int32)
        self._used, self._level = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def series(self) -> int:
        """Number of series; 0 also where they are more than ``MOST_SERIES``, and none is counted."""
        return self._series if self._series <= MOST_SERIES else 0

    def add(self, places: np.ndarray, series: np.ndarray) -> None:
        """Add arrivals in order: places on the clock (n,), and the series of each (n,), negative where of none."""
        self._widen(int(series.max(initial=-1)) + 1)
        if self.series:
            self._make_room(places.shape[0])
            _add(places, series, self._limit, self._ticks, self._counts, self._used, self._level)

    def absorb(self, other: "TickHistogram", series: np.ndarray) -> None:
        """Add arrivals that come later; ``series`` (series there,) are the numbers here of the series there."""
        self._widen(MOST_SERIES + 1 if other._series > MOST_SERIES else int(series.max(initial=-1)) + 1)
        for number, place in enumerate(series) if self.series else ():
            self._absorb_series(place, other, number)

    def counts(self, series: int, clock: Clock, uneven: int = 0) -> TickCounts:
        """What was counted of a series.

        Args:
            series: number of it.
            clock: of all that was added.
            uneven: its uneven step, in places, if any.
        """
        used, level = int(self._used[series]), int(self._level[series])
        ticks, counts = self._ticks[series, :used].copy(), self._counts[series, :used].astype(np.int64)
        step = max(clock.step, 1)
        width = step if level == 0 else 1 << level
        if level == 0:
            ticks = ticks // step
        elif width % step and step & (step - 1):
            uneven = max(uneven, step)
        least = max(-(-_UNEVEN * uneven // width), -(-step // width), 1)
        return TickCounts(clock.unit_s * width, clock.last // width + 1, ticks, counts, least)

    def __getstate__(self) -> dict[str, Any]:
        most = int(self._used.max(initial=0))
        used = {"_ticks": self._ticks[:, :most].copy(), "_counts": self._counts[:, :most].copy()}
        return self.__dict__ | used

    @property
    def _limit(self) -> int:
        """Ticks that a series may have."""
        return _TICKS // max(self._series, 2)

    def _widen(self, series: int) -> None:
        """Have at least so many series."""
        if series <= self._series:
            return
        self._series = series
        if not self.series:
            self._ticks, self._counts = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int32)
            self._used, self._level = np.zeros(0, np.int64), np.zeros(0, np.int64)
            return
        more = series - len(self._used)
        self._used, self._level = np.pad(self._used, (0, more)), np.pad(self._level, (0, more))
        self._ticks, self._counts = (
            np.pad(each, ((0, more), (0, 0))) for each in (self._ticks, self._counts)
        )
        for number in np.flatnonzero(self._used > self._limit):
            used, doublings = _coarsened(
                self._ticks[number], self._counts[number], self._used[number], self._limit + 1
            )
            self._used[number], self._level[number] = used, self._level[number] + doublings
        room = min(self._ticks.shape[1], self._limit)
        self._ticks, self._counts = self._ticks[:, :room].copy(), self._counts[:, :room].copy()

    def _make_room(self, more: int) -> None:
        """Have room for so many ticks more in every series, as far as they may have them."""
        room, ticks = self._ticks.shape[1], min(int(self._used.max()) + more, self._limit)
        if ticks > room:
            extra = min(max(ticks, 2 * room), self._limit) - room
            self._ticks, self._counts = (
                np.pad(each, ((0, 0), (0, extra))) for each in (self._ticks, self._counts)
            )

    def _absorb_series(self, series: int, other: "TickHistogram", number: int) -> None:
        used, later = int(self._used[series]), int(other._used[number])
        level = max(self._level[series], other._level[number])
        ticks = np.concatenate(
            [
                self._ticks[series, :used] >> (level - self._level[series]),
                other._ticks[number, :later] >> (level - other._level[number]),
            ]
        )
        counts = np.concatenate([self._counts[series, :used], other._counts[number, :later]])
        begins = np.flatnonzero(np.diff(ticks, prepend=-1))
        ticks, counts = ticks[begins], np.add.reduceat(counts, begins) if begins.size else counts
        if len(ticks) > self._limit:
            rest, doublings = _coarsened(ticks, counts, len(ticks), self._limit + 1)
            ticks, counts, level = ticks[:rest], counts[:rest], level + doublings
        self._make_room(max(0, len(ticks) - int(self._used.max())))
        self._ticks[series, : len(ticks)], self._counts[series, : len(ticks)] = ticks, counts
        self._used[series], self._level[series] = len(ticks), level
