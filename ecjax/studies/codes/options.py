"""Options of ``ecjax codes``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass

from ecjax.durability.codes import ALLOWED, code_of, other_name, range_of
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import Listed, Number, Series, Special, Whole, Words, Wrong, option, section
from ecjax.problem import node_options
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.problem.node_options import Description
from ecjax.studies.codes.tables import TABLES
from ecjax.studies.spine.durability_options import DurabilityOptions
from ecjax.studies.spine.laws import LAWS

FIGURES = ("nines", "combinations")


def _codes(value: object) -> list[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        raise Wrong("an empty list")
    names = []
    for each in listed:
        code = code_of(str(each))
        if code is None and range_of(str(each)) is None and other_name(str(each)) is None:
            raise Wrong(str(each))
        names.append("".join(str(each).lower().split()) if code is None else code.name)
    return list(dict.fromkeys(names))


def with_latencies(options: "CodesOptions") -> bool:
    """Whether codes are planned."""
    return options.latencies


def by_class(options: "CodesOptions") -> bool:
    """Whether codes are chosen for each class of files."""
    return bool(options.classes)


@dataclass(frozen=True)
class CodesOptions(DurabilityOptions):
    """Everything that ``ecjax codes`` can be told."""

    codes: list[str] = option(
        ["3x", "4+2", "6+3", "8+3", "8+4"],
        "candidates, one or a list; lrc(12,2,2) in quotes; of ranges, and of all, those that fit the cluster",
        Special(f"{ALLOWED}; one or a list", _codes),
        identifies=True,
    )
    code_table: str | None = option(
        None,
        "table of more codes (CSV, Parquet): code, k, n, checks as '0-4 14; 5-9 15', the chunks of each sparse parity "
        "check; optional repair_chunks, degraded_chunks",
    )
    durability_nines: float = option(
        11.0,
        "nines of an object per year that the recommended code has at least",
        Number(least=0, most=300),
        identifies=True,
    )
    max_any_loss: float | None = option(
        None,
        "probability per year that anything is lost, which the recommended code keeps; default: any",
        Number(above=0, most=1),
        identifies=True,
    )
    chunks_per_domain: int = option(
        1,
        "chunks of a group that a domain may hold where there are fewer domains than chunks",
        Whole(1, 4),
        identifies=True,
    )
    outages_per_year: float = option(
        0.0,
        "planned ones of a domain, whole but unavailable, as for maintenance",
        Number(least=0, most=1000),
        identifies=lambda options: options.outages_per_year > 0,
    )
    outage_hours: float = option(
        1.0,
        "mean length of a planned outage",
        Number(above=0, most=1000),
        identifies=lambda options: options.outages_per_year > 0,
    )
    storage_dollars_per_byte: float = option(
        2e-12, "of raw disk, for 30 days", Number(least=0), identifies=True
    )
    latency: bool | None = option(
        None,
        "plan every code and estimate its latencies; default: where nodes or files are set; false: nodes tell failure "
        "domains only, files are left aside",
    )
    nodes: str | Description | None = option(
        None,
        "nodes table (Parquet file or folder, Arrow IPC, CSV), output of fio --output-format=json, or the hardware in "
        "numbers; built-in if absent",
        Special(node_options.ALLOWED, node_options.nodes),
    )
    files: str | None = option(
        None, "files table of at most 20,000 rows, whose k is left aside; built-in if absent"
    )
    classes: list[str] = option(
        [],
        "classes of files for which codes are chosen apart: hot_cold, size, service_class; one or several",
        Listed(Words("hot_cold", "size", "service_class"), empty=True, together=True),
        identifies=by_class,
    )
    hot_share: float = option(
        0.8,
        "hot are the fewest files that have so much of all reads",
        Number(above=0, below=1),
        identifies=by_class,
    )
    size_bounds: list[float] = option(
        [1e6],
        "bytes between the classes of size; one or a list, ascending",
        Series(Number(above=0), most=7),
        identifies=by_class,
    )
    small_bytes: float = option(
        65536.0,
        "of a small read, where files do not say theirs (small_rate_per_s)",
        Number(above=0),
        identifies=with_latencies,
    )
    stripe_unit_bytes: float | None = option(
        None,
        "bytes of a file in one data chunk before the next begins: larger small reads take whole stripe units of "
        "several chunks; none: the whole chunk",
        Number(above=0),
        identifies=lambda options: options.latencies and options.stripe_unit_bytes is not None,
    )
    small_reads: float = option(
        0.0,
        "small reads of a file for each of its full ones, where files do not say theirs; 0: their latency, without "
        "their load",
        Number(least=0),
        identifies=with_latencies,
    )
    slow: float = option(
        5.0,
        "service times of the slow node, or of all of its site with domain=site, as a multiple of their own",
        Number(least=1),
        identifies=with_latencies,
    )
    repair_io_bytes: float = option(
        float(4 * 2**20), "of one read or write of a repair", Number(above=0), identifies=with_latencies
    )
    service: str = option(
        "auto",
        "service law with the nodes' moments, of plans and estimates, as in ecjax replay",
        Words(*LAWS),
        identifies=with_latencies,
    )
    gap: float = option(
        0.01,
        "of a plan: (bound on its latency - lower bound) / lower bound that is good enough",
        Number(above=0),
        identifies=with_latencies,
    )
    max_p99_s: float | None = option(
        None,
        "99 % quantile of full reads with a node down, which the recommended code keeps; default: any",
        Number(above=0),
        identifies=with_latencies,
    )
    cluster: ClusterOptions = section(ClusterOptions, "the built-in cluster, where no table is given")
    out: str = option("results/codes", "folder of the result tables and figures")
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip what is finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(
        ["nines", "combinations"],
        "figures to draw; combinations with classes only",
        Listed(Words(*FIGURES), empty=True),
    )

    @property
    def reads_nodes(self) -> bool:
        """Whether there is a table of nodes: one of the user's, or the built-in one where codes are planned."""
        return self.latencies or self.nodes is not None

    @property
    def latencies(self) -> bool:
        """Whether codes are planned and their latencies estimated."""
        if self.latency is not None:
            return self.latency
        return self.nodes is not None or self.files is not None

    def completed(self) -> "CodesOptions":
        """These options, if they go together.

        Raises:
            UserError: they do not.
        """
        unknown = [name for name in self.codes if code_of(name) is None and range_of(name) is None]
        if unknown and self.code_table is None:
            raise UserError(f"codes: found {unknown[0]}; allowed: {ALLOWED}; one or a list")
        if self.domain == "site" and not self.reads_nodes:
            raise UserError("domain: found site without nodes; allowed: with nodes=, files= or latency=true")
        if self.max_p99_s is not None and not self.latencies:
            raise UserError(
                f"max_p99_s: found {self.max_p99_s:g} without latencies; allowed: with nodes=, files= or latency=true"
            )
        if self.classes and not self.latencies:
            raise UserError(
                f"classes: found {', '.join(self.classes)} without files; allowed: with nodes=, files= or latency=true"
            )
        if self.classes and self.chunks_per_domain > 1:
            raise UserError(
                f"classes: found chunks_per_domain={self.chunks_per_domain}; allowed with them: 1, a domain a chunk"
            )
        if self.size_bounds != sorted(set(self.size_bounds)):
            raise UserError(f"size_bounds: found {self.size_bounds}; allowed: numbers that rise")
        return self
