"""Rows of ``bench`` and ``runs``: what was measured, and on what."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

import ecjax
from ecjax.status import Status
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Settings
from ecjax.tables.result_schemas import result_schema
from ecjax.tables.store import run_id

JOB = "bench"


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
    return {
        "run_id": run_id(JOB, parameters, "", settings.seed, ""),
        "job": JOB,
        "status": str(Status.OK if measured.error is None else Status.FAILED),
        "error": measured.error,
        "method": measured.name,
        "solve_s": measured.seconds,
        "device": measured.device,
        "version": ecjax.__version__,
        "seed": settings.seed,
        "params": json.dumps(parameters, sort_keys=True),
    }


def bench_table(run: str, measured: Measured, cores: int) -> pa.Table:
    """The rows of ``bench`` of one run."""
    common = {"run_id": run, "case": measured.name, "device": measured.device, "cores": cores}
    values = [common | asdict(row) | {"met": row.met} for row in measured.rows]
    return pa.Table.from_pylist(values, schema=result_schema("bench"))
