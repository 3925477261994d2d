"""One way to open an access log, for all jobs; what ``ecjax analyze`` was told about a log is used again."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.spine.log_options import LogOptions
from ecjax.tables.folder import location
from ecjax.tables.importers import Trace, open_trace
from ecjax.tables.results import read_results

TRACES = "traces"  # dataset of an analysis that says how its log was read


@dataclass(frozen=True)
class Reading:
    """How a log is read, or was by an analysis.

    Attributes:
        path: of the log; of one that was analysed, absolute.
        options: ``format``, ``columns``, ``extent_bytes`` and ``sort``, as they were set.
        fingerprint: of the log; None: it may be any.
    """

    path: str
    options: dict[str, Any]
    fingerprint: str | None = None


def open_log(options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = ()) -> Trace:
    """Open an access log as ``log_reading`` says; see there.

    Raises:
        UserError: the path, the format or an option is wrong, or the log has changed since its analysis.
    """
    return open_reading(log_reading(options, path, inputs))


def log_reading(options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = ()) -> Reading:
    """How an access log is to be read.

    Where the path is the folder of an analysis, it is the log that was read there, as it was read there. Where one of
    the other inputs of the job comes from an analysis of this log, options that are not set are those of the analysis.

    Args:
        options: of the job.
        path: the log; default: ``options.trace``.
        inputs: other inputs of the job: tables or folders of results.

    Raises:
        UserError: the path is the analysis of several logs.
    """
    name = str(options.trace if path is None else path)
    readings = _readings(name)
    if readings:
        if len(readings) > 1:
            paths = ", ".join(sorted(reading.path for reading in readings))
            raise UserError(f"trace={name}: is the analysis of several logs; allowed: one of {paths}")
        return replace(readings[0], options=_merged(options, readings[0]))
    for folder in inputs:
        for reading in _readings(folder) if folder else []:
            if reading.path == _absolute(name):
                log.info("trace: read as its analysis in %s was: %s", folder, _words(reading.options))
                return Reading(name, _merged(options, reading))
    return Reading(name, {each: getattr(options, each) for each in _names()})


def open_reading(reading: Reading) -> Trace:
    """Open a log.

    Raises:
        UserError: the path, the format or an option is wrong, or the log has changed since its analysis.
    """
    values = reading.options
    trace = open_trace(
        reading.path, values["format"], values["columns"], values["extent_bytes"], values["sort"]
    )
    if reading.fingerprint not in (None, trace.fingerprint):
        raise UserError(
            f"{reading.path}: has changed since its analysis; allowed: trace={reading.path}, or a new ecjax analyze"
        )
    return trace


def reading_of(options: LogOptions) -> dict[str, Any]:
    """Columns of ``traces`` that say how the log of an analysis was read."""
    set_options = {name: getattr(options, name) for name in _names()}
    return {"path": _absolute(str(options.trace)), "reading": json.dumps(set_options, sort_keys=True)}


def _names() -> list[str]:
    return [item.name for item in fields(LogOptions) if item.name != "trace"]


def _merged(options: LogOptions, reading: Reading) -> dict[str, Any]:
    """Options of the job where they were set, else those of the analysis."""
    defaults = LogOptions()
    values = {name: getattr(options, name) for name in _names()}
    unset = {name: reading.options.get(name) for name in values if values[name] == getattr(defaults, name)}
    return values | unset


def _readings(folder: str) -> list[Reading]:
    """What analyses in a folder, or in the folder of a table of theirs, read; none where it is no such folder."""
    place = location(folder)
    for parent in (place, place.parent):
        if (parent / TRACES).is_dir() and (parent / "runs").is_dir():
            traces = read_results(parent, TRACES).merge(read_results(parent, "runs")[["run_id", "input_id"]])
            rows = traces.to_dict("records")
            readings = [Reading(row["path"], json.loads(row["reading"]), row["input_id"]) for row in rows]
            return list({reading.path: reading for reading in readings}.values())
    return []


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items() if value not in (None, False))
