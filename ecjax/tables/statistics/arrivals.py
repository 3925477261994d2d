"""The arrival process of a trace, streamed: gaps, blocks for the Poisson test, and counts over time.

A clock that ticks coarser than the gaps makes ties, which no Poisson process has. Each arrival recorded at a tick is
therefore spread uniformly over [tick, tick + resolution) before gaps are taken: under a Poisson process with a steady
rate within the tick this is exactly the law of the arrivals given their number. Arrivals that are told by an end on a
coarse clock and a finer duration are put on the nearest tick before that, of two the later one: between ticks they only
seem to be apart.
"""

import math

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.sections import Sections, borders

TIME_BINS = 1024
_FIRST_BIN_S = 2.0**-20
_MOST_DIGITS = 9  # of a resolution


@njit()
def _ticks(times, ticks, counts):
    """Runs of equal times. Returns how many there are."""
    last = -1
    for i in range(times.shape[0]):
        if last < 0 or times[i] != ticks[last]:
            last += 1
            ticks[last], counts[last] = times[i], 0
        counts[last] += 1
    return last + 1


@njit()
def _coarsen(bins):
    """Bins of twice the width."""
    half = bins.shape[0] // 2
    for j in range(half):
        for c in range(bins.shape[1]):
            bins[j, c] = bins[2 * j, c] + bins[2 * j + 1, c]
    bins[half:] = 0.0


@njit()
def _bin(times, writes, sizes, origin, width, bins):
    """Count into time bins, doubling their width as time goes on. Returns the width."""
    for i in range(times.shape[0]):
        place = (times[i] - origin) / width
        while place >= bins.shape[0]:
            _coarsen(bins)
            width *= 2.0
            place *= 0.5
        row = bins[int(place)]
        if writes[i]:
            row[1] += 1.0
        else:
            row[0] += 1.0
        row[2] += sizes[i]
    return width


def _as_decimal(resolution_s: float) -> tuple[float, float]:
    """A resolution as a whole number over a power of ten, so that ticks have the bits of times that were written."""
    for digits in range(_MOST_DIGITS + 1):
        steps = round(resolution_s * 10.0**digits)
        if steps and math.isclose(steps, resolution_s * 10.0**digits, rel_tol=1e-9):
            return float(steps), 10.0**digits
    return resolution_s, 1.0


