"""Options of ``ecjax replay``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass, replace

from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.options import Listed, Number, Special, Whole, Words, Wrong, is_number, option, section
from ecjax.studies.optimize.class_rules import WEIGHTS, weights
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay.tables import TABLES
from ecjax.studies.spine.laws import LAWS
from ecjax.studies.spine.log_options import LogOptions

POLICIES = (
    *("probabilistic", "uniform", "proportional", "round_robin", "least_loaded", "power_of_d", "fork_join"),
    *("late_binding", "hedged", "direct_or_degraded"),
)
QUEUES = ("fcfs", "priority", "partitioned", "shared")
BY_WEIGHT = {"partitioned", "shared"}  # queues in which each class has a share of a node
SERVICES = (*LAWS, "empirical")
ARRIVALS = ("poisson", "bursts", "trace")
FIGURES = (
    "cdf",
    "latency",
    "utilisation",
    "sweep",
    "classes",
    "bounds",
    "class_sweep",
    "queue_sweep",
    "services",
    "class_sizes",
)
NO_PLAN = "none"  # as ``plan``
EVERY = "every"  # node in turn, as ``slow``
LEAST_REQUESTS = 100
_SLOWER = 5.0  # times, where no factor is given


def _slow(value: object) -> dict[str, float]:
    """Factors by node; of EVERY, the one of each node in turn."""
    factors = {EVERY: _SLOWER} if value == EVERY else value
    if not isinstance(factors, dict) or not factors:
        raise Wrong(repr(value))
    slower = {}
    for name, factor in factors.items():
        if not (is_number(factor) and factor > 0):
            raise Wrong(f"{name}: {factor}")
        slower[str(name)] = float(factor)
    if EVERY in slower and len(slower) > 1:
        raise Wrong(f"{EVERY} beside {next(name for name in slower if name != EVERY)}")
    return slower


def _planning() -> OptimizeOptions:
    return OptimizeOptions(theta=[10.0], figures=[])


@dataclass(frozen=True)
class ReplayOptions(LogOptions):
    """Everything that ``ecjax replay`` can be told."""

    trace: str | None = option(
        None,
        "access log, or the folder of an ecjax analyze: its arrivals, or, with finish times and no plan, what to "
        "predict",
    )
    plan: str | None = option(
        None,
        "folder of an ecjax optimize; default: plan now, as planning says, in out/planning. none: no plan",
    )
    plan_run: str | None = option(None, "which of its runs, by run_id; all: each of them")
    plan_where: str | None = option(None, "which of its runs, as theta=0.1,method=published")
    out: str = option("results/replay", "folder of the result tables and figures")
    policy: list[str] = option(
        ["probabilistic"],
        "how the nodes of a read are chosen; probabilistic: as planned; proportional: to service rates; "
        "direct_or_degraded: as planned, and small reads by queued work; one or a list",
        Listed(Words(*POLICIES)),
    )
    probes: int = option(
        2, "power_of_d: nodes looked at per chunk of a read", Whole(1, 10**6), identifies=True
    )
    cancel: bool = option(True, "fork_join, hedged: accesses no longer needed are given up", identifies=True)
    hedge_delay_s: float | None = option(
        None,
        "hedged: seconds until further chunks are read too; default: the mean latency bound of the plan at the mean "
        "rates, first come, first served, without slow=",
        Number(above=0),
        identifies=True,
    )
    hedges: int = option(1, "hedged: further chunks", Whole(1, 10**6), identifies=True)
    hedge_budget: float | None = option(
        None,
        "hedged: further chunks at most, as a share of those that reads need; default: no limit",
        Number(least=0),
        identifies=lambda options: options.hedge_budget is not None,
    )
    queue: list[str] | None = option(
        None,
        "priority: by service_class, lowest first; one or a list; default: what the plan was made for (weighted: "
        "partitioned)",
        Listed(Words(*QUEUES)),
    )
    weights: list[float] | None = option(
        None,
        "partitioned, shared: share of each service class at all nodes, in their order; default: the plan's own by "
        "class and node, else alike",
        Special(WEIGHTS, weights),
    )
    service: list[str] | None = option(
        None,
        "service law with the nodes' moments: auto (all three; affine laws as they are), or empirical (the log's "
        "service times); one or a list; default: auto, on a log without a plan empirical",
        Listed(Words(*SERVICES), empty=True),
    )
    pareto_ratio: float = option(
        1000.0, "pareto: largest / smallest service time", Number(above=1), identifies=True
    )
    arrivals: str | None = option(
        None,
        "trace: the times and files of trace=; default: trace where plan= and trace= are set, else poisson",
        Words(*ARRIVALS),
        identifies=True,
    )
    rates: str | None = option(
        None,
        "rates table: factors of the rates by time, of all files, a file or a class; the last one goes on",
    )
    burst_factor: float = option(
        5.0, "bursts: rate in a burst / rate between bursts", Number(above=1), identifies=True
    )
    burst_share: float = option(
        0.1, "bursts: share of time that is burst", Number(above=0, below=1), identifies=True
    )
    burst_mean_s: float = option(60.0, "bursts: mean length of a burst", Number(above=0), identifies=True)
    rate_scale: list[float] = option([1.0], "multiplies all rates; one or a list", Listed(Number(above=0)))
    size_scale: list[float] = option(
        [1.0], "multiplies all file sizes; one or a list", Listed(Number(above=0))
    )
    outages: str | None = option(None, "outages table: node_id, start_s, end_s")
    slow: dict[str, float] | str | None = option(
        None,
        "service times of nodes as a multiple of their own, the plan as it is; every: each node in turn, a run each",
        Special("{node: factor above 0, ...}, {every: factor}, or every, which is 5 times slower", _slow),
    )
    decode_s_per_byte: float = option(
        0.0,
        "time to decode, per byte of the file; not in bound and estimate",
        Number(least=0),
        identifies=True,
    )
    client_bandwidth_bytes_per_s: float | None = option(
        None,
        "of each client, that its chunks pass one by one; not in bound and estimate; default: unlimited",
        Number(above=0),
        identifies=True,
    )
    requests: int = option(200_000, "reads per replication", Whole(LEAST_REQUESTS, 10**11), identifies=True)
    replications: int = option(4, "independent replications", Whole(1, 10**6), identifies=True)
    device: str = option(
        "auto",
        "what replays queues first come, first served under probabilistic policies: host (processors), jax (its "
        "device, all replications one program), auto: there if it is a GPU and much faster",
        Words("auto", "host", "jax"),
    )
    estimate: bool = option(True, "also estimate latencies without simulation", identifies=True)
    earlier_bounds: bool = option(
        False,
        "also the split-merge and forks bounds, for alike nodes and files without connection delays (Fig. 7 of the "
        "JLCM paper)",
        identifies=True,
    )
    seed: int = option(0, "seed of the first replication", Whole(0, 2**62))
    engine: EngineOptions = section(EngineOptions, "where it runs: engine=serial, engine=ray")
    resume: bool = option(True, "skip replays that are finished in out")
    write: list[str] | None = option(
        None,
        "datasets to write besides runs and inputs; default: all; finished runs keep theirs (unless resume=false)",
        Listed(Words("runs", *TABLES.names)),
    )
    figures: list[str] = option(
        ["cdf", "latency", "utilisation"], "figures to draw", Listed(Words(*FIGURES), empty=True)
    )
    planning: OptimizeOptions = section(
        _planning,
        "options of ecjax optimize, where plan is not set (nodes, files, method, ...); theta is 10 unless it is set",
    )

    @property
    def predicts_log(self) -> bool:
        """Whether the second half of a log is predicted from its first, and no plan replayed."""
        return self.trace is not None and self.plan is None and self.arrivals != "trace"

    def completed(self) -> "ReplayOptions":
        """These options, if they go together, with defaults that depend on others.

        Raises:
            UserError: they do not.
        """
        arrivals = self.arrivals
        if arrivals is None:
            arrivals = "trace" if self.trace is not None and self.plan is not None else "poisson"
        if arrivals == "trace" and self.trace is None:
            raise UserError(
                "arrivals=trace: trace=PATH is missing, the access log whose arrivals are replayed"
            )
        if arrivals == "trace" and self.rates is not None:
            raise UserError(
                f"rates={self.rates}: found with arrivals=trace, which has the rates of the log; allowed with it: none"
            )
        if "empirical" in (self.service or []) and self.trace is None:
            raise UserError("service=empirical: trace=PATH is missing, the access log with the service times")
        if self.plan in (None, NO_PLAN) and (self.plan_run or self.plan_where):
            raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
        options = replace(self, arrivals=arrivals)
        return replace(options, service=self.service or ["empirical" if options.predicts_log else "auto"])
