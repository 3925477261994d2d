"""Writing the datasets of a batch where it was computed; the one driver commits it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.tables import datasets as layout
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.finite import check_finite, check_row
from ecjax.tables.folder import location, publishing, staged, write_errors
from ecjax.tables.result_schemas import JobTables
from ecjax.tables.seals import Contents

Tables: TypeAlias = pa.Table | Iterable[pa.Table]

_MARKER = ".open-"


@dataclass(frozen=True)
class DatasetWriter:
    """Writes the datasets of batches into the folder of an open store, from this or another process; may be pickled.

    What it writes counts once the store commits the batch. A writer that outlives its store (the driver was killed,
    or took this process for dead) replaces no file any more once another store is open, or none is.

    Attributes:
        out: absolute path or address of the folder.
        tables: datasets of the job.
        id_types: Arrow type by id column.
        selection: datasets to write; None: all.
        token: names the store while it is open.
    """

    out: str
    tables: JobTables
    id_types: dict[str, pa.DataType]
    selection: frozenset[str] | None
    token: str = field(default_factory=lambda: uuid4().hex)

    def writes(self, dataset: str) -> bool:
        """Whether rows of this dataset are kept, so that they are worth computing."""
        return self.selection is None or dataset in self.selection

    def reaches(self) -> bool:
        """Whether this process sees the folder of the store, rather than none or another of that name."""
        return _reaches(self.out, f"{_MARKER}{self.token}")

    def write(
        self, run_ids: Iterable[str], datasets: Mapping[str, Tables], ok: Collection[str] | None = None
    ) -> dict[str, Contents]:
        """Write the datasets of the batch of these runs; writing them again replaces them.

        In a folder of this machine they wait under hidden names, so that nobody reads them before they are committed.

        Args:
            run_ids: all runs of the batch.
            datasets: rows by dataset name, as ``ResultStore.commit`` takes them.
            ok: those of the runs that are ok; None: all.

        Returns:
            What was written, by dataset, for ``ResultStore.commit``.

        Raises:
            UserError: the disk is full, the folder cannot be written, or the store is not open any more; no file is
                half-written.
            ValueError: rows that do not fit the schema, of runs that are not in ``run_ids``, or, of runs that are ok,
                with numbers that are none (``finite``).
        """
        ids = list(run_ids)
        written = {}
        with write_errors(self.out):
            for name, tables in datasets.items():
                if self.writes(name):
                    schema = self.schema(name)
                    path = staged(self.path(name, layout.batch_id(ids)), self.token)
                    rows = self._checked(name, tables, ids, ok)
                    whole = next(rows) if isinstance(tables, pa.Table) else rows
                    written[name] = layout.write_parquet(path, whole, schema, ids, check=self.check_open)
        return written

    def path(self, dataset: str, batch: str) -> Path:
        """Where the rows of a batch are."""
        return self._folder / dataset / f"{batch}.parquet"

    def conformed(
        self, datasets: Mapping[str, Tables], ok: Collection[str] | None = None
    ) -> dict[str, list[pa.Table]]:
        """The datasets that are kept, computed and in their schemas, to be sent to where they are written.

        Args:
            datasets: rows by dataset name.
            ok: as for ``write``.

        Raises:
            ValueError: rows that do not fit the schema, or numbers that are none.
        """
        conformed: dict[str, list[pa.Table]] = {}
        for name, tables in datasets.items():
            if self.writes(name):
                parts = [tables] if isinstance(tables, pa.Table) else tables
                conformed[name] = [layout.conform(table, self.schema(name)) for table in parts]
                for table in conformed[name]:
                    check_finite(table, name, self.tables, ok)
        return conformed

    def schema(self, dataset: str) -> pa.Schema:
        """Schema of a dataset with the store's id types."""
        if dataset not in self._schemas:
            self._schemas[dataset] = dataset_schema(self.tables, dataset, self.id_types)
        return self._schemas[dataset]

    def open(self) -> None:
        """Put the store's marker into the folder, in place of those of killed stores."""
        for path in self._folder.iterdir():
            if path.name.startswith(_MARKER):
                path.unlink(missing_ok=True)
        with publishing(self._marker) as file:
            file.write_text(self.token)

    def close(self) -> None:
        """Take the marker away."""
        self._marker.unlink(missing_ok=True)

    @cached_property
    def _schemas(self) -> dict[str, pa.Schema]:
        return {}

    @cached_property
    def _marker(self) -> Path:
        return self._folder / f"{_MARKER}{self.token}"

    @cached_property
    def _folder(self) -> Path:
        return location(self.out)

    def is_open(self) -> bool:
        """Whether the store is open still."""
        return self._marker.exists()

    def check_open(self) -> None:
        """Check that the store is open still.

        Raises:
            UserError: it is not.
        """
        if not self.is_open():
            raise UserError(
                f"out={self.out}: the job that this is written for has ended, or another ecjax job writes to it now"
            )

    def _checked(
        self, name: str, tables: Tables, ids: list[str], ok: Collection[str] | None
    ) -> Iterator[pa.Table]:
        ids_of_batch = pa.array(ids, pa.string())
        for table in [tables] if isinstance(tables, pa.Table) else _computed(tables):
            rows = layout.conform(table, self.schema(name))
            if not pc.all(
                pc.is_in(pc.unique(rows.column("run_id")), value_set=ids_of_batch), min_count=0
            ).as_py():
                raise ValueError(f"{name} has rows of runs that are not in the batch")
            check_finite(rows, name, self.tables, ok)
            yield rows

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def _computed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables; what the system refuses while they are computed is no fault of the folder that they go to."""
    try:
        yield from tables
    except OSError as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


@lru_cache
def _reaches(out: str, marker: str) -> bool:
    # Listing, unlike asking for the name, makes a network file system look anew.
    try:
        return any(path.name == marker for path in location(out).iterdir())
    except (OSError, UserError):
        return False


class RunRows:
    """Makes tables of rows of the ``runs`` dataset, whose columns are many and mostly empty.

    Args:
        schema: of the dataset.
        tables: of the job.
    """

    def __init__(self, schema: pa.Schema, tables: JobTables) -> None:
        self._schema, self._tables = schema, tables
        self._types = {field.name: field.type for field in schema}

    def table(self, runs: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Rows of runs.

        Raises:
            ValueError: the schema lacks a column, there is no such status, or it is ok and a number is none.
        """
        filled = {name for run in runs for name in run}
        unknown = sorted(filled - set(self._types))
        if unknown:
            raise ValueError(f"columns that the schema lacks: {unknown}")
        columns = [
            pa.array([run.get(name) for run in runs], kind) if name in filled else pa.nulls(len(runs), kind)
            for name, kind in self._types.items()
        ]
        for run in runs:
            Status(run["status"])
            check_row(run, self._tables)
        return pa.Table.from_arrays(columns, schema=self._schema)
