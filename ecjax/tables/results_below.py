"""Folders of results in and below a folder: what is meant where a path ends a folder or two too early."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ecjax.errors import UserError
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import is_local, is_visible

_DEPTH, _MOST_FOLDERS, _SHOWN = 3, 500, 5
_PLANNING = "planning"  # of a replay: the results of the plans that it made


class Results(NamedTuple):
    """A folder of results."""

    folder: Path
    job: str


def results_below(folder: Path) -> list[Results]:
    """Folders of results, the folder itself first; none in an object store, which is not searched."""
    if not is_local(folder):
        return []
    return [
        Results(place, job) for place, job in islice(_walk(folder, _DEPTH), _MOST_FOLDERS) if job is not None
    ]


def _walk(folder: Path, depth: int) -> Iterator[tuple[Path, str | None]]:
    """Folders and the jobs that wrote them; what is in results is looked into no further than for plans."""
    job, entries = None, []
    with suppress(UserError, OSError):  # a folder that cannot be looked into, and need not be
        job = written_by(folder)
        entries = sorted(entry for entry in folder.iterdir() if is_visible(entry) and entry.is_dir())
    yield folder, job
    for entry in entries:
        if depth and (job is None or entry.name == _PLANNING):
            yield from _walk(entry, depth - 1)


def of_job(results: list[Results], job: str) -> str:
    """Words that name the folders of a job; empty where there is none."""
    return below(each.folder for each in results if each.job == job)


def below(folders: Iterator[Path]) -> str:
    """Words that list folders; empty where there is none."""
    names = [str(folder) for folder in folders]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f", as {', '.join(names[:_SHOWN])}{more}" if names else ""


def refuse_above_table(folder: Path, table: str, name: str) -> None:
    """Refuse a folder of results, or one above, where a table is read.

    Args:
        folder: where the table is looked for.
        table: which one, "nodes".
        name: what messages call the folder.

    Raises:
        UserError: results are there; lists the tables of that name.
    """
    results = results_below(folder)
    if not results:
        return
    places = [each.folder / part for each in results for part in (table, f"inputs/{table}")]
    listed = below(place for place in places if place.is_dir())
    raise UserError(f"{name}: a folder of results; allowed: the folder of one {table} table{listed}")
