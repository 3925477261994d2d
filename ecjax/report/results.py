"""Results of one study as a page reads them: Arrow tables, read once, and the run that the page is about."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.datasets import written_by, written_datasets
from ecjax.tables.folder import location
from ecjax.tables.recommendation import Recommendation, read_recommendation
from ecjax.tables.results import read_arrow

_FINISHED = ("ok", "not_converged")


@dataclass(frozen=True)
class Results:
    """What one study wrote.

    Attributes:
        out: folder, as it was named.
        job: that wrote it.
        runs: rows of its dataset ``runs``.
        datasets: names of what it holds.
        recommendation: of its last command; None where there is none.
        tables: of datasets that were read, by name and columns.
    """

    out: str
    job: str
    runs: pa.Table
    datasets: Sequence[str]
    recommendation: Recommendation | None
    tables: dict[tuple[str, ...], pa.Table] = field(default_factory=dict)

    def table(self, name: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """The rows of a dataset, of the columns named or of all; None where it was not written or has no rows."""
        if name not in self.datasets:
            return None
        key = (name, *columns)
        if key not in self.tables:
            self.tables[key] = read_arrow(self.out, name, list(columns) or None)
        return self.tables[key] if len(self.tables[key]) else None

    def of_run(self, name: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """As ``table``, the rows of the run that the page is about."""
        table = self.table(name, ("run_id", *columns) if columns else ())
        if table is None or self.run is None:
            return None
        rows = table.filter(pc.equal(table.column("run_id"), self.run["run_id"]))
        return rows if len(rows) else None

    @property
    def run(self) -> dict[str, Any] | None:
        """The run that is recommended; else the first one that finished; None where none did."""
        rows = self.runs.to_pylist()
        wanted = self.recommendation.run_id if self.recommendation else None
        finished = [row for row in rows if row["status"] in _FINISHED]
        return next((row for row in finished if row["run_id"] == wanted), finished[0] if finished else None)


def read_study(out: str) -> Results:
    """Open the results in a folder; of its datasets only ``runs`` is read at once.

    Raises:
        UserError: it holds no results, or a file is damaged.
    """
    place = location(out)
    job = written_by(place) if place.is_dir() else None
    if job is None:
        raise UserError(f"report: {out} holds no results of ecjax; allowed: what a job was told as out=")
    return Results(
        out, job, read_arrow(out, "runs", None), written_datasets(place), read_recommendation(place)
    )


def pick(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Those of the columns that the table has with a value in any row."""
    shown = [
        name
        for name in names
        if name in table.column_names and table.column(name).null_count < max(len(table), 1)
    ]
    return table.select(shown)


def words(table: pa.Table, name: str) -> list[str]:
    """A column as texts; empty where there is no value."""
    return ["" if value is None else str(value) for value in table.column(name).to_pylist()]
