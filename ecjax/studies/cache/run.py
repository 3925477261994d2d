"""Replays of one point of a sweep of caches under several policies, and their rows."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.caching.cooperative_replay import replay_cooperative
from ecjax.caching.replay import replay
from ecjax.caching.system import Outcome, Policy, Reads, Stored
from ecjax.caching.whole_plans import EdgesPlanner
from ecjax.engine import Worker
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.cache.device_plans import device_name, edges_planner
from ecjax.studies.cache.inputs import Case
from ecjax.studies.cache.network import between, named_neighbours
from ecjax.studies.cache.rows import Rows, cached, latencies, run_values
from ecjax.studies.cache.tables import REFERENCE
from ecjax.studies.spine.batches import Solved
from ecjax.studies.spine.run import Run

_FEW = 50  # reads of a replay that only makes sure that all is compiled

Distances = float | list[list[float]]  # s, between all pairs of edges, or a row per edge


@dataclass(frozen=True)
class Item:
    """One replay.

    Attributes:
        run: its identity.
        case: place among the cases of the study.
        policy: who decides what an edge keeps.
        between_s: how far edges are from each other that serve each other; None: they do not.
        reference: run id of what it is compared with, the policy ``REFERENCE`` at the same point and seed.
    """

    run: Run
    case: int
    policy: Policy
    between_s: Distances | None
    reference: str


class Settings(NamedTuple):
    """What all replays of a study have in common."""

    study: str  # a name that no other study has
    warm_up: float  # share of the reads that is not counted
    device: str  # auto, host or jax


class Workload(NamedTuple):
    """What is replayed at one point with one seed."""

    case: Case
    reads: Reads
    stored: Stored
    first: int  # the first read that is counted
    device: str  # auto, host or jax


class Replayed(NamedTuple):
    """What is left of a replay."""

    values: dict[str, Any]  # of ``runs``
    latencies: Rows
    cached: pa.Table


@lru_cache(2)
def _reference_means_s(study: str) -> dict[str, float]:
    """Mean latencies with references by run id, as far as this process has replayed them for the study."""
    return {}


def solve(settings: Settings, cases: list[Case], items: dict[str, Item], worker: Worker) -> Solved:
    """Rows of ``runs`` and the other datasets of replays of one point and seed.

    Args:
        settings: of the study.
        cases: all points of the study.
        items: what to replay, by run id; all of one case and seed.
        worker: where they run.
    """
    first = next(iter(items.values()))
    case, seed = cases[first.case], first.policy.seed
    reads = case.source.reads(seed)
    warm_up = int(settings.warm_up * len(reads.time_s))
    workload = Workload(case, reads, case.stored(seed), warm_up, settings.device)
    replays = {
        name: worker.pool.submit(replayed, name, workload, item.policy, item.between_s, worker.advance)
        for name, item in items.items()
    }
    # the reference is not a run unless it is one of the items
    reference, means_s = replays.get(first.reference), _reference_means_s(settings.study)
    if reference is None and first.reference not in means_s:
        policy = first.policy._replace(name=REFERENCE, samples=1)
        reference = worker.pool.submit(replayed, first.reference, workload, policy, None)
    outcomes = {}
    for name, each in replays.items():
        outcomes[name] = each.result()
    mean_s = None if reference is None else _mean_s(reference)
    if mean_s is not None:
        means_s[first.reference] = mean_s
    least_s = means_s.get(first.reference)
    rows = []
    for name, outcome in outcomes.items():
        row = items[name].run.row() | outcome.values | {"status": str(Status.OK)}
        if least_s and "mean_s" in outcome.values:
            row["above_optimum"] = outcome.values["mean_s"] / least_s - 1
        rows.append(row)
    by_edge = [row for outcome in outcomes.values() for row in outcome.latencies]
    datasets = {"latencies": pa.Table.from_pylist(by_edge)} if by_edge else {}
    return rows, datasets | {"cached": pa.concat_tables(outcome.cached for outcome in outcomes.values())}


def _mean_s(reference: Future[Replayed]) -> float | None:
    """Mean latency with the reference; None where it failed, or all its reads did."""
    error = reference.exception()
    if isinstance(error, UserError):
        raise error
    return None if error else reference.result().values.get("mean_s")


def replayed(
    name: str,
    workload: Workload,
    policy: Policy,
    between_s: Distances | None,
    advance: Callable[[float], None] = lambda share: None,
) -> Replayed:
    """One replay.

    Args:
        name: run id.
        workload: what is replayed.
        policy: who decides what an edge keeps.
        between_s: how far edges are from each other that serve each other; None: they do not.
        advance: called with the share of the reads just served.
    """
    case, first = workload.case, workload.first
    edges, items = len(case.edge_ids), len(workload.stored.node_of)
    planner = edges_planner(workload.device, policy, edges, items, case.point.k)
    _outcome(*_few(workload, policy), between_s, lambda share: None, planner)
    began = time.perf_counter()
    outcome, neighbour_chunks = _outcome(workload, policy, between_s, advance, planner)
    seconds = time.perf_counter() - began
    values = run_values(outcome, case.point.k, first, seconds)
    if planner is not None:
        values["device"] = device_name()
    if neighbour_chunks is not None:
        chunks = neighbour_chunks[first:]
        values["neighbour_hit_ratio"] = float(chunks.sum(dtype=np.int64)) / (case.point.k * len(chunks))
    return Replayed(
        values,
        latencies(name, outcome, workload.reads, case.edge_ids, first),
        cached(name, outcome, case.edge_ids, case.source.item_ids),
    )


def _few(workload: Workload, policy: Policy) -> tuple[Workload, Policy]:
    """The first reads, at times of two periods, and the policy with a plan among them if it makes any."""
    _, item, edge = (column[:_FEW] for column in workload.reads)
    time_s = np.arange(len(item), dtype=float)
    often = min(policy.replan_reads, int(np.bincount(edge).max()))
    planned = policy._replace(period_s=max(len(item) / 2, 1.0), replan_reads=often)
    return workload._replace(reads=Reads(time_s, item, edge)), planned


def _outcome(
    workload: Workload,
    policy: Policy,
    between_s: Distances | None,
    advance: Callable[[float], None],
    planner: EdgesPlanner | None,
) -> tuple[Outcome, np.ndarray | None]:
    """What becomes of the reads, and how many chunks of each came from other edges where these serve each other."""
    case, edges = workload.case, len(workload.case.edge_ids)
    if between_s is None:
        shares = case.source.popularity
        popularity = None if shares is None else np.tile(shares, (edges, 1))
        outcome = replay(workload.reads, workload.stored, case.network, policy, popularity, advance, planner)
        return outcome, None
    with named_neighbours():  # estimates may move until more edges help each other than by the means
        cooperation = replay_cooperative(
            workload.reads, workload.stored, case.network, between(between_s, edges), policy, advance
        )
    return cooperation.outcome, cooperation.neighbour_chunks
