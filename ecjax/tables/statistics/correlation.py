"""Correlation between the delays of the chunks of one request."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.bins import BINS, SIZE_BINS_PER_OCTAVE, log_bin
from ecjax.tables.statistics.index import mix

SAMPLED_REQUESTS = 1 << 14
CHUNKS_KEPT = 32
LATE = -np.inf
_ROOM = 2 * SAMPLED_REQUESTS + 1
_WEYL = np.uint64(0x9E3779B97F4A7C15)


class Correlation(NamedTuple):
    """Pooled correlation over pairs of chunks of one request, its standard error, and the requests behind it."""

    value: float
    error: float
    requests: int


class Sampled(NamedTuple):
    """Requests of a sample, n of them.

    Attributes:
        hashes: (n,) uint64.
        rows: (n,) int64, number of the first row in the log.
        chunks: (n,) int64, number of chunks kept.
        delays: (n, 32) s, of which the first ``chunks`` count.
        groups: (n, 32) int64, see ``chunk_groups``.
    """

    hashes: np.ndarray
    rows: np.ndarray
    chunks: np.ndarray
    delays: np.ndarray
    groups: np.ndarray


@njit()
def _sample(
    first, begins, delays, groups, row, salt, state, bound, hashes, rows, sizes, kept_delays, kept_groups
):
    """Take rows from place ``first`` on; place 0 is row number ``row`` of the log.

    ``state``: requests kept, the place of the open one (-1: not kept), whether the next request goes to place 0, which
    is apart. Returns the place of the request that there was no room for, or the number of rows.
    """
    for i in range(first, begins.shape[0]):
        if begins[i]:
            key = mix(salt ^ np.uint64(row + i))
            state[1] = -1
            if state[2] == 1:
                state[1], state[2] = 0, 0
            elif key < bound:
                if state[0] + 1 == hashes.shape[0]:
                    return i
                state[0] += 1
                state[1] = state[0]
            if state[1] >= 0:
                hashes[state[1]], rows[state[1]], sizes[state[1]] = key, row + i, 0
        place = state[1]
        if place >= 0 and not np.isnan(delays[i]) and sizes[place] < kept_delays.shape[1]:
            kept_delays[place, sizes[place]] = delays[i]
            kept_groups[place, sizes[place]] = groups[i]
            sizes[place] += 1
    return begins.shape[0]


class RequestSample:
    """A uniform sample of up to 16,384 requests with the delays of their first 32 chunks.

    The requests with the smallest hashes of their first rows' numbers are kept (bottom-k sampling: Cohen and Kaplan
    2007, PODC): a uniform sample without replacement, and that of a log is found in those of its parts.

    Args:
        seed: of the sampling.
        first_row: number of the first row in the log.
        continues: whether rows come before: the first request may then be the rest of one that began there, and is
            kept apart for ``absorb``.
    """

    def __init__(self, seed: int, first_row: int = 0, continues: bool = False) -> None:
        self._salt = np.uint64(mix(np.uint64(seed) + _WEYL))
        self._row = first_row
        self._state = np.array([0, -1, int(continues)], np.int64)
        self._bound = np.uint64(2**64 - 1)
        self._arrays = _rooms(0)

    def add(self, begins: np.ndarray, delays: np.ndarray, groups: np.ndarray) -> None:
        """Add rows: whether each begins a request, its delay in s and its group, each (n,).

        A delay of NaN is none; one of minus infinity (``LATE``) is told later, to ``absorb``.
        """
        self._make_room()
        place = 0
        while True:
            place = _sample(
                place, begins, delays, groups, self._row, self._salt, self._state, self._bound, *self._arrays
            )
            if place == len(begins):
                break
            self._drop()
        self._row += len(begins)

    def absorb(self, other: "RequestSample", continued: bool, nodes: np.ndarray, late: np.ndarray) -> None:
        """Add the rows after those of this one.

        Args:
            other: the sample of them, which ``continues``.
            continued: whether its first request is the rest of the one that is open here.
            nodes: the number here of each of its nodes (see ``chunk_groups``).
            late: by node there, the delay (s) that was to be told later.
        """
        self._row = other._row
        if other._state[2] == 1:
            return  # no request began
        self._make_room()
        other._drop()
        if self._state[0] + other._state[0] >= _ROOM:
            self._drop()
        end, opened = int(self._state[0]) + 1, int(self._state[1])
        # the one apart comes first, as in the log
        theirs = Sampled(*(array[: other._state[0] + 1].copy() for array in other._arrays))
        theirs.delays[theirs.delays == LATE] = late[theirs.groups[theirs.delays == LATE] // (2 * BINS)]
        groups = nodes[theirs.groups // (2 * BINS)] * (2 * BINS) + theirs.groups % (2 * BINS)
        theirs = theirs._replace(groups=groups)
        place = int(other._state[1])
        if continued:
            if opened >= 0:
                mine = self._arrays
                held = int(mine.chunks[opened])
                added = min(int(theirs.chunks[0]), CHUNKS_KEPT - held)
                mine.delays[opened, held : held + added] = theirs.delays[0, :added]
                mine.groups[opened, held : held + added] = theirs.groups[0, :added]
                mine.chunks[opened] += added
            theirs = Sampled(*(array[1:] for array in theirs))
            self._state[1] = end + place - 1 if place > 0 else opened if place == 0 else -1
        else:
            self._state[1] = end + place if place >= 0 else -1
        for array, new in zip(self._arrays, theirs, strict=True):
            if array.ndim == 1:
                array[end : end + len(new)] = new
            else:
                array[end : end + len(new), : new.shape[1]] = new
        self._state[0] += len(theirs.rows)
        self._bound = min(self._bound, other._bound)

    def _make_room(self) -> None:
        small = self._arrays
        if len(small.rows) > _ROOM:
            return
        self._arrays = _rooms(_ROOM)
        for whole, part in zip(self._arrays, small, strict=True):
            if part.ndim == 1:
                whole[: len(part)] = part
            else:
                whole[: len(part), : part.shape[1]] = part

    def _drop(self) -> None:
        """Keep only the smallest hashes."""
        used, opened = self._state[:2]
        if used <= SAMPLED_REQUESTS:
            return
        places = (
            1 + np.argpartition(self._arrays.hashes[1 : used + 1], SAMPLED_REQUESTS - 1)[:SAMPLED_REQUESTS]
        )
        for array in self._arrays:
            array[1 : SAMPLED_REQUESTS + 1] = array[places]
        if opened > 0:
            place = np.flatnonzero(places == opened)
            self._state[1] = place[0] + 1 if place.size else -1
        self._state[0] = SAMPLED_REQUESTS
        self._bound = self._arrays.hashes[1 : SAMPLED_REQUESTS + 1].max()

    def __getstate__(self) -> dict[str, Any]:
        self._drop()
        end = int(self._state[0]) + 1
        width = int(self._arrays.chunks[:end].max())
        small = (array[:end] if array.ndim == 1 else array[:end, :width].copy() for array in self._arrays)
        return self.__dict__ | {"_arrays": Sampled(*small)}

    def requests(self) -> Sampled:
        """The sample, in the order of the log."""
        self._drop()
        order = 1 + np.argsort(self._arrays.rows[1 : self._state[0] + 1])
        return Sampled(*(array[order] for array in self._arrays))

    def correlation(self) -> Correlation:
        """Correlation of the sampled chunk delays, see ``pooled_correlation``."""
        sample = self.requests()
        return pooled_correlation(sample.delays, sample.groups, sample.chunks)


def _rooms(count: int) -> Sampled:
    """Room for requests, after the place apart."""
    shape = (count + 1, CHUNKS_KEPT)
    hashes, rows, chunks = (np.zeros(count + 1, kind) for kind in (np.uint64, np.int64, np.int64))
    return Sampled(hashes, rows, chunks, np.zeros(shape), np.zeros(shape, np.int64))


@njit()
def chunk_groups(nodes, writes, sizes):
    """Group of each chunk, (n,): its node, operation and size class, in this order of significance.

    Delays are compared within groups: among chunks of one node (``group // (2 BINS)``), operation and size.
    """
    groups = np.empty(nodes.shape[0], np.int64)
    for i in range(nodes.shape[0]):
        write = 1 if writes[i] else 0
        groups[i] = (nodes[i] * 2 + write) * BINS + log_bin(sizes[i], SIZE_BINS_PER_OCTAVE)
    return groups


def pooled_correlation(delays: np.ndarray, groups: np.ndarray, chunks: np.ndarray) -> Correlation:
    """Pooled within-request correlation of delays centred by the means of their groups.

    sum over requests and pairs a < b of y_a y_b, over the same sum of (y_a^2 + y_b^2) / 2, with y the delay minus the
    mean of its group. A group is a node and a chunk size: centring by node alone would make files of different size
    look correlated. The standard error is the jackknife's over requests.

    Args:
        delays: (requests, width), the first ``chunks[i]`` of row i count.
        groups: group of each delay, (requests, width) integers.
        chunks: (requests,).

    Returns:
        NaN where no request has two chunks or delays do not vary.
    """
    held = np.arange(delays.shape[1]) < chunks[:, None]
    _, numbers = np.unique(groups[held], return_inverse=True)
    values = delays[held]
    if values.shape[0] == 0:
        return Correlation(float("nan"), float("nan"), 0)
    means = np.bincount(numbers, values) / np.bincount(numbers)
    centred = np.zeros_like(delays)
    centred[held] = values - means[numbers]
    paired = chunks >= 2
    total, squares = centred[paired].sum(axis=1), (centred[paired] ** 2).sum(axis=1)
    products = (total**2 - squares) / 2
    norms = squares * (chunks[paired] - 1) / 2
    number = int(paired.sum())
    all_products, all_norms = products.sum(), norms.sum()
    if number == 0 or all_norms <= 0:
        return Correlation(float("nan"), float("nan"), number)
    value = all_products / all_norms
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (all_products - products) / (all_norms - norms)
    error = np.sqrt((number - 1) / number * ((others - value) ** 2).sum()) if number > 1 else float("nan")
    return Correlation(float(value), float(error), number)
