"""The arrival process of a trace, streamed: gaps, blocks for the Poisson test, and counts over time.

A clock that ticks coarser than the gaps makes ties, which no Poisson process has. Each arrival recorded at a tick is
therefore spread uniformly over [tick, tick + resolution) before gaps are taken: under a Poisson process with a steady
rate within the tick this is exactly the law of the arrivals given their number.
"""

import numba
import numpy as np

from ecjax.tables.statistics.index import mix

BLOCK_GAPS = 128
LEAST_GAPS = 16  # a shorter last block is left out of the test
TIME_BINS = 1024
_FIRST_BIN_S = 2.0**-20
_WEYL = np.uint64(0x9E3779B97F4A7C15)
_UNIT = 2.0**-53


@numba.njit(cache=True, nogil=True)
def _uniform(random):
    """Next uniform number in (0, 1) of the SplitMix64 generator whose state is ``random[0]``."""
    random[0] += _WEYL
    return (np.float64(mix(random[0]) >> np.uint64(11)) + 0.5) * _UNIT


@numba.njit(cache=True, nogil=True)
def lewis_distance(gaps):
    """Kolmogorov-Smirnov distance of a block's sorted, normalised spacings from uniformity.

    Lewis's transformation (Lewis 1965, Biometrika 52, after Durbin 1961; recommended for its power by Kim and Whitt
    2014, M&SOM 16): with gaps sorted to C_1 <= ... <= C_m, C_0 = 0, the spacings Z_j = (m + 1 - j)(C_j - C_{j-1}) of
    exponential gaps are again exponential, so that the partial sums of Z_1, ..., Z_{m-1} over the whole are the
    order statistics of m - 1 uniforms, whatever the rate.

    Returns:
        The two-sided distance; 1 where all gaps are zero.
    """
    count = gaps.shape[0]
    ordered = np.sort(gaps)
    total = 0.0
    for j in range(count):
        total += ordered[j]
    if total <= 0.0:
        return 1.0
    distance, before, partial = 0.0, 0.0, 0.0
    for j in range(count - 1):
        partial += (count - j) * (ordered[j] - before)
        before = ordered[j]
        place = partial / total
        distance = max(distance, (j + 1) / (count - 1) - place, place - j / (count - 1))
    return distance


@numba.njit(cache=True, nogil=True)
def _emit(times, resolution, tick, block, gaps, random, distances):
    """Turn ticks into gaps; close blocks. Returns how many blocks were closed.

    ``tick``: time and count of the open tick, last spread time, whether there was one; ``gaps``: count, mean, sum of
    squares about it, filled places of ``block``, time at which the block began.
    """
    closed = 0
    for i in range(times.shape[0]):
        if tick[1] > 0 and times[i] == tick[0]:
            tick[1] += 1
            continue
        closed = _close_tick(resolution, tick, block, gaps, random, distances, closed)
        tick[0], tick[1] = times[i], 1
    return closed


@numba.njit(cache=True, nogil=True)
def _close_tick(resolution, tick, block, gaps, random, distances, closed):
    left = int(tick[1])
    reached = 0.0  # uniform order statistics, one after another
    while left > 0:
        time = tick[0]
        if resolution > 0.0:
            reached = 1.0 - (1.0 - reached) * _uniform(random) ** (1.0 / left)
            time += resolution * reached
        if tick[3] > 0:
            if gaps[3] == 0:
                gaps[4] = tick[2]
            gap = max(time - tick[2], 0.0)
            gaps[0] += 1
            change = gap - gaps[1]
            gaps[1] += change / gaps[0]
            gaps[2] += change * (gap - gaps[1])
            filled = int(gaps[3])
            block[filled] = gap
            gaps[3] += 1
            if filled + 1 == block.shape[0]:
                # Within one tick the arrivals were made uniform: there is nothing to test.
                if resolution == 0.0 or gaps[4] < tick[0]:
                    distances[closed] = lewis_distance(block)
                    closed += 1
                gaps[3] = 0
        tick[2], tick[3] = time, 1
        left -= 1
    tick[1] = 0
    return closed


