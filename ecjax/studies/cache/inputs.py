"""What ``ecjax cache`` replays: reads of a log or generated ones, the places of chunks, and the network."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.caching.replay import MOST_CLEARED
from ecjax.caching.system import Network, Reads, Stored
from ecjax.caching.workload import Popularity, placed, zipf_reads
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.options import shown
from ecjax.studies.cache.logged_reads import Log, most_popular, read_log, reads_of
from ecjax.studies.cache.network import Nodes, failures, network, read_nodes
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.read import read_input
from ecjax.tables.run_ids import run_id
from ecjax.units import count_text, time_text

_MOST_EXCHANGES = 10**6  # of ranks that drift
_REMEMBERED = 2  # workloads that stay in memory, so that points of one seed share theirs
_reads, _places = lru_cache(_REMEMBERED)(zipf_reads), lru_cache(_REMEMBERED)(placed)
_drawing = Lock()  # of threads that need the same workload one draws it


@dataclass(frozen=True)
class Point:
    """One point of the sweep."""

    k: int
    capacity: int
    copies: int  # beyond the first
    items: int
    zipf: float | None  # exponent of the popularity of generated reads
    failed: str | None  # node or bucket that is down all the time
    half_life_s: float | None  # of the counters of popularity; None: nothing is said


@dataclass(frozen=True)
class Source:
    """Where reads come from.

    Attributes:
        item_ids: (M,) as in the log, or numbers from 0; in order of popularity.
        reads: by seed.
        popularity: (M,) shares of the reads, at every edge; None: nothing is known but the reads themselves.
        input_id: names the reads and the nodes, apart from the seed.
        description: one line for the user.
        columns: of ``runs``: arrivals, rate_per_s of all edges together, and of a log rate_scale.
        zipf: exponent of the popularity of generated reads; None of a log.
    """

    item_ids: pa.Array
    reads: Callable[[int], Reads]
    popularity: np.ndarray | None
    input_id: str
    description: str
    columns: dict[str, Any]
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


def read_cases(options: CacheOptions) -> list[Case]:
    """All points of the sweep: k, capacity, copies, items, zipf, fail, half_life_s; the last fastest.

    Args:
        options: checked.

    Raises:
        UserError: something in what the options name is wrong.
    """
    if "near_optimal" in options.policy and max(options.k) > MOST_CLEARED and options.partitions is None:
        raise UserError(
            f"k: found {max(options.k)} with policy=near_optimal; allowed: at most {MOST_CLEARED} with it, as it tries "
            "all partitions; near_optimal_dp takes more"
        )
    if options.trace is None:
        _say_unused_of_generated(options)
        _check_drift(options)
    else:
        drawn = ("zipf", "popularity", "reads", "rate_per_s", "drift", "drift_s")
        say_unused(options, drawn, f"trace={options.trace}")
    logged = None if options.trace is None else read_log(options)
    nodes = read_nodes(options, None if logged is None else logged.edge_names)
    _warn_of_near_nodes(options, nodes)
    failed = failures(options, nodes)
    outages = None if options.outages is None else read_input(options.outages, "outages")
    networks = [(name, network(options, nodes, outages, name)) for name in failed]
    names: dict[str, Any] = {"nodes": nodes.node_ids, "edges": nodes.edge_ids}
    names |= {"latency_s": nodes.latency_s.tolist()}
    if outages is not None:
        names["outages"] = fingerprint(outages, "outages")
    sources = list(
        _generated(options, nodes, names) if logged is None else _logged(options, logged, nodes, names)
    )
    if outages is not None:
        _warn_of_outages_elsewhere(options, outages, sources)
    cases = []
    half_lives: list[float | None] = [None] if options.half_life_s is None else [*options.half_life_s]
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
            for half_life in half_lives
        ]
    return cases


def laws_of(options: CacheOptions) -> list[Popularity]:
    """Popularity of generated reads, by the number of items and how it falls: in steps, or by each exponent."""
    assert options.items is not None
    steps = tuple(options.popularity or ())
    pairs: Iterable[tuple[int, float]] = product(options.items, options.zipf)
    if steps:
        pairs = [(_items_of(options), 0.0)]
    return [Popularity(items, zipf, options.drift, options.drift_s, steps) for items, zipf in pairs]


def _items_of(options: CacheOptions) -> int:
    """Items of all steps of popularity."""
    return sum(items for items, _ in options.popularity or ())


def _say_unused_of_generated(options: CacheOptions) -> None:
    """Say which options are of logs only, and which of Zipf's law where popularity is said in steps."""
    say_unused(options, ("rate_scale", "columns", "extent_bytes"), "generated reads")
    if options.popularity is not None:
        other = ["zipf"] + ["items"] * (options.items != [_items_of(options)])
        say_unused(options, other, f"popularity={shown(options.popularity)}")


