"""What the result datasets of a job are: columns with units. Imports nothing heavy.

Each dataset has one explicit schema, complete from the first row: null where a column does not apply.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ecjax.tables.schemas import FLOAT, INTEGER, STRING, Column

SCHEMA_VERSION = 9

RUNS = "runs"
RUN_ID = Column("run_id", STRING, "", "first 16 hex digits of the hash of what was computed", required=True)

# every job's ``runs`` begins with these
RUN_COLUMNS = (
    RUN_ID,
    Column("job", STRING, "", "analyze, optimize, ..."),
    Column("status", STRING, "", "ok, not_converged, not_stationary, unstable, infeasible or failed"),
    Column("error", STRING, "", "what went wrong, of a run that is not ok"),
    Column("seed", INTEGER, "", "random seed; null where nothing is random"),
    Column("solve_s", FLOAT, "s", "time that it took, of a batch its share; compilation apart"),
    Column("device", STRING, "", "what computed it: cpu, or JAX's device by its name"),
    Column("version", STRING, "", "version of ecjax"),
    Column("batch_id", STRING, "", "runs that were computed and written together share it"),
    Column("batch_runs", INTEGER, "", "how many those are"),
    Column(
        "batch_files", STRING, "", "JSON: rows, bytes and SHA-256 of each file that they wrote; ecjax verify"
    ),
    Column(
        "input_files", STRING, "", "JSON: path and SHA-256 of inputs that are files, by option; ecjax verify"
    ),
    Column("params", STRING, "", "JSON: all else that its run_id depends on, and what was read"),
)
INPUT_ID = Column("input_id", STRING, "", "fingerprint of the inputs; names the tables in inputs/")
_LOW, _HIGH = (
    "from where other logs of the kind have it (95 %, jackknife)",
    "to where other logs of the kind have it",
)
# latencies under the arrivals of a log; null where none was named
TRACE_ESTIMATED = (
    Column(
        "trace_estimated_mean_s",
        FLOAT,
        "s",
        "mean under the log's own arrivals, or rates, without simulation",
    ),
    Column("trace_estimated_mean_low_s", FLOAT, "s", _LOW),
    Column("trace_estimated_mean_high_s", FLOAT, "s", _HIGH),
    Column("trace_estimated_p99_s", FLOAT, "s", "99 % quantile under the log's own arrivals, or rates"),
    Column("trace_estimated_p99_low_s", FLOAT, "s", _LOW),
    Column("trace_estimated_p99_high_s", FLOAT, "s", _HIGH),
    Column("trace_branch", STRING, "", "raw: reads as counted; denoised: as rates of blocks of time"),
    Column("trace_remarks", STRING, "", "what else to know about these arrivals and that estimate"),
)


@dataclass(frozen=True)
class JobTables:
    """The result datasets of a job.

    Attributes:
        job: its name.
        datasets: columns by name of the dataset.
    """

    job: str
    datasets: Mapping[str, tuple[Column, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The datasets that ``write`` may leave out."""
        return tuple(name for name in self.datasets if name != RUNS)


def job_tables(job: str, runs: tuple[Column, ...], **datasets: tuple[Column, ...]) -> JobTables:
    """The datasets of a job.

    Args:
        job: its name.
        runs: columns of ``runs`` that only this job has.
        datasets: columns of every other dataset, without ``run_id``, which comes first in all.
    """
    return JobTables(
        job,
        {RUNS: (*RUN_COLUMNS, *runs)} | {name: (RUN_ID, *columns) for name, columns in datasets.items()},
    )
