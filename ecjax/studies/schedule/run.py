"""Replays of one workload under several schedulers and source rules, and their rows."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ecjax
from ecjax.coflow.isolation import isolation_s
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric, Workload
from ecjax.engine import Worker
from ecjax.status import Status
from ecjax.studies.schedule.tables import coflow_widths, coflows, statistics

JOB = "schedule"
BASELINE = "fair"


@dataclass(frozen=True)
class Point:
    """What of a sweep all replays of a workload share; None where it does not apply."""

    n: int | None
    k: int | None
    share_at_zero: float | None
    rate_scale: float
    size_scale: float


@dataclass(frozen=True)
class Item:
    """One replay."""

    point: Point
    seed: int | None  # None where nothing is random
    sources: str
    scheduler: str


class Given(NamedTuple):
    """A workload with what names it."""

    workload: Workload
    fabric: Fabric
    ids: pa.Array  # (C,) coflow ids
    input_id: str
    about: dict[str, Any]  # what else was set, for the column params


class Wanted(NamedTuple):
    """What is asked of every batch."""

    widths: list[int]
    bound: bool


class Replayed(NamedTuple):
    """What is kept of a replay."""

    completion_s: np.ndarray  # (C,)
    makespan_s: float
    max_utilisation: float
    events: int
    moved: int
    seconds: float  # that the replay took


class Reference(NamedTuple):
    """What every replay of a workload is compared with."""

    isolation_s: np.ndarray  # (C,)
    bound_s: float | None  # of the mean completion time
    bound_kind: str | None


def replay_batch(
    items: dict[str, Item], given: Given, wanted: Wanted, seed: int, worker: Worker
) -> tuple[list[dict[str, Any]], dict[str, Iterator[pa.Table]]]:
    """Rows of ``runs`` and the other datasets of replays of one workload.

    Args:
        items: what to replay, by run id.
        given: the workload.
        wanted: what else is asked for.
        seed: of random sources.
        worker: where they run.
    """
    compared = worker.pool.submit(reference, given, wanted.bound)
    asked = [(item.sources, item.scheduler) for item in items.values()]
    # the baseline is not a run unless it is asked for
    pairs = dict.fromkeys([(sources, BASELINE) for sources, _ in asked] + asked)
    replays: dict[tuple[str, str], Future[Replayed]] = {
        (sources, scheduler): worker.pool.submit(replayed, given, scheduler, sources, seed)
        for sources, scheduler in pairs
    }
    for pair in asked:
        replays[pair].add_done_callback(lambda _: worker.advance(1))
    found = {name: replays[item.sources, item.scheduler].result() for name, item in items.items()}
    fair = {
        sources: None if baseline.exception() else baseline.result().completion_s
        for (sources, scheduler), baseline in replays.items()
        if scheduler == BASELINE
    }
    batch = _Batch(items, given, wanted, found, fair, compared.result())
    # built as they are written: nine schedulers of 10^5 coflows need not be in memory at a time
    return [batch.row(name) for name in items], {
        "coflows": (batch.coflows(name) for name in items),
        "coflow_widths": (batch.widths(name) for name in items),
    }


class _Batch(NamedTuple):
    """Replays of one workload that are done."""

    items: dict[str, Item]
    given: Given
    wanted: Wanted
    found: dict[str, Replayed]
    fair: dict[str, np.ndarray | None]  # completion times of the baseline, by sources; None where it failed
    compared: Reference

    def row(self, name: str) -> dict[str, Any]:
        """Row of ``runs``."""
        item, found, compared = self.items[name], self.found[name], self.compared
        own = statistics(found.completion_s, compared.isolation_s, self.fair[item.sources])
        about = self.given.about
        row = own | {
            "status": str(Status.OK),
            "coflows": len(found.completion_s),
            "makespan_s": found.makespan_s,
            "max_utilisation": found.max_utilisation,
            "events": found.events,
            "moved_chunks": found.moved,
            "solve_s": found.seconds,
        }
        if compared.bound_s is not None:
            row |= {"lower_bound": compared.bound_s, "gap": own["mean_s"] / compared.bound_s - 1}
            about = about | {"lower_bound": compared.bound_kind}
        return run_row(name, item, self.given.input_id, about) | row

    def coflows(self, name: str) -> pa.Table:
        """Rows of ``coflows``."""
        given, completion = self.given, self.found[name].completion_s
        about = _named(name, self.items[name])
        return coflows(about, given.ids, given.workload, completion, self.compared.isolation_s)

    def widths(self, name: str) -> pa.Table:
        """Rows of ``coflow_widths``."""
        item = self.items[name]
        return coflow_widths(
            _named(name, item),
            self.wanted.widths,
            self.given.workload,
            self.found[name].completion_s,
            self.compared.isolation_s,
            self.fair[item.sources],
        )


def reference(given: Given, bound: bool) -> Reference:
    """Isolation, and the lower bound if asked for."""
    found = lower_bound(given.workload, given.fabric) if bound else None
    isolation = isolation_s(given.workload, given.fabric)
    return (
        Reference(isolation, None, None) if found is None else Reference(isolation, found.mean_s, found.kind)
    )


def replayed(given: Given, scheduler: str, sources: str, seed: int) -> Replayed:
    """One replay; of its outcome by flow only what the tables need is kept."""
    workload, fabric = given.workload, given.fabric
    began = time.perf_counter()
    outcome = replay(workload, fabric, scheduler, sources, seed)
    seconds = time.perf_counter() - began
    makespan = float(outcome.finish_s.max() - workload.arrival_s[0])
    busy = max(
        (np.bincount(port, workload.bytes, len(capacity)) / capacity).max()
        for port, capacity in ((outcome.source, fabric.send), (workload.destination, fabric.receive))
    )
    return Replayed(
        outcome.completion_s, makespan, float(busy) / makespan, outcome.events, outcome.moved, seconds
    )


def run_row(name: str, item: Item, input_id: str, about: dict[str, Any]) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results.

    Args:
        name: run id.
        item: the replay.
        input_id: names its workload.
        about: what else was set, for the column params.
    """
    return {
        "run_id": name,
        "job": JOB,
        "method": item.scheduler,
        "sources": item.sources,
        **asdict(item.point),
        "input_id": input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": item.seed,
        "params": json.dumps(about, sort_keys=True),
    }


def _named(name: str, item: Item) -> dict[str, str]:
    return {"run_id": name, "scheduler": item.scheduler, "sources": item.sources}
