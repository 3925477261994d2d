"""Replays of one point of a sweep of caches under several policies, and their rows."""

import json
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import ecjax
from ecjax.cache.cooperative_replay import replay_cooperative
from ecjax.cache.replay import replay
from ecjax.cache.system import Outcome, Policy, Reads, Stored
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies import cache_tables as tables
from ecjax.studies.cache_inputs import Case
from ecjax.studies.cache_network import between
from ecjax.studies.options_cache import CacheOptions

JOB = "cache"
REFERENCE = "optimal_static"
SAMPLED = ("samplex", "samplex_static")
PERIODIC, PLANNED, COOPERATIVE = "agar", "exact", "cooperative"
_FEW = 50  # reads of a replay that only makes sure that all is compiled


class Choice(NamedTuple):
    """One policy; of ``samplex`` with its number of partitions, of edges that serve each other with their distance."""

    policy: str
    samples: int | None = None
    between_s: float | tuple[tuple[float, ...], ...] | None = None


class Given(NamedTuple):
    """What all replays of a point share."""

    case: Case
    seed: int
    reads: Reads
    stored: Stored
    options: CacheOptions
    about: dict[str, Any]  # what else was set, for the column params

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


class Batch:
    """The replays of one point and seed, under way in a pool.

    Args:
        pool: where they run.
        items: what to replay, by run id.
        given: reads, chunks and network.
        write_cached: whether the dataset ``cached`` is wanted.
        advance: called with the number of replays just done.
    """

    def __init__(
        self,
        pool: Executor,
        items: dict[str, Choice],
        given: Given,
        write_cached: bool,
        advance: Callable[[int], None],
    ) -> None:
        self._items, self._given, self._advance = items, given, advance
        # the reference is not a run unless it is asked for
        self._replays: dict[Choice, Future[Replayed]] = {
            choice: pool.submit(replayed, name, choice, given, write_cached)
            for choice, name in ({Choice(REFERENCE): ""} | {c: name for name, c in items.items()}).items()
        }

    def rows(self) -> tuple[list[dict[str, Any]], dict[str, pa.Table]]:
        """Rows of ``runs`` and the other datasets, once all is done; a replay that failed is a row that says so."""
        runs, latencies, cached = [], [], []
        for name, choice in self._items.items():
            row, own = self._one(name, choice)
            self._advance(1)
            runs.append(row)
            if own is not None:
                latencies += [{"run_id": name, **each} for each in own.latencies]
                cached += [] if own.cached is None else [own.cached]
        datasets = {"latencies": pa.Table.from_pylist(latencies)} if latencies else {}
        return runs, datasets | ({"cached": pa.concat_tables(cached)} if cached else {})

    def _one(self, name: str, choice: Choice) -> tuple[dict[str, Any], Replayed | None]:
        row = run_row(name, choice, self._given)
        try:
            found = self._replays[choice].result()
        except UserError:
            raise
        except Exception as error:
            log.exception("replay %s failed", name)
            return row | {"status": str(Status.FAILED), "error": f"{type(error).__name__}: {error}"}, None
        row |= found.row | {"status": str(Status.OK)}
        reference = self._replays[Choice(REFERENCE)]
        if not reference.exception():
            least = reference.result().row.get("mean_s")
            if least and "mean_s" in found.row:
                row |= {"above_optimum": found.row["mean_s"] / least - 1}
        return row, found


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


def run_row(name: str, choice: Choice, given: Given) -> dict[str, Any]:
    """What is known of a replay before it is done: a row of ``runs`` without status and results."""
    source = given.case.source
    return {
        "run_id": name,
        "job": JOB,
        "method": choice.policy,
        "samples": choice.samples,
        "neighbour_s": choice.between_s if isinstance(choice.between_s, float) else None,
        **asdict(given.case.point),
        "arrivals": source.arrivals,
        "rate_per_s": source.rate_per_s,
        "rate_scale": given.options.rate_scale,
        "input_id": source.input_id,
        "device": "cpu",
        "version": ecjax.__version__,
        "seed": given.seed,
        "params": json.dumps(given.about, sort_keys=True),
    }
