"""When requests arrive and which files they read, block by block.

All processes are Poisson with rates that are constant on intervals of time: rates as given, times a table of factors,
times bursts that come and go (a Markov-modulated Poisson process with two states). Times of a trace are taken as they
are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ecjax.machine_code import njit

BLOCK = 1 << 13

Block = tuple[np.ndarray, np.ndarray]  # times (b,) s, files (b,) int64


@dataclass(frozen=True)
class Factors:
    """Factors of the rates by time; the last one that concerns a file counts.

    Attributes:
        start: (f,) s, when each factor begins; it holds until the next for the same files.
        factor: (f,) by which the rates are multiplied.
        files: f arrays of the files concerned, or None for all files.
    """

    start: np.ndarray
    factor: np.ndarray
    files: list[np.ndarray | None]


@dataclass(frozen=True)
class Bursts:
    """Rates that are higher from time to time; the mean stays.

    Attributes:
        factor: rate in a burst / rate between bursts, > 1.
        share: of time that is burst, in (0, 1).
        mean_s: s, mean length of a burst (exponential; so are the gaps).
    """

    factor: float
    share: float
    mean_s: float


class Alias:
    """Draws files by their rates in constant time (Walker's alias method)."""

    def __init__(self, weights: np.ndarray) -> None:
        """Prepare from weights (r,), not all zero."""
        self.keep, self.other = _alias_tables(np.asarray(weights, float))

    def draw(self, uniform: np.ndarray) -> np.ndarray:
        """Files for uniform numbers (b,) in [0, 1)."""
        return _drawn(self.keep, self.other, uniform)


@njit()
def _drawn(keep, other, uniform):
    """Files that uniform numbers fall on; in one loop, half as long as by array operations."""
    files = np.empty(uniform.size, np.int64)
    for i in range(uniform.size):
        place = uniform[i] * keep.size
        cell = min(int(place), keep.size - 1)
        files[i] = cell if place - cell < keep[cell] else other[cell]
    return files


@njit()
def _alias_tables(weights):
    """Share that each of r equal cells keeps for itself, and whom the rest belongs to."""
    count = weights.size
    scaled = weights * (count / weights.sum())
    keep, other = np.ones(count), np.arange(count)
    small, large = np.empty(count, np.int64), np.empty(count, np.int64)
    smalls = larges = 0
    for i in range(count):
        if scaled[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        low, high = small[smalls], large[larges - 1]
        keep[low], other[low] = scaled[low], high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            larges -= 1
            small[smalls] = high
            smalls += 1
    most = np.argmax(weights)
    for i in range(smalls):  # rounding leaves them over: they keep their cell, unless they weigh nothing
        if weights[small[i]] == 0.0:
            keep[small[i]], other[small[i]] = 0.0, most
    return keep, other


def poisson(
    rates: np.ndarray,
    count: int,
    seed: int,
    factors: Factors | None = None,
    bursts: Bursts | None = None,
) -> Iterator[Block]:
    """``count`` requests of independent Poisson processes, in blocks.

    Args:
        rates: (r,) 1/s.
        count: requests in all; fewer come where all rates become zero for good.
        seed: of the draws.
        factors: time-varying rates.
        bursts: that come and go for all files together.
    """
    rng = np.random.default_rng([seed, 0xA221])
    now, remainder = 0.0, count
    alias_weights, alias = None, None
    for until, weights, level in _intervals(np.asarray(rates, float), factors, bursts, rng):
        total = float(weights.sum()) * level
        if total <= 0:
            now = until
            continue
        if alias is None or weights is not alias_weights:
            alias_weights, alias = weights, Alias(weights)
        while remainder > 0:
            times = now + np.cumsum(rng.standard_exponential(min(BLOCK, remainder))) / total
            inside = times[: np.searchsorted(times, until)]
            if inside.size:
                yield inside, alias.draw(rng.random(inside.size))
                remainder -= inside.size
            if inside.size < times.size:
                break
            now = float(times[-1])
        now = until  # memoryless: the next interval starts anew
        if remainder <= 0:
            return


def of_trace(times: np.ndarray, files: np.ndarray) -> Iterator[Block]:
    """Requests of a trace, in blocks."""
    for first in range(0, len(times), BLOCK):
        yield times[first : first + BLOCK], files[first : first + BLOCK]


def merged(one: Iterator[Block], other: Iterator[Block], count: int) -> Iterator[Block]:
    """Requests of two streams in order of time, ``count`` of them; ends with the first stream if that comes earlier.

    Args:
        one: the stream that matters.
        other: what comes beside it: writes, background work.
        count: requests in all.
    """
    times, files = next(other, (np.empty(0), np.empty(0, np.int64)))
    for own_times, own_files in one:
        while times.size and times[-1] <= own_times[-1]:
            more = next(other, None)
            if more is None:
                break
            times, files = np.concatenate((times, more[0])), np.concatenate((files, more[1]))
        cut = int(np.searchsorted(times, own_times[-1]))
        all_times = np.concatenate((own_times, times[:cut]))
        order = np.argsort(all_times, kind="stable")[:count]
        yield all_times[order], np.concatenate((own_files, files[:cut]))[order]
        count -= len(order)
        if count <= 0:
            return
        times, files = times[cut:], files[cut:]


def _intervals(
    rates: np.ndarray, factors: Factors | None, bursts: Bursts | None, rng: np.random.Generator
) -> Iterator[tuple[float, np.ndarray, float]]:
    """(end in s, rates (r,), level) of the intervals on which rates are constant: level times rates.

    They end where nothing is read from then on; bursts would begin and end for ever.
    """
    now, burst = 0.0, False
    burst_ends = np.inf
    quiet = 1.0
    if bursts is not None:
        quiet = 1.0 / (1.0 + bursts.share * (bursts.factor - 1.0))
        burst = bool(rng.random() < bursts.share)
        burst_ends = rng.exponential(_mean_stay(bursts, burst))
    current, place = rates, 0
    while True:
        change = np.inf if factors is None or place >= len(factors.start) else float(factors.start[place])
        if change <= now and factors is not None:
            files = factors.files[place]
            current = current.copy()  # a new array: the drawing of files is prepared anew
            affected = slice(None) if files is None else files
            current[affected] = rates[affected] * factors.factor[place]
            place += 1
            continue
        if np.isinf(change) and not current.any():
            return
        if burst_ends <= now and bursts is not None:
            burst = not burst
            burst_ends = now + rng.exponential(_mean_stay(bursts, burst))
            continue
        end = min(change, burst_ends)
        level = 1.0 if bursts is None else quiet * (bursts.factor if burst else 1.0)
        yield end, current, level
        now = end


def _mean_stay(bursts: Bursts, burst: bool) -> float:
    return bursts.mean_s if burst else bursts.mean_s * (1.0 - bursts.share) / bursts.share
