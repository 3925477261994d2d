"""Parquet files cut at their row groups, the smallest parts that can be read alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.tables.folder import is_local
from ecjax.tables.formats import PARQUET, list_files, parquet_file, user_errors
from ecjax.tables.importers.trace import BATCH_ROWS
from ecjax.tables.read import fit, open_batches


class _Part(NamedTuple):
    """Row groups of a file: its path as it was given, for messages, and whole, and the numbers of the groups."""

    shown: str
    path: Path
    groups: tuple[int, ...]


@dataclass(frozen=True)
class RowGroups:
    """Row groups that follow each other, perhaps over several files; can be pickled.

    Attributes:
        first_row: number of the first row in all files together.
        rows: number of rows, at least one.
        schema: of the batches: columns and types that all files together have.
        parts: the files and their groups.
    """

    first_row: int
    rows: int
    schema: pa.Schema
    parts: tuple[_Part, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read them.

        Raises:
            UserError: a file is damaged or gone.
        """
        for part in self.parts:
            with user_errors(part.shown), parquet_file(part.path) as file:
                columns = [name for name in file.schema_arrow.names if name in self.schema.names]
                for batch in file.iter_batches(BATCH_ROWS, row_groups=list(part.groups), columns=columns):
                    if batch.num_rows:
                        yield fit(batch, self.schema)


def is_parquet(path: Path) -> bool:
    """Whether this is a Parquet file or a folder, which can only be of such."""
    return path.is_dir() or path.name.lower().endswith(PARQUET)


def cut(path: Path, columns: Sequence[str] | None, count: int) -> list[RowGroups]:
    """Parquet files in up to ``count`` runs of row groups, about equal in rows, in the order of their rows.

    Args:
        path: a file, or a folder of files.
        columns: read only these, as far as they are there.
        count: at least 1.

    Raises:
        UserError: a file cannot be read.
    """
    schema = open_batches(path, columns).schema
    groups: list[tuple[Path, int]] = []
    rows: list[int] = []
    for file in list_files(path):
        with user_errors(file), parquet_file(file) as opened:
            counts = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
        groups += [(file, i) for i, count_of_group in enumerate(counts) if count_of_group]
        rows += [count_of_group for count_of_group in counts if count_of_group]
    ends = np.cumsum(rows)
    # each group goes where its middle is
    middles = (ends - np.array(rows) / 2) / max(sum(rows), 1)
    number = np.minimum((middles * count).astype(int), count - 1)
    pieces = []
    for piece in np.unique(number).tolist():
        first, last = (int(place) for place in np.flatnonzero(number == piece)[[0, -1]])
        by_file: dict[Path, list[int]] = {}
        for file, group in groups[first : last + 1]:
            by_file.setdefault(file, []).append(group)
        parts = tuple(
            _Part(str(file), file.absolute() if is_local(file) else file, tuple(numbers))
            for file, numbers in by_file.items()
        )
        before = int(ends[first]) - rows[first]
        pieces.append(RowGroups(before, int(ends[last]) - before, schema, parts))
    return pieces