def _check_drift(options: CacheOptions) -> None:
    """Make sure that ranks are not exchanged more often than can be done, and say so where none are exchanged at all.

    Raises:
        UserError: they are.
    """
    span_s = options.reads / options.rate_per_s
    if options.drift > 0 and span_s > _MOST_EXCHANGES * options.drift_s:
        raise UserError(
            f"drift_s: found {options.drift_s:g}; allowed: from {span_s / _MOST_EXCHANGES:.3g} on, {_MOST_EXCHANGES:,} "
            f"exchanges of ranks while {options.reads} reads come at {options.rate_per_s:g}/s"
        )
    still = [law.items for law in laws_of(options) if not law.moved]
    if options.drift > 0 and still:
        text = (
            "drift=%g of %s is less than two, and no ranks are exchanged; mend: a larger drift, or more items"
        )
        log.warning(text, options.drift, count_text(min(still), "item"))


def _warn_of_near_nodes(options: CacheOptions, nodes: Nodes) -> None:
    """Say so where a node is nearer than what the edge keeps: a read passes through the edge in any case."""
    nearer = (nodes.latency_s < options.edge_s).any(axis=0)
    if nearer.any() and options.partitions is None:
        log.warning(
            "edge_s: no read takes less than %s, and node %s is nearer: keeping its chunks gains nothing; mend: a "
            "smaller edge_s",
            time_text(options.edge_s),
            nodes.node_ids[int(np.argmax(nearer))],
        )


def _warn_of_outages_elsewhere(options: CacheOptions, outages: pa.Table, sources: list[Source]) -> None:
    """Say so where no outage is while reads come: times are those of the replay, which a log begins with 0."""
    times = [source.reads(options.seed).time_s for source in sources]
    first_s, last_s = min(float(each[0]) for each in times), max(float(each[-1]) for each in times)
    start, end = outages["start_s"].to_numpy(), outages["end_s"].to_numpy()
    if not np.any((start <= last_s) & (end > np.maximum(start, first_s))):
        text = "outages=%s: none is while reads come, from %s to %s after the beginning"
        log.warning(text, options.outages, time_text(first_s), time_text(last_s))


def _generated(options: CacheOptions, nodes: Nodes, names: dict[str, Any]) -> Iterator[Source]:
    """Reads by the number of items and how popularity falls."""
    for law in laws_of(options):
        items, steps, zipf = law.items, law.steps, None if law.steps else law.exponent
        described = law._asdict()
        if not steps:  # run ids are those of before there were steps
            del described["steps"]
        drawn = {"zipf": described, "reads": options.reads, "rate_per_s": options.rate_per_s}
        yield Source(
            pa.array(np.arange(items)),
            partial(_drawn, law, options.reads, options.rate_per_s, len(nodes.edge_ids)),
            None if law.moved else law.shares,
            run_id("inputs", names | drawn, "", None, ""),
            f"{count_text(options.reads, 'generated read')} of {count_text(items, 'item')}; {_sizes(options, nodes)}",
            {"arrivals": "poisson", "rate_per_s": options.rate_per_s},
            zipf,
        )


def _logged(options: CacheOptions, logged: Log, nodes: Nodes, names: dict[str, Any]) -> Iterator[Source]:
    """Reads of a log; of all items where there are fewer than the options name."""
    every = reads_of(logged, nodes.edge_ids)
    assert options.items is not None
    for items in dict.fromkeys(min(items, len(every.item_ids)) for items in options.items):
        reads = most_popular(every, items)
        rate = len(reads.time_s) / float(reads.time_s[-1] - reads.time_s[0])
        yield Source(
            every.item_ids[:items],
            partial(_same, reads),
            None,
            run_id("inputs", names | logged.identity | {"items": items}, "", None, ""),
            f"{count_text(len(reads.time_s), 'read')} of {count_text(items, 'item')} of {Path(logged.path).name}; "
            f"{_sizes(options, nodes)}",
            {
                "arrivals": "trace",
                "rate_per_s": rate,
                "rate_scale": options.rate_scale,
                "left_out_share": 1 - len(reads.time_s) / len(every.reads.time_s),
            },
        )


def _sizes(options: CacheOptions, nodes: Nodes) -> str:
    edges, stores = count_text(len(nodes.edge_ids), "edge"), count_text(len(nodes.node_ids), "node")
    built_in = " (built in: how far your nodes are, nodes= says)" if options.nodes is None else ""
    return f"{edges}, {stores} of {count_text(options.buckets, 'bucket')}{built_in}"


def _drawn(law: Popularity, count: int, rate_per_s: float, edges: int, seed: int) -> Reads:
    with _drawing:
        return _reads(law, count, rate_per_s, edges, seed)


def _placed(items: int, k: int, parity: int, copies: int, nodes: int, buckets: int, seed: int) -> Stored:
    with _drawing:
        return _places(items, k, parity, copies, nodes, buckets, seed)


def _same(reads: Reads, seed: int) -> Reads:
    """Reads that no seed changes."""
    return reads
