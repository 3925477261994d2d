"""Capacity: the largest rate of requests that a proxy serves for ever with a strategy."""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from ecjax.adaptation.arrivals import constant, poisson
from ecjax.adaptation.proxy import Strategy, Tasks
from ecjax.adaptation.replay import replay

_SECTIONS = 20
_LEAST_PER_THREAD = 100  # requests, so that the first ones, all admitted at once, do not count
_LEVEL = float(special.stdtrit(_SECTIONS - 1, 0.975))
_LEFT_OUT = 0.25  # of the requests of a saturated proxy, until its signal has settled
_DEVIATIONS = 6.0  # between the capacity and the rates at which it is tried
_SURPLUS = 0.25  # of the requests too many at the upper rate: if fewer wait, the strategy is stable
_STEP = 1.25  # by which a bracket is widened


class Capacity(NamedTuple):
    """A capacity and how well it is known."""

    per_s: float  # requests/s
    ci_per_s: float  # half width of its 95 % interval, or of its bracket where it was searched


def capacity(
    strategy: Strategy, shares: np.ndarray, tasks: Tasks, threads: int, seed: int = 0, requests: int = 200_000
) -> Capacity:
    """Capacity of a strategy under Poisson arrivals, by replays.

    A proxy whose queue is never empty serves at one rate. Where the codes do not get longer with the backlog, that
    rate is the capacity (Baccelli and Foss, "On the saturation rule for the stability of queues", Journal of Applied
    Probability 32, 1995). It is measured on N requests that all wait from the start, and then tried by two replays.

    At the capacity itself the number that waits at the last of N requests would have a deviation of about
    s = sqrt((1 + c) N), c being the squared coefficient of variation of the time between two admissions. The rates
    that are tried are off by the share 6 s / N, so that about 6 s requests are too many at the upper one. The strategy
    counts as stable where fewer than 1.5 s wait: that is 4.5 deviations below what is expected at the upper rate and 18
    times the mean at the lower one.

    Where the replays do not agree with the measured rate, it is searched: the bracket is widened until one end is
    stable and the other is not, and halved until they are 12 s / N apart, with c = 1. So a strategy whose codes get
    longer with the backlog has the rate up to which N requests do not get it there, the first of which find the proxy
    empty.

    All replays have the same requests, their gaps divided by the rate.

    Args:
        strategy: which code a request is served with.
        shares: (C,) of the classes.
        tasks: delays of the tasks of every class; where all are 0 the capacity is infinite.
        threads: L.
        seed: of arrivals and delays.
        requests: N of every replay; 100 L where that is more. The interval is about 1 / sqrt(N) of the capacity.
    """
    requests = max(requests, _LEAST_PER_THREAD * threads)
    unit = poisson(constant(1.0, shares), requests, seed)
    clock = unit.arrival_s * (requests / unit.arrival_s[-1])

    def admitted_at(arrival: np.ndarray) -> np.ndarray:
        return replay(arrival, unit.class_of, tasks, strategy, threads, seed).admitted_s

    def stable(rate: float, deviation: float) -> bool:
        arrival = clock / rate
        waiting = requests - np.searchsorted(admitted_at(arrival), arrival[-1], side="right")
        return bool(waiting < _SURPLUS * _DEVIATIONS * deviation)

    rate, half_width, variation = _throughput(admitted_at(np.zeros(requests)))
    if math.isinf(rate):
        return Capacity(rate, half_width)
    deviation = math.sqrt((1 + variation) * requests)
    apart = 1 + _DEVIATIONS * deviation / requests
    if stable(rate / apart, deviation) and not stable(rate * apart, deviation):
        return Capacity(rate, half_width)
    # neither the measured rate nor its variation is the strategy's at the rates that it meets
    deviation = math.sqrt(2 * requests)
    apart = 1 + _DEVIATIONS * deviation / requests
    low = high = rate
    while not stable(low, deviation):
        low, high = low / _STEP, low
    while stable(high, deviation):
        low, high = high, high * _STEP
    while high > low * apart**2:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if stable(middle, deviation) else (low, middle)
    return Capacity(0.5 * (low + high), 0.5 * (high - low))


def _throughput(admitted: np.ndarray) -> tuple[float, float, float]:
    """Of a saturated proxy: requests/s, half width of the interval, squared coefficient of variation per request."""
    settled = admitted[int(_LEFT_OUT * len(admitted)) :]
    size = (len(settled) - 1) // _SECTIONS
    gaps = np.diff(settled[: size * _SECTIONS + 1 : size]) / size
    mean, error = gaps.mean(), gaps.std(ddof=1)
    if mean == 0:
        return math.inf, 0.0, 0.0
    return (
        float(1 / mean),
        float(_LEVEL * error / math.sqrt(_SECTIONS) / mean**2),
        float((error / mean) ** 2 * size),
    )
