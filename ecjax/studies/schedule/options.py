"""Options of ``ecjax schedule``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.studies.spine.option import option


@dataclass
class GenerateOptions:
    """Reads that ``ecjax schedule`` generates where no trace is given: Table I of the D-Target paper by default."""

    requests: int = option(512, "reads")
    servers: int = option(60, "servers, one sending port each")
    racks: int | None = option(
        None, "racks of the servers; chunks of a file go to different ones while they last"
    )
    clients: int = option(60, "clients, one receiving port each")
    min_bytes: float = option(1e5, "smallest file; sizes are log-uniform")
    max_bytes: float = option(1e10, "largest file")
    duration_s: float = option(1000.0, "arrivals are uniform from 0 to this")
    k_range: Any = option(
        None, "[least, most]: every file draws its k uniformly instead, and n = round(n_per_k k)"
    )
    n_per_k: float = option(1.5, "k_range: chunks kept per chunk needed")


@dataclass
class ScheduleOptions:
    """Everything that ``ecjax schedule`` can be told."""

    trace: str | None = option(
        None,
        "Coflow-Benchmark text, a transfers table, or an access log (reads of the files of plan= or files=); "
        "default: generated reads",
    )
    format: str = option(
        "auto", "of the trace: coflow_benchmark, transfers, or a format of ecjax analyze; auto tells it"
    )
    columns: Any = option(None, "of an access log, as in ecjax analyze")
    extent_bytes: int | None = option(None, "of an access log, as in ecjax analyze")
    sort: bool = option(False, "sort the trace by arrival, in memory, instead of refusing an unsorted one")
    plan: str | None = option(None, "folder of an ecjax optimize: where the files of the access log are kept")
    plan_run: str | None = option(None, "which of its runs, by run_id")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    files: str | None = option(None, "files table with k and nodes, instead of plan=")
    clients: int = option(60, "access log without a column edge: its reads go to so many clients in turn")
    port_bytes_per_s: float | None = option(
        None,
        "capacity of every port; default: 1e9, of a Coflow-Benchmark or transfers trace 125e6 (8 ms per MB)",
    )
    client_bytes_per_s: float | None = option(
        None, "reads: capacity of the clients' ports; default: that of the servers'"
    )
    ports: str | None = option(
        None, "ports table: port_id, send_bytes_per_s, receive_bytes_per_s of ports that differ"
    )
    out: str = option("results/schedule", "folder of the result tables and figures")
    scheduler: Any = option(
        [
            "dtarget",
            "varys",
            "sincronia",
            "aalo",
            "baraat",
            "pfabric",
            "fair",
            "fifo",
            "equal_share",
            "local_search",
        ],
        "who sends when, and how fast; one or a list; also dtarget_remaining, local_search",
    )
    sources: Any = option(
        ["random", "smallest_load", "least_work_ahead"],
        "which k of the n servers that keep a chunk: random, smallest_load, least_bottleneck, least_work_ahead; one or "
        "a list; given sources are kept",
    )
    seeds: int = option(20, "workloads and random choices of sources: seed, seed + 1, ...")
    seed: int = option(0, "first seed")
    n: Any = option([8], "generated reads: chunks kept of each file; one or a list")
    k: Any = option([4], "generated reads, or an access log of files without k: chunks needed; one or a list")
    share_at_zero: Any = option([0.0], "generated reads: share of them that arrives at t = 0; one or a list")
    rate_scale: Any = option([1.0], "divides all arrival times; one or a list")
    size_scale: Any = option([1.0], "multiplies all sizes; one or a list")
    widths: Any = option(
        [1, 2, 6, 10, 14, 21], "edges of the width classes (flows per coflow); the last is open"
    )
    lower_bound: bool = option(True, "also bound the average completion time of every schedule from below")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "skip replays that are finished in out")
    write: Any = option(None, "datasets to write besides runs; default: all")
    figures: Any = option(["improvement", "cdf"], "figures to draw: improvement, sources, cdf, sweep, gap")
    generate: GenerateOptions = field(
        default_factory=GenerateOptions, metadata={"help": "generated reads (trace not given)"}
    )
