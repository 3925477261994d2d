"""Replays of one case and seed under several strategies, and their rows."""

import math
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.adaptation.arrivals import Requests
from ecjax.adaptation.proxy import Strategy
from ecjax.adaptation.replay import replay
from ecjax.adaptation.storage import chunks_stored, storage
from ecjax.adaptation.thresholds import threshold_table
from ecjax.engine import Worker
from ecjax.errors import UserError
from ecjax.intervals import statistics
from ecjax.progress import detail
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.adapt import rows
from ecjax.studies.adapt.best_static import envelope, searched
from ecjax.studies.adapt.inputs import Case, Proxy
from ecjax.studies.adapt.options import Code
from ecjax.studies.adapt.strategies import Choice, Prepared, candidates, static
from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run

WARM_UP = 0.05  # share of the requests: the proxy starts empty
_SHORT = 10  # codes of several classes are searched on so many times fewer requests
_LEAST = 5000  # requests, but no fewer than this
_WINDOWS = 10  # over the whole time, where rates vary; each no shorter than _LEAST
_LEAST_EMPTY = 1e-6  # of 1 - sqrt(load): relaxation times are finite
_GROWING = 5.0  # sqrt(N) requests still waiting at the last of N arrivals: more are no chance


@dataclass(frozen=True)
class Item:
    """One replay.

    Attributes:
        run: its identity.
        case: place of its case among those of the study.
        choice: the strategy.
        prepared: what was prepared for that.
    """

    run: Run
    case: int
    choice: Choice
    prepared: Prepared = Prepared()


class Settings(NamedTuple):
    """What all replays of a study have in common."""

    memory: float  # of ``tofec``
    capacity: bool  # whether capacities are searched
    dollars_per_byte: float  # of storage, per period


class Workload(NamedTuple):
    """The requests of one case and seed."""

    case: Case
    requests: Requests
    seed: int

    def first(self, count: int) -> int:
        """The first of so many requests that is counted."""
        return int(WARM_UP * count) if self.case.point.constant else 0


class Replayed(NamedTuple):
    """The outcome of a replay, in rows of the datasets."""

    strategy: Strategy
    row: dict[str, Any]  # of ``runs``
    codes: Rows
    latencies: Rows
    timeline: Rows
    task_s: float  # mean time that a task keeps a thread
    growing: bool  # whether requests came faster than they were served
    seconds: float  # that the replay took


def solve(
    settings: Settings, cases: list[Case], items: dict[str, Item], worker: Worker
) -> tuple[Rows, dict[str, pa.Table]]:
    """Rows of ``runs`` and the other datasets of replays of one case and seed.

    Args:
        settings: of the study.
        cases: of the study.
        items: what to replay, by run id; all of one case and seed.
        worker: where they run.

    Raises:
        UserError: no request arrives.
    """
    first = next(iter(items.values()))
    workload = _workload(cases[first.case], first.run.seed or 0)
    parts = {name: _parts(item, workload.case) for name, item in items.items()}
    # the code of one item may be a candidate of another
    tables = {choice: table for of_item in parts.values() for choice, table in of_item.items()}
    replays: dict[Choice, Future[Replayed]] = {
        choice: worker.pool.submit(_best, workload)
        if table is None
        else worker.pool.submit(_replayed, workload, table)
        for choice, table in tables.items()
    }
    runs: Rows = []
    datasets: dict[str, Rows] = {}
    for name, item in items.items():
        if item.prepared.error is None:
            by_codes = {choice.codes: replays[choice].result() for choice in parts[name]}
            best = min(by_codes.values(), key=lambda each: each.row["mean_s"])
            results = _results(item, best, workload.case, settings)
            if item.choice.strategy == BEST_STATIC and len(workload.case.proxy.classes) == 1:
                results["envelope"] = envelope({codes: each.row for codes, each in by_codes.items()})
            for dataset, values in _datasets(best, workload.case.proxy).items():
                datasets.setdefault(dataset, []).extend({"run_id": name, **value} for value in values)
        else:
            results = {"status": str(Status.FAILED), "error": item.prepared.error}
        worker.advance(1)
        runs.append(item.run.row() | results)
    return runs, {name: _table(values) for name, values in datasets.items() if values}


