"""One comparison of codes: its rows."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ecjax import precision, programs
from ecjax.engine import Worker
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.codes.combinations import class_rows, combination_rows
from ecjax.studies.codes.inputs import Case
from ecjax.studies.codes.latencies import APART
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
    tables: dict[str, list[pa.Table]] = {}
    for name, item in items.items():
        device = {}
        if case.traffic is not None:  # latencies are JAX's, the rest is not
            programs.use_compilation_cache()
            device["device"] = precision.device_name()
        classes = case.traffic is not None and case.traffic.classes is not None
        tell = _half(worker.advance) if classes else worker.advance
        combination = None
        with Stopwatch(of_process=True) as stopwatch:
            rows = code_rows(case, item.options, tell)
            by_dataset = {"codes": rows}
            if classes:
                by_dataset["class_codes"] = class_rows(case, rows)
                by_dataset["combinations"] = combination_rows(case, item.options, rows, tell)
                combination = next((row for row in by_dataset["combinations"] if row["recommended"]), None)
        best = chosen(rows)
        runs.append(
            item.run.row()
            | device
            | {
                "recommended_code": None if best is None else best["code"],
                "recommended_combination": None if combination is None else combination["codes"],
                "status": str(Status.OK),
                "solve_s": stopwatch.own_s,
            }
        )
        for dataset, listed in by_dataset.items():
            if listed:
                tables.setdefault(dataset, []).append(_table(name, listed))
    return runs, tables


def _half(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Candidates are half of the work, combinations the other."""
    return lambda done: advance(0.5 * done)


def _table(run_id: str, rows: Rows) -> pa.Table:
    """Rows with every column that one of them has: a table has those of its first row only."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in APART]
    every = [{"run_id": run_id} | {key: row.get(key) for key in columns} for row in rows]
    return pa.Table.from_pylist(every)
