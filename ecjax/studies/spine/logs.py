"""One way to open an access log, for all jobs; what ``ecjax analyze`` was told about a log is used again."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
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
    """How a log was read by an analysis.

    Attributes:
        path: absolute, of the log.
        options: ``format``, ``columns``, ``extent_bytes`` and ``sort``, as they were set.
        fingerprint: of the log.
    """

    path: str
    options: dict[str, Any]
    fingerprint: str


def open_log(options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = ()) -> Trace:
    """Open an access log.

    Where the path is the folder of an analysis, the log that it read is opened, as it was read there. Where one of the
    other inputs of the job comes from an analysis of this log, options that are not set are those of the analysis.

    Args:
        options: of the job.
        path: the log; default: ``options.trace``.
        inputs: other inputs of the job: tables or folders of results.

    Raises:
        UserError: the path, the format or an option is wrong, or the log has changed since its analysis.
    """
    return open_log_as(options, path, inputs)[0]


def open_log_as(
    options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = ()
) -> tuple[Trace, LogOptions]:
    """The log that ``open_log`` opens, and the options by which it is read: its path, and those of an analysis."""
    name = str(options.trace if path is None else path)
    readings = _readings(name)
    if readings:
        if len(readings) > 1:
            paths = ", ".join(sorted(reading.path for reading in readings))
            raise UserError(f"trace={name}: is the analysis of several logs; allowed: one of {paths}")
        trace, read_as = _opened(readings[0].path, _merged(options, readings[0]))
        if trace.fingerprint != readings[0].fingerprint:
            raise UserError(
                f"trace={name}: {readings[0].path} has changed since its analysis; allowed: trace={readings[0].path}, "
                "or a new ecjax analyze"
            )
        return trace, read_as
    for folder in inputs:
        for reading in _readings(folder) if folder else []:
            if reading.path == _absolute(name):
                log.info("trace: read as its analysis in %s was: %s", folder, _words(reading.options))
                return _opened(name, _merged(options, reading))
    return _opened(name, {each: getattr(options, each) for each in _names()})


def reading_of(options: LogOptions) -> dict[str, Any]:
    """Columns of ``traces`` that say how the log of an analysis was read."""
    set_options = {name: getattr(options, name) for name in _names()}
    return {"path": _absolute(str(options.trace)), "reading": json.dumps(set_options, sort_keys=True)}


def _names() -> list[str]:
    return [item.name for item in fields(LogOptions) if item.name != "trace"]


def _opened(path: str, values: dict[str, Any]) -> tuple[Trace, LogOptions]:
    trace = open_trace(path, values["format"], values["columns"], values["extent_bytes"], values["sort"])
    return trace, LogOptions(path, **values)


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
