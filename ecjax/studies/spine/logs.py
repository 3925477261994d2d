"""One way to open an access log, for all jobs; what ``ecjax analyze`` was told about a log is used again."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ecjax.console import log
from ecjax.errors import UserError
from ecjax.options import shown
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.sentences import word
from ecjax.tables.background import without_background
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import absolute, location, public
from ecjax.tables.importers import Trace, open_trace
from ecjax.tables.patterns import log_location
from ecjax.tables.results import read_results
from ecjax.tables.results_below import of_job, results_below
from ecjax.tables.several import Several

ANALYZE, TRACES = "analyze", "traces"  # the job, and its dataset, that say how a log was read
LATER = ("keep_ids", "max_rejects")  # options that came after runs had ids
BACKGROUND = "background"  # option of an analysis: accesses that are work of nodes, no requests
# texts that a command takes for what they are, without quotes
_PLAIN = re.compile(r"(?!(?:true|false|null|nan|inf)$)[a-z_]\w*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """How a log is read, or was by an analysis.

    Attributes:
        path: of the log; of one that was analysed, absolute.
        options: ``format``, ``columns``, ``extent_bytes`` and ``sort``, as they were set; ``keep_ids`` and
            ``max_rejects`` where they were; ``background`` of an analysis, which the log is read without.
        fingerprints: of the log, one for each content that was analysed; empty: it may be any.
    """

    path: str
    options: dict[str, Any]
    fingerprints: frozenset[str] = frozenset()

    def identity(self) -> dict[str, Any]:
        """What names this way of reading in the parameters of a run: options that were set, and tell other requests."""
        defaults, names = LogOptions(), ("columns", "format", "extent_bytes", *LATER, BACKGROUND)
        set_ones = {name: self.options[name] for name in names if self.options.get(name)}
        return {name: value for name, value in set_ones.items() if value != getattr(defaults, name, None)}

    def row(self) -> dict[str, str]:
        """Columns of ``traces`` that say how the log of an analysis was read."""
        return {
            "path": public(log_location(self.path)),
            "reading": json.dumps(self.options, sort_keys=True),
        }


def open_log(options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = ()) -> Trace:
    """Open an access log as ``log_reading`` says; see there.

    Raises:
        UserError: the path, the format or an option is wrong, or the log has changed since its analysis.
    """
    return open_reading(log_reading(options, path, inputs))


def log_reading(
    options: LogOptions, path: str | None = None, inputs: Iterable[str | None] = (), whole: bool = False
) -> Reading:
    """How an access log is to be read.

    Where the path is the folder of an analysis, it is the log that was read there, as it was read there. Where one of
    the other inputs of the job comes from an analysis of this log, options that are not set are those of the analysis.
    What the analysis took for background work of the nodes, which are loaded with it, is no request then.

    Args:
        options: of the job.
        path: the log; default: ``options.trace``.
        inputs: other inputs of the job: tables or folders of results.
        whole: read that work, too.

    Raises:
        UserError: the path holds results of another job, or the analysis of no or several logs; or an input comes from
            analyses that differ in the background work of this log.
    """
    name = str(options.trace if path is None else path)
    place = log_location(name)
    for folder in place.folders if isinstance(place, Several) else ():
        if results := results_below(folder):
            raise UserError(
                f"trace={name}: {results[0].folder} holds results of ecjax {results[0].job}; allowed: files and "
                "folders of a log, or the folder of one ecjax analyze alone"
            )
    job = written_by(place) if place.is_dir() else None
    if job is not None:
        reading = _analysed(name, place, job, whole)
        merged = _merged(options, reading.options)
        log.info("trace=%s: %s", name, " ".join((reading.path, *_words(merged))))
        return Reading(reading.path, merged, reading.fingerprints)
    if place.is_dir() and (results := results_below(place)):
        listed = of_job(results, ANALYZE)
        raise UserError(
            f"trace={name}: a folder above results; allowed: a log, or the folder of an ecjax analyze{listed}"
        )
    for other in filter(None, inputs):
        readings = [each for each in _readings_behind(other, whole) if each.path == public(place)]
        if len(readings) > 1 and any(BACKGROUND in each.options for each in readings):
            raise UserError(
                f"{other}: found analyses of {name} that differ in background= or in how it was read; allowed: tables "
                "of one of them, or its folder as the log"
            )
        if len(readings) > 1:
            log.info("trace=%s: was read in several ways for %s; none of them is taken over", name, other)
        if len(readings) == 1:
            merged = _merged(options, readings[0].options)
            log.info("trace=%s: as for %s: %s", name, other, " ".join(_words(merged)))
            return Reading(name, merged)
    return Reading(name, _set({each: getattr(options, each) for each in _names()}))


def open_reading(reading: Reading) -> Trace:
    """Open a log.

    Raises:
        UserError: the path, the format or an option is wrong, or the log has changed since its analysis.
    """
    values = reading.options
    trace = open_trace(
        reading.path,
        values["format"],
        values["columns"],
        values["extent_bytes"],
        values["sort"],
        **{name: values[name] for name in LATER if name in values},
    )
    if reading.fingerprints and trace.fingerprint not in reading.fingerprints:
        raise UserError(
            f"{reading.path}: has changed since its analysis; allowed: trace={reading.path}, or a new ecjax analyze"
        )
    return without_background(trace, frozenset(values.get(BACKGROUND, ())))


def options_in_command(options: LogOptions) -> str:
    """Options of the log that were set, as another command on it takes them, each after a blank; empty if none was."""
    defaults = LogOptions()
    values = {name: getattr(options, name) for name in _names()}
    set_ones = {name: value for name, value in values.items() if value != getattr(defaults, name)}
    return "".join(f" {word(f'{name}={_in_command(value)}')}" for name, value in set_ones.items())


def _in_command(value: Any) -> str:
    """A value as Hydra's grammar has it, in which keys have no quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_in_command(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_command, value))}]"
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        text = value.replace('"', r"\"")
        return f'"{text}"'
    return shown(value)


