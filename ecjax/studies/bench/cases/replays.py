"""Cases of traces, replays and estimates: reads of files, coflows, requests at a proxy."""

from collections.abc import Iterator

from ecjax.studies.bench.cases.case import Part, Sizes, Target, case

# reads take six chunks: 15, 10 and 3 million chunk accesses per second
_SHIFTED_PER_S, _LOGNORMAL_PER_S, _QUEUES_PER_S = 15e6 / 6, 10e6 / 6, 3e6 / 6
# accesses that come on top of the load of a plan stay stable below this
_REDUNDANT_LOAD = 0.35
_SWEEP_LOADS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)


def _analyze(rows: int, text: bool) -> dict[str, object]:
    return dict(rows=Sizes(rows, rows // 100), distinct=Sizes(10**6, 10**4), text=text)


def _replay(name: str, reads_per_s: float, **parameters: object) -> Part:
    parameters |= {"name": name, "requests": Sizes(10**6, 5000)}
    return Part("replay:replayed", parameters, {"*": Target(rows_per_s=reads_per_s)})


def _by_class() -> Iterator[Part]:
    for queue, law, load in (
        ("priority", "shifted exponential", 0.3),
        ("priority", "shifted exponential", 0.7),
        ("priority", "shifted exponential", 0.9),
        ("priority", "exponential", 0.7),
        ("priority", "lognormal", 0.7),
        ("partitioned", "shifted exponential", 0.7),
    ):
        sizes = dict(files=Sizes(1000, 50), requests=Sizes(3 * 10**6, 20_000))
        yield Part("estimate:by_class", dict(queue=queue, law=law, load=load, **sizes), quick=load == 0.3)


CASES = (
    case(
        "analyze",
        "analyze 10^7 rows, integer ids",
        Part("analyze:generated", _analyze(10**7, text=False), {"ecjax": Target(5.0, bytes=10**9)}),
    ),
    case(
        "analyze_strings",
        "analyze 10^7 rows, 10^6 string ids",
        Part("analyze:generated", _analyze(10**7, text=True), {"ecjax": Target(8.0, bytes=10**9)}),
    ),
    case(
        "analyze_long",
        "analyze 5 10^7 rows: flat memory",
        Part(
            "analyze:generated",
            _analyze(5 * 10**7, text=False),
            {"ecjax": Target(bytes=10**9)},
            runs="warm once",
        ),
    ),
    case(
        "replay_fcfs",
        "replay plans: 10^6 reads of k = 6 on 12 nodes",
        *(
            _replay(f"{law}, n = {n}", reads_per_s, law=law, n=n)
            for law, reads_per_s in (("shifted exponential", _SHIFTED_PER_S), ("lognormal", _LOGNORMAL_PER_S))
            for n in (12, 8)
        ),
    ),
    case(
        "replay_priority",
        "replay plans with classes at the nodes",
        *(_replay(queue, _QUEUES_PER_S, queue=queue) for queue in ("priority", "partitioned", "shared")),
    ),
    case(
        "replay_policies",
        "replay policies that look at the nodes",
        _replay("least loaded", 2e6, policy={"name": "least_loaded"}),
        _replay("power of d", 2e6, policy={"name": "power_of_d"}),
        _replay("fork join", 1e6, policy={"name": "fork_join"}, load=_REDUNDANT_LOAD),
        _replay("late binding", 1e6, policy={"name": "late_binding"}),
        # a quarter of the reads takes longer than the delay
        _replay("hedged", 1e6, policy={"name": "hedged", "hedge_delay_s": 0.03}, load=_REDUNDANT_LOAD),
    ),
    case(
        "replay_memory",
        "replay 10^8 chunk accesses: flat memory",
        Part(
            "replay:memory",
            dict(short=Sizes(10**7, 30_000), long=Sizes(10**8, 300_000), growth=1.1),
            runs="warm once",
        ),
    ),
    case(
        "replay_scan",
        "replay 8 replications as one scan",
        Part("replay:scanned", dict(requests=Sizes(10**6, 2000), requests_on_cpu=Sizes(20_000, 2000))),
    ),
    case(
        "replay_simulator",
        "the same replay in SimPy",
        Part("replay_simpy:beside_simpy", dict(requests=Sizes(20_000, 500))),
    ),
    case(
        "estimate",
        "latency of 1000 files without simulation",
        Part("estimate:all_files", dict(files=Sizes(1000, 50), requests=Sizes(10**6, 20_000))),
    ),
    case("class_estimate", "latency by class without simulation", *_by_class()),
    case(
        "coflows",
        "replay Table I 100 times under every scheduler",
        Part("coflows:table_one", dict(workloads=Sizes(100, 2)), {"nine *": Target(30.0)}),
    ),
    case(
        "coflows_trace",
        "replay shuffles, or trace=, on 150 ports",
        Part(
            "coflows:shuffles",
            dict(
                ports=Sizes(150, 20),
                coflows=Sizes(526, 30),
                # of the trace alone
                target_s={"fair": 6.0, "varys": 20.0},
                target_bytes=10**9,
            ),
            memory=True,
        ),
    ),
    case(
        "adapt",
        "replay 10^6 requests at a proxy; SimPy beside it",
        *(
            Part(
                "adapt:strategies_under",
                dict(law=law, requests=Sizes(10**6, 10**4)),
                {"(*": Target(rows_per_s=2e6), "*": Target(rows_per_s=1e6)},
            )
            for law in ("shifted_exp", "shifted_lognormal", "correlated")
        ),
        Part("adapt_simpy:beside_simpy", dict(name="(3,2)", requests=10**4)),
        Part("adapt_simpy:beside_simpy", dict(name="tofec", requests=10**4)),
    ),
    case(
        "adapt_fig7",
        "the sweep of TOFEC's Fig. 7",
        Part(
            "adapt:sweep",
            dict(loads=Sizes(_SWEEP_LOADS, _SWEEP_LOADS[:2]), requests=Sizes(10**6, 10**4)),
            {"*": Target(300.0)},
            runs="once",
        ),
    ),
)
