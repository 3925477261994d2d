"""Options of ``ecjax cache``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ecjax.caching.peers import NAMES as PEERS
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import (
    Listed,
    Number,
    Series,
    Special,
    Whole,
    Words,
    Wrong,
    is_number,
    is_whole,
    option,
    section,
)
from ecjax.studies.cache.tables import TABLES
from ecjax.studies.spine.log_options import LogOptions

_NAMED = (
    *("none", "lru", "lfu", "decayed_lfu", "exact", "near_optimal", "near_optimal_dp", "samplex"),
    *("agar", "exact_periodic", "optimal_static", "samplex_static"),
)
POLICIES = (*_NAMED, *(name for name in PEERS if name not in _NAMED))
HALF_LIFE_S = 1800.0  # of counters where none is said
# generated ones, and those of a trace, where none is said: agar plans all of them every period_s, 0.2 µs each
ITEMS, MOST_ITEMS = 1000, 20_000
FIGURES = ("policies", "sweep", "neighbours", "failures", "decisions", "throughput", "edges")
SAMPLING_FIGURES = ("sequence", "sampling", "distribution")  # of the study of sampling
_USUAL_FIGURES = ["policies", "sweep", "decisions"]
_ROUNDED = 0.01  # sum of shares of the reads that were rounded, at most so far from 1
_EQUAL = 1e-9  # relative: shares of an item that differ by less are the same, but for rounding

_NOT_NEGATIVE, _POSITIVE = Number(least=0), Number(above=0)

Latencies = dict[str, float | list[float]]  # by node, s: one for all edges, or one per edge


def _latencies(value: Any) -> str | Latencies:
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, dict) or not value:
        raise Wrong(str(value))
    latencies: Latencies = {}
    edges = None  # as many as the first list has
    for name, each in value.items():
        if not isinstance(each, list | tuple):
            latencies[str(name)] = _above_zero(each, name)
            continue
        edges = len(each) if edges is None else edges
        if not 0 < len(each) == edges:
            raise Wrong(f"{each} of {name}")
        latencies[str(name)] = [_above_zero(number, name) for number in each]
    return latencies


def _above_zero(value: Any, name: str) -> float:
    if not (is_number(value) and value > 0):
        raise Wrong(f"{value} of {name}")
    return float(value)


def _distances(value: Any) -> list[float] | list[list[float]]:
    rows = value if isinstance(value, list | tuple) else [value]
    if not any(isinstance(row, list | tuple) for row in rows):
        distances: list[float] = Listed(_NOT_NEGATIVE)(value)
        return distances
    matrix = [Series(_NOT_NEGATIVE)(row) for row in rows]
    if any(len(row) != len(matrix) for row in matrix):
        raise Wrong(str(value), "a row per edge, each with a number per edge")
    return matrix


def _distances_of_runs(value: Any) -> list[Any] | None:
    """Distances of all pairs, a run each; rows of a matrix are one run's."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values if values and all(map(is_number, values)) else None


def _steps(value: Any) -> list[tuple[int, float]]:
    if not isinstance(value, list | tuple) or not value:
        raise Wrong(str(value))
    steps = []
    for step in value:
        pair = step if isinstance(step, list | tuple) and len(step) == 2 else (0, 0)
        if not (is_whole(pair[0]) and pair[0] >= 1 and is_number(pair[1]) and pair[1] > 0):
            raise Wrong(f"{step} in {value}")
        steps.append((int(pair[0]), float(pair[1])))
    total = sum(share for _, share in steps)
    if abs(total - 1) > _ROUNDED:
        raise Wrong(f"shares that sum to {total:g} in {value}")
    each = [share / items for items, share in steps]
    if any(after > before * (1 + _EQUAL) for before, after in pairwise(each)):
        raise Wrong(str(value), "items of a step that are read no more often than those of the step before")
    return steps


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Wrong(str(value))
    return value


def _replays(options: "CacheOptions") -> bool:
    return options.partitions is None


def _sampling(options: "CacheOptions") -> bool:
    return options.partitions is not None


