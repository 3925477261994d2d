"""Which files the inputs of a run were, so that one can tell later whether they are still the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ecjax.errors import UserError
from ecjax.tables.datasets import dataset_files, read_file, written_by
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.folder import location, public
from ecjax.tables.patterns import log_location
from ecjax.tables.result_schemas import RUNS
from ecjax.tables.schemas import INPUTS

SAME, CHANGED, MISSING = "same", "changed", "not found"
_LOGS = ("trace", "arrivals")  # options that take a log, or an analysis for its log
_OPTIONS = (*_LOGS, *INPUTS)
_COLUMN = "input_files"


class Source(NamedTuple):
    """An input of a run.

    Attributes:
        option: that named it.
        path: where it was, absolute, without secrets.
        sha256: fingerprint of its files (``trace_fingerprint``).
    """

    option: str
    path: str
    sha256: str

    def state(self) -> str:
        """Whether it is still the same: ``SAME``, ``CHANGED`` or ``MISSING``."""
        try:
            return SAME if trace_fingerprint(self.path) == self.sha256 else CHANGED
        except UserError:
            return MISSING


def sources_text(options: Mapping[str, Any]) -> str:
    """The files that options name as inputs, as JSON.

    Folders of results are none: they say themselves what they hold. But where one stands for the log that its analysis
    read, that log is an input.

    Args:
        options: of a job, by name.
    """
    sources = {name: _source(name, options[name]) for name in _OPTIONS if isinstance(options.get(name), str)}
    named = {name: source for name, source in sources.items() if source is not None}
    return json.dumps(named, sort_keys=True)


def _source(option: str, path: str) -> dict[str, str] | None:
    try:
        place = log_location(path) if option in _LOGS else location(path)
    except UserError:
        return None
    if not _is_there(place):
        return None  # a word that is no path
    if place.is_dir() and written_by(place) is not None:
        return _log_of(place) if option in _LOGS else None
    return {"path": public(place), "sha256": trace_fingerprint(place, fresh=False)}


def _log_of(results: Path) -> dict[str, str] | None:
    """The log behind an analysis; None where its runs name none or several."""
    files = dataset_files(results, RUNS)
    texts = {text for file in files for text in read_file(file, [_COLUMN])[_COLUMN].to_pylist()}
    logs = {source for text in texts for source in sources_of(text) if source.option in _LOGS}
    if len(logs) != 1:
        return None
    log = logs.pop()
    return {"path": log.path, "sha256": log.sha256}


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, UserError):
        return False


def sources_of(text: str | None) -> list[Source]:
    """What ``sources_text`` wrote."""
    return [Source(option, one["path"], one["sha256"]) for option, one in json.loads(text or "{}").items()]
