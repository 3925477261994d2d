"""The network of ``ecjax cache``: nodes of several buckets, how far they are from each edge, and which are down."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.caching import cooperative, workload
from ecjax.caching.system import Network
from ecjax.errors import UserError
from ecjax.studies.cache.options import CacheOptions, Latencies
from ecjax.tables.place import Place
from ecjax.tables.read import read_input

EACH_NODE, EACH_BUCKET = "each_node", "each_bucket"


class Nodes(NamedTuple):
    """Where chunks are, as edges see it."""

    node_ids: list[str]  # N
    edge_ids: list[str]  # E
    latency_s: np.ndarray  # (E, N) mean time to fetch a chunk


def read_nodes(options: CacheOptions, logged: list[str] | None) -> Nodes:
    """The nodes and edges that the options name.

    Args:
        options: checked.
        logged: names of the edges of a log; edges that are all alike take them.

    Raises:
        UserError: latencies are malformed or lack some edge, or there are fewer edges than the options say.
    """
    if options.nodes is None:
        nodes = Nodes(list(workload.NODES), list(workload.EDGES), workload.LATENCY_S)
    elif isinstance(options.nodes, str):
        nodes = _of_table(options.nodes, _alike(options, logged))
    else:
        nodes = _of_mapping(options.nodes, _alike(options, logged))
    count = options.edges or len(nodes.edge_ids)
    if count > len(nodes.edge_ids):
        raise UserError(
            f"edges: found {count}; allowed: at most the {len(nodes.edge_ids)} that nodes has latencies of "
            f"({', '.join(nodes.edge_ids)}); 'nodes={{NAME: LATENCY, ...}}' is of any number of edges"
        )
    return Nodes(nodes.node_ids, nodes.edge_ids[:count], np.ascontiguousarray(nodes.latency_s[:count]))


def _alike(options: CacheOptions, logged: list[str] | None) -> list[str]:
    """Names of edges that nodes does not tell apart."""
    if options.edges is None and logged:
        return logged
    return [str(number) for number in range(options.edges or 1)]


def _of_mapping(latencies: Latencies, alike: list[str]) -> Nodes:
    """Nodes by name; edges are numbered where some node has a latency at each of them."""
    listed = [latency for latency in latencies.values() if isinstance(latency, list)]
    count = len(listed[0]) if listed else len(alike)
    rows = [latency if isinstance(latency, list) else [latency] * count for latency in latencies.values()]
    edge_ids = [str(edge) for edge in range(count)] if listed else alike
    return Nodes(list(latencies), edge_ids, np.array(rows).T)


def _of_table(path: str, alike: list[str]) -> Nodes:
    table = read_input(path, "edges")
    place = Place(table, "edges", path)
    node = _words(table, "node_id")
    node_ids = list(dict.fromkeys(node))
    if "edge" in table.column_names:
        edge = _words(table, "edge")
        edge_ids = list(dict.fromkeys(edge))
    else:
        edge_ids = alike
        edge = ["" for _ in node]
    latency = np.full((len(edge_ids), len(node_ids)), np.nan)
    values = table["latency_s"].to_numpy()
    pairs: set[tuple[str, str]] = set()
    for row, pair in enumerate(zip(edge, node, strict=True)):
        if pair in pairs:
            raise place.error("found an edge and a node twice; allowed: once", column="node_id", row=row)
        pairs.add(pair)
        edges = slice(None) if "edge" not in table.column_names else edge_ids.index(pair[0])
        latency[edges, node_ids.index(pair[1])] = values[row]
    if np.isnan(latency).any():
        missing = np.argwhere(np.isnan(latency))[0]
        raise place.error(
            f"found no latency of node {node_ids[missing[1]]!r} at edge {edge_ids[missing[0]]!r}; allowed: one for "
            "every pair"
        )
    return Nodes(node_ids, edge_ids, latency)


def _words(table: pa.Table, name: str) -> list[str]:
    return [str(value) for value in table[name].to_pylist()]


def failures(options: CacheOptions, nodes: Nodes) -> list[str | None]:
    """What is down all the time, one after another: names of nodes and buckets; None: nothing.

    Raises:
        UserError: a name is of no node or bucket.
    """
    failed: list[str | None] = []
    for name in options.fail:
        if name == EACH_NODE:
            failed += nodes.node_ids
        elif name == EACH_BUCKET:
            failed += [f"{node}/{bucket}" for node in nodes.node_ids for bucket in range(options.buckets)]
        else:
            if name is not None and not _numbers(name, nodes, options.buckets):
                allowed = f"{_named(nodes, options.buckets)}, {EACH_NODE}, {EACH_BUCKET}"
                raise UserError(f"fail: found {name!r}; allowed: {allowed}")
            failed.append(name)
    return list(dict.fromkeys(failed))


def _named(nodes: Nodes, buckets: int) -> str:
    few = ", ".join(nodes.node_ids[:6]) + (", ..." if len(nodes.node_ids) > 6 else "")
    return f"{few}, a bucket as {nodes.node_ids[0]}/{buckets - 1} (of 0 to {buckets - 1})"


def _numbers(name: str, nodes: Nodes, buckets: int) -> list[int]:
    """The buckets of a node, or the one that is named; none of an unknown name."""
    if name in nodes.node_ids:
        first = nodes.node_ids.index(name) * buckets
        return list(range(first, first + buckets))
    node, _, bucket = name.rpartition("/")
    if node in nodes.node_ids and bucket in map(str, range(buckets)):
        return [nodes.node_ids.index(node) * buckets + int(bucket)]
    return []


def between(seconds: float | list[list[float]], edges: int) -> np.ndarray:
    """Time for an edge to take a chunk that another keeps, (E, E) s, from one for all pairs or a row per edge.

    Raises:
        UserError: there is one edge, or another number of rows.
    """
    if edges < 2:
        raise UserError("neighbours: found one edge; allowed: with two or more")
    if isinstance(seconds, float):
        return np.full((edges, edges), seconds)
    if len(seconds) != edges:
        raise UserError(f"neighbours: found {len(seconds)} rows; allowed: {edges}, as there are edges")
    return np.array(seconds)


def check_together(between_s: np.ndarray, network: Network) -> None:
    """Make sure that edges are few enough to be planned together while estimates of latencies are the means.

    Args:
        between_s: (E, E) s, of ``between``.
        network: of E edges.

    Raises:
        UserError: they are not.
    """
    between_s = between_s.copy()
    np.fill_diagonal(between_s, network.edge_s)
    with named_neighbours():
        cooperative.check_together(between_s, network.latency_s)


@contextmanager
def named_neighbours() -> Iterator[None]:
    """What is refused of ``between_s`` is refused by the name of the option."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace("between_s", "neighbours", 1)) from error


