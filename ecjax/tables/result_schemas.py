"""Columns of the result datasets, with units; each dataset has one explicit schema, complete from the first row."""

from dataclasses import replace

import pyarrow as pa

from ecjax.tables.schemas import BOOLEAN, FILES, FLOAT, ID, IDS, INTEGER, NODES, STRING, Column, arrow_type

SCHEMA_VERSION = 8

_RUN = Column("run_id", STRING, "", "first 16 hex digits of the hash of what was computed", required=True)

RESULTS: dict[str, tuple[Column, ...]] = {
    "runs": (
        _RUN,
        Column("job", STRING, "", "analyze, optimize, ..."),
        Column("status", STRING, "", "ok, not_converged, unstable, infeasible or failed"),
        Column("error", STRING, "", "what went wrong, for a failed run"),
        Column(
            "method",
            STRING,
            "",
            "algorithm or baseline; schedule: the scheduler; adapt: the strategy; cache: the policy",
        ),
        Column(
            "queue",
            STRING,
            "",
            "how nodes serve: fcfs, priority, weighted (replay: partitioned or shared, by weights)",
        ),
        Column("importance", STRING, "", "JSON: what a second of each class counts (C_k), by service class"),
        Column("class_rate_scale", STRING, "", "JSON: what the rates of each class were multiplied by"),
        Column(
            "k",
            INTEGER,
            "",
            "what k of every file was set to; null where the files keep theirs; adapt: as n; cache: data chunks of "
            "an item",
        ),
        Column("d", INTEGER, "", "chunks that a read takes, where it was set for every file"),
        Column(
            "n",
            INTEGER,
            "",
            "schedule: chunks kept of every file, generated reads; adapt: of the code of static and best_static, where "
            "all classes have the same",
        ),
        Column("share_at_zero", FLOAT, "", "schedule: share of the generated reads that arrives at t = 0"),
        Column("theta", FLOAT, "s/$", "price of latency: objective = latency_shared_z_s + theta cost"),
        Column("theta_per", STRING, "", "file: theta multiplies cost / files; total: the whole cost"),
        Column("objective", FLOAT, "s", "latency_shared_z_s, or what objective= says, + theta * cost"),
        Column("latency_s", FLOAT, "s", "mean latency bound, one z per file, weighted by read rates"),
        Column(
            "latency_shared_z_s", FLOAT, "s", "mean latency bound with one z for all files, or one per class"
        ),
        Column("class_latency_s", STRING, "", "JSON: latency_s of each service class, queues by class"),
        Column("z_s", FLOAT, "s", "the shared z; null where classes have their own"),
        Column(
            "latency_polished_s",
            FLOAT,
            "s",
            "latency_s with the placement kept and reads rescheduled for one z per file",
        ),
        Column("cost", FLOAT, "$/period", "storage cost of the plan, all files"),
        Column(
            "lower_bound",
            FLOAT,
            "s",
            "no plan has a smaller objective (schedule: no schedule a smaller mean_s); null where it is not known",
        ),
        Column("gap", FLOAT, "", "(objective - lower_bound) / lower_bound; schedule: of mean_s"),
        Column(
            "scheduling_gap",
            FLOAT,
            "",
            "by class: at most so much, relatively, would a better spread of reads gain; null: no proof",
        ),
        Column("deadlines_met", BOOLEAN, "", "whether every class keeps its deadline; null without one"),
        Column("max_load", FLOAT, "", "largest node load rho"),
        Column("mean_n", FLOAT, "", "mean code length; adapt: over requests"),
        Column("mean_k", FLOAT, "", "adapt: mean code dimension of the requests"),
        Column("mean_n_by_class", STRING, "", "JSON: mean code length by service class, else by k"),
        Column("files", INTEGER, "", "files planned"),
        Column("files_without_redundancy", INTEGER, "", "files with n = k: the loss of any node loses them"),
        Column("nodes", INTEGER, "", "nodes"),
        Column("iterations", INTEGER, "", "iterations done; of the certified method, passes over the files"),
        Column("scenarios_mean_latency_s", FLOAT, "s", "mean of latency_s over the failure scenarios"),
        Column("worst_scenario", STRING, "", "node or site whose failure is worst"),
        Column(
            "worst_scenario_latency_s",
            FLOAT,
            "s",
            "latency_s in that scenario; inf where a node is overloaded",
        ),
        Column(
            "worst_unavailable_share", FLOAT, "", "largest share of reads without enough surviving chunks"
        ),
        Column("cold_start_objective", FLOAT, "s", "objective of the same run without plan="),
        Column(
            "moved_chunks",
            INTEGER,
            "",
            "chunks put where plan= had none, of files that it knew; schedule: flows that changed their source",
        ),
        Column("plan_run", STRING, "", "replay: the optimize run that was replayed"),
        Column("policy", STRING, "", "replay: how the nodes of a read are chosen"),
        Column("service", STRING, "", "replay: service law"),
        Column("arrivals", STRING, "", "replay: poisson, bursts or trace; adapt: poisson, steps or trace"),
        Column("delays", STRING, "", "adapt: law of the delays of tasks"),
        Column("rate_per_s", FLOAT, "1/s", "adapt: requests, mean"),
        Column("load", FLOAT, "", "adapt: rate_per_s / capacity of the (1, 1) code"),
        Column("sources", STRING, "", "schedule: how the sources of reads are chosen; given: they are not"),
        Column(
            "requests", INTEGER, "", "replay: reads that were replayed, all replications; adapt: requests"
        ),
        Column("coflows", INTEGER, "", "schedule: coflows that were replayed"),
        Column("capacity", INTEGER, "", "cache: chunks that an edge can keep"),
        Column("copies", INTEGER, "", "cache: copies of every chunk beyond the first"),
        Column("items", INTEGER, "", "cache: items that are read"),
        Column("failed", STRING, "", "cache: node, or bucket as node/3, that is down all the time"),
        Column("zipf", FLOAT, "", "cache: exponent of the popularity of generated reads"),
        Column("half_life_s", FLOAT, "s", "cache: of the counters of popularity"),
        Column(
            "neighbour_s", FLOAT, "s", "cache: time to take a chunk that another edge keeps; null: not done"
        ),
        Column(
            "samples", INTEGER, "", "cache: partitions that the policy looks at; null: it has no such number"
        ),
        Column("replications", INTEGER, "", "replay: independent replications"),
        Column(
            "warm_up_share", FLOAT, "", "replay, adapt, cache: share of each replication that was dropped"
        ),
        Column(
            "mean_s",
            FLOAT,
            "s",
            "replay, adapt, cache: mean latency of requests; schedule: mean time from arrival to end",
        ),
        Column("ci_s", FLOAT, "s", "replay, adapt, cache: half width of its 95 % interval"),
        Column("p50_s", FLOAT, "s", "replay, schedule, adapt, cache: median of the same"),
        Column("p50_ci_s", FLOAT, "s", "adapt, cache: half width of its 95 % interval"),
        Column("p90_s", FLOAT, "s", "adapt, cache: 90 % quantile"),
        Column("p90_ci_s", FLOAT, "s", "adapt, cache: half width of its 95 % interval"),
        Column("p95_s", FLOAT, "s", "schedule: 95 % quantile"),
        Column("p99_s", FLOAT, "s", "replay, schedule, adapt, cache: 99 % quantile"),
        Column("p99_ci_s", FLOAT, "s", "adapt, cache: half width of its 95 % interval"),
        Column("p999_s", FLOAT, "s", "cache: 99.9 % quantile"),
        Column("std_s", FLOAT, "s", "adapt, cache: standard deviation"),
        Column("std_ci_s", FLOAT, "s", "adapt, cache: half width of its 95 % interval"),
        Column(
            "envelope",
            STRING,
            "",
            "JSON: adapt, best_static: least p50_s, p90_s, p99_s of any code, each with n and k",
        ),
        Column("utilisation", FLOAT, "", "adapt: share of time that threads were busy"),
        Column("tasks_per_request", FLOAT, "", "adapt: tasks that were started, per request"),
        Column(
            "chunks_stored", FLOAT, "", "adapt: chunks that a write stores per chunk needed; null: no writes"
        ),
        Column("capacity_per_s", FLOAT, "1/s", "adapt: largest rate that the strategy can serve"),
        Column("capacity_share", FLOAT, "", "adapt: the same / capacity of the (1, 1) code"),
        Column(
            "storage_shared",
            FLOAT,
            "",
            "adapt: bytes kept per byte of file, all codes of the strategy from one coded file (Shared Key)",
        ),
        Column("storage_unique", FLOAT, "", "adapt: the same with a coded copy per chunk size (Unique Key)"),
        Column("storage_shared_dollars", FLOAT, "$/period", "adapt: storage_shared of a mean file"),
        Column("storage_unique_dollars", FLOAT, "$/period", "adapt: storage_unique of a mean file"),
        Column("strips", INTEGER, "", "adapt: parts of a file that every chunk size is made of (Shared Key)"),
        Column("chunk_hit_ratio", FLOAT, "", "cache: share of the data chunks that the edge had"),
        Column("full_hit_ratio", FLOAT, "", "cache: share of the reads whose data chunks it had all"),
        Column(
            "neighbour_hit_ratio", FLOAT, "", "cache: share of the data chunks that came from other edges"
        ),
        Column(
            "failed_reads", INTEGER, "", "cache: reads with too few chunks up; latencies are of the others"
        ),
        Column("filled_chunks", INTEGER, "", "cache: chunks fetched to be kept, beside reads, all edges"),
        Column("decision_mean_s", FLOAT, "s", "cache: what the policy takes after a read to decide, mean"),
        Column("decision_p99_s", FLOAT, "s", "cache: 99 % quantile of the same"),
        Column("decision_p9999_s", FLOAT, "s", "cache: 99.99 % quantile"),
        Column("requests_per_s", FLOAT, "1/s", "cache: reads that one core replays per second"),
        Column(
            "above_optimum",
            FLOAT,
            "",
            "cache: mean_s / that of the static optimum - 1, same reads; with partitions: of all partitions",
        ),
        Column("improvement", FLOAT, "", "schedule: mean_s of fair with the same sources and seed / mean_s"),
        Column("slowdown", FLOAT, "", "schedule: mean of completion time / time alone on the fabric"),
        Column("makespan_s", FLOAT, "s", "schedule: from the first arrival to the last end"),
        Column("events", INTEGER, "", "schedule: moments at which rates were computed"),
        Column(
            "estimated_mean_s", FLOAT, "s", "mean latency without simulation: of a replay, or with objective="
        ),
        Column("estimated_p99_s", FLOAT, "s", "99 % quantile without simulation, as above"),
        Column("promised_p99_s", FLOAT, "s", "replay: bound on the 99 % quantile"),
        Column("observed_mean_s", FLOAT, "s", "replay: mean latency in the trace"),
        Column("observed_p99_s", FLOAT, "s", "replay: 99 % quantile in the trace"),
        Column(
            "max_utilisation",
            FLOAT,
            "",
            "replay: largest share of time that a node gave service; schedule: bytes of the busiest port over "
            "capacity * makespan_s",
        ),
        Column("input_id", STRING, "", "fingerprint of the inputs; names the tables in inputs/"),
        Column("rate_scale", FLOAT, "", "rates were multiplied by this"),
        Column("size_scale", FLOAT, "", "bytes were multiplied by this"),
        Column("batch_id", STRING, "", "runs computed and written together"),
        Column("batch_runs", INTEGER, "", "how many those are"),
        Column("solve_s", FLOAT, "s", "batch time / runs, compilation apart"),
        Column("compile_s", FLOAT, "s", "batch compilation time / runs"),
        Column("device", STRING, "", "where it ran"),
        Column("version", STRING, "", "ecjax version"),
        Column("seed", INTEGER, "", "random seed"),
        Column("params", STRING, "", "JSON of everything else that was set"),
    ),
    "placements": (
        _RUN,
        Column("file_id", ID, "", "file; null where the row is a group's"),
        Column("group", ID, "", "group of files that share the placement; null otherwise"),
        Column("node_id", ID, "", "node that keeps a chunk"),
        Column("probability", FLOAT, "", "share of reads that use the node; 0 for a cold chunk"),
        Column("chunks", INTEGER, "", "chunks kept there"),
    ),
    "class_weights": (
        _RUN,
        Column("service_class", STRING, "", "service class"),
        Column("node_id", ID, "", "node"),
        Column("weight", FLOAT, "", "share of the node that serves the class; a node's sum to 1"),
    ),
    "class_plans": (
        _RUN,
        Column("service_class", STRING, "", "service class"),
        Column("files", INTEGER, "", "its files"),
        Column("rate_per_s", FLOAT, "1/s", "their reads"),
        Column("importance", FLOAT, "", "what a second of its latency counts (C_k)"),
        Column("latency_s", FLOAT, "s", "mean latency bound of its reads, one z per file"),
        Column("latency_shared_z_s", FLOAT, "s", "the same with one z for the class: what is planned for"),
        Column("z_s", FLOAT, "s", "that z; null where its reads take one chunk"),
        Column(
            "estimated_mean_s", FLOAT, "s", "mean latency without simulation, where deadlines are kept by it"
        ),
        Column("deadline_s", FLOAT, "s", "mean latency that was promised"),
        Column("late_s", FLOAT, "s", "by how much the deadline is missed; 0 where it is kept"),
        Column("scheduling_gap", FLOAT, "", "as in runs, the reads of this class alone"),
        Column("max_load", FLOAT, "", "largest load that it puts on its share of a node"),
        Column("cost", FLOAT, "$/period", "storage cost of its files"),
        Column("mean_n", FLOAT, "", "mean code length of its files"),
    ),
    "group_plans": (
        _RUN,
        Column("group", ID, "", "group of files that share the placement"),
        Column("files", INTEGER, "", "its files"),
        Column("k", INTEGER, "", "chunks that rebuild a file"),
        Column("n", INTEGER, "", "code length"),
        Column("nodes", IDS, "", "nodes that keep a chunk of every file, the most read first"),
        Column("read_shares", STRING, "", "JSON: share of reads that use each node; together k, or d"),
        Column("latency_s", FLOAT, "s", "latency bound with one z per file, weighted by read rates"),
        Column("cost", FLOAT, "$/period", "storage cost of all its files"),
    ),
    "file_plans": (
        _RUN,
        Column("file_id", ID, "", "file"),
        Column("service_class", STRING, "", "its service class, queues by class"),
        Column("n", INTEGER, "", "code length"),
        Column("k", INTEGER, "", "chunks that rebuild the file"),
        Column("latency_s", FLOAT, "s", "latency bound with the file's own z"),
        Column("cost", FLOAT, "$/period", "storage cost"),
    ),
    "history": (
        _RUN,
        Column("iteration", INTEGER, "", "iteration"),
        Column("step", STRING, "", "by class: start, weights, scheduling or placement"),
        Column("service_class", STRING, "", "class whose objective is in force; null where all are"),
        Column(
            "objective",
            FLOAT,
            "s",
            "what descends: latency + theta * log surrogate of the cost; by class the objective in force",
        ),
        Column("class_latency_s", STRING, "", "JSON: by class: latency_shared_z_s of each class"),
        Column("gap", FLOAT, "", "by class: scheduling_gap after the step; null: no proof"),
    ),
    "latencies": (
        _RUN,
        Column(
            "group",
            STRING,
            "",
            "all, class, file, edge (latencies of reads) or node (sojourns of their chunks)",
        ),
        Column("class", STRING, "", "service class or class of requests, else k=..., where group is class"),
        Column("file_id", ID, "", "file, where group is file"),
        Column("node_id", ID, "", "node, where group is node"),
        Column("edge", STRING, "", "edge, where group is edge"),
        Column("source", STRING, "", "observed, replayed, estimated, or bound"),
        Column("requests", INTEGER, "", "reads, or chunk accesses, that were counted"),
        Column("mean_s", FLOAT, "s", "mean; of source bound: no mean can be larger"),
        Column("ci_s", FLOAT, "s", "half width of the 95 % interval of the mean"),
        Column("std_s", FLOAT, "s", "standard deviation"),
        Column("p50_s", FLOAT, "s", "median; of source bound: what is promised, as for all quantiles"),
        Column("p90_s", FLOAT, "s", "90 % quantile"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column("p999_s", FLOAT, "s", "99.9 % quantile"),
        Column("utilisation", FLOAT, "", "share of time that the node gave service; estimated: its load rho"),
    ),
    "latency_bins": (
        _RUN,
        Column("group", STRING, "", "all or class"),
        Column("class", STRING, "", "service class, else k=..., where group is class"),
        Column("source", STRING, "", "observed or replayed"),
        Column("lower_s", FLOAT, "s", "lower edge of the bin (1.1 % wide)"),
        Column("upper_s", FLOAT, "s", "upper edge, not itself in the bin"),
        Column("count", INTEGER, "", "reads in the bin"),
    ),
    "coflows": (
        _RUN,
        Column("scheduler", STRING, "", "who sent when, and how fast"),
        Column("sources", STRING, "", "how sources were chosen"),
        Column("coflow_id", ID, "", "coflow: id in the trace, else its number"),
        Column("arrival_s", FLOAT, "s", "when it arrived"),
        Column("completion_s", FLOAT, "s", "from then to the end of its last flow"),
        Column("isolation_s", FLOAT, "s", "the same alone on the fabric, with its best sources"),
        Column("bytes", FLOAT, "B", "of all its flows"),
        Column("width", INTEGER, "", "its flows"),
    ),
    "coflow_widths": (
        _RUN,
        Column("scheduler", STRING, "", "who sent when, and how fast"),
        Column("sources", STRING, "", "how sources were chosen"),
        Column("width_class", STRING, "", "flows per coflow, as [2,6): 2 to 5"),
        Column("coflows", INTEGER, "", "coflows of such a width"),
        Column("mean_s", FLOAT, "s", "mean of their completion times"),
        Column("p50_s", FLOAT, "s", "median"),
        Column("p95_s", FLOAT, "s", "95 % quantile"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column("improvement", FLOAT, "", "mean_s of the class under fair, same sources and seed / mean_s"),
        Column("slowdown", FLOAT, "", "mean of completion time / time alone on the fabric"),
    ),
    "codes": (
        _RUN,
        Column("class", STRING, "", "class of requests"),
        Column("n", INTEGER, "", "tasks of a request with this code"),
        Column("k", INTEGER, "", "of them that it takes"),
        Column("requests", INTEGER, "", "requests of the class that were served with it"),
        Column("share", FLOAT, "", "of all requests of the class"),
        Column("mean_s", FLOAT, "s", "mean of their latencies"),
    ),
    "thresholds": (
        _RUN,
        Column("class", STRING, "", "class of requests"),
        Column("signal", STRING, "", "what is looked at when a request arrives: waiting, in_system, idle"),
        Column(
            "memory", FLOAT, "", "a of s <- a s + (1 - a) signal at every arrival; 0: the signal as it is"
        ),
        Column(
            "weight",
            FLOAT,
            "",
            "w of w s + (1 - w) signal, which is compared with the two columns that follow",
        ),
        Column("backlog_from", FLOAT, "", "the code is used where that is at least this"),
        Column("backlog_below", FLOAT, "", "and below this"),
        Column("n", INTEGER, "", "tasks of a request"),
        Column("k", INTEGER, "", "of them that it takes"),
    ),
    "timeline": (
        _RUN,
        Column("start_s", FLOAT, "s", "when the interval begins"),
        Column("requests", INTEGER, "", "requests that arrive in it"),
        Column("mean_s", FLOAT, "s", "mean of their latencies; null where there are none"),
        Column("p90_s", FLOAT, "s", "90 % quantile"),
        Column("mean_k", FLOAT, "", "mean dimension of their codes"),
    ),
    "cached": (
        _RUN,
        Column("edge", STRING, "", "edge that keeps chunks at the end"),
        Column("file_id", ID, "", "item: file in the trace, else its number"),
        Column("chunks", INTEGER, "", "data chunks of it that it keeps"),
    ),
    "partitions": (
        _RUN,
        Column("place", FLOAT, "", "place in the sequence of all partitions, from 0 (the first) to 1"),
        Column("mean_s", FLOAT, "s", "mean latency of a read with the best plan of this partition"),
    ),
    "scenarios": (
        _RUN,
        Column("scenario", STRING, "", "node or site that is down"),
        Column("kind", STRING, "", "node or site"),
        Column(
            "status",
            STRING,
            "",
            "ok, not_converged, unstable (a node stays overloaded) or infeasible (no read is served)",
        ),
        Column(
            "latency_s",
            FLOAT,
            "s",
            "mean latency bound of the reads that are served, one z per file; inf: unstable, null: none served",
        ),
        Column("latency_shared_z_s", FLOAT, "s", "the same with one z for all files"),
        Column("max_load", FLOAT, "", "largest load of a node that is up"),
        Column("busiest_node", ID, "", "that node"),
        Column("unavailable_files", INTEGER, "", "files with fewer surviving chunks than rebuild them"),
        Column("unavailable_share", FLOAT, "", "their share of the read rate"),
    ),
    "nodes": (
        _RUN,
        *NODES,
        Column("service_source", STRING, "", "logged, or inferred from first-come first-served finish times"),
        Column(
            "service_samples", INTEGER, "", "service times behind the moments: of reads where there are any"
        ),
        Column("mean_chunk_bytes", FLOAT, "B", "mean size of those chunks"),
        Column("observed_mean_s", FLOAT, "s", "mean of those service times, all chunk sizes together"),
        Column("observed_mean_error_s", FLOAT, "s", "its standard error"),
        Column("observed_second_s2", FLOAT, "s^2", "their second raw moment"),
        Column("observed_second_error_s2", FLOAT, "s^2", "its standard error"),
        Column("observed_third_s3", FLOAT, "s^3", "their third raw moment"),
        Column("observed_third_error_s3", FLOAT, "s^3", "its standard error"),
        Column(
            "exponential_distance", FLOAT, "", "Kolmogorov distance to an exponential law of the same mean"
        ),
        Column("chunk_reads", INTEGER, "", "chunks read"),
        Column("chunk_writes", INTEGER, "", "chunks written"),
        Column("load", FLOAT, "", "rho: service time of reads and writes / span of the trace"),
        Column("concurrency", FLOAT, "", "mean number of accesses at the node: their sojourn times / span"),
        Column("mean_sojourn_s", FLOAT, "s", "mean time from arrival to finish"),
    ),
    "files": (
        _RUN,
        *(replace(column, required=column.name == "file_id") for column in FILES),  # a trace may lack k
        Column("reads", INTEGER, "", "reads in the trace"),
        Column("writes", INTEGER, "", "writes in the trace"),
        Column("first_arrival_s", FLOAT, "s", "first access, as the trace counts time"),
        Column("last_arrival_s", FLOAT, "s", "last access"),
        Column(
            "interarrival_cv", FLOAT, "", "coefficient of variation of the gaps between accesses, as recorded"
        ),
    ),
    "delays": (
        _RUN,
        Column("quantity", STRING, "", "service (start to finish), sojourn (arrival to finish); adapt: task"),
        Column("node_id", ID, "", "node; null where the trace has none"),
        Column("op", STRING, "", "read or write"),
        Column("chunk_bytes", FLOAT, "B", "mean size of the chunks of this size class (4.4 % wide)"),
        Column("count", INTEGER, "", "delays"),
        Column("mean_s", FLOAT, "s", "their mean"),
        Column("std_s", FLOAT, "s", "their standard deviation"),
        Column("kept_mean_s", FLOAT, "s", "mean without the worst 10 %"),
        Column("kept_std_s", FLOAT, "s", "standard deviation without the worst 10 %"),
        Column(
            "delta_s", FLOAT, "s", "affine law of the node, or of tasks: constant part of the fixed delay"
        ),
        Column(
            "delta_s_per_byte", FLOAT, "s/B", "fixed delay per byte; null: one chunk size does not tell it"
        ),
        Column("psi_s", FLOAT, "s", "constant part of the mean of the exponential delay"),
        Column("psi_s_per_byte", FLOAT, "s/B", "mean of the exponential delay per byte; null as above"),
        Column("fit_mean_s", FLOAT, "s", "mean of the affine law at this size"),
        Column("fit_std_s", FLOAT, "s", "standard deviation of the affine law at this size"),
    ),
    "delay_bins": (
        _RUN,
        Column("quantity", STRING, "", "service or sojourn"),
        Column("node_id", ID, "", "node; null where the trace has none"),
        Column("op", STRING, "", "read or write"),
        Column("lower_s", FLOAT, "s", "lower edge of the bin (2.2 % wide)"),
        Column("upper_s", FLOAT, "s", "upper edge, not itself in the bin; 0 for the bin of zeros"),
        Column("count", INTEGER, "", "delays in the bin, all chunk sizes"),
    ),
    "arrivals": (
        _RUN,
        Column("start_s", FLOAT, "s", "start of the interval, since the first arrival"),
        Column("duration_s", FLOAT, "s", "length of the interval"),
        Column("reads", INTEGER, "", "requests that read"),
        Column("writes", INTEGER, "", "requests that write"),
        Column("bytes", FLOAT, "B", "bytes asked for"),
    ),
    "traces": (
        _RUN,
        Column("trace", STRING, "", "name of the file or folder"),
        Column("format", STRING, "", "importer that read it"),
        Column("provides", STRING, "", "which of rates, sojourn, service it tells"),
        Column("loses", STRING, "", "what it lacks and what was decided in reading, a sentence per line"),
        Column("notices", STRING, "", "what the analysis found missing or doubtful, a sentence per line"),
        Column("rows", INTEGER, "", "rows"),
        Column("requests", INTEGER, "", "requests, of one or more rows each"),
        Column("reads", INTEGER, "", "requests that read"),
        Column("writes", INTEGER, "", "requests that write"),
        Column("bytes", FLOAT, "B", "bytes asked for"),
        Column("files", INTEGER, "", "distinct files"),
        Column("nodes", INTEGER, "", "distinct nodes; null where the trace has none"),
        Column("span_s", FLOAT, "s", "from the first arrival to the last"),
        Column("read_rate_per_s", FLOAT, "1/s", "reads / span"),
        Column("write_rate_per_s", FLOAT, "1/s", "writes / span"),
        Column("clock_resolution_s", FLOAT, "s", "step of the clock; 0: as good as continuous"),
        Column("ties", INTEGER, "", "requests that arrived at the same time as the one before"),
        Column(
            "interarrival_cv",
            FLOAT,
            "",
            "coefficient of variation of the gaps, ties spread over the clock's step",
        ),
        Column("poisson_blocks", INTEGER, "", "blocks of 128 gaps in the test of Poisson arrivals"),
        Column("poisson_p", FLOAT, "", "p-value of all blocks together"),
        Column("poisson_rejected_share", FLOAT, "", "blocks rejected at the 5 % level; 0.05 is Poisson"),
        Column("zipf_exponent", FLOAT, "", "popularity of the rank-r file read goes with r^-exponent"),
        Column("zipf_error", FLOAT, "", "its standard error"),
        Column("delay_quantity", STRING, "", "what the next four are about: service or sojourn"),
        Column("chunk_correlation", FLOAT, "", "correlation between the chunk delays of one request"),
        Column("chunk_correlation_error", FLOAT, "", "its standard error"),
        Column("chunk_correlation_requests", INTEGER, "", "requests that it was taken from"),
        Column("mean_delay_s", FLOAT, "s", "mean delay of reads, all nodes and sizes"),
        Column("concurrency", FLOAT, "", "mean number of accesses in the system: sojourn times / span"),
    ),
    "bench": (
        _RUN,
        Column("case", STRING, "", "benchmark"),
        Column("variant", STRING, "", "what was timed: ecjax in one of its forms, or an alternative"),
        Column("size", STRING, "", "size of the problem in words"),
        Column("rows", INTEGER, "", "files, requests or rows of it"),
        Column("nodes", INTEGER, "", "nodes"),
        Column("lanes", INTEGER, "", "problems solved as one program"),
        Column("dtype", STRING, "", "number type"),
        Column(
            "median_s",
            FLOAT,
            "s",
            "median wall time of the repeats, without compilation where compile_s is given",
        ),
        Column("min_s", FLOAT, "s", "least of them"),
        Column("repeats", INTEGER, "", "timed runs"),
        Column("compile_s", FLOAT, "s", "time to compile"),
        Column("peak_rss_bytes", INTEGER, "B", "largest resident memory of a process that did only this"),
        Column("objective", FLOAT, "s", "what was minimised, at the solution"),
        Column("lower_bound", FLOAT, "s", "no solution has a smaller objective"),
        Column(
            "gap", FLOAT, "", "(objective - lower_bound) / lower_bound; of several lanes the largest of them"
        ),
        Column("iterations", INTEGER, "", "iterations of the method"),
        Column("target_s", FLOAT, "s", "min_s should be at most this"),
        Column("target_bytes", INTEGER, "B", "peak_rss_bytes should be at most this"),
        Column("target_gap", FLOAT, "", "gap should be at most this"),
        Column("met", BOOLEAN, "", "whether the targets are met; null without one"),
        Column("device", STRING, "", "where it ran"),
        Column("cores", INTEGER, "", "processor cores that it could use"),
        Column("note", STRING, "", "what else to know"),
    ),
}


def result_schema(dataset: str, id_types: dict[str, pa.DataType] | None = None) -> pa.Schema:
    """Schema of a result dataset.

    Args:
        dataset: a key of ``RESULTS``.
        id_types: Arrow type by id column name (``file_id``, ``node_id``, ``group``, ...), string where absent;
            columns that hold node ids under another name take the type of ``node_id``.
    """
    known = id_types or {}
    fields = []
    for item in RESULTS[dataset]:
        source = "node_id" if item.name in ("nodes", "forbidden_nodes", "busiest_node") else item.name
        kind = arrow_type(item.kind, known.get(source, pa.string()))
        metadata = {"unit": item.unit, "meaning": item.meaning}
        fields.append(pa.field(item.name, kind, nullable=not item.required, metadata=metadata))
    return pa.schema(fields, metadata={"ecjax_schema_version": str(SCHEMA_VERSION)})
