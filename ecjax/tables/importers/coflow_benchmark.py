"""Coflow-Benchmark text: the shuffles of a MapReduce cluster, one coflow per line."""

import math
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.tables.formats import user_errors
from ecjax.tables.importers.trace import Head
from ecjax.tables.ranges import ranges, starts
from ecjax.tables.schemas import MOST_NUMBER
from ecjax.tables.transfers import Transfers

BYTES_PER_MB = 1e6
HOME = "github.com/coflow/coflow-benchmark"
PUBLIC = "FB2010-1Hr-150-0.txt"  # Facebook's trace there: 526 shuffles of an hour of 2010 between 150 racks
_MS_PER_S = 1e3


def recognises(head: Head) -> bool:
    """Whether a trace begins with a line of two numbers, ports and coflows."""
    words = head.lines[0].split() if head.lines else []
    return len(words) == 2 and all(map(_is_whole, words))


def read_coflow_benchmark(path: str | Path, sort: bool = False) -> Transfers:
    """Read Coflow-Benchmark text (``HOME``), compressed or not.

    The first line has the numbers of ports and of coflows; then comes a line per coflow:
    ``id arrival_ms M mapper_1 ... mapper_M R reducer_1:MB ... reducer_R:MB``. Mappers and reducers are given by their
    ports, counted from 0. The megabytes (10^6 bytes) of a reducer are split equally over the coflow's mappers: M R
    flows, reducer by reducer, each from its mappers in turn. Transfers within a port (a rack) are kept, as flows that
    load its sending and its receiving side.

    Loses: what each mapper sent, since only reducers have sizes; when each of them was ready, since the flows of a
    coflow arrive together; the clock ticks in milliseconds. In the public trace of Facebook (2010) ports are racks, the
    mappers and reducers of a rack are combined, sizes are rounded to the nearest megabyte, and there are shuffles only.

    Args:
        path: the file.
        sort: sort coflows by arrival instead of refusing unsorted ones.

    Returns:
        Transfers whose ports are 0 to the number in the first line - 1.

    Raises:
        UserError: naming the line (from 1), what was found and what is allowed.
    """
    lines = _lines(Path(path))
    ports, coflows = _header(next(lines, None), path)
    builder = _Coflows(ports)
    for number, words in lines:
        try:
            builder.add(words, sort)
        except _MalformedError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    if builder.count != coflows:
        raise UserError(f"{path}: found {builder.count} coflows; allowed: {coflows}, as line 1 says")
    return builder.transfers()


