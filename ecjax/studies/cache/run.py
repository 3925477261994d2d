"""Replays of one point of a sweep of caches under several policies, and their rows."""

import json
import time
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ecjax
from ecjax.cache.cooperative_replay import replay_cooperative
from ecjax.cache.replay import replay
from ecjax.cache.system import Outcome, Policy, Reads, Stored
from ecjax.engine import Worker
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.cache import rows as tables
from ecjax.studies.cache.inputs import Case
from ecjax.studies.cache.network import between
from ecjax.studies.cache.options import CacheOptions

JOB = "cache"
REFERENCE = "optimal_static"
SAMPLED = ("samplex", "samplex_static")
PERIODIC, PLANNED, COOPERATIVE = "agar", "exact", "cooperative"
ALIKE = ("parity", "buckets", "jitter", "edge_s", "decode_s", "warm_up")  # options that change all policies
_OF_SOME = ("memory", "period_s", "replan_reads")
_FEW = 50  # reads of a replay that only makes sure that all is compiled


class Choice(NamedTuple):
    """One policy; of ``samplex`` with its number of partitions, of edges that serve each other with their distance."""

    policy: str
    samples: int | None = None
    between_s: float | tuple[tuple[float, ...], ...] | None = None


class Item(NamedTuple):
    """One replay."""

    case: int  # place among the cases of the study
    seed: int
    choice: Choice


class Given(NamedTuple):
    """What all replays of a point share."""

    case: Case
    seed: int
    reads: Reads
    stored: Stored
    options: CacheOptions

    @property
    def first(self) -> int:
        """The first read that is counted."""
        return int(self.options.warm_up * len(self.reads.time_s))


class Replayed(NamedTuple):
    """What is kept of a replay."""

    row: dict[str, Any]  # of ``runs``
    latencies: tables.Rows
    cached: pa.Table | None  # None: not wanted


def choices(options: CacheOptions) -> list[Choice]:
    """What the options ``policy``, ``samples`` and ``neighbours`` ask for."""
    found = []
    for name in options.policy:
        found += [Choice(name, count) for count in options.samples] if name in SAMPLED else [Choice(name)]
    return found + [Choice(COOPERATIVE, None, seconds) for seconds in options.neighbours]


def parameters(choice: Choice, options: CacheOptions) -> dict[str, Any]:
    """Those options that change what a policy decides."""
    found: dict[str, Any] = {"policy": choice.policy, "samples": choice.samples}
    found |= {"memory": options.memory}
    found |= {"neighbours": choice.between_s} if choice.policy == COOPERATIVE else {}
    found |= {"period_s": options.period_s} if choice.policy in (PERIODIC, COOPERATIVE) else {}
    return found | ({"replan_reads": options.replan_reads} if choice.policy == PLANNED else {})


def replay_batch(
    items: dict[str, Item], given: Given, least_s: float | None, write_cached: bool, worker: Worker
) -> tuple[list[dict[str, Any]], dict[str, pa.Table], float | None]:
    """Rows of ``runs`` and the other datasets of replays of one point and seed, and ``least_s``.

    Args:
        items: what to replay, by run id.
        given: reads, chunks and network.
        least_s: mean latency with the reference; None: not known yet.
        write_cached: whether the dataset ``cached`` is wanted.
        worker: where they run.
    """
    replays = {item.choice: name for name, item in items.items()}
    if least_s is None:
        # the reference is not a run unless it is asked for
        replays = {Choice(REFERENCE): ""} | replays
    done: dict[Choice, Future[Replayed]] = {
        choice: worker.pool.submit(replayed, name, choice, given, write_cached)
        for choice, name in replays.items()
    }
    found = {}
    for name, item in items.items():
        found[name] = done[item.choice].result()
        worker.advance(1)
    if least_s is None:
        least_s = _mean_s(done[Choice(REFERENCE)])
    rows, latencies, cached = [], [], []
    for name, own in found.items():
        row = run_row(name, items[name], given.case, given.options) | own.row | {"status": str(Status.OK)}
        if least_s and "mean_s" in own.row:
            row |= {"above_optimum": own.row["mean_s"] / least_s - 1}
        rows.append(row)
        latencies += [{"run_id": name, **each} for each in own.latencies]
        cached += [] if own.cached is None else [own.cached]
    datasets = {"latencies": pa.Table.from_pylist(latencies)} if latencies else {}
    return rows, datasets | ({"cached": pa.concat_tables(cached)} if cached else {}), least_s


def _mean_s(reference: Future[Replayed]) -> float | None:
    """Mean latency with the reference; None where it failed, or all its reads did."""
    error = reference.exception()
    if isinstance(error, UserError):
        raise error
    return None if error else reference.result().row.get("mean_s")


def replayed(name: str, choice: Choice, given: Given, write_cached: bool) -> Replayed:
    """One replay."""
    case, options = given.case, given.options
    policy = Policy(
        choice.policy,
        case.point.capacity,
        case.point.half_life_s,
        float(options.memory),
        choice.samples or 1,
        float(options.period_s),
        options.replan_reads,
        given.seed,
    )
    few = Reads(*(column[:_FEW] for column in given.reads))
    _outcome(choice, few, given, policy)
    began = time.perf_counter()
    outcome, near = _outcome(choice, given.reads, given, policy)
    seconds = time.perf_counter() - began
    row = tables.run_values(outcome, case.point.k, given.first, seconds)
    if near is not None:
        chunks = near[given.first :]
        row |= {"neighbour_hit_ratio": float(chunks.sum(dtype=np.int64)) / (case.point.k * len(chunks))}
    return Replayed(
        row,
        tables.latencies(outcome, given.reads, case.edge_ids, given.first),
        tables.cached(name, outcome, case.edge_ids, case.source.item_ids) if write_cached else None,
    )


def _outcome(choice: Choice, reads: Reads, given: Given, policy: Policy) -> tuple[Outcome, np.ndarray | None]:
    """What becomes of the reads, and how many chunks of each came from other edges where these serve each other."""
    case = given.case
    if choice.between_s is None:
        known = case.source.popularity
        if known is not None:
            known = np.tile(known, (len(case.edge_ids), 1))
        return replay(reads, given.stored, case.network, policy, known), None
    seconds = between(choice.between_s, len(case.edge_ids))
    found = replay_cooperative(reads, given.stored, case.network, seconds, policy)
    return found.outcome, found.neighbour_chunks


def run_row(name: str, item: Item, case: Case, options: CacheOptions) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results.

    Args:
        name: run id.
        item: the replay.
        case: its point.
        options: of the study.
    """
    source, choice = case.source, item.choice
    about = {"input": source.description} | {each: getattr(options, each) for each in (*ALIKE, *_OF_SOME)}
    return {
        "run_id": name,
        "job": JOB,
        "method": choice.policy,
        "samples": choice.samples,
        "neighbour_s": choice.between_s if isinstance(choice.between_s, float) else None,
        **asdict(case.point),
        "arrivals": source.arrivals,
        "rate_per_s": source.rate_per_s,
        "rate_scale": options.rate_scale,
        "input_id": source.input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": item.seed,
        "params": json.dumps(about, sort_keys=True),
    }
