"""Requests from rows: consecutive rows with one request id are one request, across record batches too."""

from typing import NamedTuple

import numba
import numpy as np

from ecjax.tables.statistics.index import mix

_RECENT = 1 << 16


class Requests(NamedTuple):
    """Finished requests, each field (n,): file number, arrival (s), write or read, bytes and rows."""

    file: np.ndarray
    arrival: np.ndarray
    write: np.ndarray
    bytes: np.ndarray
    rows: np.ndarray


@numba.njit(cache=True, nogil=True)
def _group(keys, files, arrivals, writes, sizes, state, key_state, recent, out_int, out_float, boundaries):
    """Close requests whose rows have ended; the last one stays open in ``state``.

    ``state``: open (0 or 1), file, write, rows; ``key_state``: its key, returns met, row of another file in it (or -1).
    """
    closed = 0
    file, write, rows = state[1], state[2], state[3]
    arrival, size = out_float[0, 0], out_float[0, 1]
    for i in range(keys.shape[0]):
        if state[0] == 1 and keys[i] == key_state[0]:
            rows += 1
            size += sizes[i]
            boundaries[i] = False
            if (files[i] != file or writes[i] != (write == 1)) and key_state[2] < 0:
                key_state[2] = i
            continue
        if state[0] == 1:
            out_int[closed, 0], out_int[closed, 1], out_int[closed, 2] = file, write, rows
            out_float[closed, 0], out_float[closed, 1] = arrival, size
            closed += 1
            recent[mix(np.uint64(key_state[0])) % np.uint64(_RECENT)] = key_state[0]
        # A recently closed id that returns: its rows were not consecutive.
        if recent[mix(np.uint64(keys[i])) % np.uint64(_RECENT)] == keys[i]:
            key_state[1] += 1
        state[0], key_state[0] = 1, keys[i]
        file, write, rows = files[i], 1 if writes[i] else 0, 1
        arrival, size = arrivals[i], sizes[i]
        boundaries[i] = True
    state[1], state[2], state[3] = file, write, rows
    out_float[closed, 0], out_float[closed, 1] = arrival, size
    return closed


class RequestGrouper:
    """Groups rows into requests by the id of each row.

    ``returned`` counts ids that came back after rows of other requests (as far as the last 65,536 ids tell): such
    requests are counted in pieces.
    """

    def __init__(self) -> None:
        self._state = np.zeros(4, np.int64)
        self._keys = np.array([0, 0, -1], np.int64)
        self._open = np.zeros(2)
        self._recent = np.full(_RECENT, np.iinfo(np.int64).min)

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
            integers,
            floats,
            begins,
        )
        self._open = floats[closed].copy()
        mixed = int(self._keys[2]) if self._keys[2] >= 0 else None
        return _requests(integers[:closed], floats[:closed]), begins, mixed

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
