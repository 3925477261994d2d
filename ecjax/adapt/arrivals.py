"""When requests arrive at a proxy, and of which class they are.

A Poisson process whose rate is constant on intervals of time is a unit-rate process on a stretched clock: its times are
Lambda^-1(T_1), Lambda^-1(T_2), ..., where Lambda(t) is the integral of the rate and T_i the sum of i unit exponentials.
These depend on the seed alone, so that every rate and every strategy is given the same requests (common random
numbers), and Lambda, piecewise linear, is inverted exactly.
"""

from typing import NamedTuple

import numpy as np

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


def poisson(rates: Rates, count: int | None, seed: int) -> Requests:
    """Requests of independent Poisson processes, one per class.

    Args:
        rates: of the classes, by time.
        count: of requests; fewer come where the rates end first. None: all until then (``end_s`` is finite, or the
            last rates are 0).
        seed: of the times and the classes.
    """
    total = rates.rate.sum(axis=1)
    knots = np.append(rates.start_s, rates.end_s)
    length = np.diff(knots)
    # the rate is 0 on an interval without end: 0 inf is 0 here
    reached = np.concatenate(
        [[0.0], np.cumsum(np.where(total > 0, total * np.where(total > 0, length, 0.0), 0.0))]
    )
    clock = _clock(count, reached[-1], seed)
    first = np.searchsorted(clock, reached)
    times = np.empty(len(clock))
    class_of = np.zeros(len(clock), np.uint8)
    uniform = np.random.default_rng([seed, _CLASSES]).random(len(clock)) if rates.rate.shape[1] > 1 else None
    for s in np.flatnonzero(first[1:] > first[:-1]):
        here = slice(first[s], first[s + 1])
        np.minimum(knots[s] + (clock[here] - reached[s]) / total[s], knots[s + 1], out=times[here])
        if uniform is not None:
            for edge in np.cumsum(rates.rate[s])[:-1] / total[s]:
                class_of[here] += uniform[here] >= edge
    return Requests(times, class_of)


def given(arrival_s: np.ndarray, class_of: np.ndarray, scale: float) -> Requests:
    """Requests of a trace, at ``scale`` times their rate."""
    return Requests(arrival_s / scale, class_of)


def _clock(count: int | None, end: float, seed: int) -> np.ndarray:
    """Times of a unit-rate process: the first ``count`` of them, those before ``end``."""
    random = np.random.default_rng([seed, _GAPS])
    if count is not None:
        clock = np.cumsum(random.standard_exponential(count))
        return clock[: np.searchsorted(clock, end)]
    gaps = random.standard_exponential(_enough(end))
    while gaps.sum() < end:
        gaps = np.concatenate([gaps, random.standard_exponential(_enough(end - gaps.sum()))])
    clock = np.cumsum(gaps)
    return clock[: np.searchsorted(clock, end)]


def _enough(mean: float) -> int:
    """So many arrivals are hardly ever reached by a Poisson number with this mean."""
    return int(mean + 6 * np.sqrt(mean) + 10)