def _workload(case: Case, seed: int) -> Workload:
    requests = case.point.requests(seed)
    if not len(requests.arrival_s):
        raise UserError(
            f"{case.point.kind}: found no request with seed={seed}, at {case.point.rate_per_s:g} requests/s; allowed: "
            "higher rates, or for longer"
        )
    return Workload(case, requests, seed)


def _parts(item: Item, case: Case) -> dict[Choice, Strategy | None]:
    """The replays that an item needs, and their tables of codes; None: the best static codes are to be searched."""
    choice, prepared = item.choice, item.prepared
    if prepared.error is not None:
        return {}
    if choice.strategy == STATIC:
        return {choice: static(choice)}
    if prepared.throughput is None:
        return {choice: prepared.strategy}
    rate = case.point.rate_per_s if case.point.constant else None
    return {part: static(part) for part in candidates(prepared.throughput, rate)}


def _best(workload: Workload) -> Replayed:
    """``best_static`` of several classes: searched on part of the requests, replayed on all."""
    proxy, (arrival, class_of) = workload.case.proxy, workload.requests
    windows = searched_windows(len(arrival), workload.case.point.constant)

    def mean(codes: tuple[Code, ...]) -> float:
        table = static(Choice(STATIC, codes))
        latencies: list[np.ndarray] = []
        for place, window in enumerate(windows):
            # each window has delays of its own
            seed = workload.seed + place
            outcome = replay(arrival[window], class_of[window], proxy.tasks, table, proxy.threads, seed)
            latencies.append(outcome.latency_s[workload.first(len(outcome.latency_s)) :])
        return float(np.concatenate(latencies).mean())

    few = searched(proxy, workload.case.point.rate_per_s, mean)
    replays = (_replayed(workload, static(Choice(STATIC, codes))) for codes in few)
    return min(replays, key=lambda each: each.row["mean_s"])


