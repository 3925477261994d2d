"""A case that was run: its rows of ``runs`` and ``bench``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from ecjax.status import Status
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Settings
from ecjax.studies.bench.tables import TABLES
from ecjax.studies.spine.run import Run
from ecjax.tables.fingerprint import trace_fingerprint


@dataclass(frozen=True)
class Measured:
    """A case that was run.

    Attributes:
        name: of the case.
        rows: what it gave; none if it failed.
        seconds: that it took, with its process.
        device: where its arrays were; None if it failed.
        error: why it failed, else None.
    """

    name: str
    rows: list[Row]
    seconds: float
    device: str | None
    error: str | None


def run_row(measured: Measured, settings: Settings, machine: Mapping[str, Any]) -> dict[str, Any]:
    """The row of ``runs``: measuring a case again on the same machine with the same versions is the same run."""
    parameters = {
        "case": measured.name,
        "repeats": settings.repeats,
        "quick": settings.quick,
        "machine": machine,
    }
    if settings.trace is not None:
        parameters["trace"] = trace_fingerprint(settings.trace)
    run = Run(TABLES.job, parameters, "", settings.seed, {"case": measured.name}, dtype="")
    return run.row() | {
        "status": str(Status.OK if measured.error is None else Status.FAILED),
        "error": measured.error,
        "solve_s": measured.seconds,
        "device": measured.device,
    }


def bench_table(run: str, measured: Measured, cores: int) -> pa.Table:
    """The rows of ``bench`` of one run."""
    common = {"run_id": run, "case": measured.name, "device": measured.device, "cores": cores}
    return pa.Table.from_pylist([common | asdict(row) | {"met": row.met} for row in measured.rows])
