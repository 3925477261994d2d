"""Lower bound on flow times by weights: every coflow is split among the ports that may delay it.

With weights w_cp >= 0 of coflow c at port p, sum_p w_cp <= 1, its flow time F_c (completion - arrival) is at least
sum_p w_cp F_cp + (1 - sum_p w_cp) isolation_c, where F_cp is the flow time of what it brings to port p. The ports fall
apart, and for each there is a least weighted sum (``single_port.mean_busy``). The bound is concave in the weights. They
are found as in a game against the ports (multiplicative weights): ports that finish with a coflow late gain weight.
"""

from typing import NamedTuple

import numba
import numpy as np

from ecjax.coflow.single_port import mean_busy

STEP = 0.2  # of the logarithms of weights, per isolation time
STEADY = 50  # rounds before steps fall with the root of their number


class PortEntries(NamedTuple):
    """Loads by port instead of by coflow, in order of arrival."""

    first: np.ndarray  # (P + 1,)
    coflow: np.ndarray  # (N,)
    load: np.ndarray  # (N,) seconds


def by_port(coflow: np.ndarray, port: np.ndarray, load: np.ndarray, ports: int) -> PortEntries:
    """Entries of ``isolation.Loads``, sorted by port."""
    order = np.argsort(port, kind="stable")
    return PortEntries(np.searchsorted(port[order], np.arange(ports + 1)), coflow[order], load[order])


@numba.njit(cache=True, nogil=True)
def _one_bound(arrival, isolation, first, coflow, load, weight, left, flow_time):
    """The bound on the sum of flow times for given weights; fills flow_time, (N,)."""
    total = 0.0
    for p in range(len(first) - 1):
        a, b = first[p], first[p + 1]
        if a < b:
            start, end = np.empty(2 * (b - a)), np.empty(2 * (b - a))
            served = np.empty(2 * (b - a), np.int64)
            value, _ = mean_busy(
                arrival[coflow[a:b]], load[a:b], weight[a:b], flow_time[a:b], start, end, served
            )
            total += value
    for c in range(len(arrival)):
        total += left[c] * isolation[c]
    return total


@numba.njit(cache=True, nogil=True)
def weigh(arrival, isolation, first, coflow, load, rounds):
    """Weights that make the bound large.

    Args:
        arrival: seconds, ascending, (C,).
        isolation: seconds, (C,).
        first: the entries of port p are first[p] to first[p + 1] - 1, (P + 1,).
        coflow: of each entry, ascending within a port, (N,).
        load: seconds, (N,).
        rounds: steps.

    Returns:
        The largest bound found on the sum of flow times, its weights, (N,), and what each port adds to it above
        isolation, seconds, not negative, (P,).
    """
    entries, coflows = len(load), len(arrival)
    # to begin with: the ports that matter are those that take longest
    logarithm = 2 * np.log(load / isolation[coflow])
    left_logarithm = np.zeros(coflows)
    weight, flow_time = np.empty(entries), np.empty(entries)
    left, largest = np.empty(coflows), np.empty(coflows)
    best, best_weight, gain = -np.inf, np.zeros(entries), np.zeros(len(first) - 1)
    for number in range(rounds):
        largest[:] = left_logarithm
        for n in range(entries):
            largest[coflow[n]] = max(largest[coflow[n]], logarithm[n])
        left[:] = np.exp(left_logarithm - largest)
        total = left.copy()
        for n in range(entries):
            weight[n] = np.exp(logarithm[n] - largest[coflow[n]])
            total[coflow[n]] += weight[n]
        left /= total
        for n in range(entries):
            weight[n] /= total[coflow[n]]
        bound = _one_bound(arrival, isolation, first, coflow, load, weight, left, flow_time)
        if bound > best:
            best = bound
            best_weight[:] = weight
            for p in range(len(gain)):
                gain[p] = 0.0
                for n in range(first[p], first[p + 1]):
                    gain[p] += weight[n] * (flow_time[n] - isolation[coflow[n]])
                gain[p] = max(gain[p], 0.0)
        now = STEP / np.sqrt(1 + number / STEADY)
        left_logarithm += now - largest
        for n in range(entries):
            logarithm[n] += now * flow_time[n] / isolation[coflow[n]] - largest[coflow[n]]
    return best, best_weight, gain
