"""Options of ``ecjax replay``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any

from ecjax.engine import EngineOptions
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.option import option


def _planning() -> OptimizeOptions:
    return OptimizeOptions(theta=[10.0], figures=[])


@dataclass
class ReplayOptions:
    """Everything that ``ecjax replay`` can be told."""

    plan: str | None = option(
        None, "folder of an ecjax optimize; default: plan now, as planning says. none: no plan"
    )
    plan_run: str | None = option(None, "which of its runs, by run_id; all: each of them")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    out: str = option("results/replay", "folder of the result tables and figures")
    policy: Any = option(
        ["probabilistic"],
        "probabilistic (the plan), uniform, proportional (to service rates), round_robin, least_loaded, power_of_d, "
        "fork_join, late_binding, hedged; one or a list",
    )
    probes: int = option(2, "power_of_d: nodes looked at per chunk wanted")
    cancel: bool = option(True, "fork_join, hedged: accesses no longer needed are given up")
    hedge_delay_s: float | None = option(
        None,
        "hedged: seconds until further chunks are asked for; default: the mean latency bound of the plan",
    )
    hedges: int = option(1, "hedged: further chunks asked for")
    queue: Any = option(
        None,
        "fcfs, priority (by service_class, lowest first), partitioned, shared; one or a list; default: what the plan "
        "was made for (weighted: partitioned)",
    )
    weights: Any = option(
        None,
        "partitioned, shared: share of each service class at all nodes, in their order; default: the plan's own by "
        "class and node, else alike",
    )
    service: Any = option(
        None,
        "service law with the nodes' moments: auto (all three; affine laws as they are), deterministic, exponential, "
        "shifted_exponential, gamma, lognormal, pareto, or empirical (the trace's service times); one or a list; "
        "default: auto, on a log without a plan empirical",
    )
    pareto_ratio: float = option(1000.0, "pareto: largest / smallest service time")
    arrivals: str | None = option(
        None,
        "poisson, bursts, or trace: the times and files of trace=; default: trace where plan= and trace= are given",
    )
    rates: str | None = option(
        None, "rates table: factors of the rates by time, of all files, a file or a class"
    )
    burst_factor: float = option(5.0, "bursts: rate in a burst / rate between bursts")
    burst_share: float = option(0.1, "bursts: share of time that is burst")
    burst_mean_s: float = option(60.0, "bursts: mean length of a burst")
    trace: str | None = option(
        None, "access log: its arrivals, or, with finish times and no plan, what to predict"
    )
    format: str = option("auto", "of the trace, as in ecjax analyze")
    columns: Any = option(None, "of the trace, as in ecjax analyze")
    extent_bytes: int | None = option(None, "of the trace, as in ecjax analyze")
    sort: bool = option(False, "sort the trace by arrival, in memory, instead of refusing an unsorted one")
    rate_scale: Any = option([1.0], "multiplies all rates; one or a list")
    size_scale: Any = option([1.0], "multiplies all file sizes; one or a list")
    outages: str | None = option(None, "outages table: node_id, start_s, end_s")
    decode_s_per_byte: float = option(0.0, "time to decode, per byte of the file; not in bound and estimate")
    client_bandwidth_bytes_per_s: float | None = option(
        None, "of each client, that its chunks pass one by one; not in bound and estimate; default: unlimited"
    )
    requests: int = option(200_000, "reads per replication")
    replications: int = option(4, "independent replications")
    estimate: bool = option(True, "also estimate latencies without simulation")
    earlier_bounds: bool = option(
        False, "also the split-merge and forks bounds, for alike nodes and files (Fig. 7 of the JLCM paper)"
    )
    seed: int = option(0, "seed of the first replication")
    engine: EngineOptions = field(
        default_factory=EngineOptions, metadata={"help": "where it runs: engine=serial, engine=ray"}
    )
    resume: bool = option(True, "skip replays that are finished in out")
    write: Any = option(None, "datasets to write besides runs and inputs; default: all")
    figures: Any = option(
        ["cdf", "latency", "utilisation"],
        "figures to draw: cdf, latency, utilisation, sweep, classes, class_sweep, class_sizes, bounds",
    )
    planning: OptimizeOptions = field(
        default_factory=_planning,
        metadata={
            "help": "options of ecjax optimize, where plan is not given (nodes, files, method, theta, ...)"
        },
    )
