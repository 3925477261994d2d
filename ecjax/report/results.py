"""Results of one study as a page reads them: Arrow tables, read once, and the run that the page is about."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.display import displayed
from ecjax.status import Status
from ecjax.tables.datasets import batches_written, dataset_files, file_schema, results_job, written_datasets
from ecjax.tables.folder import location
from ecjax.tables.recommendation import Recommendation, read_recommendation
from ecjax.tables.results import read_arrow, read_run

NAME = 40  # characters of a name at a bar or in a legend
WHOLE = sys.maxsize


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
        lacks: what other versions of ecjax did not write, a sentence each.
    """

    out: str
    job: str
    runs: pa.Table
    datasets: Sequence[str]
    recommendation: Recommendation | None
    tables: dict[tuple[str, ...], pa.Table | None] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)

    def table(self, name: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """The rows of a dataset, of the columns named or of all.

        None where it was not written, has no rows, or lacks one of the columns; the last is kept in ``lacks``.
        """
        if name not in self.datasets:
            return None
        key = (name, *columns)
        if key not in self.tables:
            self.tables[key] = self._read(name, columns)
        table = self.tables[key]
        return table if table is not None and len(table) else None

    def _read(self, name: str, columns: Sequence[str]) -> pa.Table | None:
        whole = self.tables.get((name,))
        present = whole.column_names if whole is not None else self._columns(name)
        if self._lacks(name, present, columns):
            return None
        if whole is not None:
            return whole.select(list(columns))
        return read_arrow(self.out, name, list(columns) or None)

    def _lacks(self, name: str, present: Sequence[str], columns: Sequence[str]) -> bool:
        """Whether a dataset lacks one of the columns; that it does is kept."""
        lacking = [column for column in columns if column not in present]
        if lacking:
            self.lacks.append(f"The dataset {name} has no {', '.join(lacking)}: another version wrote it.")
        return bool(lacking)

    def _columns(self, name: str) -> Sequence[str]:
        return file_schema(dataset_files(location(self.out), name)[0]).names

    def of_run(self, name: str, columns: Sequence[str] = ()) -> pa.Table | None:
        """As ``table``, the rows of the run that the page is about; of a large dataset no others are read."""
        if self.run is None or name not in self.datasets:
            return None
        run, wanted = self.run["run_id"], ("run_id", *columns) if columns else ()
        key = ("", run, name, *wanted)
        if key not in self.tables and (name,) not in self.tables:
            if self._lacks(name, self._columns(name), wanted):
                self.tables[key] = None
            elif self.run["batch_id"] not in batches_written(location(self.out), name):
                self.tables[key] = None
            else:
                self.tables[key] = read_run(self.out, name, run, list(wanted) or None)
        if key in self.tables:
            rows = self.tables[key]
        else:
            table = self.table(name, wanted)
            rows = None if table is None else table.filter(pc.equal(table.column("run_id"), run))
        return rows if rows is not None and len(rows) else None

    @property
    def run(self) -> dict[str, Any] | None:
        """The run that is recommended; else the first one that finished; None where none did."""
        rows = self.runs.to_pylist()
        wanted = self.recommendation.run_id if self.recommendation else None
        finished = [row for row in rows if Status(row["status"]).finished]
        return next((row for row in finished if row["run_id"] == wanted), finished[0] if finished else None)


def read_study(out: str) -> Results:
    """Open the results in a folder; of its datasets only ``runs`` is read at once.

    Raises:
        UserError: it holds no results, or a file is damaged.
    """
    job, place = results_job("report", out), location(out)
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


def words(table: pa.Table, name: str, most: int = NAME) -> list[str]:
    """A column as texts that can be shown at a bar or in a legend; empty where there is no value.

    ``most``: characters of a text; rows are told apart by whole texts, of ``WHOLE`` characters.
    """
    return [
        "" if value is None else displayed(_text(value), most) for value in table.column(name).to_pylist()
    ]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def distinct(texts: Sequence[str]) -> list[str]:
    """The texts, those that stand there several times with a number: bars of one name would lie on each other."""
    seen: dict[str, int] = {}
    named = []
    for text in texts:
        seen[text] = seen.get(text, 0) + 1
        named.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return named


def legend_names(texts: Iterable[str]) -> dict[str, str]:
    """By whole text what it is called in a legend: cut, and no two alike."""
    whole = list(dict.fromkeys(texts))
    return dict(zip(whole, distinct([displayed(text, NAME) for text in whole]), strict=True))


def labelled(table: pa.Table, names: Sequence[str], name: str) -> pa.Table:
    """The table with a column ``name`` of whole texts: what stands in those of the columns ``names`` that differ.

    Numbers are named by their column, unless those of the first one stand alone.
    """
    present = pick(table, names).column_names
    differing = [each for each in present if len(pc.unique(table.column(each))) > 1] or present[:1]
    columns = []
    for each in differing:
        column = words(table, each, WHOLE)
        if differing != present[:1] and not pa.types.is_string(table.column(each).type):
            column = [f"{each} {text}" if text else "" for text in column]
        columns.append(column)
    texts = [", ".join(filter(None, row)) for row in zip(*columns, strict=True)] or [""] * len(table)
    return table.append_column(name, pa.array(texts, pa.string()))