def searched_windows(count: int, constant: bool) -> list[slice]:
    """Requests that codes of several classes are searched on: about a tenth of them, at least 5000.

    Args:
        count: of all requests.
        constant: whether their rate is; then the first ones. Else windows over the whole time, as the best codes of one
            load are not those of another: ten, each of 5000 requests or more, or all where they are no more than that.
    """
    if constant:
        return [slice(0, min(max(_LEAST, count // _SHORT), count))]
    length = max(_LEAST, count // (_SHORT * _WINDOWS))
    if count <= length * _WINDOWS:
        return [slice(0, count)]
    starts = [place * (count - length) // (_WINDOWS - 1) for place in range(_WINDOWS)]
    return [slice(start, start + length) for start in starts]


def _replayed(workload: Workload, table: Strategy) -> Replayed:
    """One replay of a table of codes."""
    detail(
        f"{workload.case.proxy.delays}, {workload.case.point.rate_per_s:.4g} requests/s, seed {workload.seed}"
    )
    (proxy, _, timeline_s), (arrival, class_of) = workload.case, workload.requests
    with Stopwatch() as stopwatch:
        outcome = replay(arrival, class_of, proxy.tasks, table, proxy.threads, workload.seed)
    first = workload.first(len(arrival))
    codes = rows.codes(proxy.classes, table, class_of, outcome, first)
    counted = np.array([row["requests"] for row in codes])
    span = float((arrival + outcome.latency_s).max() - arrival[0])
    row = statistics(outcome.latency_s[first:]) | {
        "requests": len(arrival),
        "warm_up_share": first / len(arrival),
        # what is finished in the background goes on beyond the span
        "utilisation": min(outcome.busy_s / (proxy.threads * span), 1.0),
        "tasks_per_request": outcome.tasks / len(arrival),
        "mean_n": float(np.average([row["n"] for row in codes], weights=counted)),
        "mean_k": float(np.average([row["k"] for row in codes], weights=counted)),
        "chunks_stored": chunks_stored(proxy.classes, codes),
    }
    timeline: Rows = []
    if timeline_s is not None:
        timeline = rows.timeline(arrival, outcome.latency_s, table.k[class_of, outcome.level], timeline_s)
    waiting = len(arrival) - int(np.searchsorted(outcome.admitted_s, arrival[-1], side="right"))
    return Replayed(
        table,
        row,
        codes,
        rows.latencies(proxy.classes, class_of[first:], outcome.latency_s[first:]),
        timeline,
        outcome.busy_s / outcome.tasks,
        waiting > _GROWING * math.sqrt(len(arrival)),
        stopwatch.own_s,
    )


def _results(item: Item, best: Replayed, case: Case, settings: Settings) -> dict[str, Any]:
    """What the best of its replays adds to the row of an item."""
    proxy, point, _ = case
    capacity = item.prepared.capacity_per_s
    overloaded = capacity is not None and point.constant and point.rate_per_s > capacity
    stationary = point.constant and not (best.growing or overloaded)
    results = best.row | {"relaxation_s": _relaxation_s(item, best, case) if stationary else None}
    results |= storage(proxy.classes, best.strategy, settings.dollars_per_byte)
    results |= {
        "status": str(Status.NOT_STATIONARY if best.growing or overloaded else Status.OK),
        "solve_s": best.seconds,
    }
    if capacity is not None:
        results |= {"capacity_per_s": capacity, "capacity_share": capacity / proxy.basic_capacity_per_s}
    if item.choice.strategy in (STATIC, BEST_STATIC):
        table = best.strategy
        codes = tuple(zip(table.n[:, 0].tolist(), table.k[:, 0].tolist(), strict=True))
        by_class = {each.name: list(code) for each, code in zip(proxy.classes, codes, strict=True)}
        results |= common_code(codes) | {"params": item.run.params(codes_by_class=by_class)}
    return results


def _relaxation_s(item: Item, best: Replayed, case: Case) -> float | None:
    """How long the proxy remembers how it began, s: the relaxation time of an M/M/c queue of tasks (van Doorn).

    It is m / (c (1 - sqrt(rho))^2) near saturation, and never less than the mean time m of a task; None where rho is
    1 or more, as that of strategies that adapt may be while their capacity is not known.
    """
    proxy, point, _ = case
    strategy, capacity = item.choice.strategy, item.prepared.capacity_per_s
    if strategy == BEST_STATIC or (strategy == STATIC and capacity is None):
        rho = best.row["utilisation"]  # the capacity of best_static is that of other codes
    elif capacity is not None:
        rho = point.rate_per_s / capacity
    else:
        rho = point.load  # threads that are idle are used, too
    if rho >= 1:
        return None
    empty = max(1 - math.sqrt(rho), _LEAST_EMPTY)
    return best.task_s * max(1.0, 1 / (proxy.threads * empty**2))


def common_code(codes: tuple[Code, ...]) -> dict[str, int]:
    """The common n and k where all classes have the same."""
    return {"n": codes[0][0], "k": codes[0][1]} if len(set(codes)) == 1 else {}


def _datasets(best: Replayed, proxy: Proxy) -> dict[str, Rows]:
    """Rows of the datasets besides ``runs``."""
    table = best.strategy
    return {
        "codes": best.codes,
        "latencies": best.latencies,
        "timeline": best.timeline,
        "thresholds": [row | {"weight": table.weight} for row in threshold_table(table, proxy.classes)],
        "delays": rows.delays(proxy.classes, proxy.models),
    }


def _table(values: Rows) -> pa.Table:
    """Rows as a table; a row may lack what others have."""
    names = dict.fromkeys(name for row in values for name in row)
    return pa.table({name: [row.get(name) for row in values] for name in names})
