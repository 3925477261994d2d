"""Numbers of runs that are ok are numbers: neither NaN nor, where the schema does not say so, infinite."""

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.status import Status
from ecjax.tables.result_schemas import RUNS, JobTables
from ecjax.tables.schemas import FLOAT


class NotFinite(ValueError):
    """A number of a run that is ok is none: a mistake of the program."""


def check_row(row: Mapping[str, object], tables: JobTables) -> None:
    """Refuse the row of a run that is ok and has numbers that are none.

    Raises:
        NotFinite: naming the column.
    """
    if row["status"] != str(Status.OK):
        return
    for column in tables.datasets[RUNS]:
        value = row.get(column.name)
        if column.kind == FLOAT and value is not None:
            number = float(value)  # type: ignore[arg-type]
            if math.isnan(number) or (math.isinf(number) and not column.infinite):
                raise _error(RUNS, column.name, number)


def _error(dataset: str, column: str, number: float) -> NotFinite:
    return NotFinite(f"{dataset}.{column} of a run that is ok: found {number}; allowed: finite numbers, null")


def check_finite(table: pa.Table, dataset: str, tables: JobTables, ok: Collection[str] | None = None) -> None:
    """Refuse numbers that are none.

    Args:
        table: rows of a dataset, in its schema.
        dataset: its name.
        tables: of the job.
        ok: runs that are ok; None: all.

    Raises:
        NotFinite: naming the column.
    """
    for column in tables.datasets[dataset]:
        values = table.column(column.name)
        if not pa.types.is_floating(values.type) or values.null_count == len(values):
            continue
        numbers = values.to_numpy()  # null becomes NaN
        wrong = np.isnan(numbers) & np.asarray(values.is_valid())
        if not column.infinite:
            wrong |= np.isinf(numbers)
        if wrong.any() and ok is not None:
            wrong &= np.asarray(pc.is_in(table.column("run_id"), value_set=pa.array(list(ok), pa.string())))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise _error(dataset, column.name, numbers[row])


def ok_runs(rows: Iterable[Mapping[str, object]]) -> set[str]:
    """Ids of the runs that are ok, of rows of ``runs``."""
    return {str(row["run_id"]) for row in rows if row["status"] == str(Status.OK)}
