"""Replay coflows on a fabric under one scheduler and one rule of source selection."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecjax.coflow import coflow_level, pairs, sharing, smallest_first, state
from ecjax.coflow import sources as rules
from ecjax.coflow.reselection import Reads
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, Workload, check
from ecjax.errors import UserError

SCHEDULERS = (*coflow_level.CODES, *sharing.CODES, "pfabric")
SOURCES = tuple(rules.CODES)
_HEAVY = 0.8  # Baraat: quantile of the sizes from which on a coflow is heavy
_FIRST_LOG = 1 << 16


class Outcome(NamedTuple):
    """What became of C coflows with F flows."""

    completion_s: np.ndarray  # (C,) seconds from arrival to the end of the last flow
    finish_s: np.ndarray  # (F,) time when each flow ended
    source: np.ndarray  # (F,) server that sent it
    events: int  # moments at which rates changed
    moved: int  # times that a flow changed its source before it began
    log: np.ndarray  # (rows, 4) start_s, end_s, flow, rate (bytes/s) of every interval; empty unless asked


def replay(
    workload: Workload,
    fabric: Fabric,
    scheduler: str,
    sources: str = "given",
    seed: int = 0,
    log: bool = False,
    watch: Callable[[np.ndarray], object] = lambda completion_s: None,
) -> Outcome:
    """Replay all coflows until the last has ended; event-exact, see ``ecjax.coflow``.

    Args:
        workload: C coflows with F flows.
        fabric: ports.
        scheduler: one of ``SCHEDULERS``.
        sources: one of ``SOURCES``; "given" where all sources are given.
        seed: of the random choice of sources, and of ties between servers.
        log: also return the rates.
        watch: called at the beginning with the array (C,) in which coflows that have ended are not 0.

    Raises:
        UserError: the scheduler or rule is unknown, or the workload is not as ``workload.check`` wants it.
    """
    if scheduler not in SCHEDULERS:
        raise UserError(f"scheduler: found {scheduler!r}; allowed: {', '.join(SCHEDULERS)}")
    later = bool((workload.source == CHOSEN_LATER).any())
    if sources not in SOURCES and (later or sources != "given"):
        raise UserError(f"sources: found {sources!r}; allowed: {', '.join(SOURCES)}")
    check(workload, fabric)
    rule = rules.CODES.get(sources, rules.RANDOM)
    rows = _FIRST_LOG if log else 0
    # digits are not spent on the calendar: of seconds since 1970 none below 1e-7 are left
    origin = workload.arrival_s[0] if len(workload.arrival_s) else 0.0
    from_first = workload._replace(arrival_s=workload.arrival_s - origin)
    while True:
        outcome, needed = _run(from_first, fabric, scheduler, rule, seed, rows, watch)
        if not log or needed <= rows:
            intervals = outcome.log[:needed]
            intervals[:, :2] += origin
            return outcome._replace(finish_s=outcome.finish_s + origin, log=intervals)
        rows = needed


def _run(
    workload: Workload,
    fabric: Fabric,
    scheduler: str,
    rule: int,
    seed: int,
    rows: int,
    watch: Callable[[np.ndarray], object],
) -> tuple[Outcome, int]:
    candidate = rules.random_order(workload, seed)
    log = np.zeros((rows, 4))
    if scheduler in coflow_level.CODES:
        return _by_coflow(workload, fabric, scheduler, rule, candidate, log, watch)
    if scheduler == "pfabric":
        arrivals, events, needed = smallest_first.replay(workload, fabric, candidate, rule, log)
    else:
        ports, arrivals = pairs.fresh(workload, fabric, candidate)
        watch(arrivals.completion)
        events, needed = sharing.run(ports, arrivals, sharing.CODES[scheduler], rule, log)
    took = arrivals.completion - workload.arrival_s
    return Outcome(took, arrivals.finish, arrivals.source, events, 0, log), needed


def _by_coflow(
    workload: Workload,
    fabric: Fabric,
    scheduler: str,
    rule: int,
    candidate: np.ndarray,
    log: np.ndarray,
    watch: Callable[[np.ndarray], object],
) -> tuple[Outcome, int]:
    fresh, flow = state.fresh(workload, fabric)
    heavy = float(np.quantile(workload.coflow_bytes, _HEAVY)) if len(workload.arrival_s) else 0.0
    settings = coflow_level.Settings(coflow_level.CODES[scheduler], rule, heavy)
    finish, completion = np.zeros(len(flow)), np.zeros(len(workload.arrival_s))
    watch(completion)
    reads = Reads(
        first_candidate=workload.first_candidate.astype(np.int64),
        candidate=candidate.astype(np.int64),
        flow=flow,
        ahead=np.zeros(len(fabric.send)),
        moved=np.zeros(1, dtype=np.int64),
    )
    events, needed = coflow_level.run(
        fresh, settings, workload.arrival_s.astype(float), reads, finish, completion, log
    )
    source = np.empty(len(flow), dtype=np.int64)
    source[flow] = fresh.source
    took = completion - workload.arrival_s
    return Outcome(took, finish, source, events, int(reads.moved[0]), log), needed
