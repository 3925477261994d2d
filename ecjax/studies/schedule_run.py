"""Replays of one workload under several schedulers and source rules, and their rows."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ecjax
from ecjax.coflow.isolation import isolation_s
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric, Workload
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.schedule_tables import coflow_widths, coflows, statistics

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


class Batch:
    """The replays of one workload, under way in a pool.

    Args:
        pool: where they run.
        items: what to replay, by run id.
        given: the workload.
        wanted: what else is asked for.
        seed: of random sources.
        advance: called with the number of replays just done.
    """

    def __init__(
        self, pool: Executor, items: dict[str, Item], given: Given, wanted: Wanted, seed: int, advance: Any
    ) -> None:
        self._items, self._given, self._wanted = items, given, wanted
        self._reference = pool.submit(reference, given, wanted.bound)
        asked = [(item.sources, item.scheduler) for item in items.values()]
        # the baseline is not a run unless it is asked for
        pairs = dict.fromkeys([(sources, BASELINE) for sources, _ in asked] + asked)
        self._replays: dict[tuple[str, str], Future[Replayed]] = {
            (sources, scheduler): pool.submit(replayed, given, scheduler, sources, seed)
            for sources, scheduler in pairs
        }
        for pair in asked:
            self._replays[pair].add_done_callback(lambda _: advance(1))

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, Iterator[pa.Table]]]:
        """Rows of ``runs`` and the other datasets, once all is done; a replay that failed is a row that says so."""
        done = [(name, item, *self._one(name, item)) for name, item in self._items.items()]
        rows = [row for *_, row, _ in done]
        # built as they are written: nine schedulers of 10^5 coflows need not be in memory at a time
        finished = [(name, item, found) for name, item, _, found in done if found is not None]
        return rows, {
            "coflows": (self._coflows(name, item, found) for name, item, found in finished),
            "coflow_widths": (self._widths(name, item, found) for name, item, found in finished),
        }

    def _one(self, name: str, item: Item) -> tuple[dict[str, Any], Replayed | None]:
        row = run_row(name, item, self._given)
        try:
            found = self._replays[item.sources, item.scheduler].result()
            compared = self._reference.result()
        except UserError:
            raise
        except Exception as error:
            log.exception("replay %s failed", name)
            return row | {"status": str(Status.FAILED), "error": f"{type(error).__name__}: {error}"}, None
        own = statistics(found.completion_s, compared.isolation_s, self._fair(item.sources))
        row |= own | {
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
            row |= {"params": _params(self._given.about | {"lower_bound": compared.bound_kind})}
        return row, found

    def _fair(self, sources: str) -> np.ndarray | None:
        baseline = self._replays[sources, BASELINE]
        return None if baseline.exception() else baseline.result().completion_s

    def _coflows(self, name: str, item: Item, found: Replayed) -> pa.Table:
        given, isolation = self._given, self._reference.result().isolation_s
        return coflows(_named(name, item), given.ids, given.workload, found.completion_s, isolation)

    def _widths(self, name: str, item: Item, found: Replayed) -> pa.Table:
        return coflow_widths(
            _named(name, item),
            self._wanted.widths,
            self._given.workload,
            found.completion_s,
            self._reference.result().isolation_s,
            self._fair(item.sources),
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


def run_row(name: str, item: Item, given: Given) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results."""
    return {
        "run_id": name,
        "job": JOB,
        "method": item.scheduler,
        "sources": item.sources,
        **asdict(item.point),
        "input_id": given.input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": item.seed,
        "params": _params(given.about),
    }


def _params(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _named(name: str, item: Item) -> dict[str, str]:
    return {"run_id": name, "scheduler": item.scheduler, "sources": item.sources}
