"""What ``ecjax cache`` replays: reads of a log or generated ones, the places of chunks, and the network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.cache.system import Network, Reads, Stored
from ecjax.cache.workload import Popularity, placed, zipf_reads
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.cache.network import Nodes, failures, network, read_nodes
from ecjax.studies.cache.options import CacheOptions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.importers import open_trace
from ecjax.tables.read import read_input
from ecjax.tables.requests import Edges, requests
from ecjax.tables.store import run_id

_KEPT = 2  # workloads that stay in memory, so that points of one seed share theirs
_reads, _places = lru_cache(_KEPT)(zipf_reads), lru_cache(_KEPT)(placed)
_drawing = Lock()  # of threads that want the same workload one draws it


@dataclass(frozen=True)
class Point:
    """One point of the sweep."""

    k: int
    capacity: int
    copies: int  # beyond the first
    items: int
    zipf: float | None  # exponent of the popularity of generated reads
    failed: str | None  # node or bucket that is down all the time
    half_life_s: float  # of the counters of popularity


@dataclass(frozen=True)
class Source:
    """Where reads come from.

    Attributes:
        item_ids: (M,) as in the log, or numbers from 0; in order of popularity.
        reads: by seed.
        popularity: (M,) shares of the reads, at every edge; None: of the reads themselves is all that is known.
        rate_per_s: of the reads, all edges together.
        arrivals: "poisson" or "trace".
        input_id: names the reads and the nodes, apart from the seed.
        description: one line for the user.
        zipf: exponent of the popularity of generated reads; None of a log.
    """

    item_ids: pa.Array
    reads: Callable[[int], Reads]
    popularity: np.ndarray | None
    rate_per_s: float
    arrivals: str
    input_id: str
    description: str
    zipf: float | None = None


@dataclass(frozen=True)
class Case:
    """One point of the sweep with all that is replayed there.

    Attributes:
        point: of the sweep.
        source: of the reads.
        edge_ids: (E,) names.
        network: how edges reach buckets.
        stored: places of the chunks, by seed.
    """

    point: Point
    source: Source
    edge_ids: list[str]
    network: Network
    stored: Callable[[int], Stored]


class Log(NamedTuple):
    """Reads of a log as it has them, Q."""

    time_s: np.ndarray  # (Q,)
    file: np.ndarray  # (Q,) place in file_ids
    file_ids: pa.Array
    edge_names: list[str] | None  # None: it has no column edge
    edge: np.ndarray | None  # (Q,) place among them
    fingerprint: str


class Traced(NamedTuple):
    """Reads of a log; items in order of popularity."""

    reads: Reads
    item_ids: pa.Array  # (M,)
    fingerprint: str


def read_cases(options: CacheOptions) -> list[Case]:
    """All points of the sweep: k, capacity, copies, items, zipf, fail, half_life_s; the last fastest.

    Args:
        options: checked; nodes, fail, trace and outages apart.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    logged = None if options.trace is None else _read_log(options)
    nodes = read_nodes(options, None if logged is None else logged.edge_names)
    failed = failures(options, nodes)
    outages = None if options.outages is None else read_input(options.outages, "outages")
    networks = [(name, network(options, nodes, outages, name)) for name in failed]
    names: dict[str, Any] = {"nodes": nodes.node_ids, "edges": nodes.edge_ids}
    names |= {"latency_s": nodes.latency_s.tolist()}
    if outages is not None:
        names["outages"] = fingerprint(outages, "outages")
    sources = list(_sources(options, nodes, logged, names))
    cases = []
    for k, capacity, copies, source in product(options.k, options.capacity, options.copies, sources):
        items = len(source.item_ids)
        stored = partial(_placed, items, k, options.parity, copies + 1, len(nodes.node_ids), options.buckets)
        cases += [
            Case(
                Point(k, capacity, copies, items, source.zipf, name, half_life),
                source,
                nodes.edge_ids,
                built,
                stored,
            )
            for name, built in networks
            for half_life in options.half_life_s
        ]
    return cases


def _sources(
    options: CacheOptions, nodes: Nodes, logged: Log | None, names: dict[str, Any]
) -> Iterator[Source]:
    """Reads by the number of items and how popularity falls."""
    few = f"{len(nodes.edge_ids)} edges, {len(nodes.node_ids)} nodes of {options.buckets} buckets"
    if logged is not None:
        yield from _logged(options, _traced(options, logged, nodes), names, few)
        return
    for items, zipf in product(options.items, options.zipf):
        law = Popularity(items, zipf, options.drift, options.drift_s)
        own = names | {"zipf": law._asdict(), "reads": options.reads, "rate_per_s": options.rate_per_s}
        yield Source(
            pa.array(np.arange(items)),
            partial(_generated, law, options.reads, options.rate_per_s, len(nodes.edge_ids)),
            law.shares if law.drift == 0 else None,
            options.rate_per_s,
            "poisson",
            run_id("inputs", own, "", None, ""),
            f"{options.reads} generated reads of {items} items; {few}",
            zipf,
        )