@dataclass(frozen=True)
class CacheOptions(LogOptions):
    """Everything that ``ecjax cache`` can be told."""

    trace: str | None = option(
        None,
        "access log, or the folder of an ecjax analyze: its reads are replayed; default: generated reads",
    )
    policy: list[str] = option(
        [
            *("optimal_static", "samplex_static", "belady", "exact", "near_optimal_dp", "samplex", "agar"),
            *("arc", "s3_fifo", "sieve", "w_tinylfu", "gdsf", "decayed_lfu", "lfu", "lru", "none"),
        ],
        "who decides what an edge keeps; one or a list; belady knows all reads: a bound for caches of whole items "
        "where no read fails",
        Listed(Words(*POLICIES)),
    )
    capacity: list[int] = option(
        [100], "chunks that an edge can keep; one or a list", Listed(Whole(0, 10**9))
    )
    k: list[int] = option([6], "data chunks of an item; one or a list", Listed(Whole(1, 60)))
    parity: int = option(3, "parity chunks of an item", Whole(0, 100), identifies=True)
    copies: list[int] = option(
        [0], "further copies of every chunk (replicas); one or a list", Listed(Whole(0, 100))
    )
    items: list[int] | None = option(
        None,
        "how many; of a trace the most popular ones, reads of others are left out; one or a list; default: "
        f"{ITEMS:,}, of a trace all, or the {MOST_ITEMS:,} most popular ({ITEMS:,} with partitions)",
        Listed(Whole(1, 10**8)),
    )
    zipf: list[float] = option(
        [1.0], "exponent of the popularity of generated reads; one or a list", Listed(_NOT_NEGATIVE)
    )
    popularity: list[tuple[int, float]] | None = option(
        None,
        "of generated reads, in steps as block traces have them: [[items, share of the reads], ...], the most popular "
        "first; instead of items and zipf",
        Special(
            "[items, share] each, items whole and from 1, shares above 0 that sum to 1, falling from item to item",
            _steps,
        ),
    )
    reads: int = option(200_000, "generated reads, at all edges together", Whole(1, 10**9))
    rate_per_s: float = option(100.0, "of generated reads, all edges together", _POSITIVE)
    rate_scale: float = option(1.0, "divides the times of a trace", _POSITIVE)
    drift: float = option(
        0.0,
        "generated reads: share of the items that exchange ranks after every drift_s",
        Number(least=0, most=1),
    )
    drift_s: float = option(600.0, "s, as above", _POSITIVE)
    edges: int | None = option(
        None,
        "how many; reads of a trace without a column edge go to them in turn; default: those of nodes",
        Whole(1, 10**4),
    )
    nodes: str | Latencies | None = option(
        None,
        "mean time to fetch a chunk, s: {node: latency} or {node: [latency at each edge]}, or an edges table; "
        "default: six regions and three edges",
        Special(
            "{node: latency} or {node: [latency at each edge]}, seconds above 0, as many for every node, or a table",
            _latencies,
        ),
    )
    buckets: int = option(
        15,
        "servers of a node; a chunk is at one of them, and they fail one by one",
        Whole(1, 10**4),
        identifies=True,
    )
    jitter: float = option(
        0.0,
        "standard deviation of the time of a fetch / its mean (lognormal); 0: none",
        _NOT_NEGATIVE,
        _replays,
    )
    edge_s: float = option(
        0.001,
        "time to serve a chunk that the edge keeps; no read takes less",
        _NOT_NEGATIVE,
        identifies=_replays,
    )
    decode_s: float = option(
        0.03,
        "time to decode, once per read that needs parity chunks",
        _NOT_NEGATIVE,
        _replays,
    )
    outages: str | None = option(
        None, "outages table: node_id (a node, or a bucket as oregon/3), start_s, end_s"
    )
    fail: list[str | None] = option(
        [None],
        "down all the time: a node, a bucket as oregon/3, each_node or each_bucket in turn; one or a list, null: none",
        Listed(Special("a name", _name), null=True),
    )
    half_life_s: list[float] | None = option(
        None,
        "of counters of popularity: longer is steadier, shorter follows what changes; one or a list; null: exact has "
        f"none, it learns by a mixture of half-lives on the clock of reads, others {HALF_LIFE_S:g} s",
        Listed(_POSITIVE),
    )
    memory: float = option(
        0.9,
        "weight of the past in estimates of latencies",
        Number(least=0, below=1),
        identifies=_replays,
    )
    samples: list[int] = option(
        [5], "partitions that samplex looks at; one or a list", Listed(Whole(1, 10**6))
    )
    period_s: float = option(60.0, "between two plans of agar and exact_periodic", _POSITIVE)
    replan_reads: int = option(
        20_000, "reads of an edge between two plans of all items by exact; 0: never", Whole(0, 10**12)
    )
    neighbours: list[float] | list[list[float]] | None = option(
        None,
        "s, for an edge to take a chunk that another one keeps: also replay edges that serve each other, planned "
        "together every period_s, at most 6 that are not alike; one or a list, or [[own, to the second, ...], ...] of "
        "all pairs; null: none",
        Special("numbers of at least 0, a list of them or of rows", _distances, _distances_of_runs),
    )
    warm_up: float = option(
        0.25, "share of the reads that is not counted", Number(least=0, below=1), identifies=_replays
    )
    partitions: list[int] | None = option(
        None,
        "instead of replays the study of sampling, of the first edge: numbers of sampled partitions, as [1,2,5,10,20]; "
        "beside it count capacity, k, parity, copies, items, zipf, popularity, nodes, rounds, seeds, trace and drift; "
        "with these two edges, with drift reads, rate_per_s and drift_s",
        Listed(Whole(1, 10**6)),
    )
    rounds: int = option(
        100, "partitions: repetitions of every random choice", Whole(1, 10**5), identifies=_sampling
    )
    device: str = option(
        "auto",
        "what plans all edges of optimal_static and exact_periodic: host (processors), jax (its device, all edges one "
        "program), auto: there if it is a GPU and much faster",
        Words("auto", "host", "jax"),
    )
    seeds: int = option(1, "replays with different draws: seed, seed + 1, ...", Whole(1, 10**6))
    seed: int = option(0, "first seed", Whole(0, 2**62))
    out: str = option("results/cache", "folder of the result tables and figures")
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip replays that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names), empty=True),
    )
    figures: list[str] | None = option(
        None,
        "figures to draw, the last three with partitions; default: policies, sweep, decisions, with partitions all "
        "three",
        Listed(Words(*FIGURES, *SAMPLING_FIGURES), empty=True),
    )

    def completed(self) -> "CacheOptions":
        """These options with the number of items, and the figures that are drawn, by default, if they go together.

        Raises:
            UserError: they do not.
        """
        allowed = SAMPLING_FIGURES if _sampling(self) else FIGURES
        for name in self.figures or []:
            if name not in allowed:
                raise UserError(f"figures: found {name!r}; allowed: {', '.join(allowed)}")
        usual = list(SAMPLING_FIGURES) if _sampling(self) else [*_USUAL_FIGURES]
        return replace(
            self,
            figures=usual if self.figures is None else self.figures,
            items=[self._usual_items] if self.items is None else self.items,
        )

    @property
    def _usual_items(self) -> int:
        if self.trace is None and self.popularity is not None:
            return sum(items for items, _ in self.popularity)
        # going through all partitions is not for many items
        return ITEMS if self.trace is None or _sampling(self) else MOST_ITEMS
