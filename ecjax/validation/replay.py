"""Accesses as the log has them through first-come first-served queues, one server per node."""

from dataclasses import dataclass

import numpy as np

from ecjax.machine_code import njit
from ecjax.simulation import laws, tally
from ecjax.simulation.laws import Laws
from ecjax.simulation.tally import BINS
from ecjax.streams import streams


@njit()
def draw_service(table, samples, law, sizes, seed, work):
    """Service times of accesses (a,) into ``work``, s: access i from the stream of its place i."""
    start = streams.key(seed, streams.SERVICE)
    for i in range(law.size):
        work[i] = laws.service(table, samples, law[i], sizes[i], 1, streams.stream(start, i))


@njit()
def queue(arrivals, nodes, work, free, finish):
    """Finish times of accesses in order of arrival: finish = max(arrival, node is free) + work.

    Args:
        arrivals: (a,) s.
        nodes: (a,) int64.
        work: (a,) s.
        free: (m,) s, when each node is free; carried on.
        finish: (a,) s, the result.
    """
    for i in range(arrivals.size):
        node = nodes[i]
        free[node] = max(arrivals[i], free[node]) + work[i]
        finish[i] = free[node]


@njit()
def _count(values, group, sums, bins):
    for i in range(values.size):
        place = group[i]
        if place >= 0:
            sums[place, 0] += 1.0
            sums[place, 1] += values[i]
            sums[place, 2] += values[i] * values[i]
            bins[place, tally.bin_of(values[i])] += 1


@dataclass(frozen=True)
class Counted:
    """Times of G groups over R replications of the same requests.

    Attributes:
        sums: (R, G, 3) of 1, x (s), x^2 (s^2).
        bins: (G, BINS) int64, all replications together; bins as in ``replay.tally``.
    """

    sums: np.ndarray
    bins: np.ndarray


class Counter:
    """Counts times by groups, replication by replication."""

    def __init__(self, groups: int, replications: int) -> None:
        self.counted = Counted(np.zeros((replications, groups, 3)), np.zeros((groups, BINS), np.int64))

    def add(self, replication: int, values: np.ndarray, group: np.ndarray) -> None:
        """Add times (n,) s of groups (n,), -1: of none."""
        _count(values, group, self.counted.sums[replication], self.counted.bins)


def drawn_finishes(
    service: Laws,
    law: np.ndarray,
    arrivals: np.ndarray,
    nodes: np.ndarray,
    sizes: np.ndarray,
    free: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Finish times (a,) s of accesses in order of arrival, with service times drawn from laws.

    Args:
        service: laws.
        law: (a,) int64, place in ``service``.
        arrivals: (a,) s.
        nodes: (a,) int64.
        sizes: (a,) B.
        free: (m,) s, when each node is free of what came before.
        seed: of the draws.
    """
    work, finish = np.empty(len(arrivals)), np.empty(len(arrivals))
    draw_service(service.table, service.samples, law, sizes, seed, work)
    queue(arrivals, nodes, work, free.copy(), finish)
    return finish
