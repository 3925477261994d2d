"""Replays of one workload under several schedulers and source rules, and their rows."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.coflow.isolation import isolation_s
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import replay
from ecjax.coflow.workload import Fabric, Workload
from ecjax.engine import Worker
from ecjax.progress import detail, polled
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.schedule.inputs import Case
from ecjax.studies.schedule.rows import coflow_widths, coflows, statistics
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run

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

    run: Run
    sources: str
    scheduler: str


class Settings(NamedTuple):
    """What all replays of a study have in common."""

    widths: list[int]
    lower_bound: bool  # whether it is computed
    seed: int  # where nothing is random


class Transfers(NamedTuple):
    """A workload on its fabric."""

    workload: Workload
    fabric: Fabric
    ids: pa.Array  # (C,) coflow ids


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


def solve(
    settings: Settings, case: Case, items: dict[str, Item], worker: Worker
) -> tuple[Rows, dict[str, Iterator[pa.Table]]]:
    """Rows of ``runs`` and the other datasets of replays of one workload.

    Args:
        settings: of the study.
        case: what the workload is of.
        items: what to replay, by run id; all of one seed.
        worker: where they run.
    """
    seed = next(iter(items.values())).run.seed
    seed = settings.seed if seed is None else seed
    transfers = Transfers(case.workload(seed), case.fabric, case.coflow_ids)
    compared = worker.pool.submit(reference, transfers, settings.lower_bound)
    pairs = [(item.sources, item.scheduler) for item in items.values()]
    # the baseline is not a run unless it is one of the items
    replays: dict[tuple[str, str], Future[Replayed]] = {
        (sources, scheduler): worker.pool.submit(
            replayed,
            transfers,
            scheduler,
            sources,
            seed,
            worker.advance if (sources, scheduler) in pairs else _nobody,
        )
        for sources, scheduler in dict.fromkeys([(sources, BASELINE) for sources, _ in pairs] + pairs)
    }
    outcomes = {name: replays[item.sources, item.scheduler].result() for name, item in items.items()}
    fair = {
        sources: None if baseline.exception() else baseline.result().completion_s
        for (sources, scheduler), baseline in replays.items()
        if scheduler == BASELINE
    }
    batch = _Batch(items, transfers, settings, outcomes, fair, compared.result())
    # built as they are written: nine schedulers of 10^5 coflows need not be in memory at a time
    return [batch.row(name) for name in items], {
        "coflows": (batch.coflows(name) for name in items),
        "coflow_widths": (batch.widths(name) for name in items),
    }


class _Batch(NamedTuple):
    """Replays of one workload that are done."""

    items: dict[str, Item]
    transfers: Transfers
    settings: Settings
    outcomes: dict[str, Replayed]
    fair: dict[str, np.ndarray | None]  # completion times of the baseline, by sources; None where it failed
    compared: Reference

    def row(self, name: str) -> dict[str, Any]:
        """Row of ``runs``."""
        item, outcome, compared = self.items[name], self.outcomes[name], self.compared
        values = statistics(outcome.completion_s, compared.isolation_s, self.fair[item.sources])
        row = item.run.row() | values
        row |= {
            "status": str(Status.OK),
            "coflow_count": len(outcome.completion_s),
            "makespan_s": outcome.makespan_s,
            "max_utilisation": outcome.max_utilisation,
            "events": outcome.events,
            "moved_chunks": outcome.moved,
            "solve_s": outcome.seconds,
        }
        if compared.bound_s is not None:
            row |= {"lower_bound": compared.bound_s, "gap": values["mean_s"] / compared.bound_s - 1}
            row["params"] = item.run.params(lower_bound_kind=compared.bound_kind)
        return row

    def coflows(self, name: str) -> pa.Table:
        """Rows of ``coflows``."""
        transfers, completion = self.transfers, self.outcomes[name].completion_s
        columns = _columns(name, self.items[name])
        return coflows(columns, transfers.ids, transfers.workload, completion, self.compared.isolation_s)

    def widths(self, name: str) -> pa.Table:
        """Rows of ``coflow_widths``."""
        item = self.items[name]
        return coflow_widths(
            _columns(name, item),
            self.settings.widths,
            self.transfers.workload,
            self.outcomes[name].completion_s,
            self.compared.isolation_s,
            self.fair[item.sources],
        )


def reference(transfers: Transfers, bound: bool) -> Reference:
    """Isolation, and the lower bound if ``bound``."""
    isolation = isolation_s(transfers.workload, transfers.fabric)
    if not bound:
        return Reference(isolation, None, None)
    least = lower_bound(transfers.workload, transfers.fabric)
    return Reference(isolation, least.mean_s, least.kind)


def _nobody(share: float) -> None:
    """What advances nothing."""


def replayed(
    transfers: Transfers,
    scheduler: str,
    sources: str,
    seed: int,
    advance: Callable[[float], object] = _nobody,
) -> Replayed:
    """One replay; of its outcome by flow only what the tables need is kept. ``advance`` is called with shares of it."""
    workload, fabric = transfers.workload, transfers.fabric
    detail(f"{scheduler} with {sources} sources, seed {seed}")
    with polled(advance) as poll, Stopwatch() as stopwatch:

        def watch(completion_s: np.ndarray) -> None:
            poll(lambda: np.count_nonzero(completion_s) / max(len(completion_s), 1))

        outcome = replay(workload, fabric, scheduler, sources, seed, watch=watch)
    makespan = float((workload.arrival_s - workload.arrival_s[0] + outcome.completion_s).max())
    busy = max(
        (np.bincount(port, workload.bytes, len(capacity)) / capacity).max()
        for port, capacity in ((outcome.source, fabric.send), (workload.destination, fabric.receive))
    )
    return Replayed(
        outcome.completion_s,
        makespan,
        float(busy) / makespan,
        outcome.events,
        outcome.moved,
        stopwatch.own_s,
    )


def _columns(name: str, item: Item) -> dict[str, str]:
    return {"run_id": name, "scheduler": item.scheduler, "sources": item.sources}
