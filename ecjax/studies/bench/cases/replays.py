"""Parts of the cases of traces, replays and estimates: reads of files, coflows, requests at a proxy."""

from ecjax.studies.bench.cases.case import Part, Runs, Sizes, Target

# reads take six chunks: 15, 10 and 3 million chunk accesses per second
_SHIFTED_PER_S, _LOGNORMAL_PER_S, _QUEUES_PER_S = 15e6 / 6, 10e6 / 6, 3e6 / 6
# accesses that come on top of the load of a plan stay stable below this
_REDUNDANT_LOAD = 0.35
_SWEEP_LOADS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)


def _analyze(case: str, rows: int, text: bool, target_s: float | None) -> Part:
    sizes = dict(rows=Sizes(rows, rows // 100), distinct=Sizes(10**6, 10**4), text=text)
    runs: Runs = "repeated" if target_s else "warm once"
    return Part(case, "analyze:generated", sizes, {"ecjax": Target(target_s, bytes=10**9)}, runs)


def _log(form: str, lines: int, target_s: float | None = None, quick: bool = True) -> Part:
    case = "access_logs" if target_s is None else "access_logs_long"
    parameters = dict(form=form, rows=Sizes(lines, 5000), objects=Sizes(lines // 10, 500))
    targets = {"ecjax": Target(target_s)}
    return Part(case, "access_logs:beside_engines", parameters, targets, "warm once", quick=quick)


def _replay(case: str, name: str, reads_per_s: float, **parameters: object) -> Part:
    parameters |= {"name": name, "requests": Sizes(10**6, 5000)}
    return Part(case, "replay:replayed", parameters, {"*": Target(rows_per_s=reads_per_s)})


def _by_class(queue: str, law: str, load: float, quick: bool = False) -> Part:
    sizes = dict(files=Sizes(1000, 50), requests=Sizes(3 * 10**6, 20_000))
    return Part(
        "class_estimate", "estimate:by_class", dict(queue=queue, law=law, load=load, **sizes), quick=quick
    )


def _policy(reads_per_s: float, load: float = 0.7, **policy: object) -> Part:
    name = str(policy["name"]).replace("_", " ")
    return _replay("replay_policies", name, reads_per_s, load=load, policy=policy)


PARTS = (
    _analyze("analyze", 10**7, text=False, target_s=5.0),
    _analyze("analyze_strings", 10**7, text=True, target_s=8.0),
    _analyze("analyze_long", 5 * 10**7, text=False, target_s=None),
    *(
        _log(form, 10**6, quick=form in ("rgw", "warp"))
        for form in (
            *("s3", "s3_json", "nginx", "nginx_json", "cloudfront", "rgw", "minio", "minio_drives"),
            *("swift_proxy", "swift_object", "hdfs", "warp"),
        )
    ),
    _log("s3", 10**7, target_s=120.0),
    *(
        _replay("replay_fcfs", f"{law}, n = {n}", reads_per_s, law=law, n=n)
        for law, reads_per_s in (("shifted exponential", _SHIFTED_PER_S), ("lognormal", _LOGNORMAL_PER_S))
        for n in (12, 8)
    ),
    *(
        _replay("replay_priority", queue, _QUEUES_PER_S, queue=queue)
        for queue in ("priority", "partitioned", "shared")
    ),
    _policy(2e6, name="least_loaded"),
    _policy(2e6, name="power_of_d"),
    _policy(1e6, name="fork_join", load=_REDUNDANT_LOAD),
    _policy(1e6, name="late_binding"),
    # a quarter of the reads takes longer than the delay
    _policy(1e6, name="hedged", hedge_delay_s=0.03, load=_REDUNDANT_LOAD),
    Part(
        "replay_memory",
        "replay:memory",
        dict(short=Sizes(10**7, 30_000), long=Sizes(10**8, 300_000), growth=1.1),
        runs="warm once",
    ),
    Part(
        "replay_scan",
        "replay:scanned",
        dict(requests=Sizes(10**6, 2000), requests_on_cpu=Sizes(20_000, 2000)),
    ),
    Part("replay_simulator", "replay_simpy:beside_simpy", dict(requests=Sizes(20_000, 500))),
    Part("estimate", "estimate:all_files", dict(files=Sizes(1000, 50), requests=Sizes(10**6, 20_000))),
    _by_class("priority", "shifted exponential", 0.3, quick=True),
    _by_class("priority", "shifted exponential", 0.7),
    _by_class("priority", "shifted exponential", 0.9),
    _by_class("priority", "exponential", 0.7),
    _by_class("priority", "lognormal", 0.7),
    _by_class("partitioned", "shifted exponential", 0.7),
    Part("coflows", "coflows:table_one", dict(workloads=Sizes(100, 2)), {"nine *": Target(30.0)}),
    Part(
        "coflows_trace",
        "coflows:shuffles",
        # targets are of the trace alone
        dict(
            ports=Sizes(150, 20),
            coflows=Sizes(526, 30),
            target_s={"fair": 6.0, "varys": 20.0},
            target_bytes=10**9,
        ),
        memory=True,
    ),
    *(
        Part(
            "adapt",
            "adapt:strategies_under",
            dict(law=law, requests=Sizes(10**6, 10**4)),
            {"(*": Target(rows_per_s=2e6), "*": Target(rows_per_s=1e6)},
        )
        for law in ("shifted_exp", "shifted_lognormal", "correlated")
    ),
    Part("adapt", "adapt_simpy:beside_simpy", dict(name="(3,2)", requests=10**4)),
    Part("adapt", "adapt_simpy:beside_simpy", dict(name="tofec", requests=10**4)),
    Part(
        "adapt_fig7",
        "adapt:sweep",
        dict(loads=Sizes(_SWEEP_LOADS, _SWEEP_LOADS[:2]), requests=Sizes(10**6, 10**4)),
        {"*": Target(300.0)},
        "once",
    ),
    Part(
        "trace_recursions",
        "traffic:recursions",
        dict(bins=Sizes(500_000, 2000), bins_by_jax=Sizes(50_000, 1000)),
        {"*one core": Target(3.0)},
    ),
    Part(
        "trace_plans",
        "traffic:planned",
        dict(files=Sizes(1000, 20), bins=Sizes(10**4, 200), gap=1e-2),
        {"*": Target(60.0, gap=1e-2)},
        "warm once",
    ),
)