def background_behind(inputs: Iterable[str]) -> list[str]:
    """What analyses that inputs come from took for background work of nodes: classes, and ``writes``, sorted."""
    readings = (each for place in inputs for each in _readings_behind(place, whole=False))
    return sorted({name for each in readings for name in each.options.get(BACKGROUND, ())})


def _names() -> list[str]:
    return [item.name for item in fields(LogOptions) if item.name != "trace"]


def _set(values: dict[str, Any]) -> dict[str, Any]:
    """Options without those of ``LATER`` that are not set: of logs that have no use for them, runs keep their ids."""
    return {
        name: value
        for name, value in values.items()
        if name not in LATER or value != getattr(LogOptions(), name)
    }


def _merged(options: LogOptions, analysed: dict[str, Any]) -> dict[str, Any]:
    """Options of the job where they were set, else those of the analysis that may stand beside them."""
    defaults = LogOptions()
    values = {name: getattr(options, name) for name in _names()}
    unset = {name for name, value in values.items() if value == getattr(defaults, name)}
    if "columns" not in unset:
        unset -= {"format", "extent_bytes"}
    if "format" not in unset:
        unset -= {"columns"}
    unset.add(BACKGROUND)  # which no other job has as an option
    return _set(values | {name: analysed[name] for name in unset if name in analysed})


def _analysed(name: str, place: Path, job: str, whole: bool) -> Reading:
    """What the only analysis in a folder read.

    Raises:
        UserError: the folder is of another job, or holds no or several analyses.
    """
    if job != ANALYZE:
        raise UserError(
            f"trace={name}: holds results of ecjax {job}; allowed: a log, or the folder of an ecjax analyze"
        )
    readings = _readings(place, whole)
    if len(readings) == 1:
        return readings[0]
    if not readings:
        raise UserError(f"trace={name}: does not say which log was read (dataset traces); allowed: the log")
    paths = sorted({reading.path for reading in readings})
    if len(paths) > 1:
        raise UserError(f"trace={name}: is the analysis of several logs; allowed: one of {', '.join(paths)}")
    if any(BACKGROUND in reading.options for reading in readings):
        raise UserError(
            f"trace={name}: found analyses of the log that differ in background= or in how it was read; allowed: the "
            "folder of one of them"
        )
    ways = "; or ".join(" ".join(_words(reading.options)) for reading in readings)
    raise UserError(f"trace={name}: the log was read in several ways; allowed: trace={paths[0]} {ways}")


def analyses_behind(table: str) -> Iterator[tuple[Path, str | None]]:
    """Folders of analyses that an input may come from, and its batch where it is a file of one.

    What cannot be looked into, and need not be, is left out.

    Args:
        table: a folder of results, of a dataset of it, or a file in that.
    """
    try:
        place = location(absolute(location(table)))
    except (UserError, OSError):
        return
    for folder, batch in ((place, None), (place.parent, None), (place.parent.parent, place.stem)):
        try:
            job = written_by(folder)
        except (UserError, OSError):
            continue
        if job == ANALYZE:
            yield folder, batch


def _readings_behind(table: str, whole: bool) -> list[Reading]:
    """What analyses read that an input comes from, as far as they can be read."""
    for folder, batch in analyses_behind(table):
        with suppress(UserError, OSError):
            return _readings(folder, whole, batch)
    return []


def _readings(folder: Path, whole: bool, batch: str | None = None) -> list[Reading]:
    """The different ways in which analyses in a folder read logs, of one batch if it is given."""
    if not (folder / TRACES).is_dir():
        return []
    runs = read_results(folder, "runs")[["run_id", "input_id", "batch_id", "params"]]
    rows = read_results(folder, TRACES).merge(runs if batch is None else runs[runs["batch_id"] == batch])
    rows[BACKGROUND] = "{}" if whole else rows["params"].fillna("{}").map(_background)
    return [
        Reading(path, json.loads(text) | json.loads(background), frozenset(ways["input_id"]))
        for (path, text, background), ways in rows.groupby(["path", "reading", BACKGROUND], sort=True)
    ]


def _background(params: str) -> str:
    """What an analysis took for background work, of its parameters, as one text for one set of it."""
    background = json.loads(params).get(BACKGROUND)
    return json.dumps({BACKGROUND: sorted(set(background))} if background else {})


def _words(options: dict[str, Any]) -> list[str]:
    """Options as they would be set, and what is left out, for which there is none."""
    background = options.get(BACKGROUND)
    values = {
        name: value
        for name, value in options.items()
        if value not in (None, False, "auto") and name != BACKGROUND
    }
    words = [f"{name}={json.dumps(value).replace(chr(34), '')}" for name, value in values.items()]
    if background:
        words.append(f"without {' and '.join(background)}")
    return words or ["as it is"]