@numba.njit(cache=True, nogil=True)
def _bin(times, writes, sizes, origin, width, bins):
    """Count into time bins, doubling their width as time goes on. Returns the width."""
    for i in range(times.shape[0]):
        place = (times[i] - origin) / width
        while place >= bins.shape[0]:
            half = bins.shape[0] // 2
            for j in range(half):
                for c in range(bins.shape[1]):
                    bins[j, c] = bins[2 * j, c] + bins[2 * j + 1, c]
            bins[half:] = 0.0
            width *= 2.0
            place *= 0.5
        row = bins[int(place)]
        if writes[i]:
            row[1] += 1.0
        else:
            row[0] += 1.0
        row[2] += sizes[i]
    return width


class ArrivalProcess:
    """Gaps between requests, distances of the blocks for the Poisson test, and counts over time.

    Args:
        resolution_s: the clock's resolution (s); 0 leaves ties as they are.
        seed: of the spreading within ticks.
    """

    def __init__(self, resolution_s: float, seed: int) -> None:
        self._resolution = float(resolution_s)
        self._tick, self._gaps = np.zeros(4), np.zeros(5)
        self._block = np.zeros(BLOCK_GAPS)
        self._random = np.array([seed], np.uint64)
        self._distances: list[np.ndarray] = []
        self._bins = np.zeros((TIME_BINS, 3))
        self._width = _FIRST_BIN_S
        self.count, self.ties = 0, 0
        self.first_s, self.last_s = np.nan, np.nan

    def add(self, times: np.ndarray, writes: np.ndarray, sizes: np.ndarray) -> None:
        """Add requests in order of arrival: seconds, whether a write, bytes, each (n,)."""
        if times.shape[0] == 0:
            return
        if self.count == 0:
            self.first_s = float(times[0])
        self.ties += int(np.count_nonzero(times[1:] == times[:-1])) + int(times[0] == self.last_s)
        self.count += times.shape[0]
        self.last_s = float(times[-1])
        room = np.empty((times.shape[0] + int(self._tick[1])) // BLOCK_GAPS + 2)
        closed = _emit(times, self._resolution, self._tick, self._block, self._gaps, self._random, room)
        self._distances.append(room[:closed])
        self._width = _bin(times, writes, sizes, self.first_s, self._width, self._bins)

    def finish(self) -> None:
        """Count the arrivals of the last tick; to be called once, after all were added."""
        room = np.empty(int(self._tick[1]) // BLOCK_GAPS + 2)
        closed = _close_tick(self._resolution, self._tick, self._block, self._gaps, self._random, room, 0)
        self._distances.append(room[:closed])

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last (s)."""
        return self.last_s - self.first_s

    @property
    def interarrival_cv(self) -> float:
        """Coefficient of variation of the gaps between requests (sample variance), NaN where there is none."""
        count, mean, squares = self._gaps[:3]
        return float(np.sqrt(squares / (count - 1)) / mean) if count > 1 and mean > 0 else float("nan")

    def block_distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Kolmogorov-Smirnov distance of each block and the number of uniforms behind it.

        Blocks that lie within one tick of the clock are left out.
        """
        distances = np.concatenate([*self._distances, np.empty(0)])
        sizes = np.full(distances.shape[0], BLOCK_GAPS - 1)
        left = int(self._gaps[3])
        if left >= LEAST_GAPS and (self._resolution == 0 or self._gaps[4] < self._tick[0]):
            distances = np.append(distances, lewis_distance(self._block[:left]))
            sizes = np.append(sizes, left - 1)
        return distances, sizes

    def time_bins(self) -> tuple[float, np.ndarray]:
        """Width (s) of the bins over time and their reads, writes and bytes, (bins, 3), from the first arrival on."""
        used = np.flatnonzero(self._bins.any(axis=1))
        return self._width, self._bins[: used[-1] + 1 if used.size else 0]
