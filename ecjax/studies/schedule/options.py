"""Options of ``ecjax schedule``. Imports nothing heavy: the command line reads it before anything else."""

import itertools
from dataclasses import dataclass

from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import Listed, Number, Special, Whole, Words, Wrong, is_whole, option, section
from ecjax.studies.schedule.tables import TABLES
from ecjax.studies.spine.log_options import FORMATS, LogOptions

COFLOW_BENCHMARK, TRANSFERS = "coflow_benchmark", "transfers"  # traces that are no access logs

SCHEDULERS = (
    *("dtarget", "dtarget_remaining", "varys", "sincronia", "aalo", "baraat", "fifo", "local_search"),
    *("fair", "equal_share", "pfabric"),
)
SOURCES = ("random", "smallest_load", "least_bottleneck", "least_work_ahead")  # of flows without a given one
FIGURES = ("improvement", "sources", "cdf", "sweep", "gap")


def _pair(value: object) -> tuple[int, int]:
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(map(is_whole, value))):
        raise Wrong(str(value))
    least, most = value
    if not 1 <= least <= most:
        raise Wrong(str(value))
    return int(least), int(most)


def _widths(value: object) -> list[int]:
    edges = _WHOLES(value)
    if edges != sorted(edges):
        raise Wrong(str(edges))
    return edges


_WHOLES = Listed(Whole(1))


@dataclass(frozen=True)
class GenerateOptions:
    """Reads that ``ecjax schedule`` generates where no trace is given: Table I of the D-Target paper by default."""

    requests: int = option(512, "reads", Whole(1, 10**7))
    servers: int = option(60, "servers, one sending port each", Whole(1, 10**6))
    racks: int | None = option(
        None, "racks of the servers; chunks of a file go to different ones while they last", Whole(1, 10**6)
    )
    clients: int = option(60, "clients, one receiving port each", Whole(1, 10**6))
    min_bytes: float = option(1e5, "smallest file; sizes are log-uniform", Number(above=0))
    max_bytes: float = option(1e10, "largest file", Number(above=0))
    duration_s: float = option(1000.0, "arrivals are uniform from 0 to this", Number(least=0))
    k_range: tuple[int, int] | None = option(
        None,
        "[least, most]: every file draws its k uniformly instead, and n = round(n_per_k k)",
        Special("two whole numbers, 1 <= least <= most", _pair),
    )
    n_per_k: float = option(1.5, "k_range: chunks kept per chunk needed", Number(least=0))


@dataclass(frozen=True)
class ScheduleOptions(LogOptions):
    """Everything that ``ecjax schedule`` can be told."""

    trace: str | None = option(
        None,
        "Coflow-Benchmark text, a transfers table, or an access log (reads of the files of plan= or files=); "
        "default: generated reads",
    )
    format: str = option(
        "auto",
        "of the trace; auto: told by its content",
        Words("auto", COFLOW_BENCHMARK, TRANSFERS, *FORMATS),
    )
    plan: str | None = option(None, "folder of an ecjax optimize: where the files of the access log are kept")
    plan_run: str | None = option(None, "which of its runs, by run_id")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    files: str | None = option(None, "files table with k and nodes, instead of plan=")
    clients: int = option(
        60, "access log without a column edge: its reads go to so many clients in turn", Whole(1, 10**9)
    )
    port_bytes_per_s: float | None = option(
        None,
        "capacity of every port; default: 1e9, of a Coflow-Benchmark or transfers trace 125e6 (8 ms per MB)",
        Number(above=0),
    )
    client_bytes_per_s: float | None = option(
        None, "reads: capacity of the clients' ports; default: that of the servers'", Number(above=0)
    )
    ports: str | None = option(
        None, "ports table: port_id, send_bytes_per_s, receive_bytes_per_s of ports that differ"
    )
    out: str = option("results/schedule", "folder of the result tables and figures")
    scheduler: list[str] = option(
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
        "who sends when, and how fast; one or a list",
        Listed(Words(*SCHEDULERS)),
    )
    sources: list[str] = option(
        ["random", "smallest_load", "least_work_ahead"],
        "which k of the n servers that keep a chunk; one or a list; given sources are kept",
        Listed(Words(*SOURCES)),
    )
    seeds: int = option(20, "workloads and random choices of sources: seed, seed + 1, ...", Whole(1, 10**6))
    seed: int = option(0, "first seed", Whole(0, 2**62))
    n: list[int] = option([8], "generated reads: chunks kept of each file; one or a list", _WHOLES)
    k: list[int] = option(
        [4], "generated reads, or an access log of files without k: chunks needed; one or a list", _WHOLES
    )
    share_at_zero: list[float] = option(
        [0.0],
        "generated reads: share of them that arrives at t = 0; one or a list",
        Listed(Number(least=0, most=1)),
    )
    rate_scale: list[float] = option(
        [1.0], "divides all arrival times; one or a list", Listed(Number(above=0))
    )
    size_scale: list[float] = option([1.0], "multiplies all sizes; one or a list", Listed(Number(above=0)))
    widths: list[int] = option(
        [1, 2, 6, 10, 14, 21],
        "edges of the width classes (flows per coflow); the last is open",
        Special("ascending whole numbers of at least 1", _widths),
        identifies=True,
    )
    lower_bound: bool = option(
        True, "also bound the average completion time of every schedule from below", identifies=True
    )
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip replays that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(
        ["improvement", "cdf"], "figures to draw", Listed(Words(*FIGURES), empty=True)
    )
    generate: GenerateOptions = section(GenerateOptions, "generated reads (trace not given)")

    def completed(self) -> "ScheduleOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        if self.client_bytes_per_s is not None and self.ports is not None:
            raise UserError(
                f"client_bytes_per_s: found {self.client_bytes_per_s:g} beside ports={self.ports}; allowed: one of "
                "them, as the ports table has receive_bytes_per_s"
            )
        if self.plan is None and (self.plan_run or self.plan_where):
            raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
        if self.trace is None and self.format != "auto":
            raise UserError(f"format={self.format}: trace=PATH is missing, what is of that format")
        if self.trace is None and self.generate.k_range is None:
            for n, k in itertools.product(self.n, self.k):
                if not k <= n <= self.generate.servers:
                    raise UserError(
                        f"k={k}: found n={n}; allowed: from k={k} to servers={self.generate.servers}"
                    )
        return self
