"""The files that are read most, placed once more one after the other: what they leave uneven no other evens out.

Systematic sampling leaves at every node about the reads of one file too much or too little for each bin; near
saturation that is much of what room is left. The busiest files are few, and each knows what all others read.
"""

from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.certified.collapse import like
from ecjax.planning.certified.data import Rows, Service
from ecjax.planning.certified.exchange import exchange
from ecjax.planning.certified.trades import takers, trade
from ecjax.planning.certified.waits import best_z, slopes
from ecjax.planning.streamed.tally import Counts

_MOST = 5_000_000  # files times nodes
_SWEEPS = 12
_PROMISE = 1e-2  # of the gap: what all nodes' trades have to promise
_WORTHWHILE = 0.02  # of the gap, which a sweep has to close for others to follow


class Files(NamedTuple):
    """Some of the files.

    Attributes:
        code: (F,) number of the code of each.
        rate: (F,) 1/s, reads.
        kinds: (F, m) where they read and store, as in ``certified.choice``.
    """

    code: np.ndarray
    rate: np.ndarray
    kinds: np.ndarray


class Selection:
    """Tells the busiest files, as many as are placed once more, from the others as they come.

    Args:
        counts: of all files.
        nodes: how many there are.
    """

    def __init__(self, counts: Counts, nodes: int) -> None:
        most = max(_MOST // nodes, 1)
        order = np.argsort(-counts.step, kind="stable")
        taken = np.cumsum(counts.size[order])
        last = min(int(np.searchsorted(taken, most)), len(order) - 1)
        self._step = int(counts.step[order[last]])
        # of the last step those that come first
        self._left = most - int(counts.size[counts.step > self._step].sum())

    def of(self, step: np.ndarray) -> np.ndarray:
        """Whether each of the next files is one, (r,) bool."""
        result = step > self._step
        tied = np.flatnonzero(step == self._step)[: self._left]
        result[tied] = True
        self._left -= len(tied)
        return result


def place_again(
    files: Files,
    service: Service,
    rows: Rows,
    first: np.ndarray,
    totals: tuple[np.ndarray, np.ndarray],
    target: float,
) -> np.ndarray:
    """Where the files read and store once they have given way to each other, (F, m).

    Args:
        files: placed.
        service: of the nodes.
        rows: of which ``first`` has one for each code.
        first: (codes,) the rows.
        totals: reads of the nodes in 1/s, (m,), and chunks by code, (codes, m), of all files.
        target: s; an objective that is good enough.
    """
    some = like(rows, first[files.code], files.rate)
    loads, chunks = totals[0].copy(), totals[1].sum(axis=0).astype(float)
    best, random = files.kinds.copy(), np.random.default_rng(0)
    # codes of whose chunks reads take parts only have larger ones
    price = rows.chunks[first, None] * rows.chunk_price + rows.bytes[first, None] * rows.byte_price
    others = totals[1] - _chunks_by_code(files.code, best, len(first))
    z = best_z(service, loads[:, None])

    def objective() -> float:
        latency = float(slopes(service, loads[:, None], z).value) + (0.0 if service.alone else z)
        held = others + _chunks_by_code(files.code, best, len(first))
        return latency + rows.per_dollar * float(np.sum(held * price))

    order = np.argsort(-files.rate, kind="stable")
    by_rate = takers(files.rate, some.hot, len(loads))
    now = objective()
    for sweep in range(_SWEEPS):
        if now <= target:
            break
        before = now
        if sweep:
            least = _PROMISE * (now - target) / len(loads)
            trade(by_rate, service, some, files.rate, best, loads, chunks, z, least, now - target)
            z = best_z(service, loads[:, None])
        exchange(order[:, None], service, some, files.rate, best, loads, chunks, z, 0.0)
        z = best_z(service, loads[:, None])
        now, order = objective(), random.permutation(some.number)
        if sweep and not before - now > _WORTHWHILE * (before - target):
            break
    return best


def sums_of(files: Files) -> tuple[np.ndarray, np.ndarray]:
    """Reads of every node in 1/s, (m,), and chunks by code, (codes up to the last, m)."""
    chunks = _chunks_by_code(files.code, files.kinds, int(files.code.max()) + 1)
    return files.rate @ (files.kinds == HOT), chunks


def _chunks_by_code(code: np.ndarray, kinds: np.ndarray, codes: int) -> np.ndarray:
    """Chunks of the files of every code at every node, (codes, m)."""
    return np.stack([(kinds[code == each] != NONE).sum(axis=0) for each in range(codes)])
