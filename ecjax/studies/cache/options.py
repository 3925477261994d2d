"""Options of ``ecjax cache``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.studies.spine.option import option


@dataclass
class CacheOptions:
    """Everything that ``ecjax cache`` can be told."""

    trace: str | None = option(None, "access log whose reads are replayed; default: generated reads")
    format: str = option("auto", "of the trace, as in ecjax analyze; auto tells it")
    columns: Any = option(None, "of the trace, as in ecjax analyze")
    extent_bytes: int | None = option(None, "size of the extents that stand for items in a block trace")
    sort: bool = option(False, "sort the trace by arrival, in memory, instead of refusing an unsorted one")
    policy: Any = option(
        ["optimal_static", "exact", "near_optimal", "samplex", "agar", "decayed_lfu", "lfu", "lru", "none"],
        "who decides what an edge keeps; one or a list",
    )
    capacity: Any = option([100], "chunks that an edge can keep; one or a list")
    k: Any = option([6], "data chunks of an item; one or a list")
    parity: int = option(3, "parity chunks of an item")
    copies: Any = option([0], "further copies of every chunk (replicas); one or a list")
    items: Any = option(
        [1000], "how many; of a trace the most popular ones, reads of others are left out; one or a list"
    )
    zipf: Any = option([1.0], "exponent of the popularity of generated reads; one or a list")
    reads: int = option(200_000, "generated reads, at all edges together")
    rate_per_s: float = option(100.0, "of generated reads, all edges together")
    rate_scale: float = option(1.0, "divides the times of a trace")
    drift: float = option(0.0, "generated reads: share of the items that exchange ranks after every drift_s")
    drift_s: float = option(600.0, "s, as above")
    edges: int | None = option(
        None, "how many; reads of a trace without a column edge go to them in turn; default: those of nodes"
    )
    nodes: Any = option(
        None,
        "mean time to fetch a chunk, s: {node: latency} or {node: [latency at each edge]}, or an edges table; "
        "default: six regions and three edges",
    )
    buckets: int = option(15, "servers of a node; a chunk is at one of them, and they fail one by one")
    jitter: float = option(0.0, "standard deviation of the time of a fetch / its mean (lognormal); 0: none")
    edge_s: float = option(0.001, "time to serve a chunk that the edge keeps")
    decode_s: float = option(0.03, "time to decode, once per read that needs parity chunks")
    outages: str | None = option(
        None, "outages table: node_id (a node, or a bucket as oregon/3), start_s, end_s"
    )
    fail: Any = option(
        None,
        "down all the time: a node, a bucket as oregon/3, each_node or each_bucket in turn; one or a list, null: none",
    )
    half_life_s: Any = option(
        [1800.0],
        "of the counters of popularity: longer is steadier, shorter follows what changes; one or a list",
    )
    memory: float = option(0.9, "weight of the past in estimates of latencies, from 0 to below 1")
    samples: Any = option([5], "partitions that samplex looks at; one or a list")
    period_s: float = option(60.0, "between two plans of agar")
    replan_reads: int = option(20_000, "reads of an edge between two plans of all items by exact; 0: never")
    neighbours: Any = option(
        None,
        "s, for an edge to take a chunk that another one keeps: also replay edges that serve each other, planned "
        "together every period_s; one or a list, or [[own, to the second, ...], ...] of all pairs; null: none",
    )
    warm_up: float = option(0.25, "share of the reads that is not counted, from 0 to below 1")
    partitions: Any = option(
        None,
        "instead of replays the study of sampling: numbers of sampled partitions, as [1,2,5,10,20]; only capacity, k, "
        "items, zipf, nodes count, of the first edge",
    )
    rounds: int = option(100, "partitions: repetitions of every random choice")
    seeds: int = option(1, "replays with different draws: seed, seed + 1, ...")
    seed: int = option(0, "first seed")
    out: str = option("results/cache", "folder of the result tables and figures")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "skip replays that are finished in out")
    write: Any = option(None, "datasets to write besides runs; default: all")
    figures: Any = option(
        None,
        "figures to draw: policies, sweep, neighbours, failures, decisions, throughput, edges (default: policies, "
        "sweep, decisions); with partitions: sequence, sampling, distribution (default: all)",
    )
