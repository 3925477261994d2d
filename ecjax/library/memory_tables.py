"""Tables in memory, and results of earlier jobs, where a job takes a path."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.errors import UserError
from ecjax.tables.folder import location
from ecjax.tables.patterns import one_pattern
from ecjax.tables.read import refuse_index
from ecjax.tables.schemas import INPUTS

# options that name a table or log, of a job or of its group ``planning``
_NAMES = frozenset(
    (
        "nodes",
        "files",
        "catalog",
        "code_table",
        "network",
        "trace",
        "outages",
        "rates",
        "ports",
        "classes",
        "delays",
        "plan",
    )
)
_FOLDERS = ("trace", "plan", "delays")  # of these the folder of an earlier job is named, not a dataset in it
_TEXTS = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}


class MemoryTables:
    """Tables in memory that become files of a folder as the options name them.

    Args:
        folder: of the files; made with the first of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[Path, pa.Table] = {}

    def paths(self, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """Arguments with a path in place of every table; ``write`` is to be called before these are read.

        Raises:
            UserError: a table has no Arrow form.
        """
        named = {}
        for name, value in values.items():
            if name == "planning" and isinstance(value, Mapping):
                named[name] = self.paths(value, "planning.")
            elif name in _NAMES:
                read = _columns(name, values.get("columns"))
                named[name] = self._path(value, name, prefix + name, read)
            else:
                named[name] = value
        return named

    def _path(self, value: Any, option: str, name: str, read: set[str]) -> Any:
        """The path of what an option was set to; what is neither table nor results as it is.

        ``read`` are the columns that are read of a table.
        """
        if isinstance(value, list | tuple):
            digits = len(str(len(value) - 1))  # files of a log are read in the order of their names
            names = [f"{name}-{number:0{digits}}" for number in range(len(value))]
            paths = [self._path(each, option, part, read) for each, part in zip(value, names, strict=True)]
            # several files are one log
            return one_pattern(paths) if option == "trace" and _are_paths(paths) else paths
        if hasattr(value, "__arrow_c_stream__"):
            refuse_index(value, sorted(read), name)
            path = self._folder / f"{name}.parquet"
            self._tables[path] = arrow_table(value, name)
            return str(path)
        if hasattr(value, "run_ids"):
            return value.out if option in _FOLDERS else _dataset(value.out, option)
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    def write(self) -> None:
        """Write the files."""
        for path, table in self._tables.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)

    def renamed(self, message: str) -> str:
        """A message about one of the files, in which the option stands for its path."""
        for path in self._tables:
            message = message.replace(str(path), path.stem)
        return message


def _are_paths(values: list[Any]) -> TypeGuard[list[str]]:
    return bool(values) and all(isinstance(each, str) for each in values)


def _columns(option: str, mapping: Any) -> set[str]:
    """Names of the columns of the tables that an option may take; of a log those of the mapping, if there is one."""
    if option in ("trace", "delays") and isinstance(mapping, Mapping):
        return {column for column in mapping.values() if isinstance(column, str)}
    tables = {"trace": ("requests", "transfers"), "delays": ("delays", "requests")}.get(option, (option,))
    return {column.name for table in tables for column in INPUTS.get(table, ())}


def arrow_table(value: Any, name: str) -> pa.Table:
    """A table of any library in Arrow, its texts in the one type that tables are checked for.

    Raises:
        UserError: it has no Arrow form.
    """
    try:
        if type(value).__module__.partition(".")[0] == "pandas":
            table = pa.Table.from_pandas(value, preserve_index=False)
        else:
            table = pa.table(value)
        schema = pa.schema([field.with_type(_TEXTS.get(field.type, field.type)) for field in table.schema])
        return table.cast(schema).combine_chunks()
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{name}: the {type(value).__name__} has no Arrow form: {reason}") from error


def _dataset(out: str, name: str) -> str:
    """Where results hold a table: the dataset of an analysis, or the only input of that name.

    Raises:
        UserError: they do not, or hold several.
    """
    place = location(out)
    inputs = place / "inputs" / name
    if (place / name).is_dir():
        return str(place / name)
    files = sorted(path for path in inputs.iterdir() if path.suffix == ".parquet") if inputs.is_dir() else []
    if len(files) != 1:
        raise UserError(f"{name}: found results with {len(files)} tables of {name}; allowed: those with one")
    return str(files[0])