def _logged(options: CacheOptions, traced: Traced, names: dict[str, Any], few: str) -> Iterator[Source]:
    """Reads of a log; as many items as there are where more are asked for."""
    columns = None if options.columns is None else {str(k): v for k, v in options.columns.items()}
    shared = names | {"trace": traced.fingerprint, "columns": columns, "format": options.format}
    shared |= {"extent_bytes": options.extent_bytes, "rate_scale": options.rate_scale}
    for items in dict.fromkeys(min(items, len(traced.item_ids)) for items in options.items):
        reads = _most_popular(traced, items)
        yield Source(
            traced.item_ids[:items],
            partial(_same, reads),
            None,
            len(reads.time_s) / float(reads.time_s[-1] - reads.time_s[0]),
            "trace",
            run_id("inputs", shared | {"items": items}, "", None, ""),
            f"{len(reads.time_s)} reads of {items} items of {Path(str(options.trace)).name}; {few}",
        )


def _generated(law: Popularity, count: int, rate_per_s: float, edges: int, seed: int) -> Reads:
    with _drawing:
        return _reads(law, count, rate_per_s, edges, seed)


def _placed(items: int, k: int, parity: int, copies: int, nodes: int, buckets: int, seed: int) -> Stored:
    with _drawing:
        return _places(items, k, parity, copies, nodes, buckets, seed)


def _same(reads: Reads, seed: int) -> Reads:
    """Reads that no seed changes."""
    return reads


def _most_popular(traced: Traced, items: int) -> Reads:
    """The reads of the most popular items.

    Raises:
        UserError: they come at one time only.
    """
    here = traced.reads.item < items
    time, item, edge = (column[here] for column in traced.reads)
    if here.size > time.size:
        log.info(
            "trace: %d of %d reads are left out, of %d items less popular than %d",
            here.size - time.size,
            here.size,
            len(traced.item_ids) - items,
            items,
        )
    if not time[-1] > time[0]:
        raise UserError(f"trace: found reads of {items} items at one time only; allowed: a log that lasts")
    return Reads(time, item, edge)


def _read_log(options: CacheOptions) -> Log:
    """The reads of a log.

    Raises:
        UserError: it is malformed, or has no read.
    """
    trace = open_trace(
        str(options.trace), options.format, options.columns, options.extent_bytes, options.sort
    )
    edges = Edges(trace, options.sort)
    found = requests(edges.trace)
    chosen = np.flatnonzero(~found.write)
    if not chosen.size:
        raise UserError(f"trace={options.trace}: found no reads; allowed: at least one")
    if chosen.size < found.count:
        log.info("trace: %d writes are left out: reads are cached", found.count - chosen.size)
    names = edge = None
    if edges.index is not None:
        rows = chosen if found.accesses is None else found.accesses.begin[chosen]
        names = [str(name) for name in edges.index.ids.to_pylist()]
        edge = np.concatenate(edges.numbers)[rows]
    time = found.arrival[chosen] / options.rate_scale
    return Log(time, found.file[chosen], found.file_ids, names, edge, trace.fingerprint)


def _traced(options: CacheOptions, logged: Log, nodes: Nodes) -> Traced:
    """The reads of a log, items numbered by popularity (as often read: by first appearance).

    Raises:
        UserError: the log has edges that nodes has no latencies of.
    """
    edge = np.arange(len(logged.file)) % len(nodes.edge_ids)
    if logged.edge is not None and logged.edge_names is not None:
        edge = _known(logged.edge_names, nodes, str(options.trace))[logged.edge]
    count = np.bincount(logged.file, minlength=len(logged.file_ids))
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    rank = np.empty(len(count), np.int64)
    rank[order] = np.arange(len(order))
    reads = Reads(logged.time_s, rank[logged.file], edge.astype(np.int64))
    return Traced(reads, logged.file_ids.take(pa.array(order)), logged.fingerprint)


def _known(names: list[str], nodes: Nodes, trace: str) -> np.ndarray:
    """Place among the edges of the nodes of each edge of the log: by name, or in order where no name is known."""
    if set(names) <= set(nodes.edge_ids):
        return np.array([nodes.edge_ids.index(name) for name in names])
    known = [name for name in names if name in nodes.edge_ids]
    if known or len(names) > len(nodes.edge_ids):
        strange = next(name for name in names if name not in nodes.edge_ids)
        raise UserError(
            f"trace={trace}, column edge: found {strange!r} and {len(names) - 1} others; allowed: "
            f"{', '.join(nodes.edge_ids)}, or at most {len(nodes.edge_ids)} other names"
        )
    pairs = ", ".join(f"{name} as {own}" for name, own in zip(names, nodes.edge_ids, strict=False))
    log.info("trace: nodes has no latencies of its edges by name; taken are %s", pairs)
    return np.arange(len(names))
