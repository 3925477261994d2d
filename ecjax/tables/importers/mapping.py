"""The mapping by which a user names the columns of a log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.tables.schemas import REQUESTS, TIME

SOJOURN_COLUMN = "sojourn_s"
TIMES = tuple(column.name for column in REQUESTS if column.kind == TIME)
SCALED = ("bytes", *TIMES, SOJOURN_COLUMN)
_NEEDED = ("arrival_s", "file_id", "bytes")
_NAMES = ("request_id", *_NEEDED, "op", "node_id", "start_s", "finish_s", SOJOURN_COLUMN, "service_class")
OTHER, ANY = "other", "any"
_WORDS = {"op_read": "read", "op_write": "write", "op_other": OTHER}


@dataclass(frozen=True)
class Mapped:
    """A mapping that was checked.

    Attributes:
        columns: column of the log by column of the ``requests`` table (or ``sojourn_s``).
        scales: factor to our unit by the same names, 1 where absent.
        words: "read", "write" or ``OTHER``, which is left out, by the log's word for it; empty where the log says read
            and write itself.
        any_other: whether all other words are left out.
        header: whether a CSV file has one.
    """

    columns: dict[str, str]
    scales: dict[str, float]
    words: dict[str, str]
    header: bool
    any_other: bool = False

    @property
    def leaves_out(self) -> bool:
        """Whether there are operations to be left out."""
        return self.any_other or OTHER in self.words.values()


def parse_mapping(mapping: Mapping[str, Any] | None) -> Mapped:
    """Check a mapping.

    Raises:
        UserError: a key is unknown or missing, or a value has the wrong kind.
    """
    example = "'columns={arrival_s: ts_ms, arrival_s_scale: 0.001, file_id: key, bytes: size}'"
    if not mapping:
        raise UserError(f"columns: missing; allowed: a mapping of the log's columns, as {example}")
    scales, columns = {}, {}
    words: dict[str, str] = {}
    any_other = mapping.get("op_other") == ANY
    for key, value in mapping.items():
        if key in _WORDS:
            if key != "op_other" or not any_other:
                _add_words(words, key, value)
        elif key.removesuffix("_scale") in SCALED and key.endswith("_scale"):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
                raise UserError(f"columns: found {key}={value!r}; allowed: numbers > 0")
            scales[key.removesuffix("_scale")] = float(value)
        elif key in _NAMES:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise UserError(
                    f"columns: found {key}={value!r}; allowed: a column's name, or its number from 0"
                )
            columns[key] = value
        else:
            allowed = ", ".join((*_NAMES, *(f"{name}_scale" for name in SCALED), *_WORDS))
            raise UserError(f"columns: found {key!r}; allowed: {allowed}")
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise UserError(f"columns: missing {', '.join(missing)}; needed: {', '.join(_NEEDED)}, as {example}")
    for name in scales:
        if name not in columns:
            raise UserError(f"columns: found {name}_scale without {name}")
    if (words or any_other) and "op" not in columns:
        raise UserError("columns: found op_read, op_write or op_other without op")
    if {"finish_s", SOJOURN_COLUMN} <= set(columns):
        raise UserError("columns: found finish_s and sojourn_s; allowed: one of them")
    numbered = {isinstance(value, int) for value in columns.values()}
    if len(numbered) == 2:
        raise UserError(
            "columns: found names and numbers; allowed: names, or numbers for a CSV file without a header"
        )
    header = not numbered.pop()
    named = {key: str(value) if header else f"f{value}" for key, value in columns.items()}
    return Mapped(named, scales, words, header, any_other)


def _add_words(words: dict[str, str], key: str, value: Any) -> None:
    """Add the words of one of ``_WORDS``."""
    listed = list(value) if isinstance(value, list | tuple) else [value]
    for word in map(str, listed):
        if words.setdefault(word, _WORDS[key]) != _WORDS[key]:
            other = next(name for name, kind in _WORDS.items() if kind == words[word])
            raise UserError(f"columns: found {word!r} in {other} and {key}; allowed: one of them")
