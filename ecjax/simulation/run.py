"""One replay: requests through an engine, whichever serves the policy and the queues fastest."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ecjax.machine_code import writable
from ecjax.simulation import direct_or_degraded, events, fcfs, fork_join, law_fit, queue_aware
from ecjax.simulation.system import System
from ecjax.simulation.tally import Tally
from ecjax.streams.arrivals import Block

STATIC = ("probabilistic", "uniform", "proportional", "round_robin")  # nodes do not depend on the state
DIRECT_OR_DEGRADED = "direct_or_degraded"  # small reads choose by queued work; only first come, first served
POLICIES = (
    *(*STATIC, "least_loaded", "power_of_d", "fork_join", "late_binding", "hedged"),
    DIRECT_OR_DEGRADED,
)
CHANNELS = (
    *STATIC,
    "least_loaded",
    "power_of_d",
    "fork_join",
)  # of nodes that serve several requests at once
QUEUES = ("fcfs", "priority", "partitioned", "shared")


@dataclass(frozen=True)
class Policy:
    """How the nodes of a request are chosen.

    Attributes:
        name: one of POLICIES. "uniform" and "proportional" are "probabilistic" with other probabilities.
        probes: power_of_d: nodes looked at per chunk wanted.
        cancel: fork_join and hedged: accesses that are no longer needed are given up.
        hedge_delay_s: hedged: s after which further accesses are sent.
        hedges: hedged: how many.
        hedge_budget: hedged: at most this share of the accesses that requests need.
    """

    name: str = "probabilistic"
    probes: int = 2
    cancel: bool = True
    hedge_delay_s: float = np.inf
    hedges: int = 1
    hedge_budget: float = np.inf


@dataclass(frozen=True)
class Queue:
    """How a node serves what waits there.

    Attributes:
        name: one of QUEUES.
        weights: (Q, m) shares of every node, (Q,) for all nodes alike, summing to 1 over classes: partitioned and
            shared.
    """

    name: str = "fcfs"
    weights: ArrayLike = (1.0,)


@dataclass(frozen=True)
class Outages:
    """Intervals in which nodes serve nothing, in any order."""

    node: np.ndarray  # (o,) int64
    start: np.ndarray  # (o,) s
    end: np.ndarray  # (o,) s


@dataclass(frozen=True)
class Outcome:
    """What a replay left behind."""

    tally: Tally
    span: float  # s, time of the last arrival
    requests: int  # that arrived, writes and background work among them
    complete: bool  # False where it was given up as more and more requests waited, or some never end (nodes stay down)
    hedged_share: float  # further accesses of hedging as a share of those that requests need


# an engine: takes a block (times, files, number of the first request); False ends the replay
_Step = Callable[[np.ndarray, np.ndarray, int], bool]


def replay(
    system: System,
    blocks: Iterator[Block],
    counts: Tally,
    seed: int,
    policy: Policy,
    queue: Queue,
    outages: Outages | None = None,
    advance: Callable[[int], None] | None = None,
    channels: np.ndarray | None = None,
) -> Outcome:
    """Replay requests.

    Args:
        system: nodes and files.
        blocks: arrivals, in order.
        counts: empty tally for as many requests as come.
        seed: of the draws.
        policy: how nodes are chosen.
        queue: how nodes serve.
        outages: of nodes.
        advance: called with the number of requests of every block.
        channels: (m,) int64, accesses that each node serves at once; None: one.

    Raises:
        ValueError: nodes have several channels where ``several_channels`` says that these cannot be replayed.
    """
    step, finish, hedged_share = _engine(system, counts, seed, policy, queue, outages, channels)
    first, now, complete = 0, 0.0, True
    for times, files in blocks:
        complete = step(times, files, first)
        first, now = first + len(times), float(times[-1])
        if advance is not None:
            advance(len(times))
        if not complete:
            break
    return Outcome(counts, now, first, finish() and complete, hedged_share())


def first_come_first_served(
    policy: Policy, queue: Queue, outages: Outages | None, channels: np.ndarray | None
) -> bool:
    """Whether nodes are drawn when a request arrives, and serve one after the other: what ``scan`` replays."""
    alone = channels is None or bool(np.all(channels == 1))
    return queue.name == "fcfs" and outages is None and policy.name in STATIC[:3] and alone


def several_channels(policy: Policy, queue: Queue, outages: Outages | None) -> bool:
    """Whether nodes with several channels can be replayed: where no access is moved, or waits for a class."""
    return queue.name == "fcfs" and outages is None and policy.name in CHANNELS


def _engine(
    system: System,
    counts: Tally,
    seed: int,
    policy: Policy,
    queue: Queue,
    outages: Outages | None,
    channels: np.ndarray | None,
) -> tuple[_Step, Callable[[], bool], Callable[[], float]]:
    """What serves a block, what ends the replay, and the share of further accesses."""
    step: _Step
    servers = np.ones(system.nodes, np.int64) if channels is None else channels
    if servers.max() > 1 and not several_channels(policy, queue, outages):
        raise ValueError("only nodes with one channel each can be replayed so")
    idle = np.where(np.arange(servers.max()) < servers[:, None], 0.0, np.inf)
    if queue.name in ("fcfs", "partitioned") and outages is None and policy.name in STATIC:
        weights = np.asarray(queue.weights if queue.name == "partitioned" else (1.0,), float)
        free = idle if len(weights) == 1 else np.zeros((system.nodes, len(weights)))
        slowness = writable(np.broadcast_to(1 / weights.T, (system.nodes, len(weights))))
        turn = np.zeros(len(system.start) - 1, np.int64)
        choice = fcfs.ROUND_ROBIN if policy.name == "round_robin" else fcfs.SAMPLED

        def step(times: np.ndarray, files: np.ndarray, first: int) -> bool:
            fcfs.replay_block(system, counts, times, files, first, seed, choice, slowness, free, turn)
            return True

    elif queue.name == "fcfs" and outages is None and policy.name in ("least_loaded", "power_of_d"):
        rings = queue_aware.Rings.empty(idle)
        probes = policy.probes if policy.name == "power_of_d" else system.widest

        def step(times: np.ndarray, files: np.ndarray, first: int) -> bool:
            queue_aware.replay_block(system, counts, times, files, first, seed, probes, rings)
            return True

    elif policy.name == DIRECT_OR_DEGRADED:
        if queue.name != "fcfs" or outages is not None:
            raise ValueError("small reads choose their kind where nodes have one queue and are up")
        moments, busy_until = law_fit.polynomials(system.laws, system.nodes)[:2], np.zeros(system.nodes)

        def step(times: np.ndarray, files: np.ndarray, first: int) -> bool:
            direct_or_degraded.replay_block(system, counts, times, files, first, seed, moments, busy_until)
            return True

    elif queue.name == "fcfs" and outages is None and policy.name == "fork_join":

        def step(times: np.ndarray, files: np.ndarray, first: int) -> bool:
            fork_join.replay_block(system, counts, times, files, first, seed, policy.cancel, idle)
            return True

    else:
        intervals = () if outages is None else zip(outages.node, outages.start, outages.end, strict=True)
        name = "probabilistic" if policy.name in STATIC[:3] else policy.name
        settings = events.settings(
            system,
            name,
            queue.name,
            queue.weights if queue.name in ("partitioned", "shared") else None,
            policy.probes,
            policy.cancel,
            policy.hedge_delay_s,
            policy.hedges,
            policy.hedge_budget,
            intervals,
        )
        run = events.Run(system, settings, seed)

        def step(times: np.ndarray, files: np.ndarray, first: int) -> bool:
            return events.replay_block(run, counts, times, files, first)

        return step, lambda: events.finish(run, counts) == 0, lambda: events.hedged_share(run)
    return step, lambda: True, lambda: 0.0
