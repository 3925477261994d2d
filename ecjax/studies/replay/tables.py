"""Columns of the result datasets of ``ecjax replay``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import INPUT_ID, TRACE_ESTIMATED, job_tables
from ecjax.tables.schemas import FLOAT, ID, INTEGER, STRING, Column

AS_LOGGED = "as logged"  # of column policy: predictions of a log

TABLES = job_tables(
    "replay",
    runs=(
        INPUT_ID,
        Column("plan_run", STRING, "", "the optimize run that was replayed"),
        Column("method", STRING, "", "how it was planned; none: it was not"),
        Column(
            "theta",
            FLOAT,
            "s/$",
            "latency worth a dollar per file, or of all (theta_per of optimize)",
        ),
        Column(
            "cost_dollars_per_period",
            FLOAT,
            "$/period",
            "storage cost of the plan, all files, with moving_dollars, which are paid once",
        ),
        Column("moving_dollars", FLOAT, "$", "of that, what moving chunks costs, once; null: nothing does"),
        Column("importance", STRING, "", "JSON: what a second of each class counts (C_k), by service class"),
        Column("class_rate_scale", STRING, "", "JSON: what the rates of each class were multiplied by"),
        Column("policy", STRING, "", "how the nodes of a read are chosen; of a log: as logged"),
        Column("queue", STRING, "", "how nodes serve: fcfs, priority, partitioned, shared"),
        Column("service", STRING, "", "service law"),
        Column("arrivals", STRING, "", "poisson, bursts or trace"),
        Column("rate_scale", FLOAT, "", "rates were multiplied by this"),
        Column("size_scale", FLOAT, "", "bytes were multiplied by this"),
        Column("slow", STRING, "", "JSON: slow nodes and what multiplies their service times; null: none"),
        Column("file_count", INTEGER, "", "files replayed"),
        Column("node_count", INTEGER, "", "nodes"),
        Column("replications", INTEGER, "", "independent replications"),
        Column("requests", INTEGER, "", "reads that count, of all replications: those after the warm-up"),
        Column("warm_up_share", FLOAT, "", "share of each replication that was dropped"),
        Column("mean_s", FLOAT, "s", "mean latency of reads"),
        Column("ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p50_s", FLOAT, "s", "median of the same"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column(
            "p99_ci_s",
            FLOAT,
            "s",
            "half width of its 95 % interval, from what replications differ by; null: fewer than 3",
        ),
        Column(
            "max_load",
            FLOAT,
            "",
            "largest node load rho; null where a policy looks at the queues or nodes fail (see max_utilisation)",
        ),
        Column(
            "max_utilisation",
            FLOAT,
            "",
            "largest share of time that a node gave service; above 1: overloaded",
        ),
        Column("hedge_delay_s", FLOAT, "s", "policy=hedged: how long a read waits for further chunks"),
        Column(
            "hedged_share",
            FLOAT,
            "",
            "policy=hedged: further chunks that were read, as a share of those needed",
        ),
        Column(
            "small_degraded_share",
            FLOAT,
            "",
            "of small reads: share that was decoded from k chunks; null: files have none",
        ),
        Column(
            "latency_s",
            FLOAT,
            "s",
            "bound on the mean; null where it is infinite, or the policy has none",
        ),
        Column("promised_p99_s", FLOAT, "s", "bound on the 99 % quantile"),
        Column("estimated_mean_s", FLOAT, "s", "mean latency without simulation, of Poisson arrivals"),
        Column("estimated_p99_s", FLOAT, "s", "99 % quantile without simulation, of Poisson arrivals"),
        *TRACE_ESTIMATED,
        Column("observed_mean_s", FLOAT, "s", "mean latency in the trace"),
        Column("observed_p99_s", FLOAT, "s", "99 % quantile in the trace"),
        Column("prediction", STRING, "", "of a log: what was predicted, and what was observed, in words"),
        Column("notices", STRING, "", "of a log: JSON list of sentences, what else to know"),
    ),
    latencies=(
        Column("group", STRING, "", "all, class, file (latencies of reads) or node (sojourns of chunks)"),
        Column("class", STRING, "", "service class, else k=..., where group is class; small reads by kind"),
        Column("file_id", ID, "", "file, where group is file"),
        Column("node_id", ID, "", "node, where group is node"),
        Column(
            "source", STRING, "", "observed, replayed, estimated, trace_estimated, bound, split_merge, forks"
        ),
        Column(
            "requests",
            INTEGER,
            "",
            "reads, or chunk accesses, that were counted; of a log: of its second half, in each replication",
        ),
        Column(
            "mean_s", FLOAT, "s", "mean; of source bound: no mean can be larger; no row where it is infinite"
        ),
        Column(
            "ci_s",
            FLOAT,
            "s",
            "half width of the 95 % interval of the mean; null of trace_estimated: see runs. Of files: from what "
            "replications differ by, null of fewer than 3 (of a log 2); observed: as if reads were independent",
        ),
        Column("std_s", FLOAT, "s", "standard deviation"),
        Column("p50_s", FLOAT, "s", "median; of source bound: what is promised, as for all quantiles"),
        Column("p90_s", FLOAT, "s", "90 % quantile"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column("p999_s", FLOAT, "s", "99.9 % quantile"),
        Column(
            "p50_ci_s",
            FLOAT,
            "s",
            "half width of the 95 % interval of p50_s; null: fewer than 3 replications",
        ),
        Column("p90_ci_s", FLOAT, "s", "the same of p90_s"),
        Column(
            "p99_ci_s",
            FLOAT,
            "s",
            "the same of p99_s; null: fewer than 10 reads of some replication are above it",
        ),
        Column("p999_ci_s", FLOAT, "s", "the same of p999_s"),
        Column(
            "utilisation",
            FLOAT,
            "",
            "share of time that the node gave service; above 1: overloaded; estimated: its load rho",
        ),
    ),
    latency_bins=(
        Column("group", STRING, "", "all or class"),
        Column("class", STRING, "", "service class, else k=..., where group is class"),
        Column("source", STRING, "", "observed or replayed"),
        Column("lower_s", FLOAT, "s", "lower edge of the bin (1.1 % wide)"),
        Column("upper_s", FLOAT, "s", "upper edge, not itself in the bin"),
        Column("count", INTEGER, "", "reads in the bin"),
    ),
    services=(
        Column("group", STRING, "", "all or class"),
        Column("class", STRING, "", "service class, else k=..., where group is class"),
        Column("probability", FLOAT, "", "share of the chunk accesses that are served within service_s"),
        Column(
            "service_s", FLOAT, "s", "of a chunk, waits apart; of partitioned queues at the class's share"
        ),
    ),
    node_loads=(
        Column("node_id", ID, "", "node"),
        Column(
            "load",
            FLOAT,
            "",
            "rho: share of time that it serves; measured where the policy looks at the queues or nodes fail; of a "
            "log: by the services of its first half",
        ),
        Column("read_share", FLOAT, "", "its share of all chunk reads; of a log: of its first half"),
        Column("chunks", INTEGER, "", "chunks that it keeps; null: a log does not tell"),
        Column("bytes_stored", FLOAT, "B", "bytes of those chunks"),
        Column("cost_dollars_per_period", FLOAT, "$/period", "what they cost"),
    ),
)
