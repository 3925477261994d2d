"""Options of ``ecjax optimize``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.spine.option import option


@dataclass
class OptimizeOptions:
    """Everything that ``ecjax optimize`` can be told."""

    nodes: str | None = option(
        None, "nodes table (Parquet file or folder, Arrow IPC, CSV); built-in if absent"
    )
    files: str | None = option(None, "files table; built-in if absent")
    out: str = option("results/optimize", "folder of the result tables and figures")
    queue: Any = option(
        ["fcfs"],
        "how nodes serve: fcfs; by service_class: priority (lowest first), weighted (a share each); one or a list",
    )
    method: Any = option(
        None,
        "queue=fcfs: certified (the default, with a proven lower bound), published, oblivious_lb, random_cp, max_ec; "
        "one or a list. priority: jlop, weighted: jlwo",
    )
    theta: Any = option(
        None,
        "seconds of mean latency that a dollar of storage cost is worth; one or a list; default: "
        "[3, 10, 20, 30, 50, 100, 200, 500, 1000] with queue=fcfs, otherwise 0",
    )
    objective: Any = option(
        "bound",
        "latency that is planned for: bound (on the mean), or estimated: mean, p50, p90, p99, p999, or weights as in "
        "{mean: 0.5, p99: 0.1}; thousands of files. By class: lexicographic (the default with queue=priority) or joint",
    )
    importance: Any = option(
        None,
        "what a second of each class counts (C_k), in class order, 1 if absent; a list, or a list of them",
    )
    weights: Any = option(
        None, "queue=weighted: shares of every node, a number per class, to keep; default: planned per node"
    )
    deadline_s: Any = option(
        None,
        "mean latency promised to each class, null where none is: the cheapest plan that keeps them; a list in class "
        "order or {class: seconds}",
    )
    deadline_by: str = option("bound", "deadlines are kept by the bound, or by the estimate")
    service: str = option("auto", "objective other than bound: service law, as in ecjax replay")
    theta_per: str = option("file", "file: theta multiplies the mean cost per file; total: the whole cost")
    rate_scale: Any = option([1.0], "multiplies all rates; one or a list")
    class_rate_scale: Any = option(
        None, "multiplies the rates of each service class, numbers in class order; a list, or a list of them"
    )
    size_scale: Any = option([1.0], "multiplies all file sizes; one or a list")
    k: Any = option(None, "overrides k of every file (a block trace has none); one or a list")
    min_extra_chunks: int | None = option(
        None, "durability floor n >= k + this; default: the files' column, else 2 built-in and 0 otherwise"
    )
    d: Any = option(None, "a read takes d >= k chunks of bytes / d each; overrides files.d; one or a list")
    max_chunks_per_node: int = option(
        1, "chunks of a file that each of its nodes keeps and serves together; k (or d) must be a multiple"
    )
    max_chunks_per_site: int | None = option(None, "most chunks of a file at one site (nodes.site)")
    migration_dollars_per_byte: float = option(
        0.0, "once per stored byte put outside the current placement (files.nodes, or that of plan=)"
    )
    network: str | None = option(
        None, "network table: dollars per byte read, by client site and node or site"
    )
    fixed_groups: bool = option(False, "files that have files.nodes are placed on exactly these nodes")
    size_scaling: str = option(
        "proportional", "moments grow with the chunk size (proportional) or not at all (none)"
    )
    scenarios: Any = option(
        [], "failures to evaluate each plan in: node, site (every one of them down in turn)"
    )
    scheduling: str = option(
        "nearest",
        "reads under failures: nearest (least change) or optimal (rescheduled; minutes from 10^4 files)",
    )
    robust: str = option(
        "none", "change placements for the mean or worst latency of the scenarios: none, mean, worst"
    )
    robust_trials: int = option(30, "robust: batches of moved chunks that are tried")
    polish: bool = option(
        False, "also reschedule for one z per file: latency_polished_s, the bound's own slack"
    )
    start: str | None = option(
        None,
        "where descents start: uniform (the default of published), proportional, plan; by class: search (the default: "
        "for weighted queues the division of the nodes among classes is searched for, else as certified), certified, "
        "uniform, proportional (random nodes), plan",
    )
    plan: str | None = option(
        None, "folder of an earlier optimize: the plan to start from and to change little"
    )
    plan_run: str | None = option(None, "which of its runs, by run_id")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    compare_cold_start: bool = option(False, "with plan=: also plan from nothing, for cold_start_objective")
    gap: float = option(1e-4, "certified: (objective - lower bound) / lower bound that is good enough")
    loop: str = option(
        "merged", "merged: tangent, z and probabilities in one loop; nested: inner convergence first"
    )
    beta: float = option(10.0, "sharpness of the log surrogate of the storage cost, > 1")
    eps: float = option(
        1e-4,
        "relative change of the objective that ends a descent: published, and outer iterations by class; also how much "
        "a class may raise the latency of a higher one",
    )
    max_iterations: int = option(1000, "limit of iterations: published, and outer ones by class")
    seed: int = option(0, "seed of the perturbed start and of random placement")
    dtype: str = option("float64", "float64, or float32 on an accelerator")
    memory_bytes: float | None = option(None, "memory that a batch may take; default: half of what is free")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "skip runs that are finished in out")
    write: Any = option(None, "datasets to write besides runs and inputs; default: all")
    figures: Any = option(
        ["tradeoff", "gap", "convergence", "scenarios", "class_latency", "class_convergence"],
        "figures to draw: tradeoff, gap, convergence, methods, classes, sizes, rates, code_lengths, scenarios; by "
        "class also class_latency, class_convergence",
    )
    cluster: ClusterOptions = field(
        default_factory=ClusterOptions, metadata={"help": "the built-in cluster, where no table is given"}
    )
