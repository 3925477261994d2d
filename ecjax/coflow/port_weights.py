"""Lower bound on flow times by weights: every coflow is split among the ports that may delay it.

With weights w_cp >= 0 of coflow c at port p, sum_p w_cp <= 1, its flow time F_c (completion - arrival) is at least
sum_p w_cp F_cp + (1 - sum_p w_cp) isolation_c, where F_cp is the flow time of what it brings to port p. The ports fall
apart, and for each there is a least weighted sum (``single_port.mean_busy``). The bound is concave in the weights. They
are found as in a game against the ports (multiplicative weights): ports that finish with a coflow late gain weight.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.coflow.single_port import mean_busy
from ecjax.machine_code import njit

STEP = 0.2  # of the logarithms of weights, per isolation time
STEADY = 50  # rounds before steps fall with the root of their number


class PortEntries(NamedTuple):
    """Loads by port instead of by coflow, in order of arrival."""

    first: np.ndarray  # (P + 1,) the entries of port p are first[p] to first[p + 1] - 1
    coflow: np.ndarray  # (N,)
    release: np.ndarray  # (N,) arrival of the coflow, seconds, ascending within a port
    load: np.ndarray  # (N,) seconds


def by_port(
    arrival: np.ndarray, coflow: np.ndarray, port: np.ndarray, load: np.ndarray, ports: int
) -> PortEntries:
    """Entries of ``isolation.Loads``, sorted by port."""
    order = np.argsort(port, kind="stable")
    coflow = coflow[order]
    first = np.searchsorted(port[order], np.arange(ports + 1))
    return PortEntries(first, coflow, arrival[coflow], load[order])


@njit(inner=True)
def _soften(logarithm, left_logarithm, coflow, weight, remainder, largest, total):
    """Weights of one coflow, what is left for isolation among them, in proportion to exponentials, adding up to 1."""
    for c in range(len(remainder)):
        largest[c] = left_logarithm[c]
    for n in range(len(weight)):
        largest[coflow[n]] = max(largest[coflow[n]], logarithm[n])
    for c in range(len(remainder)):
        remainder[c] = math.exp(left_logarithm[c] - largest[c])
        total[c] = remainder[c]
    for n in range(len(weight)):
        weight[n] = math.exp(logarithm[n] - largest[coflow[n]])
        total[coflow[n]] += weight[n]
    for c in range(len(remainder)):
        remainder[c] /= total[c]
    for n in range(len(weight)):
        weight[n] /= total[coflow[n]]


@njit()
def weigh(isolation, first, coflow, release, load, rounds):
    """Weights that make the bound large.

    Args:
        isolation: seconds, (C,).
        first: as in ``PortEntries``, (P + 1,).
        coflow: as there, (N,).
        release: as there, seconds, (N,).
        load: as there, seconds, (N,).
        rounds: steps.

    Returns:
        The largest bound found on the sum of flow times, its weights, (N,), and what each port adds to it above
        isolation, seconds, not negative, (P,).
    """
    entries, coflows, ports = len(load), len(isolation), len(first) - 1
    # to begin with: the ports that matter are those that take longest
    logarithm, left_logarithm = np.empty(entries), np.zeros(coflows)
    for n in range(entries):
        logarithm[n] = 2 * math.log(load[n] / isolation[coflow[n]])
    weight, flow_time, best_weight = np.empty(entries), np.empty(entries), np.empty(entries)
    remainder, largest, total = np.empty(coflows), np.empty(coflows), np.empty(coflows)
    start, end, served = np.empty(2 * entries), np.empty(2 * entries), np.empty(2 * entries, np.int64)
    added, gain = np.empty(ports), np.empty(ports)
    best = -np.inf
    for number in range(rounds):
        _soften(logarithm, left_logarithm, coflow, weight, remainder, largest, total)
        bound = 0.0
        for c in range(coflows):
            bound += remainder[c] * isolation[c]
        for p in range(ports):
            a, b = first[p], first[p + 1]
            value, _ = mean_busy(release[a:b], load[a:b], weight[a:b], flow_time[a:b], start, end, served)
            bound += value
            for n in range(a, b):
                value -= weight[n] * isolation[coflow[n]]
            added[p] = max(value, 0.0)
        if bound > best:
            best = bound
            for n in range(entries):
                best_weight[n] = weight[n]
            for p in range(ports):
                gain[p] = added[p]
        step = STEP / math.sqrt(1 + number / STEADY)
        for c in range(coflows):
            left_logarithm[c] += step - largest[c]
        for n in range(entries):
            c = coflow[n]
            logarithm[n] += step * flow_time[n] / isolation[c] - largest[c]
    return best, best_weight, gain
