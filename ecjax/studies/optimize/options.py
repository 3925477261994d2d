"""Options of ``ecjax optimize``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass, replace

from ecjax.engine.options import EngineOptions
from ecjax.options import Listed, Number, Special, Whole, Words, option, rows_within, section
from ecjax.problem import node_options
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.problem.node_options import Description
from ecjax.studies.optimize.class_rules import (
    CLASS_METHODS,
    CLASS_RATES,
    IMPORTANCES,
    QUEUES,
    STARTS,
    WEIGHTS,
    Deadlines,
    check_classes,
    class_rate_scales,
    importance,
    weights,
)
from ecjax.studies.optimize.objective_rules import OBJECTIVES, objective
from ecjax.studies.optimize.plan_rules import CODES, GAP, METHODS, code_name, together
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.optimize.what_if_rules import WHAT_IF, what_if
from ecjax.studies.spine.durability_options import DurabilityOptions, judged
from ecjax.studies.spine.laws import LAWS
from ecjax.studies.spine.log_options import RatedLogOptions

FIGURES = (
    *("tradeoff", "convergence", "methods", "classes", "sizes", "rates", "code_lengths", "gap", "scenarios"),
    *("class_latency", "class_convergence"),
)
# theta by hardware: files of 25 MB at 10 to 20 dollars per TB, and those of the JLCM paper
THETAS = {
    "disk": [100.0, 1000.0, 1500.0, 2000.0, 3000.0, 5000.0, 7000.0, 10000.0, 20000.0],
    "tahoe": [3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0],
}


def estimated(options: "OptimizeOptions") -> bool:
    """Whether another objective than the bound was set."""
    return options.objective != "bound"


def bounded(options: "OptimizeOptions") -> bool:
    """Whether plans for a log go by an order-statistic form."""
    return options.trace_form != "wait"


def streamed(options: "OptimizeOptions") -> bool:
    """Whether the files are read in pieces."""
    return options.stream


def by_class(options: "OptimizeOptions") -> bool:
    """Whether any queue is by class."""
    return options.queue != ["fcfs"]


@dataclass(frozen=True)
class OptimizeOptions(DurabilityOptions, RatedLogOptions):
    """What ``ecjax optimize`` plans, for what, and where to."""

    trace: str | None = option(
        None,
        "access log that read and write rates come from, or the folder of an ecjax analyze of it, whose nodes and "
        "files are taken where none are set; what plans deliver under its arrivals is estimated, and with "
        "objective=trace they are made for these",
    )
    nodes: str | Description | None = option(
        None,
        "nodes table (Parquet file or folder, Arrow IPC, CSV), output of fio --output-format=json, or the hardware in "
        "numbers; built-in if absent",
        Special(node_options.ALLOWED, node_options.nodes),
    )
    files: str | None = option(None, "files table; built-in if absent")
    out: str = option("results/optimize", "folder of the result tables and figures")
    queue: list[str] = option(
        ["fcfs"],
        "how nodes serve: fcfs; by service_class: priority (lowest first), weighted (a share each); one or a list",
        Listed(Words(*QUEUES)),
    )
    method: list[str] | None = option(
        None,
        "one or a list; default: certified, which proves a lower bound; priority: jlop, weighted: jlwo",
        Listed(Words(*METHODS, *CLASS_METHODS.values()), empty=True),
    )
    theta: list[float] | None = option(
        None,
        "seconds of mean latency that a dollar of storage cost per file is worth (theta_per); one or a list; default: "
        "[100, 1000, 1500, 2000, 3000, 5000, 7000, 10000, 20000] with queue=fcfs (cluster.hardware=tahoe: 3 to 1000), "
        "otherwise 0",
        Listed(Number(least=0)),
    )
    objective: str | dict[str, float] = option(
        "bound",
        "latency that is planned for: bound (on the mean); estimated (of some thousands of files at most): mean, a "
        "quantile, or weights; or trace: the mean wait under the arrivals of trace=, bursts and all. By class: "
        "lexicographic (the default with queue=priority) or joint",
        Special(OBJECTIVES, objective),
        identifies=estimated,
    )
    trace_form: str = option(
        "wait",
        "objective=trace: wait, the mean wait of a chunk; or, for one chunk size, a bound on the mean latency of reads "
        "with one z that all share: order_statistics, by mean and variance of steady queues at the workload of every "
        "time, or excess, by that workload as if known, for bursts beyond capacity",
        Words("wait", "order_statistics", "excess"),
        identifies=bounded,
    )
    importance: list[list[float]] | None = option(
        None,
        "what a second of each class counts (C_k), in class order, 1 if absent; a list, or a list of them",
        Special(IMPORTANCES, importance, rows_within),
    )
    weights: list[float] | None = option(
        None,
        "queue=weighted: shares of every node, a number per class, to keep; default: planned per node",
        Special(WEIGHTS, weights),
        identifies=by_class,
    )
    exchange: bool = option(
        False,
        "queue=weighted: runs of a sweep of importance, theta, rate_scale and size_scale go on from each other's plans "
        "wherever these are better",
    )
    deadline_s: Deadlines = option(
        None,
        "mean latency promised to each class, null where none is: the cheapest plan that keeps them; a list in class "
        "order or {class: seconds}",
        Special("seconds per service class, null where none is promised", lambda value: value),
        identifies=by_class,
    )
    deadline_by: str = option(
        "bound",
        "deadlines are kept by the bound, or by the estimate",
        Words("bound", "estimate"),
        identifies=by_class,
    )
    service: str = option(
        "auto",
        "service law with the nodes' moments, of bounds and estimates, as in ecjax replay",
        Words(*LAWS),
        identifies=lambda options: estimated(options) or options.service != "auto",
    )
    estimate: bool = option(
        True,
        "estimate mean and 99 % quantile of every plan; by class to 1024 files",
        identifies=lambda options: not options.estimate,
    )
    max_latency_s: float | None = option(
        None,
        "recommend the cheapest plan whose expected mean latency is at most this",
        Number(above=0),
    )
    max_p99_s: float | None = option(
        None, "recommend the cheapest plan whose expected 99 % quantile is at most this", Number(above=0)
    )
    budget: float | None = option(
        None, "recommend the fastest plan that costs at most so many dollars per period", Number(least=0)
    )
    stream: bool = option(
        False,
        "read the files in pieces, once for each k and d and twice for each plan, and keep two bit masks of a file: "
        "10^8 files of one chunk size",
        identifies=streamed,
    )
    theta_per: str = option(
        "file",
        "file: theta multiplies the mean cost per file; total: the whole cost",
        Words("file", "total"),
        identifies=True,
    )
    rate_scale: list[float] = option([1.0], "multiplies all rates; one or a list", Listed(Number(above=0)))
    class_rate_scale: list[tuple[float, ...]] | None = option(
        None,
        "multiplies the rates of each service class, numbers in class order; a list, or a list of them",
        Special(CLASS_RATES, class_rate_scales, rows_within),
    )
    size_scale: list[float] = option([1.0], "multiplies file sizes; one or a list", Listed(Number(above=0)))
    k: list[int] | None = option(
        None, "overrides k of every file (a block trace has none); one or a list", Listed(Whole(1))
    )
    min_extra_chunks: int | None = option(
        None,
        "durability floor n >= k + this; default: the files' column, else 2 built-in and 0 otherwise",
        Whole(0, 10**6),
    )
    codes: list[str] | None = option(
        None,
        "codes K+M or copies as 3x that all files are kept in, instead of k: n is at least K + M; one or a list",
        Listed(Special(CODES, code_name)),
    )
    durability_nines: float | None = option(
        None,
        "nines of an object per year: the fewest chunks beyond k that keep them are the floor, for every k; default: "
        "min_extra_chunks alone is",
        Number(above=0, most=300),
        identifies=judged,
    )
    max_any_loss: float | None = option(
        None,
        "probability per year that anything is lost, which the floor keeps too; default: any",
        Number(above=0, most=1),
        identifies=judged,
    )
    d: list[int] | None = option(
        None,
        "a read takes d >= k chunks of bytes / d each; overrides files.d; one or a list",
        Listed(Whole(1)),
    )
    max_chunks_per_node: int = option(
        1,
        "chunks of a file that each of its nodes keeps and serves together; k (or d) must be a multiple",
        Whole(1, 10**6),
        identifies=True,
    )
    max_chunks_per_site: int | None = option(
        None, "most chunks of a file at one site (nodes.site)", Whole(1, 10**6), identifies=True
    )
    migration_dollars_per_byte: float = option(
        0.0,
        "once per stored byte put outside the current placement (files.nodes, or that of plan=)",
        Number(least=0),
        identifies=True,
    )
    network: str | None = option(
        None, "network table: dollars per byte read, by client site and node or site"
    )
    fixed_groups: bool = option(
        False, "files that have files.nodes are placed on exactly these nodes", identifies=True
    )
    stripe_unit_bytes: float | None = option(
        None,
        "bytes of a file in one data chunk before the next begins: larger small reads (files.small_bytes) take whole "
        "stripe units of several chunks; none: the whole chunk",
        Number(above=0),
        identifies=lambda options: options.stripe_unit_bytes is not None,
    )
    read_kinds: str = option(
        "best",
        "small reads of files (small_rate_per_s): best: each share of them that pays is decoded from k chunks; "
        "direct: all from the data chunks themselves",
        Words("best", "direct"),
        identifies=lambda options: options.read_kinds != "best",
    )
    size_scaling: str = option(
        "proportional",
        "moments grow with the chunk size (proportional) or not at all (none)",
        Words("proportional", "none"),
        identifies=True,
    )
    scenarios: list[str] = option(
        [],
        "failures to evaluate each plan in: node, site (every one of them down in turn)",
        Listed(Words("node", "site"), empty=True, together=True),
        identifies=True,
    )
    what_if: list[str] = option(
        [],
        f"also plan for the tables as they would be: {WHAT_IF}; one or a list",
        Listed(Special(WHAT_IF, what_if), empty=True),
    )
    scheduling: str = option(
        "nearest",
        "reads under failures: nearest (least change) or optimal (rescheduled; minutes from 10^4 files)",
        Words("nearest", "optimal"),
        identifies=True,
    )
    robust: str = option(
        "none",
        "change placements for the mean or worst latency of the scenarios: none, mean, worst",
        Words("none", "mean", "worst"),
        identifies=True,
    )
    robust_trials: int = option(
        30, "robust: batches of moved chunks that are tried", Whole(1, 10**6), identifies=True
    )
    polish: bool = option(
        False,
        "also reschedule for one z per file: latency_polished_s, the bound's own slack",
        identifies=True,
    )
    start: str | None = option(
        None,
        "where descents start: uniform (the default of published), proportional, plan; by class: search (the default: "
        "for weighted queues the division of the nodes among classes is searched for, else as certified), certified, "
        "uniform, proportional (random nodes), plan; with plan= always that",
        Words(*STARTS),
        identifies=True,
    )
    plan: str | None = option(
        None, "folder of an earlier optimize: the plan to start from and to change little"
    )
    plan_run: str | None = option(None, "which of its runs, by run_id")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    compare_cold_start: bool = option(
        False, "with plan=: also plan from nothing, for cold_start_objective", identifies=True
    )
    gap: float = option(
        GAP,
        "certified: (objective - lower bound) / lower bound that is good enough; with objective=trace 0.01 in place of "
        "the default",
        Number(above=0),
        identifies=True,
    )
    loop: str = option(
        "merged",
        "merged: tangent, z and probabilities in one loop; nested: inner convergence first",
        Words("merged", "nested"),
        identifies=True,
    )
    beta: float = option(
        10.0, "sharpness of the log surrogate of the storage cost, > 1", Number(above=1), identifies=True
    )
    eps: float = option(
        1e-4,
        "relative change of the objective that ends a descent: published, and outer iterations by class; also how much "
        "a class may raise the latency of a higher one",
        Number(above=0),
        identifies=True,
    )
    max_iterations: int = option(
        1000, "limit of iterations: published, and outer ones by class", Whole(1, 10**6), identifies=True
    )
    seed: int = option(0, "seed of the perturbed start and of random placement", Whole(0, 2**63 - 1))
    dtype: str = option("float64", "float64, or float32 on an accelerator", Words("float64", "float32"))
    device: str = option(
        "auto",
        "where certified plans of one chunk size get their prices: host (processors), jax (its device, all lanes one "
        "program), auto: there if it is a GPU and has enough to do; sweeps of plans by class: jax (side by side, a "
        "program for all), host (one after the other), auto (side by side on a GPU, engine=serial)",
        Words("auto", "host", "jax"),
    )
    memory_bytes: float | None = option(
        None, "memory that a batch may take; default: half of what is free", Number(above=0)
    )
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip runs that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs and inputs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(
        ["tradeoff", "convergence", "scenarios", "class_latency", "class_convergence"],
        "figures to draw; those of queues by class begin with class_ and need queue=",
        Listed(Words(*FIGURES), empty=True),
    )
    cluster: ClusterOptions = section(ClusterOptions, "the built-in cluster, where no table is given")

    @property
    def judges_durability(self) -> bool:
        """Whether floors follow from a durability."""
        return self.durability_nines is not None or self.max_any_loss is not None

    def completed(self) -> "OptimizeOptions":
        """These options, if they go together, with defaults that depend on others.

        Raises:
            UserError: they do not.
        """
        return together(replace(self, **check_classes(self, THETAS[self.cluster.hardware])))
