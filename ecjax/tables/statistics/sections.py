"""Gaps between arrivals and the blocks of them for the Poisson test, in sections that can be told apart in any part.

A section begins at a border: a tick of the clock chosen by a hash of its time, one per 65,536 arrivals on average. No
block goes across a border, so that the blocks from a border on are the same whatever came before; the gaps before it
that do not fill a block are left out of the test, and so is the gap across it.

Arrivals of one tick are spread uniformly over it, by a generator that starts from the tick's time and the seed.
"""

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.index import mix

BLOCK_GAPS = 128
LEAST_GAPS = 16  # a shorter last block is left out of the test
SECTION = 65_536  # arrivals from border to border, on average
_WEYL = np.uint64(0x9E3779B97F4A7C15)
_UNIT = 2.0**-53
# places of the state: whether there was an arrival, spread times of the first and last, the last one's tick, filled
# places of the block, spread time of the arrival before it
_BEGUN, _FIRST, _LAST, _TICK, _FILLED, _BEGAN = range(6)


@njit(inner=True)
def _uniform(random):
    """Next uniform number in (0, 1) of the SplitMix64 generator whose state is ``random[0]``."""
    random[0] += _WEYL
    return (np.float64(mix(random[0]) >> np.uint64(11)) + 0.5) * _UNIT


@njit()
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


@njit(inline="always")
def _generator(bits, seed):
    """State of the generator of a tick, which depends on nothing but its time and the seed."""
    return mix(bits ^ mix(seed + _WEYL))


@njit()
def borders(bits, counts, seed):
    """Which ticks are borders, (n,): each with a chance of 1 / SECTION per arrival, by a hash of its time.

    Args:
        bits: times of the ticks (s), (n,), their float64 bits as uint64; no negative zero.
        counts: arrivals at each, all of them, (n,).
        seed: of the hash, uint64.
    """
    is_border = np.empty(bits.shape[0], np.bool_)
    for i in range(bits.shape[0]):
        hashed = mix(_generator(bits[i], seed) ^ _WEYL)
        is_border[i] = np.float64(hashed >> np.uint64(11)) * _UNIT * SECTION < counts[i]
    return is_border


@njit()
def _walk(ticks, bits, counts, resolution, seed, state, gaps, block, distances):
    """Turn ticks into gaps; close blocks. Returns how many blocks were closed.

    ``state``: see the names of its places; ``gaps``: their count, mean and sum of squares about it.
    """
    closed = 0
    random = np.empty(1, np.uint64)
    for i in range(ticks.shape[0]):
        random[0] = _generator(bits[i], seed)
        remainder = counts[i]
        reached = 0.0  # uniform order statistics, one after another
        while remainder > 0:
            time = ticks[i]
            if resolution > 0.0:
                reached = 1.0 - (1.0 - reached) * _uniform(random) ** (1.0 / remainder)
                time += resolution * reached
            if state[_BEGUN] == 0.0:
                state[_BEGUN], state[_FIRST] = 1.0, time
            else:
                filled = int(state[_FILLED])
                if filled == 0:
                    state[_BEGAN] = state[_LAST]
                gap = max(time - state[_LAST], 0.0)
                gaps[0] += 1.0
                change = gap - gaps[1]
                gaps[1] += change / gaps[0]
                gaps[2] += change * (gap - gaps[1])
                block[filled] = gap
                state[_FILLED] += 1.0
                if filled + 1 == block.shape[0]:
                    # Within one tick the arrivals were made uniform: there is nothing to test.
                    if resolution == 0.0 or state[_BEGAN] < ticks[i]:
                        distances[closed] = lewis_distance(block)
                        closed += 1
                    state[_FILLED] = 0.0
            state[_LAST], state[_TICK] = time, ticks[i]
            remainder -= 1
    return closed


class Sections:
    """Gaps and blocks of ticks one after another, in sections that begin anew at borders."""

    def __init__(self, resolution: float, seed: np.uint64) -> None:
        self._resolution, self._seed = resolution, seed
        self._state, self._gaps = np.zeros(6), np.zeros(3)
        self._block = np.zeros(BLOCK_GAPS)
        self._distances: list[np.ndarray] = []
        self._finished: list[
            np.ndarray
        ] = []  # of sections: first and last arrival, gaps (count, mean, squares)

    def add(self, ticks: np.ndarray, counts: np.ndarray) -> None:
        """Add whole ticks."""
        room = np.empty(int(counts.sum()) // BLOCK_GAPS + 2)
        closed = _walk(
            ticks,
            ticks.view(np.uint64),
            counts,
            self._resolution,
            self._seed,
            self._state,
            self._gaps,
            self._block,
            room,
        )
        self._distances.append(room[:closed].copy())

    def end(self) -> None:
        """End the section: the next tick is a border."""
        self._finished = self._all()
        self._state, self._gaps = np.zeros(6), np.zeros(3)

    def _all(self) -> list[np.ndarray]:
        open_one = [np.array([*self._state[[_FIRST, _LAST]], *self._gaps])] if self._state[_BEGUN] else []
        return self._finished + open_one

    def follow(self, other: "Sections") -> None:
        """Add what comes later, from a border on."""
        self.end()
        self._finished += other._finished
        self._distances += other._distances
        self._state, self._gaps, self._block = other._state, other._gaps, other._block

    def gaps(self) -> tuple[float, float, float]:
        """Count, mean (s) and sum of squares about it (s^2) of all gaps, those between sections too."""
        count, mean, squares = 0.0, 0.0, 0.0

        def merge(more: float, other_mean: float, other_squares: float) -> None:
            nonlocal count, mean, squares
            if more > 0:
                change, share = other_mean - mean, more / (count + more)
                squares += other_squares + change * change * count * share
                mean += change * share
                count += more

        before = np.nan
        for first, last, *moments in self._all():
            if not np.isnan(before):
                merge(1.0, max(first - before, 0.0), 0.0)
            merge(*moments)
            before = last
        return count, mean, squares

    def distances(self) -> tuple[np.ndarray, np.ndarray]:
        """See ``ArrivalProcess.block_distances``."""
        distances = np.concatenate([*self._distances, np.empty(0)])
        sizes = np.full(distances.shape[0], BLOCK_GAPS - 1)
        filled = int(self._state[_FILLED])
        if filled >= LEAST_GAPS and (self._resolution == 0 or self._state[_BEGAN] < self._state[_TICK]):
            distances = np.append(distances, lewis_distance(self._block[:filled]))
            sizes = np.append(sizes, filled - 1)
        return distances, sizes
