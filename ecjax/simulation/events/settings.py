"""What the engine is told: dispatch policy, queues at the nodes, outages."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ecjax.machine_code import writable
from ecjax.simulation.system import System

POLICIES = (
    "probabilistic",  # nodes drawn with the row's probabilities
    "round_robin",  # the next nodes of the row
    "least_loaded",  # the nodes of the row with the fewest accesses waiting or in service
    "power_of_d",  # those of a few nodes of the row, probed at random
    "fork_join",  # all nodes of the row; the first that finish count
    "late_binding",  # one central queue: nodes take a chunk of the first request that needs one, when they are idle
    "hedged",  # as probabilistic, and further nodes where that takes too long
)
PROBABILISTIC, ROUND_ROBIN, LEAST_LOADED, POWER_OF_D, FORK_JOIN, LATE_BINDING, HEDGED = range(len(POLICIES))
QUEUES = (
    "fcfs",  # one queue, first come, first served
    "priority",  # the lowest class that waits goes first; who is in service stays
    "partitioned",  # every class has a server of its own, of a fixed part of the speed
    "shared",  # classes with work share the whole speed in proportion to their weights
)
FCFS, PRIORITY, PARTITIONED, SHARED = range(len(QUEUES))


class Settings(NamedTuple):
    """Policy and queues, checked; for compiled loops. Q classes at the nodes, e changes of nodes."""

    policy: int
    queue: int
    speeds: np.ndarray  # (m, Q) speed of a class, or weight under sharing; ones where there is one server
    probes: int  # nodes probed per chunk needed
    cancel: bool  # the other accesses of a request that is complete leave at once
    hedge_delay: float  # s
    hedges: int  # accesses sent after the delay
    hedge_budget: (
        float  # of all of these, as a share of the accesses that hedged requests need; inf: no limit
    )
    change_s: np.ndarray  # (e,) s, when a node goes down or comes up, in order
    change_node: np.ndarray  # (e,) int64
    change_up: np.ndarray  # (e,) bool


def _changes(system: System, outages: Iterable[Sequence[float]]) -> list[tuple[float, bool, int]]:
    """Changes (time, down, node) in order, those that come up first; overlapping intervals of a node are one."""
    down_until = np.full(system.nodes, -np.inf)
    changes: list[tuple[float, bool, int]] = []
    intervals = []
    for position, (node, start, end) in enumerate(outages):
        if not 0 <= node < system.nodes or node != int(node):
            raise ValueError(f"outage {position}: node {node} is not one of 0, ..., {system.nodes - 1}")
        if not start <= end:
            raise ValueError(f"outage {position}: ends at {end} s, before it starts at {start} s")
        intervals.append((int(node), float(start), float(end)))
    for node, start, end in sorted(intervals):
        if start == end or end <= down_until[node]:
            continue
        if start <= down_until[node]:
            changes.remove((down_until[node], False, node))
        else:
            changes.append((start, True, node))
        changes.append((end, False, node))
        down_until[node] = end
    return sorted(change for change in changes if change[0] < np.inf)


def _speeds(weights: ArrayLike, classes: int, nodes: int) -> np.ndarray:
    """Weights (Q,) or (Q, m) as speeds (m, Q); Q >= ``classes``."""
    values = np.asarray(weights, float)
    shaped = values.ndim in (1, 2) and len(values) >= classes and values.shape[1:] in ((), (nodes,))
    if not shaped or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(
            f"weights must be {classes} positive numbers, one per class, or ({classes}, {nodes}) of them, one per "
            f"class and node, not {values.tolist()}"
        )
    return writable(np.broadcast_to(values.T, (nodes, len(values))))


def settings(
    system: System,
    policy: str = "probabilistic",
    queue: str = "fcfs",
    weights: ArrayLike | None = None,
    probes: int = 2,
    cancel: bool = True,
    hedge_delay: float = 0.0,
    hedges: int = 1,
    hedge_budget: float = np.inf,
    outages: Iterable[Sequence[float]] = (),
) -> Settings:
    """Settings of a run.

    Args:
        system: what is replayed; its ``queue`` classes are used by all queues but "fcfs".
        policy: one of POLICIES.
        queue: one of QUEUES.
        weights: (Q, m) speed of every class at every node under "partitioned" (1: that of the node), weight under
            "shared"; (Q,) for all nodes alike; Q is more than the highest class. Equal parts that sum to 1 where not
            given.
        probes: power_of_d: nodes probed per chunk needed.
        cancel: fork_join and hedged: the accesses that are left of a complete request leave the nodes at once, from
            service too.
        hedge_delay: s; hedged: when a request that is not complete gets further accesses.
        hedges: how many, at most.
        hedge_budget: at any time no more of them have been sent than this share of the accesses that the requests
            which arrived until then need.
        outages: (node, start in s, end in s) each; they may overlap.

    Raises:
        ValueError: names what is not allowed.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy {policy!r} is not one of {', '.join(POLICIES)}")
    if queue not in QUEUES:
        raise ValueError(f"queue {queue!r} is not one of {', '.join(QUEUES)}")
    classes = 1 if queue == "fcfs" else int(system.queue.max()) + 1
    speeds = np.ones((system.nodes, classes))
    if queue in ("partitioned", "shared"):
        speeds = _speeds(
            np.full(classes, 1.0 / classes) if weights is None else weights, classes, system.nodes
        )
    if probes < 1 or hedges < 0 or not hedge_delay >= 0 or not hedge_budget >= 0:
        raise ValueError("probes must be at least 1, hedges, hedge_delay and hedge_budget not negative")
    changes = _changes(system, outages)
    return Settings(
        policy=POLICIES.index(policy),
        queue=QUEUES.index(queue),
        speeds=speeds,
        probes=int(probes),
        cancel=bool(cancel) and policy in ("fork_join", "hedged"),
        hedge_delay=float(hedge_delay),
        hedges=int(hedges),
        hedge_budget=float(hedge_budget),
        change_s=np.array([time for time, _, _ in changes], float),
        change_node=np.array([node for _, _, node in changes], np.int64),
        change_up=np.array([not down for _, down, _ in changes], bool),
    )
