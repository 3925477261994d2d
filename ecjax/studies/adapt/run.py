"""Replays of one point of a sweep under several strategies, and their rows."""

import json
import math
import time
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ecjax
from ecjax.adapt import strategies
from ecjax.adapt.arrivals import Requests
from ecjax.adapt.proxy import Strategy
from ecjax.adapt.replay import replay
from ecjax.adapt.storage import chunks_stored, storage
from ecjax.adapt.thresholds import threshold_table
from ecjax.engine import Worker
from ecjax.intervals import statistics
from ecjax.status import Status
from ecjax.studies.adapt import rows as tables
from ecjax.studies.adapt.best_static import envelope, searched
from ecjax.studies.adapt.inputs import Case, Point
from ecjax.studies.adapt.proxy import Proxy
from ecjax.studies.adapt.strategies import BEST_STATIC, STATIC, Choice, Code

JOB = "adapt"
WARM_UP = 0.05  # share of the requests: the proxy starts empty
_DATASETS = ("codes", "latencies", "timeline", "thresholds", "delays")
_SHORT = 10  # codes of several classes are searched on so many times fewer requests
_LEAST = 5000  # requests, but no fewer than this
_GROWING = 5.0  # sqrt(N) requests still waiting at the last of N arrivals: more are no chance


class Item(NamedTuple):
    """One replay."""

    proxy: int  # place among the proxies of the study
    point: int  # place among the points of its case
    seed: int
    choice: Choice


class Given(NamedTuple):
    """What all replays of a point share."""

    proxy: Proxy
    point: Point
    constant: bool  # whether the rate is constant, so that latencies become stationary
    seed: int
    requests: Requests
    timeline_s: float | None
    dollars_per_byte: float
    about: dict[str, Any]  # what else was set, for the column params


class Replayed(NamedTuple):
    """What is kept of a replay."""

    strategy: Strategy
    row: dict[str, Any]  # of ``runs``
    codes: tables.Rows
    latencies: tables.Rows
    timeline: tables.Rows
    growing: bool  # whether requests came faster than they were served
    seconds: float  # that the replay took


def replay_batch(
    items: dict[str, Item], given: Given, worker: Worker
) -> tuple[list[dict[str, Any]], dict[str, pa.Table]]:
    """Rows of ``runs`` and the other datasets of replays of one point and seed.

    Args:
        items: what to replay, by run id.
        given: requests and proxy.
        worker: where they run.
    """
    parts = {item.choice: _parts(item.choice, given) for item in items.values()}
    replays: dict[Choice, Future[Replayed]] = {}
    for part in dict.fromkeys(part for own in parts.values() for part in own):
        call = _best if part.strategy == BEST_STATIC else replayed
        replays[part] = worker.pool.submit(call, given, part)
    runs = []
    found: dict[str, tables.Rows] = {name: [] for name in _DATASETS}
    for name, item in items.items():
        row, own = _one(
            name, item, {part.codes: replays[part].result() for part in parts[item.choice]}, given
        )
        worker.advance(1)
        runs.append(row)
        for dataset, rows in zip(_DATASETS, _datasets(own, given.proxy.case), strict=True):
            found[dataset] += [{"run_id": name, **each} for each in rows]
    return runs, {name: _table(rows) for name, rows in found.items() if rows}


def _parts(choice: Choice, given: Given) -> list[Choice]:
    """The replays that a choice needs."""
    if choice.strategy == BEST_STATIC and len(given.proxy.case.classes) == 1:
        return given.proxy.candidates(given.point.rate_per_s if given.constant else None)
    return [choice]


def _one(
    name: str, item: Item, parts: dict[tuple[Code, ...], Replayed], given: Given
) -> tuple[dict[str, Any], Replayed]:
    """Row of ``runs``, and the best of the replays by codes."""
    best = min(parts, key=lambda codes: parts[codes].row["mean_s"])
    row = run_row(name, item, given.proxy.case, given.about)
    if item.choice.strategy == BEST_STATIC and len(given.proxy.case.classes) == 1:
        row |= {"envelope": envelope({codes: part.row for codes, part in parts.items()})}
    return row | finished(item.choice, parts[best], given), parts[best]


def _datasets(own: Replayed, case: Case) -> list[tables.Rows]:
    """Rows of the datasets besides ``runs``, in the order of _DATASETS."""
    thresholds = [
        row | {"weight": own.strategy.weight} for row in threshold_table(own.strategy, case.classes)
    ]
    return [own.codes, own.latencies, own.timeline, thresholds, tables.delays(case.classes, case.models)]


