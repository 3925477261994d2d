"""Fields of the lines of a block as arrays, and what is wrong with the lines."""

import json

import numpy as np

from ecjax.tables.importers.access_logs.lines import Block
from ecjax.tables.importers.access_logs.profile import TIME
from ecjax.tables.importers.access_logs.values import numbers, times


class Wrong:
    """What is wrong with each line, the first reason that is found."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.codes = np.zeros(count, np.int8)
        self.reasons: list[str] = []

    @property
    def none(self) -> np.ndarray:
        """Lines with nothing wrong, (lines,) bool."""
        return self.codes == 0

    def add(self, bad: np.ndarray, reason: str, rows: np.ndarray | None = None) -> None:
        """Add a reason; ``bad`` is about all lines, or about ``rows`` of them."""
        self.reasons.append(reason)
        lines = np.flatnonzero(bad) if rows is None else rows[bad]
        lines = lines[self.codes[lines] == 0]
        self.codes[lines] = len(self.reasons)

    def forgive(self, lines: np.ndarray) -> None:
        """Lines that need not be right."""
        self.codes[lines] = 0


class Fields:
    """Where the fields of lines are: by role (lines, 2)."""

    def __init__(self, data: np.ndarray, spans: dict[str, np.ndarray]) -> None:
        self.data, self.spans = data, spans

    def __contains__(self, role: str) -> bool:
        return role in self.spans

    def of(self, rows: np.ndarray) -> "Fields":
        """Those of some lines."""
        return Fields(self.data, {role: spans[rows] for role, spans in self.spans.items()})

    def begin_with(self, role: str, text: str) -> np.ndarray:
        """Where a role begins with these letters, (lines,) bool."""
        begins, ends = self.spans[role].T
        fitting = (begins >= 0) & (ends - begins >= len(text))
        for place, letter in enumerate(text.encode()):
            fitting[fitting] = self.data[begins[fitting] + place] == letter
        return fitting

    def numbers(self, role: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of a role, and where something else is."""
        spans = np.ascontiguousarray(self.spans[role])
        values, wrong = np.empty(len(spans)), np.empty(len(spans), bool)
        numbers(self.data, spans, scale, values, wrong)
        return values, wrong

    def times(self, kind: int, unit_ns: int, role: str = TIME) -> tuple[np.ndarray, np.ndarray]:
        """Times (ns), and where something else is."""
        spans = np.ascontiguousarray(self.spans[role])
        ticks, wrong = np.empty(len(spans), np.int64), np.empty(len(spans), bool)
        times(self.data, spans, kind, unit_ns, ticks, wrong)
        return ticks, wrong


def unescaped(data: np.ndarray, spans: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """The data, followed by the strings that have escapes as these mean; their spans are moved there."""
    added, place = [data.tobytes()] if lines.size else [], len(data)
    for line in lines.tolist():
        for slot in range(spans.shape[1]):
            begin, end = spans[line, slot]
            raw = bytes(data[begin:end]) if begin >= 0 else b""
            if b"\\" in raw:
                try:
                    text = json.loads(b'"' + raw + b'"').encode("utf-8", "backslashreplace")
                except ValueError:
                    continue  # as it is
                added.append(text)
                spans[line, slot] = place, place + len(text)
                place += len(text)
    return np.frombuffer(b"".join(added), np.uint8) if added else data


def header_lines(block: Block, header: str) -> np.ndarray:
    """Lines that name the columns, (lines,) bool; they come again where files were put together."""
    lines = np.zeros(len(block.begins), bool)
    if header:
        content = header.encode("utf-8", "surrogateescape")
        for line in np.flatnonzero(block.ends - block.begins == len(content)).tolist():
            lines[line] = bytes(block.data[block.begins[line] : block.ends[line]]) == content
    return lines
