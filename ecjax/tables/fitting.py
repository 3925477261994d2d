"""Whether a folder can take the results of a job: it is empty, or holds those of the same job, version and types."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables import datasets as layout
from ecjax.tables.committed import says_how_to_mend
from ecjax.tables.folder import location, write_errors
from ecjax.tables.result_schemas import RUNS, SCHEMA_VERSION, JobTables


def check_out(out: str | Path, tables: JobTables) -> None:
    """Refuse a folder that cannot take the results of a job, before anything is computed.

    Raises:
        UserError: ``out`` is a file, or holds results of another job, another version, or of no ecjax.
    """
    place = location(out)
    with write_errors(place):
        if place.exists() and not place.is_dir():
            raise UserError(f"out={place}: is a file; allowed: a folder, which is made if absent")
    for path in layout.dataset_files(place, RUNS)[:1]:
        with says_how_to_mend():
            schema = layout.checked_schema(path)
        reason, job = _other_version(schema), layout.schema_job(schema)
        if reason:
            raise UserError(f"out={place}: {path.relative_to(place)} {reason}; choose a new out")
        if job != tables.job:
            raise UserError(
                f"out={place}: holds results of ecjax {job}; choose a new out for ecjax {tables.job}"
            )


def _other_version(schema: pa.Schema) -> str | None:
    """Why a file of this schema is not one of this version of ecjax."""
    version = layout.schema_version(schema)
    if version is None:
        return "was not written by ecjax"
    if version != str(SCHEMA_VERSION):
        return f"is of schema version {version}, now it is {SCHEMA_VERSION}"
    return None


def check_datasets(
    out: Path, names: Iterable[str], schema_of: Callable[[str], pa.Schema], damaged: Collection[str]
) -> None:
    """Refuse a folder where a dataset has other columns or types than are to be written.

    Args:
        out: the folder.
        names: of datasets that it has.
        schema_of: the schema of a dataset that is to be written.
        damaged: files that are computed anew, by path under ``out``.

    Raises:
        UserError: naming the first file of the dataset that is not damaged.
    """
    for name in names:
        for path in layout.dataset_files(out, name):
            if f"{name}/{path.name}" in damaged:
                continue
            try:
                reason = _misfit(layout.file_schema(path), schema_of(name))
                if reason:
                    # a damaged footer is no reason: its file is computed anew
                    layout.checked_schema(path)
            except UserError:
                continue
            if reason:
                raise UserError(f"out={out}: {path.relative_to(out)} {reason}; choose a new out")
            break


def _misfit(stored: pa.Schema, schema: pa.Schema) -> str | None:
    """Why rows of a schema cannot go beside a file of another one."""
    reason = _other_version(stored)
    if reason:
        return reason
    if layout.schema_job(stored) != layout.schema_job(schema):
        return f"is of ecjax {layout.schema_job(stored)}, this is ecjax {layout.schema_job(schema)}"
    if stored.names != schema.names:
        return "has other columns than this version of ecjax writes"
    for before, now in zip(stored, schema, strict=True):
        if before.type != now.type:
            return f"has {before.name} of type {before.type}, now it is {now.type}"
    return None
