"""Requests from rows: consecutive rows with one request id are one request, across record batches too."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.index import mix

_RECENT = 1 << 16
_WRITTEN, _RETURNS = np.uint8(1), np.uint8(2)


class Requests(NamedTuple):
    """Finished requests, each field (n,): file number, arrival (s), write or read, bytes and rows."""

    file: np.ndarray
    arrival: np.ndarray
    write: np.ndarray
    bytes: np.ndarray
    rows: np.ndarray

    def between(self, begin: int, end: int | None = None) -> "Requests":
        """Some that follow each other."""
        return Requests(*(field[begin:end] for field in self))


@njit()
def _group(
    keys, files, arrivals, writes, sizes, state, key_state, recent, marks, returns, out_int, out_float, begins
):
    """Close requests whose rows have ended; the last one stays open in ``state``.

    ``state``: open (0 or 1), file, write, rows; ``key_state``: its key, returns met, row of another file in it (or -1).
    ``marks``: of each place of ``recent``, whether it was written, and whether it was asked for before.
    """
    closed = 0
    file, write, rows = state[1], state[2], state[3]
    arrival, size = out_float[0, 0], out_float[0, 1]
    for i in range(keys.shape[0]):
        if state[0] == 1 and keys[i] == key_state[0]:
            rows += 1
            size += sizes[i]
            begins[i] = False
            if (files[i] != file or writes[i] != (write == 1)) and key_state[2] < 0:
                key_state[2] = i
            continue
        if state[0] == 1:
            out_int[closed, 0], out_int[closed, 1], out_int[closed, 2] = file, write, rows
            out_float[closed, 0], out_float[closed, 1] = arrival, size
            closed += 1
            place = _place(key_state[0])
            recent[place] = key_state[0]
            marks[place] |= _WRITTEN
        # A recently closed id that returns: its rows were not consecutive.
        place = _place(keys[i])
        if marks[place] & _WRITTEN:
            if recent[place] == keys[i]:
                key_state[1] += 1
        else:
            # No other id can take the place before this one closes and does: there is one question per place.
            returns[place] = keys[i]
            marks[place] |= _RETURNS
        state[0], key_state[0] = 1, keys[i]
        file, write, rows = files[i], 1 if writes[i] else 0, 1
        arrival, size = arrivals[i], sizes[i]
        begins[i] = True
    state[1], state[2], state[3] = file, write, rows
    out_float[closed, 0], out_float[closed, 1] = arrival, size
    return closed


@njit(inline="always")
def _place(key):
    return np.int64(mix(np.uint64(key)) % np.uint64(_RECENT))


class RequestGrouper:
    """Groups rows into requests by the id of each row.

    ``returned`` counts ids that came back after rows of other requests (as far as the last 65,536 ids tell): such
    requests are counted in pieces.

    Args:
        continues: whether rows come before: the first request may then be the rest of one that began there, and is
            kept for ``absorb``.
    """

    def __init__(self, continues: bool = False) -> None:
        self._state = np.zeros(4, np.int64)
        self._keys = np.array([0, 0, -1], np.int64)
        self._open = np.zeros(2)
        self._recent, self._returns = np.zeros(_RECENT, np.int64), np.zeros(_RECENT, np.int64)
        self._marks = np.zeros(_RECENT, np.uint8)
        self._continues = continues
        self._first: tuple[int, int, bool] | None = None  # key, file and operation of the first row
        self._first_request: Requests | None = None  # the first request, once it is closed

    @property
    def returned(self) -> int:
        """Requests whose rows were seen not to be consecutive."""
        return int(self._keys[1])

    def add(
        self, keys: np.ndarray, files: np.ndarray, arrivals: np.ndarray, writes: np.ndarray, sizes: np.ndarray
    ) -> tuple[Requests, np.ndarray, int | None]:
        """Add rows, each field (n,), ``keys`` being 64-bit request ids or hashes of them.

        Returns:
            The requests that ended, whether each row begins a request (n,), and the first row whose file or operation
            differs from that of its request (None where there is none).
        """
        rows = keys.shape[0]
        if self._first is None and rows:
            self._first = int(keys[0]), int(files[0]), bool(writes[0])
        integers, floats = np.empty((rows + 1, 3), np.int64), np.empty((rows + 1, 2))
        floats[0] = self._open
        begins = np.empty(rows, np.bool_)
        self._keys[2] = -1
        closed = _group(
            keys,
            files,
            arrivals,
            writes,
            sizes,
            self._state,
            self._keys,
            self._recent,
            self._marks,
            self._returns,
            integers,
            floats,
            begins,
        )
        self._open = floats[closed].copy()
        mixed = int(self._keys[2]) if self._keys[2] >= 0 else None
        ended = _requests(integers[:closed], floats[:closed])
        if self._continues and self._first_request is None and closed:
            self._first_request, ended = ended.between(0, 1), ended.between(1)
        return ended, begins, mixed

    def continued_by(self, other: "RequestGrouper") -> bool:
        """Whether the first request of another one, whose rows follow, is the rest of the one that is open here."""
        return self._state[0] == 1 and other._first is not None and other._first[0] == self._keys[0]

    def mixed_with(self, other: "RequestGrouper", files: np.ndarray) -> bool:
        """Whether that rest is of another file or operation; ``files`` as for ``absorb``."""
        if other._first is None or not self.continued_by(other):
            return False
        _, file, write = other._first
        return files[file] != self._state[1] or write != (self._state[2] == 1)

    def absorb(self, other: "RequestGrouper", files: np.ndarray) -> Requests:
        """Add the rows after those of this one.

        Args:
            other: what grouped them, and ``continues``.
            files: the number here of each of its files.

        Returns:
            The requests that were open here or kept there and that ended there: none, one or two.
        """
        if other._first is None:
            return self.finish().between(0, 0)
        rest = other._first_request or other.finish()
        rest = rest._replace(file=files[rest.file])
        opened = self.finish()
        returning = other._marks & _RETURNS != 0
        if self.continued_by(other):
            # its first row did not begin it
            returning[_place(np.int64(other._first[0]))] = False
            whole = opened._replace(bytes=opened.bytes + rest.bytes, rows=opened.rows + rest.rows)
            ended = [whole]
        else:
            if len(opened.file):
                place = _place(self._keys[0])
                self._recent[place] = self._keys[0]
                self._marks[place] |= _WRITTEN
            ended = [opened, rest]
        met = returning & (self._marks & _WRITTEN != 0) & (self._recent == other._returns)
        self._keys[1] += other._keys[1] + np.count_nonzero(met)
        written = other._marks & _WRITTEN != 0
        self._recent[written] = other._recent[written]
        self._marks[written] |= _WRITTEN
        self._keys[0] = other._keys[0]
        if other._first_request is None:
            # the one request there is still open
            last = ended.pop()
            self._state[1:] = last.file[0], last.write[0], last.rows[0]
            self._open = np.array([last.arrival[0], last.bytes[0]])
        else:
            self._state[1:] = files[other._state[1]], other._state[2], other._state[3]
            self._open = other._open
        self._state[0] = 1
        return (
            Requests(*(np.concatenate(fields) for fields in zip(*ended, strict=True)))
            if ended
            else opened.between(0, 0)
        )

    def __getstate__(self) -> dict[str, Any]:
        # only the places that were used
        marks = self._marks
        used = {
            "_recent": self._recent[marks & _WRITTEN != 0],
            "_returns": self._returns[marks & _RETURNS != 0],
            "_marks": (np.flatnonzero(marks), marks[marks != 0]),
        }
        return self.__dict__ | used

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        marks = np.zeros(_RECENT, np.uint8)
        places, values = state["_marks"]
        marks[places] = values
        for name, bit in (("_recent", _WRITTEN), ("_returns", _RETURNS)):
            keys = np.zeros(_RECENT, np.int64)
            keys[marks & bit != 0] = state[name]
            setattr(self, name, keys)
        self._marks = marks

    def finish(self) -> Requests:
        """The request that is still open, if any."""
        held = self._state[0]
        return _requests(self._state[None, 1:][:held], self._open[None, :][:held])


def _requests(integers: np.ndarray, floats: np.ndarray) -> Requests:
    return Requests(
        integers[:, 0].copy(),
        floats[:, 0].copy(),
        integers[:, 1] == 1,
        floats[:, 1].copy(),
        integers[:, 2].copy(),
    )
