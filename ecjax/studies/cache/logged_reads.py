"""The reads of an access log as ``ecjax cache`` replays them: items by popularity, edges by name or in turn."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.caching.system import Reads
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.spine.logs import BACKGROUND, LATER, log_reading, open_reading
from ecjax.tables.requests import Edges, requests
from ecjax.units import count_text


class Log(NamedTuple):
    """Reads of a log as it has them, Q."""

    path: str
    time_s: np.ndarray  # (Q,) from the first arrival, divided by rate_scale
    file: np.ndarray  # (Q,) place in file_ids
    file_ids: pa.Array
    edge_names: list[str] | None  # None: it has no column edge
    edge: np.ndarray | None  # (Q,) place among them
    identity: dict[str, Any]  # names the log, and how it is read


class LoggedReads(NamedTuple):
    """Reads of a log at edges that nodes have latencies of."""

    reads: Reads  # items numbered by popularity (as often read: by first appearance)
    item_ids: pa.Array  # (M,)


def read_log(options: CacheOptions) -> Log:
    """The reads of a log.

    Raises:
        UserError: it is malformed, or has no read.
    """
    nodes = options.nodes if isinstance(options.nodes, str) else None
    reading = log_reading(options, inputs=[nodes, options.outages])
    trace, how = open_reading(reading), reading.options
    edges = Edges(trace, how["sort"])
    logged = requests(edges.trace)
    places = np.flatnonzero(~logged.write)
    if not places.size:
        raise UserError(f"trace={options.trace}: found no reads; allowed: at least one")
    if places.size < logged.count:
        log.info("trace: reads are cached; left out: %s", count_text(logged.count - places.size, "write"))
    names = edge = None
    if edges.index is not None:
        rows = places if logged.accesses is None else logged.accesses.begin[places]
        names = [str(name) for name in edges.index.ids.to_pylist()]
        edge = np.concatenate(edges.numbers)[rows]
    identity = {name: how[name] for name in ("columns", "format", "extent_bytes")}
    identity |= {name: how[name] for name in (*LATER, BACKGROUND) if name in how}
    identity |= {"trace": trace.fingerprint, "rate_scale": options.rate_scale}
    time = logged.arrival[places] / options.rate_scale
    return Log(trace.name, time, logged.file[places], logged.file_ids, names, edge, identity)


def reads_of(logged: Log, edge_ids: list[str]) -> LoggedReads:
    """The reads of a log at these edges: by name, in order where no name is one of theirs, in turn where it has none.

    Raises:
        UserError: the log has edges that are not among them.
    """
    edge = np.arange(len(logged.file)) % len(edge_ids)
    if logged.edge is not None and logged.edge_names is not None:
        edge = _places(logged.edge_names, edge_ids, logged.path)[logged.edge]
    count = np.bincount(logged.file, minlength=len(logged.file_ids))
    order = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    rank = np.empty(len(count), np.int64)
    rank[order] = np.arange(len(order))
    reads = Reads(logged.time_s, rank[logged.file], edge.astype(np.int64))
    return LoggedReads(reads, logged.file_ids.take(pa.array(order)))


def most_popular(logged: LoggedReads, count: int) -> Reads:
    """The reads of the most popular items.

    Raises:
        UserError: they come at one time only.
    """
    mask = logged.reads.item < count
    time, item, edge = (column[mask] for column in logged.reads)
    if mask.size > time.size:
        log.info(
            "trace: %d of %d reads are left out, of %d items less popular than %d",
            mask.size - time.size,
            mask.size,
            len(logged.item_ids) - count,
            count,
        )
    if not time[-1] > time[0]:
        raise UserError(f"trace: found reads of {count} items at one time only; allowed: a log that lasts")
    return Reads(time, item, edge)


def _places(names: list[str], edge_ids: list[str], path: str) -> np.ndarray:
    """Place among the edges of each edge of the log."""
    if set(names) <= set(edge_ids):
        return np.array([edge_ids.index(name) for name in names])
    if set(names) & set(edge_ids) or len(names) > len(edge_ids):
        strange = next(name for name in names if name not in edge_ids)
        raise UserError(
            f"trace={path}, column edge: found {strange!r} and {len(names) - 1} others; allowed: "
            f"{', '.join(edge_ids)}, or at most {len(edge_ids)} other names"
        )
    pairs = ", ".join(f"{name} as {edge}" for name, edge in zip(names, edge_ids, strict=False))
    log.info("trace: nodes has no latencies of its edges by name; taken are %s", pairs)
    return np.arange(len(names))
