"""Options of ``ecjax adapt``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.studies.spine.option import option


@dataclass
class AdaptOptions:
    """Everything that ``ecjax adapt`` can be told."""

    delays: Any = option(
        ["shifted_exp"],
        "of tasks by chunk size: shifted_exp, shifted_lognormal, correlated (reads of a public object store), or the "
        "path of a log of chunk accesses, a delays table or the folder of an ecjax analyze; one or a list",
    )
    trace: str | None = option(None, "access log whose arrivals are replayed; default: generated arrivals")
    format: str = option("auto", "of logs, in trace or delays, as in ecjax analyze; auto tells it")
    columns: Any = option(None, "of logs, as in ecjax analyze")
    sort: bool = option(False, "sort the trace by arrival, in memory, instead of refusing an unsorted one")
    classes: Any = option(
        None,
        "requests by type and size: a list of {name, op, bytes, share, k_max, r_max}, or a table; default: reads of "
        "bytes, or what the trace has",
    )
    bytes: float = option(3e6, "size of the requests, where neither classes nor a trace says it")
    k_max: int = option(6, "largest code dimension: smallest chunk = bytes / k_max")
    r_max: float = option(2.0, "largest redundancy n / k")
    writes: str = option(
        "cancel", "what becomes of a write's other tasks at the k-th completion: cancel, background"
    )
    threads: int = option(16, "connections of the proxy to the storage")
    rate: Any = option(None, "requests/s; one or a list; default: load")
    load: Any = option(
        [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        "rate as a share of the capacity of the (1,1) code; one or a list; used where neither rate, steps nor trace is "
        "given",
    )
    steps: Any = option(
        None,
        "rates that change: [[start_s, rate], ...], the last one [end_s, 0]; instead of rate, load and trace",
    )
    rates: str | None = option(None, "table of factors of the rate by time, as in ecjax replay")
    rate_scale: Any = option([1.0], "multiplies all rates, divides arrival times of a trace; one or a list")
    requests: int = option(200_000, "requests per replay of generated arrivals (steps: as many as come)")
    seeds: int = option(1, "replays with different draws: seed, seed + 1, ...")
    seed: int = option(0, "first seed")
    strategy: Any = option(
        ["static", "best_static", "replication", "greedy", "fast_cloud", "tofec", "calibrated"],
        "which code a request is served with; one or a list",
    )
    codes: Any = option(
        [[1, 1]],
        "of strategy static, in all classes: [n, k], a list of them, or all that k_max and r_max allow",
    )
    memory: float = option(0.99, "tofec: weight of the past in the smoothed backlog, from 0 to below 1")
    capacity: bool = option(True, "also search the largest rate that each strategy can serve")
    timeline_s: float | None = option(
        None, "length of the intervals of the dataset timeline; default: none, with steps 1/120 of the whole"
    )
    storage_dollars_per_byte: float = option(2.3e-11, "price of storage, dollars per byte and 30 days")
    out: str = option("results/adapt", "folder of the result tables and figures")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "skip replays that are finished in out")
    write: Any = option(None, "datasets to write besides runs; default: all")
    figures: Any = option(
        ["delay", "composition"], "figures to draw: tradeoff, delay, composition, deviation, timeline"
    )
