"""Columns of the result datasets of ``ecjax bench``, with units. Imports nothing heavy."""

from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import BOOLEAN, FLOAT, INTEGER, STRING, Column

TABLES = job_tables(
    "bench",
    runs=(Column("case", STRING, "", "benchmark"),),
    bench=(
        Column("case", STRING, "", "benchmark"),
        Column("variant", STRING, "", "what was timed: ecjax in one of its forms, or an alternative"),
        Column("size", STRING, "", "size of the problem in words"),
        Column("rows", INTEGER, "", "files, requests or rows of it"),
        Column("node_count", INTEGER, "", "nodes"),
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
        Column("bytes_moved", FLOAT, "B", "bytes that have to be read and written, suite gpu"),
        Column("operations", FLOAT, "", "operations of what is bound by them, suite gpu"),
        Column("limit_share", FLOAT, "", "of what the device copies or multiplies in that time at most"),
        Column("target_s", FLOAT, "s", "min_s should be at most this"),
        Column("target_bytes", INTEGER, "B", "peak_rss_bytes should be at most this"),
        Column("target_gap", FLOAT, "", "gap should be at most this"),
        Column("met", BOOLEAN, "", "whether the targets are met; null without one"),
        Column("device", STRING, "", "where it ran"),
        Column("cores", INTEGER, "", "processor cores that it could use"),
        Column("note", STRING, "", "what else to know"),
    ),
)