class ArrivalProcess:
    """Gaps between requests, distances of the blocks for the Poisson test, and counts over time.

    What comes before the first border (see ``sections``) of a part of a log is kept as ticks, time and number of
    arrivals, until ``absorb``.

    Args:
        resolution_s: the clock's resolution (s); 0 leaves ties as they are.
        seed: of the spreading within ticks and of the borders.
        first_s: the log's first arrival (s); default: the first that is added.
        continues: whether arrivals come before those that are added.
    """

    def __init__(
        self, resolution_s: float, seed: int, first_s: float | None = None, continues: bool = False
    ) -> None:
        self._resolution, self._seed = float(resolution_s), np.uint64(seed)
        self._steps, self._per_second = _as_decimal(self._resolution)
        self._sections = None if continues else Sections(self._resolution, self._seed)
        self._head: list[tuple[np.ndarray, np.ndarray]] = []  # ticks before the first border
        self._tick, self._tick_count = np.zeros(0), np.zeros(0, np.int64)  # the open one, if any
        self._bins = np.zeros((TIME_BINS, 3))
        self._width = _FIRST_BIN_S
        self.count, self.ties = 0, 0
        self.first_s, self.last_s = np.nan if first_s is None else first_s, np.nan

    def add(self, times: np.ndarray, writes: np.ndarray, sizes: np.ndarray) -> None:
        """Add requests in order of arrival: seconds, whether a write, bytes, each (n,)."""
        if times.shape[0] == 0:
            return
        if np.isnan(self.first_s):
            self.first_s = float(times[0])
        self.last_s = float(times[-1])
        ticks, counts = np.empty(times.shape[0]), np.empty(times.shape[0], np.int64)
        ticked = _ticks(self._on_ticks(times), ticks, counts)
        self.count += times.shape[0]
        self.ties += times.shape[0] - ticked
        self._add_ticks(ticks[:ticked], counts[:ticked])
        self._width = _bin(times, writes, sizes, self.first_s, self._width, self._bins)

    def absorb(self, other: "ArrivalProcess") -> None:
        """Add arrivals that come later; ``other`` has the same ``first_s``, and ``continues``."""
        if other.count == 0:
            return
        self.count += other.count
        self.ties += other.ties
        for ticks, counts in other._head:
            self._add_ticks(ticks, counts)
        if other._sections is None:
            self._add_ticks(other._tick, other._tick_count)
        else:
            assert self._sections is not None
            self.finish()
            self._sections.follow(other._sections)
            self._tick, self._tick_count = other._tick, other._tick_count
        self.last_s = other.last_s
        while self._width < other._width:
            _coarsen(self._bins)
            self._width *= 2.0
        while other._width < self._width:
            _coarsen(other._bins)
            other._width *= 2.0
        self._bins += other._bins

    def finish(self) -> None:
        """Count the arrivals of the last tick; to be called once, after all were added."""
        self._close(self._tick, self._tick_count)
        self._tick, self._tick_count = self._tick[:0], self._tick_count[:0]

    def _on_ticks(self, times: np.ndarray) -> np.ndarray:
        """Times (s) as the clock ticks, (n,), without negative zeros, as ticks are told by their bits."""
        if self._resolution > 0:
            places = times * self._per_second / self._steps
            # halves rounded to even would join the arrivals of two ticks in every other one
            whole = np.floor(places)
            times = (whole + (places - whole >= 0.5)) * self._steps / self._per_second
        return times + 0.0

    def _add_ticks(self, ticks: np.ndarray, counts: np.ndarray) -> None:
        """Take ticks, the last of which may have further arrivals."""
        if self._tick.size and ticks[0] == self._tick[0]:
            self.ties += 1
            counts = np.concatenate([counts[:1] + self._tick_count, counts[1:]])
        else:
            ticks = np.concatenate([self._tick, ticks])
            counts = np.concatenate([self._tick_count, counts])
        self._tick, self._tick_count = ticks[-1:].copy(), counts[-1:].copy()
        self._close(ticks[:-1], counts[:-1])

    def _close(self, ticks: np.ndarray, counts: np.ndarray) -> None:
        """Take whole ticks."""
        if ticks.shape[0] == 0:
            return
        is_border = borders(ticks.view(np.uint64), counts, self._seed)
        if self._sections is None and not self._head:
            is_border[0] = False  # it may have begun in the part before
        begin = 0
        for border in [*np.flatnonzero(is_border).tolist(), ticks.shape[0]]:
            if self._sections is not None:
                self._sections.add(ticks[begin:border], counts[begin:border])
            elif border > begin:
                self._head.append((ticks[begin:border].copy(), counts[begin:border].copy()))
            if border == ticks.shape[0]:
                break
            if self._sections is None:
                self._sections = Sections(self._resolution, self._seed)
            else:
                self._sections.end()
            begin = border

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last (s)."""
        return self.last_s - self.first_s

    @property
    def interarrival_cv(self) -> float:
        """Coefficient of variation of the gaps between requests (sample variance), NaN where there is none."""
        if self._sections is None:
            return float("nan")
        count, mean, squares = self._sections.gaps()
        return math.sqrt(squares / (count - 1)) / mean if count > 1 and mean > 0 else math.nan

    def block_distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Kolmogorov-Smirnov distance of each block and the number of uniforms behind it.

        Blocks that lie within one tick of the clock are left out.
        """
        assert self._sections is not None
        return self._sections.distances()

    def time_bins(self) -> tuple[float, np.ndarray]:
        """Width (s) of the bins over time and their reads, writes and bytes, (bins, 3), from the first arrival on."""
        used = np.flatnonzero(self._bins.any(axis=1))
        return self._width, self._bins[: used[-1] + 1 if used.size else 0]