def _table(rows: tables.Rows) -> pa.Table:
    """Rows as a table; a row may lack what others have."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def replayed(given: Given, choice: Choice) -> Replayed:
    """One replay of a strategy that has a table of codes."""
    return _replayed(given, given.proxy.strategy(choice))


def _best(given: Given, choice: Choice) -> Replayed:
    """``best_static`` of several classes: searched on part of the requests, replayed on all."""
    proxy = given.proxy
    count = min(max(_LEAST, len(given.requests.arrival_s) // _SHORT), len(given.requests.arrival_s))
    short = Requests(given.requests.arrival_s[:count], given.requests.class_of[:count])

    def mean(codes: tuple[Code, ...]) -> float:
        outcome = replay(*short, proxy.tasks, strategies.static(list(codes)), proxy.threads, given.seed)
        return float(outcome.latency_s[_first(given, count) :].mean())

    few = searched(proxy.case, given.point.rate_per_s, proxy.threads, mean)
    found = (_replayed(given, strategies.static(list(codes))) for codes in few)
    return min(found, key=lambda one: one.row["mean_s"])


def _first(given: Given, count: int) -> int:
    """The first of so many requests that is counted."""
    return int(WARM_UP * count) if given.constant else 0


def _replayed(given: Given, strategy: Strategy) -> Replayed:
    proxy, (arrival, class_of) = given.proxy, given.requests
    began = time.perf_counter()
    outcome = replay(arrival, class_of, proxy.tasks, strategy, proxy.threads, given.seed)
    seconds = time.perf_counter() - began
    first = _first(given, len(arrival))
    classes = proxy.case.classes
    codes = tables.codes(classes, strategy, class_of, outcome, first)
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
        "chunks_stored": chunks_stored(classes, codes),
    }
    timeline = []
    if given.timeline_s is not None:
        dimension = strategy.k[class_of, outcome.level]
        timeline = tables.timeline(arrival, outcome.latency_s, dimension, given.timeline_s)
    waiting = len(arrival) - int(np.searchsorted(outcome.admitted_s, arrival[-1], side="right"))
    return Replayed(
        strategy,
        row,
        codes,
        tables.latencies(classes, class_of[first:], outcome.latency_s[first:]),
        timeline,
        waiting > _GROWING * math.sqrt(len(arrival)),
        seconds,
    )


def run_row(name: str, item: Item, case: Case, about: dict[str, Any]) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results.

    Args:
        name: run id.
        item: the replay.
        case: its law and arrivals.
        about: what else was set, for the column params.
    """
    point = case.points[item.point]
    return {
        "run_id": name,
        "job": JOB,
        "method": item.choice.strategy,
        **_code(item.choice.codes),
        "delays": case.delays,
        "arrivals": point.kind,
        "rate_per_s": point.rate_per_s,
        "load": point.load,
        "rate_scale": point.rate_scale,
        "input_id": case.input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": item.seed,
        "params": json.dumps(about, sort_keys=True),
    }


def finished(choice: Choice, found: Replayed, given: Given) -> dict[str, Any]:
    """What a replay adds to its row.

    Args:
        choice: what was asked for.
        found: the replay.
        given: requests and proxy.
    """
    case, point = given.proxy.case, given.point
    capacity = given.proxy.capacity_per_s(choice)
    overloaded = capacity is not None and given.constant and point.rate_per_s > capacity
    row = found.row | storage(case.classes, found.strategy, given.dollars_per_byte)
    row |= {
        "status": str(Status.NOT_STATIONARY if found.growing or overloaded else Status.OK),
        "solve_s": found.seconds,
    }
    if capacity is not None:
        row |= {"capacity_per_s": capacity, "capacity_share": capacity / case.basic_capacity_per_s}
    if choice.strategy in (STATIC, BEST_STATIC):
        codes = tuple(zip(found.strategy.n[:, 0].tolist(), found.strategy.k[:, 0].tolist(), strict=True))
        row |= _code(codes)
        named = {one.name: list(code) for one, code in zip(case.classes, codes, strict=True)}
        row |= {"params": json.dumps(given.about | {"codes": named}, sort_keys=True)}
    return row


def _code(codes: tuple[Code, ...]) -> dict[str, int]:
    """The common n and k where all classes have the same."""
    return {"n": codes[0][0], "k": codes[0][1]} if len(set(codes)) == 1 else {}
