"""The cases by name. A case is a function of ``Settings`` that returns rows; it runs in a process of its own."""

from dataclasses import dataclass

_HERE = f"{__package__}.setups"


@dataclass(frozen=True)
class Case:
    """One named benchmark.

    Attributes:
        name: what a user lists in ``cases``.
        summary: one line.
        function: "module:name" of a function Settings -> list[Row].
    """

    name: str
    summary: str
    function: str


CASES = {
    case.name: case
    for case in (
        Case("projection", "project 10^6 rows of 12 nodes", f"{_HERE}.projection:rows"),
        Case("jlcm", "plan 1000 files on 12 nodes; small ones beside SciPy", f"{_HERE}.jlcm:rows"),
        Case("jlcm_million", "plan 10^6 files, 50 iterations", f"{_HERE}.jlcm:million"),
        Case(
            "certified",
            "plan 1000 files to a proven gap, beside the published method",
            f"{_HERE}.certified:rows",
        ),
        Case("certified_thetas", "64 thetas of 1000 files", f"{_HERE}.certified:thetas"),
        Case("certified_wide", "plan 10^5 files on 100 nodes", f"{_HERE}.certified:wide"),
        Case("certified_million", "plan 10^4, 10^5 and 10^6 files", f"{_HERE}.certified:million"),
        Case("certified_warm", "1 % of the files changed, from the old plan", f"{_HERE}.certified:warm"),
        Case(
            "matching",
            "1000 matchings of 12 x 12 beside SciPy; passes of placement for classes",
            f"{_HERE}.matching:rows",
        ),
        Case("analyze", "analyze 10^7 rows, integer ids", f"{_HERE}.analyze:integers"),
        Case("analyze_strings", "analyze 10^7 rows, 10^6 string ids", f"{_HERE}.analyze:strings"),
        Case("analyze_long", "analyze 5 10^7 rows: flat memory", f"{_HERE}.analyze:long"),
        Case("replay_fcfs", "replay plans: 10^6 reads of k = 6 on 12 nodes", f"{_HERE}.replay:fcfs"),
        Case("replay_priority", "replay plans with classes at the nodes", f"{_HERE}.replay:queues"),
        Case("replay_policies", "replay policies that look at the nodes", f"{_HERE}.replay:policies"),
        Case("replay_memory", "replay 10^8 chunk accesses: flat memory", f"{_HERE}.replay:memory"),
        Case("replay_scan", "replay 8 replications as one scan", f"{_HERE}.replay_scan:rows"),
        Case("replay_simulator", "the same replay in SimPy", f"{_HERE}.replay_simpy:rows"),
        Case("estimate", "latency of 1000 files without simulation", f"{_HERE}.estimate:rows"),
        Case("class_estimate", "latency by class without simulation", f"{_HERE}.class_estimate:rows"),
        Case("class_plans", "plan 1000 files of two service classes", f"{_HERE}.class_plans:rows"),
        Case("class_plans_large", "plan 10^4 and 10^5 files of two classes", f"{_HERE}.class_plans:large"),
        Case("coflows", "replay Table I 100 times under every scheduler", f"{_HERE}.coflows:rows"),
        Case("coflows_trace", "replay shuffles, or trace=, on 150 ports", f"{_HERE}.coflows:trace"),
        Case("adapt", "replay 10^6 requests at a proxy; SimPy beside it", f"{_HERE}.adapt:rows"),
        Case("adapt_fig7", "the sweep of TOFEC's Fig. 7", f"{_HERE}.adapt:sweep"),
        Case("caching_offline", "plan a cache of 1000 and 10^6 items", f"{_HERE}.caching:offline"),
        Case("caching_batched", "plan 1000 caches of 1000 items at once", f"{_HERE}.caching:batched"),
        Case("caching_online", "replay 10^6 reads under every policy", f"{_HERE}.caching:online"),
        Case("engine_overhead", "1000 items that do nothing, and their commits", f"{_HERE}.engine:overhead"),
        Case("engine_start", "start Ray and its first worker", f"{_HERE}.engine:start"),
        Case(
            "engine_speedup", "16 replays of a second: one actor, two actors", f"{_HERE}.engine_speedup:rows"
        ),
        Case("engine_scaling", "sleeping items on up to 200 actors", f"{_HERE}.engine_scaling:rows"),
        Case("startup", "whole commands: --help, optimize", f"{_HERE}.startup:rows"),
    )
}


def run_case(name: str, settings: dict) -> dict:
    """Run a case in this process: its rows, and what it ran on."""
    from importlib import import_module

    from ecjax.studies.bench.machine import device
    from ecjax.studies.bench.rows import Settings

    module, _, function = CASES[name].function.partition(":")
    rows = getattr(import_module(module), function)(Settings(**settings))
    return {"rows": rows, "device": device()}
