"""Columns of the result datasets of ``ecjax schedule``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import FLOAT, ID, INTEGER, STRING, Column

_HALF = "half width of its 95 % interval; null: fewer than 2000 coflows"
_TIMES = (
    Column("mean_s", FLOAT, "s", "mean completion time, from arrival to end"),
    Column("ci_s", FLOAT, "s", _HALF),
    Column("p50_s", FLOAT, "s", "median of the same"),
    Column("p50_ci_s", FLOAT, "s", _HALF),
    Column("p95_s", FLOAT, "s", "95 % quantile"),
    Column("p95_ci_s", FLOAT, "s", _HALF),
    Column("p99_s", FLOAT, "s", "99 % quantile"),
    Column("p99_ci_s", FLOAT, "s", _HALF),
)
_SLOWDOWNS = (
    Column("slowdown", FLOAT, "", "mean of completion time / time alone on the fabric"),
    Column("slowdown_ci", FLOAT, "", _HALF),
    Column("slowdown_p50", FLOAT, "", "median of the same"),
    Column("slowdown_p50_ci", FLOAT, "", _HALF),
    Column("slowdown_p95", FLOAT, "", "95 % quantile"),
    Column("slowdown_p95_ci", FLOAT, "", _HALF),
    Column("slowdown_p99", FLOAT, "", "99 % quantile"),
    Column("slowdown_p99_ci", FLOAT, "", _HALF),
)

TABLES = job_tables(
    "schedule",
    runs=(
        Column("input_id", STRING, "", "names what was read or generated, and the fabric"),
        Column("scheduler", STRING, "", "who sends when, and how fast"),
        Column("sources", STRING, "", "how the sources of reads are chosen; given: they are not"),
        Column("n", INTEGER, "", "generated reads: chunks kept of each file"),
        Column("k", INTEGER, "", "chunks that a read takes, of generated reads and of files without k"),
        Column("share_at_zero", FLOAT, "", "share of the generated reads that arrives at t = 0"),
        Column("rate_scale", FLOAT, "", "arrival times were divided by this"),
        Column("size_scale", FLOAT, "", "bytes were multiplied by this"),
        Column("coflow_count", INTEGER, "", "coflows that were replayed"),
        *_TIMES,
        Column("improvement", FLOAT, "", "mean_s of fair with the same sources and seed / mean_s"),
        *_SLOWDOWNS,
        Column(
            "lower_bound", FLOAT, "s", "no schedule has a smaller mean_s; null where it was not asked for"
        ),
        Column("gap", FLOAT, "", "(mean_s - lower_bound) / lower_bound"),
        Column("makespan_s", FLOAT, "s", "from the first arrival to the last end"),
        Column("max_utilisation", FLOAT, "", "bytes of the busiest port / (its capacity * makespan_s)"),
        Column("events", INTEGER, "", "moments at which rates were computed"),
        Column("moved_chunks", INTEGER, "", "times that a flow changed its source"),
    ),
    coflows=(
        Column("scheduler", STRING, "", "who sent when, and how fast"),
        Column("sources", STRING, "", "how sources were chosen"),
        Column("coflow_id", ID, "", "coflow: id in the trace, else its number"),
        Column("arrival_s", FLOAT, "s", "when it arrived"),
        Column("completion_s", FLOAT, "s", "from then to the end of its last flow"),
        Column("isolation_s", FLOAT, "s", "the same alone on the fabric, with its best sources"),
        Column("bytes", FLOAT, "B", "of all its flows"),
        Column("width", INTEGER, "", "its flows"),
    ),
    coflow_widths=(
        Column("scheduler", STRING, "", "who sent when, and how fast"),
        Column("sources", STRING, "", "how sources were chosen"),
        Column("width_class", STRING, "", "flows per coflow, as [2,6): 2 to 5"),
        Column("coflow_count", INTEGER, "", "coflows of such a width"),
        *_TIMES,
        Column("improvement", FLOAT, "", "mean_s of the class under fair, same sources and seed / mean_s"),
        *_SLOWDOWNS,
    ),
)