def network(options: CacheOptions, nodes: Nodes, outages: pa.Table | None, failed: str | None) -> Network:
    """The network with these outages, and what is down all the time.

    Raises:
        UserError: the outages table names an unknown node.
    """
    down: list[tuple[int, float, float]] = []
    if failed is not None:
        down += [(number, 0.0, np.inf) for number in _numbers(failed, nodes, options.buckets)]
    if outages is not None:
        place = Place(outages, "outages", str(options.outages))
        times = zip(outages["start_s"].to_pylist(), outages["end_s"].to_pylist(), strict=True)
        for row, (name, (start, end)) in enumerate(zip(_words(outages, "node_id"), times, strict=True)):
            numbers = _numbers(name, nodes, options.buckets)
            if not numbers:
                raise place.error(
                    f"found {name!r}; allowed: {_named(nodes, options.buckets)}", column="node_id", row=row
                )
            down += [(number, start, end) for number in numbers]
    number, start, end = (
        (np.array(column) for column in zip(*down, strict=True)) if down else [np.empty(0)] * 3
    )
    return Network(
        workload.of_buckets(nodes.latency_s, options.buckets),
        options.jitter,
        options.edge_s,
        options.decode_s,
        number.astype(np.int64),
        start.astype(float),
        end.astype(float),
    )
