"""The guide to the result tables of every job, from the columns that the jobs name."""

from importlib import import_module

from sample_guide import COMMAND, KINDS

from ecjax.jobs_index import JOBS
from ecjax.tables.arrow_schemas import INPUT_DATASETS
from ecjax.tables.result_schemas import RUN_COLUMNS, RUNS, JobTables
from ecjax.tables.schemas import Column

_ROWS = {
    # analyze
    "rejects": "malformed line of a log, of the first hundred for each reason",
    "traces": "log that was read",
    "files": "file; what `files=` of other jobs takes",
    "nodes": "node; what `nodes=` of other jobs takes",
    "analyze: delays": "size of chunks, by node and operation",
    "delay_bins": "bin of a histogram of delays, by node and operation",
    "arrivals": "interval of the log's time",
    "burstiness": "time scale, of reads, of writes and of the reads of each class",
    "busiest": "length of window, of reads, of writes and of the reads of each class",
    "rates": "interval of the log's time; what `rates=` of other jobs takes",
    "class_rates": "class of reads and interval; what `rates=` of other jobs takes where files have a service_class",
    # optimize
    "read_kinds": "data chunk with small reads, kind of these and node that it uses",
    "placements": "file, or group of files, and node that keeps chunks of it",
    "placement_masks": "file, with `stream=true`",
    "node_loads": "node",
    "services": "share of the chunk accesses, of all and of each class",
    "class_weights": "service class and node",
    "class_plans": "service class",
    "group_plans": "group of files that share a placement",
    "file_plans": "file",
    "history": "iteration",
    "optimize: scenarios": "node or site that fails, with `scenarios=`",
    "what_if": "scenario of `what_if=`, and the tables as they are",
    "floors": "k of the files, with `durability_nines=` or `max_any_loss=`",
    # codes
    "class_codes": "class of files and candidate, with `classes=`",
    "combinations": "combination of codes that was planned, with `classes=`",
    "codes: codes": "candidate",
    # replay
    "replay: latencies": "source, and group of reads (all, a class, a file) or node",
    "latency_bins": "bin of a histogram of latencies",
    # schedule
    "coflows": "coflow",
    "coflow_widths": "class of widths",
    # adapt
    "adapt: codes": "code and class of requests",
    "adapt: latencies": "group of requests: all, or a class",
    "adapt: delays": "size of chunks, by class of requests",
    "timeline": "interval of the replay's time",
    "thresholds": "code of a table that a proxy can load",
    # cache
    "cache: latencies": "group of reads: all, or those of an edge",
    "cached": "item that an edge keeps at the end",
    "partitions": "partition that was sampled",
    # ceph
    "plan": "position of a group that changes",
    "commands": "group that changes, by batch",
    "batches": "batch of commands; 0: as it is",
    "osds": "OSD",
    "ceph: scenarios": "scenario of `what_if=`, before and by the plan",
    # reproduce
    "claims": "claim of a paper",
    # bench
    "bench": "quantity that a case measured",
}


def tables_of(job: str) -> JobTables:
    """The result datasets of a job."""
    tables: JobTables = import_module(f"ecjax.studies.{job}.tables").TABLES
    return tables


def result_guide() -> str:
    """The guide, Markdown."""
    inputs = ", ".join(f"`{name}`" for name in INPUT_DATASETS)
    parts = [
        "# Result tables",
        f"<!-- Written by `{COMMAND}` from ecjax/studies/*/tables.py. -->",
        "`out=DIR` of a job collects datasets: folders of Parquet files, `DIR/runs`, `DIR/placements`, ... that "
        "`ecjax.read_results(DIR, NAME)` or `pandas.read_parquet` reads as one table. Every dataset has all of its "
        "columns, empty where they do not apply; `run_id` says which run a row belongs to. Units are SI: seconds, "
        "bytes, 1/s, dollars. Ids are integers or strings, as in the inputs. Each file carries units and meanings "
        "with it, as metadata of its columns.",
        "After a kill, `read_results` leaves out rows of runs that were not committed. `pandas.read_parquet` sees none "
        "of them either in a folder of this machine, but for a kill during the commit itself; in an object store it "
        "may, until the same command has run again. `ecjax verify DIR` names such files, and all that are damaged, "
        "missing, doubled or of another program.",
        f"Where a job plans or replays on tables, those that were used are in {inputs}: the columns of README.md, and "
        "`input_id` as in `runs`.",
        f"## Every job\n\nA row of `{RUNS}` is one run; it begins with\n\n{_table(RUN_COLUMNS)}",
    ]
    parts += [_of_job(job) for job in JOBS]
    return "\n\n".join(parts) + "\n"


def _of_job(job: str) -> str:
    datasets = dict(tables_of(job).datasets)
    runs, summary = datasets.pop(RUNS)[len(RUN_COLUMNS) :], JOBS[job].summary
    parts = [
        f"## ecjax {job}",
        f"{summary[0].upper()}{summary[1:]}.",
        f"### {job}: {RUNS}",
        "Further columns:",
    ]
    parts.append(_table(runs))
    for name, columns in datasets.items():
        heading = f"{job}: {name}"
        row = _ROWS.get(heading) or _ROWS[name]  # several jobs have datasets of this name
        parts += [f"### {heading}", f"A row per {row}.", _table(columns[1:])]
    return "\n\n".join(parts)


def _table(columns: tuple[Column, ...]) -> str:
    lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for column in columns:
        meaning = column.meaning.replace("|", "\\|")
        lines.append(f"| `{column.name}` | {KINDS[column.kind]} | {column.unit} | {meaning} |")
    return "\n".join(lines)
