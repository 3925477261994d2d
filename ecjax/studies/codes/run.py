"""One comparison of codes: its rows."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ecjax import precision
from ecjax.engine import Worker
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.codes.inputs import Case
from ecjax.studies.codes.options import CodesOptions
from ecjax.studies.codes.rows import chosen, code_rows
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run


@dataclass(frozen=True)
class Item:
    """One comparison."""

    run: Run
    options: CodesOptions


def solve(case: Case, items: dict[str, Item], worker: Worker) -> tuple[Rows, dict[str, list[pa.Table]]]:
    """Rows of ``runs`` and ``codes``.

    Args:
        case: candidates and cluster.
        items: what to compare, by run id.
        worker: where it runs.
    """
    runs: Rows = []
    tables: list[pa.Table] = []
    for name, item in items.items():
        device = {}
        if case.traffic is not None:  # latencies are JAX's, the rest is not
            precision.use_compilation_cache()
            device["device"] = precision.device_name()
        with Stopwatch(of_process=True) as stopwatch:
            rows = code_rows(case, item.options, worker.advance)
        best = chosen(rows)
        runs.append(
            item.run.row()
            | device
            | {
                "recommended_code": None if best is None else best["code"],
                "status": str(Status.OK),
                "solve_s": stopwatch.own_s,
            }
        )
        columns = dict.fromkeys(key for row in rows for key in row)  # a table has those of its first row only
        every = [{"run_id": name} | _finite({key: row.get(key) for key in columns}) for row in rows]
        tables.append(pa.Table.from_pylist(every))
    return runs, {"codes": tables}


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """The row with null for nines without end."""
    return {key: None if value == float("inf") else value for key, value in row.items()}
