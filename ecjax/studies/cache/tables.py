"""Columns of the result datasets of ``ecjax cache``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import INPUT_ID, job_tables
from ecjax.tables.schemas import FLOAT, ID, INTEGER, STRING, Column

# of column policy: what others are compared with, and edges that serve each other
REFERENCE, COOPERATIVE = "optimal_static", "cooperative"
# a bound that knows all reads; who learns popularity by a mixture where no half-life is said
BOUND, MIXTURE = "belady", "exact"
# of column scheme, those that sample nothing: every partition gone through, and the same plan without any
ALL, BEST = "optimal", "exact"

TABLES = job_tables(
    "cache",
    runs=(
        INPUT_ID,
        Column("policy", STRING, "", "who decides what an edge keeps; null in the study of sampling"),
        Column("scheme", STRING, "", "study of sampling: who plans; optimal: all partitions, exact: none"),
        Column("samples", INTEGER, "", "partitions that policy or scheme look at; null: they look at none"),
        Column("capacity", INTEGER, "", "chunks that an edge can keep"),
        Column("k", INTEGER, "", "data chunks of an item"),
        Column("copies", INTEGER, "", "copies of every chunk beyond the first"),
        Column("items", INTEGER, "", "items that are read"),
        Column("zipf", FLOAT, "", "exponent of the popularity of generated reads"),
        Column(
            "half_life_s", FLOAT, "s", "of counters of popularity; null: exact learned by a mixture of them"
        ),
        Column("failed", STRING, "", "node, or bucket as node/3, that is down all the time"),
        Column(
            "neighbour_s", FLOAT, "s", "time to take a chunk of another edge; null: none, or not one time"
        ),
        Column("arrivals", STRING, "", "poisson or trace"),
        Column("rate_per_s", FLOAT, "1/s", "reads, mean"),
        Column("rate_scale", FLOAT, "", "times of the trace were divided by this; null of generated reads"),
        Column(
            "left_out_share",
            FLOAT,
            "",
            "share of the trace's reads that were left out, of less popular items; null of generated reads",
        ),
        Column("requests", INTEGER, "", "reads that were counted"),
        Column("replications", INTEGER, "", "study of sampling: repetitions of every random choice"),
        Column("warm_up_share", FLOAT, "", "share of the reads that was dropped"),
        Column("mean_s", FLOAT, "s", "mean latency of reads"),
        Column("ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p50_s", FLOAT, "s", "median of the same"),
        Column("p50_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p90_s", FLOAT, "s", "90 % quantile"),
        Column("p90_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column("p99_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p999_s", FLOAT, "s", "99.9 % quantile"),
        Column("p999_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("std_s", FLOAT, "s", "standard deviation"),
        Column("std_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column(
            "above_optimum", FLOAT, "", "mean_s / that of the static optimum (sampling: all partitions) - 1"
        ),
        Column("chunk_hit_ratio", FLOAT, "", "share of the data chunks that the edge had"),
        Column("full_hit_ratio", FLOAT, "", "share of the reads whose data chunks it had all"),
        Column("neighbour_hit_ratio", FLOAT, "", "share of the data chunks that came from other edges"),
        Column("failed_reads", INTEGER, "", "reads with too few chunks up; latencies are of the others"),
        Column("filled_chunks", INTEGER, "", "chunks fetched to be kept, beside reads, all edges"),
        Column("decision_mean_s", FLOAT, "s", "what the policy takes after a read to decide, mean"),
        Column("decision_p99_s", FLOAT, "s", "99 % quantile of the same"),
        Column("decision_p9999_s", FLOAT, "s", "99.99 % quantile"),
        Column("requests_per_s", FLOAT, "1/s", "reads that one core replays per second"),
    ),
    latencies=(
        Column("group", STRING, "", "all, or edge: reads of one edge"),
        Column("edge", STRING, "", "which, where group is edge"),
        Column("source", STRING, "", "replayed"),
        Column("requests", INTEGER, "", "reads that were counted"),
        Column("mean_s", FLOAT, "s", "mean latency of reads"),
        Column("ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("std_s", FLOAT, "s", "standard deviation"),
        Column("p50_s", FLOAT, "s", "median"),
        Column("p50_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p90_s", FLOAT, "s", "90 % quantile"),
        Column("p90_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p99_s", FLOAT, "s", "99 % quantile"),
        Column("p99_ci_s", FLOAT, "s", "half width of its 95 % interval"),
        Column("p999_s", FLOAT, "s", "99.9 % quantile"),
        Column("p999_ci_s", FLOAT, "s", "half width of its 95 % interval"),
    ),
    cached=(
        Column("edge", STRING, "", "edge that keeps chunks at the end"),
        Column("file_id", ID, "", "item: file in the trace, else its number"),
        Column("chunks", INTEGER, "", "data chunks of it that it keeps"),
    ),
    partitions=(
        Column("place", FLOAT, "", "place in the sequence of all partitions, from 0 (the first) to 1"),
        Column("mean_s", FLOAT, "s", "mean latency of a read with the best plan of this partition"),
    ),
)