class _MalformedError(Exception):
    """What is wrong with a line: found and allowed."""


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number from 1 and words of each line that has words."""
    if path.is_dir():
        raise UserError(f"{path}: found a folder; allowed: one file of Coflow-Benchmark text")
    with user_errors(path), pa.input_stream(str(path), compression="detect") as stream:
        for number, line in enumerate(stream.read().decode("utf-8-sig").splitlines(), start=1):
            if words := line.split():
                yield number, words


def _header(line: tuple[int, list[str]] | None, path: str | Path) -> tuple[int, int]:
    number, words = line or (1, [])
    if len(words) != 2 or not all(map(_is_whole, words)) or 0 in map(int, words):
        text = " ".join(words)[:80] or "no words"
        raise UserError(
            f"{path}, line {number}: found {text!r}; allowed: the numbers of ports and of coflows, both above 0"
        )
    return int(words[0]), int(words[1])


class _Coflows:
    """Coflows line by line: their mappers and reducers in one row, with where those of each begin."""

    def __init__(self, ports: int) -> None:
        self.count = 0
        self._ports = ports
        self._ids: dict[int, None] = {}
        self._arrival_ms = array("d")
        self._mappers, self._mapper_counts = array("q"), array("q")
        self._reducers, self._reducer_counts = array("q"), array("q")
        self._megabytes = array("d")

    def add(self, words: list[str], sort: bool) -> None:
        """Add the words of a line.

        Raises:
            _MalformedError: the line is wrong.
        """
        if len(words) < 3:
            raise _MalformedError(f"found {len(words)} words; allowed: id arrival_ms M mappers R reducers")
        coflow = _whole(words[0], "as the coflow's id", "a whole number")
        if coflow in self._ids:
            raise _MalformedError(f"found coflow {coflow} again; allowed: every coflow once")
        arrival = _number(words[1], "as arrival_ms", "at least 0")
        if arrival < 0:
            raise _MalformedError(f"found {words[1]!r} as arrival_ms; allowed: a number, at least 0")
        if self.count and arrival < self._arrival_ms[-1] and not sort:
            raise _MalformedError(
                f"found arrival_ms {arrival:g} after {self._arrival_ms[-1]:g}; allowed: coflows in order of arrival "
                "(or give sort=true)"
            )
        mappers, rest = _counted(words[2:], "mappers")
        reducers, rest = _counted(rest, "reducers")
        if rest:
            raise _MalformedError(
                f"found {rest[0]!r} after {len(reducers)} reducers; allowed: the line's end"
            )
        self._mappers.extend(self._port(word) for word in mappers)
        for word in reducers:
            port, colon, size = word.partition(":")
            if not colon:
                raise _MalformedError(f"found reducer {word!r}; allowed: port:megabytes")
            self._reducers.append(self._port(port))
            megabytes = _number(size, "as megabytes", "above 0")
            if not 0 < megabytes <= MOST_NUMBER / BYTES_PER_MB:
                raise _MalformedError(
                    f"found reducer {word!r}; allowed: megabytes above 0, at most {MOST_NUMBER / BYTES_PER_MB:g}"
                )
            self._megabytes.append(megabytes)
        self._ids[coflow] = None
        self._arrival_ms.append(arrival)
        self._mapper_counts.append(len(mappers))
        self._reducer_counts.append(len(reducers))
        self.count += 1

    def _port(self, word: str) -> int:
        if not (_is_whole(word) and int(word) < self._ports):
            raise _MalformedError(f"found port {word!r}; allowed: 0 to {self._ports - 1}")
        return int(word)

    def transfers(self) -> Transfers:
        """All coflows as flows, in order of arrival."""
        mapper_counts, reducer_counts = (
            np.array(counts) for counts in (self._mapper_counts, self._reducer_counts)
        )
        arrival = np.array(self._arrival_ms)
        order = np.argsort(arrival, kind="stable")
        # reducers in order of arrival of their coflows, then each one's flows from the mappers of its coflow
        reducer = ranges(starts(reducer_counts)[order], reducer_counts[order])
        coflow = np.repeat(order, reducer_counts[order])
        flows = mapper_counts[coflow]
        mapper = ranges(starts(mapper_counts)[coflow], flows)
        row = np.repeat(coflow, flows)
        size = np.array(self._megabytes)[reducer] * BYTES_PER_MB / flows
        table = pa.table(
            {
                "coflow_id": np.array(list(self._ids), np.int64)[row],
                "arrival_s": (arrival / _MS_PER_S)[row],
                "src": np.array(self._mappers)[mapper],
                "dst": np.repeat(np.array(self._reducers)[reducer], flows),
                "bytes": np.repeat(size, flows),
            }
        )
        first_flow = np.concatenate([[0], np.cumsum((mapper_counts * reducer_counts)[order])])
        return Transfers(table, first_flow, pa.array(np.arange(self._ports)))


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 19


def _whole(word: str, what: str, allowed: str) -> int:
    if not _is_whole(word):
        raise _MalformedError(f"found {word!r} {what}; allowed: {allowed}")
    return int(word)


def _number(word: str, what: str, allowed: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _MalformedError(f"found {word!r} {what}; allowed: a number, {allowed}")
    return value


def _counted(words: list[str], what: str) -> tuple[list[str], list[str]]:
    """The words that a count announces, and those after them."""
    if not words or not _is_whole(words[0]) or int(words[0]) == 0:
        text = repr(words[0]) if words else "the line's end"
        raise _MalformedError(f"found {text} as the number of {what}; allowed: a whole number above 0")
    count = int(words[0])
    if len(words) - 1 < count:
        raise _MalformedError(
            f"found {len(words) - 1} words after {count} {what} were announced; allowed: at least {count}"
        )
    return words[1 : count + 1], words[count + 1 :]
