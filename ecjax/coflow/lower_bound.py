"""A certified lower bound on the average completion time (completion - arrival) of coflows, over all schedules.

It holds for any rates, with preemption, with all arrivals known, and for every choice of sources: it knows of ports
only what is certain (``isolation.port_loads``). Floating-point rounding apart, every candidate is a proof; the
largest is returned. On one port it is the optimum.
"""

from typing import NamedTuple

import numpy as np

from ecjax.coflow.isolation import Loads, isolation_of, port_loads
from ecjax.coflow.order import bssi_order
from ecjax.coflow.port_prices import Pieces, averages, cells, prices_of_weights, raise_prices, split_cells
from ecjax.coflow.port_weights import PortEntries, by_port, weigh
from ecjax.coflow.single_port import shortest_remaining
from ecjax.coflow.workload import Fabric, Workload
from ecjax.machine_code import njit

WEIGHT_WORK = 2_200_000  # entries times rounds
LEAST_WEIGHT_ROUNDS, MOST_WEIGHT_ROUNDS = 20, 300
LARGEST_ORDER = 5000  # coflows: Algorithm 1 takes the square of their number
ROUNDS = 1000  # of prices, per stage
WORK_PER_ENTRY = 5000  # steps of ``price_response.one_bound``


class Stage(NamedTuple):
    """Prices on more ports and finer cells than the stage before."""

    gain: float  # share of what the weights gained over isolation that its ports hold
    cells: int
    work: int  # steps of ``price_response.one_bound``
    step: float


STAGES = (Stage(0.9, 100, 25_000_000, 0.02), Stage(0.98, 300, 50_000_000, 0.01))


class Bound(NamedTuple):
    """A lower bound on the average completion time."""

    mean_s: float
    kind: str
    """Which proof gave it: ``isolation`` (each coflow alone), ``bottlenecks`` (shortest remaining time first at each
    coflow's bottleneck), ``algorithm_1`` (its dual value), ``weights`` or ``prices`` (of ports)."""


def lower_bound(workload: Workload, fabric: Fabric) -> Bound:
    """The largest of the bounds known.

    - ``isolation``: the mean time of coflows alone.
    - ``bottlenecks``: every coflow counts at its bottleneck only, where no schedule has a smaller sum of flow times
      than shortest remaining processing time first; of each busy period there, the isolation times if they are more.
    - ``algorithm_1``: the dual value of ``order.bssi_order``, if all arrive together (up to 5,000 coflows).
    - ``weights``: ``port_weights``; fewer rounds above 200,000 pairs of a coflow and a port.
    - ``prices``: ``port_prices``, on the ports where weights gained most; only if weights prove more than bottlenecks
      (prices cannot add much else), and skipped where one round would take long (25,000 pairs at those ports; above
      16,600 the second, finer stage is).

    Deterministic: effort is counted, not timed.

    Args:
        workload: with given sources, or sources to be chosen (the bound then holds for every choice).
        fabric: capacities.
    """
    loads = port_loads(workload, fabric)
    isolation = isolation_of(loads, workload, fabric)
    arrival = workload.arrival_s - workload.arrival_s[0]  # digits are not spent on the calendar
    entries = by_port(arrival, loads.coflow, loads.port, loads.load, loads.ports)
    sums = {
        "isolation": isolation.sum(),
        "bottlenecks": _at_bottlenecks(arrival, isolation, loads),
    }
    if arrival[-1] == 0 and len(arrival) <= LARGEST_ORDER:
        everyone = np.arange(len(arrival))
        sums["algorithm_1"] = bssi_order(
            everyone, loads.first, loads.port, loads.load, loads.ports, everyone.copy()
        )
    rounds = WEIGHT_WORK // len(loads.load)
    rounds = min(max(rounds, LEAST_WEIGHT_ROUNDS), MOST_WEIGHT_ROUNDS)
    sums["weights"], weight, gain = weigh(isolation, *entries, rounds)
    # a difference without a gain at any port is rounding
    if sums["weights"] > sums["bottlenecks"] and gain.any():
        sums["prices"] = _by_prices(arrival, isolation, loads, entries, weight, gain)
    kind = max(sums, key=lambda name: sums[name])
    return Bound(float(sums[kind]) / len(arrival), kind)


def _at_bottlenecks(arrival: np.ndarray, isolation: np.ndarray, loads: Loads) -> float:
    coflow = loads.coflow
    order = np.lexsort((loads.port, -loads.load, coflow))
    longest = order[loads.first[:-1]]  # the largest entry of each coflow
    entries = by_port(arrival, np.arange(len(arrival)), loads.port[longest], loads.load[longest], loads.ports)
    return _busy_periods(isolation, *entries)


@njit()
def _busy_periods(isolation, first, coflow, release, load):
    total = 0.0
    flow_time = np.empty(len(load))
    for p in range(len(first) - 1):
        a, b = first[p], first[p + 1]
        if a == b:
            continue
        shortest_remaining(release[a:b], load[a:b], flow_time[a:b])
        until, served, alone = -np.inf, 0.0, 0.0
        for n in range(a, b):
            if release[n] >= until:
                total += max(served, alone)
                until, served, alone = release[n], 0.0, 0.0
            until += load[n]
            served += flow_time[n]
            alone += isolation[coflow[n]]
        total += max(served, alone)
    return total


def _by_prices(
    arrival: np.ndarray,
    isolation: np.ndarray,
    loads: Loads,
    entries: PortEntries,
    weight: np.ndarray,
    gain: np.ndarray,
) -> float:
    by_gain = np.argsort(-gain, kind="stable")
    share = np.cumsum(gain[by_gain]) / gain.sum()
    pieces = Pieces(*prices_of_weights(entries.first, entries.release, entries.load, weight))
    shown = np.isin(pieces.port, by_gain[: np.searchsorted(share, STAGES[0].gain) + 1])
    idle = pieces.end.max()
    edges = cells(Pieces(*(field[shown] for field in pieces)), arrival[0], idle, STAGES[0].cells)
    edges = np.append(edges, idle + 2 * isolation.max())  # all that any coflow needs fits here
    price = averages(*pieces, loads.ports, edges)
    best = -np.inf
    for stage in STAGES:
        edges, price = split_cells(edges, price, stage.cells)
        priced = np.sort(by_gain[: np.searchsorted(share, stage.gain) + 1])
        number = np.full(loads.ports, -1)
        number[priced] = np.arange(len(priced))
        counts = number[loads.port] >= 0
        work = min(stage.work, WORK_PER_ENTRY * len(loads.load))
        if 10 * counts.sum() * (len(edges) - 1) > stage.work:
            break
        first = np.concatenate([[0], np.cumsum(counts)])[loads.first]
        raised = price[priced]
        bound = raise_prices(
            arrival, isolation, first, number[loads.port[counts]], loads.load[counts],
            raised, edges, ROUNDS, work, stage.step,
        )  # fmt: skip
        best = max(best, bound)
        price[priced] = raised
    return best
