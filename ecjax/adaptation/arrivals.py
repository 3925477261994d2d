"""When requests arrive at a proxy, and of which class they are.

A Poisson process whose rate is constant on intervals of time is a unit-rate process on a stretched clock: its times are
Lambda^-1(T_1), Lambda^-1(T_2), ..., where Lambda(t) is the integral of the rate and T_i the sum of i unit exponentials.
These depend on the seed alone, so that every rate and every strategy is given the same requests (common random
numbers), and Lambda, piecewise linear, is inverted exactly.
"""

from typing import NamedTuple

import numpy as np

from ecjax.streams.arrivals import Alias, Factors

_GAPS, _CLASSES = 0xADA1, 0xADA2  # purposes of random numbers


class Requests(NamedTuple):
    """N requests."""

    arrival_s: np.ndarray  # (N,) s, ascending
    class_of: np.ndarray  # (N,) uint8


class Rates(NamedTuple):
    """Rates that are constant on S intervals; 0 before the first and from ``end_s`` on."""

    start_s: np.ndarray  # (S,) s, ascending: when each interval begins
    end_s: float  # of the last; inf: it has no end
    rate: np.ndarray  # (S, C) 1/s, of every class


def constant(rate: float, shares: np.ndarray) -> Rates:
    """One rate (1/s) for ever, split into classes by their shares (C,)."""
    return Rates(np.zeros(1), np.inf, rate * np.asarray(shares, float)[None, :])


def varying(rate: float, shares: np.ndarray, factors: Factors) -> Rates:
    """A rate times factors that change with time.

    Args:
        rate: 1/s, of all classes together.
        shares: (C,) of it.
        factors: of classes in place of files, in order of time; 1 before the first.
    """
    start = np.unique(np.append(factors.start, 0.0))
    rates = np.tile(rate * np.asarray(shares, float), (len(start), 1))
    base = rates[0].copy()
    for begin, factor, classes in zip(factors.start, factors.factor, factors.files, strict=True):
        affected = slice(None) if classes is None else classes
        rates[np.searchsorted(start, begin) :, affected] = base[affected] * factor
    return Rates(start, np.inf, rates)


def poisson(rates: Rates, count: int | None, seed: int) -> Requests:
    """Requests of independent Poisson processes, one per class.

    Args:
        rates: of the classes, by time.
        count: of requests; fewer come where the rates end first. None: all until then (``end_s`` is finite).
        seed: of the times and the classes.
    """
    total = rates.rate.sum(axis=1)
    knots = np.append(rates.start_s, rates.end_s)
    # on an interval without end nothing arrives at rate 0
    reached = np.append(0.0, np.cumsum(total * np.where(total > 0, np.diff(knots), 0.0)))
    clock = _clock(count, float(reached[-1]), seed)
    several = rates.rate.shape[1] > 1
    uniform = np.random.default_rng([seed, _CLASSES]).random(len(clock) if several else 0)
    class_of = np.zeros(len(clock), np.uint8)
    first = np.searchsorted(clock, reached)
    for s in np.flatnonzero(first[1:] > first[:-1]):
        segment = slice(first[s], first[s + 1])
        if several:
            class_of[segment] = Alias(rates.rate[s]).draw(uniform[segment])
        times = clock[segment]  # changed in place: memory is what takes time
        times -= reached[s]
        times /= total[s]
        times += knots[s]
        np.minimum(times, knots[s + 1], out=times)
    return Requests(clock, class_of)


def mean_count(rates: Rates) -> float:
    """Expected number of requests until the rates end."""
    return mean_count_until(rates, rates.end_s)


def mean_count_until(rates: Rates, time_s: float) -> float:
    """Expected number of requests until a time, at most ``end_s``."""
    knots = np.minimum(np.append(rates.start_s, rates.end_s), time_s)
    return float(rates.rate.sum(axis=1) @ np.diff(knots))


def mean_time_of(rates: Rates, count: int) -> float:
    """Time until which ``count`` requests are expected, s; where fewer ever come, when the last rate above 0 ends."""
    total = rates.rate.sum(axis=1)
    last = int(np.flatnonzero(total)[-1])
    start = rates.start_s[: last + 1]
    reached = np.append(0.0, np.cumsum(total[:last] * np.diff(start)))
    within = int(np.searchsorted(reached, count)) - 1  # never one without requests
    end = np.append(rates.start_s, rates.end_s)[within + 1]
    return float(min(start[within] + (count - reached[within]) / total[within], end))


def of_trace(arrival_s: np.ndarray, class_of: np.ndarray, scale: float) -> Requests:
    """Requests of a trace, at ``scale`` times their rate."""
    return Requests(arrival_s / scale, class_of)


def _clock(count: int | None, end: float, seed: int) -> np.ndarray:
    """Times of a unit-rate process: the first ``count`` of them, those before ``end``."""
    random = np.random.default_rng([seed, _GAPS])
    gaps = random.standard_exponential(_enough(end) if count is None else count)
    while count is None and gaps.sum() < end:
        gaps = np.append(gaps, random.standard_exponential(_enough(end - gaps.sum())))
    clock = np.cumsum(gaps, out=gaps)
    return clock[: np.searchsorted(clock, end)]


def _enough(mean: float) -> int:
    """So many arrivals are hardly ever reached by a Poisson number with this mean."""
    return int(mean + 6 * np.sqrt(mean) + 10)
