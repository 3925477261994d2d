"""The table of cases: what is measured, at which sizes, and within what it should stay.

Light on purpose: the names of the cases are read before anything heavy loads. ``run`` measures what stands here.
"""

from ecjax.studies.bench.cases import accelerators, caches, engine, plans, replays

# what a user lists in ``cases``, with a line on each; a case runs in a process of its own
CASES = {
    "projection": "project 10^6 rows of 12 nodes",
    "jlcm": "plan 1000 files on 12 nodes; small ones beside SciPy",
    "jlcm_million": "plan 10^6 files, 50 iterations",
    "certified": "plan 1000 files to a proven gap, beside the published method",
    "certified_thetas": "64 thetas of 1000 and of 10^5 files",
    "certified_wide": "plan 10^5 files on 100 nodes",
    "certified_million": "plan 10^4, 10^5 and 10^6 files",
    "certified_racks": "plan 10^4 files on 300 nodes, 10^5 on 1000 and on 5000, a chunk per rack",
    "certified_streamed": "plan 10^8 files that are read in pieces, with and without their placements written",
    "certified_sizes": "plan 200 and 2500 files of as many chunk sizes as logs have",
    "certified_warm": "1 % of the files changed, from the old plan",
    "read_kinds": "spread 40, 300 and 1000 files with small reads on their placement, with a lower bound",
    "codes": "40 codes of 1000 files on 120 nodes: plans, latencies, durability",
    "matching": "1000 matchings of 12 x 12 beside SciPy; passes of placement for classes",
    "analyze": "analyze 10^7 rows, integer ids",
    "analyze_strings": "analyze 10^7 rows, 10^6 string ids",
    "access_logs": "analyze 10^6 lines of twelve formats (gzip), beside DuckDB and Polars",
    "access_logs_long": "analyze 10^7 lines of S3 server access log (gzip), beside DuckDB and Polars",
    "analyze_long": "analyze 5 10^7 rows: flat memory",
    "replay_fcfs": "replay plans: 10^6 reads of k = 6 on 12 nodes",
    "replay_priority": "replay plans with classes at the nodes",
    "replay_policies": "replay policies that look at the nodes",
    "replay_memory": "replay 10^8 chunk accesses: flat memory",
    "replay_scan": "replay 8 replications as one scan",
    "replay_simulator": "the same replay in SimPy",
    "estimate": "latency of 1000 files without simulation",
    "trace_recursions": "queues of 12 nodes under the arrivals of a log, 5 10^5 bins",
    "trace_plans": "plan 1000 files for the arrivals of a log of 10^4 bins",
    "class_estimate": "latency by class without simulation",
    "class_plans": "plan 1000 files of two service classes",
    "class_plans_large": "plan 10^4 and 10^5 files of two classes",
    "coflows": "replay Table I 100 times under every scheduler",
    "coflows_trace": "replay shuffles, or trace=, on 150 ports",
    "adapt": "replay 10^6 requests at a proxy; SimPy beside it",
    "adapt_fig7": "the sweep of TOFEC's Fig. 7",
    "caching_offline": "plan a cache of 1000 and 10^6 items",
    "caching_batched": "plan 1000 caches of 1000 items at once",
    "caching_online": "replay 10^6 reads under every policy",
    "caching_learning": "replay 10^6 reads at exact, which learns how fast popularity changes",
    "caching_peers": "LRU, ARC, S3-FIFO, ...; libCacheSim beside it",
    "engine_overhead": "1000 items that do nothing, and their commits",
    "engine_commits": "10^4 runs that do nothing: committed, resumed, read, verified",
    "engine_start": "start Ray and its first worker",
    "engine_speedup": "16 replays of a second: one actor, two actors",
    "engine_scaling": "sleeping runs on up to 200 actors, beside a model and the ideal",
    "startup": "whole commands: --help, optimize",
    "gpu_limits": "copies and products of matrices on JAX's device",
    "gpu_kernels": "choices, projection, gradient, descent step of 10^6 files",
    "gpu_prices": "prices of 64 thetas as one program; of 300 nodes in racks",
    "gpu_general_solvers": "the relaxation at one z by HiGHS, Clarabel, Moreau and MPAX",
    "gpu_certified": "certified plans with prices by JAX and by the host",
    "gpu_classes": "16 plans of 1000 files of two service classes, side by side and one after the other",
    "gpu_replay": "replays as one scan beside the loop on a core",
    "gpu_caches": "10^4 plans of caches at once",
    "gpu_traffic": "queues under the arrivals of a log, by JAX and on a core",
}
# cases that ``suite`` stands for; without one all others run
SUITES = {"gpu": tuple(name for name in CASES if name.startswith("gpu_"))}
PARTS = (*plans.PARTS, *replays.PARTS, *caches.PARTS, *engine.PARTS, *accelerators.PARTS)
