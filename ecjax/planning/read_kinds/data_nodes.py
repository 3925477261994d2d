"""Which of the nodes of a row keep its data chunks, and which of these which: direct small reads should wait little."""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit, read_only

_PASSES = 4  # over all such rows; the first places them one by one, the others move what is better elsewhere
_BUSY = 0.99  # beyond this load the price of a node goes on along a line, steep, but finite


class OtherWork(NamedTuple):
    """What nodes do besides small reads."""

    sums: np.ndarray  # (3, m) load, A_2 (s), A_3 (s^2)
    waiting: np.ndarray  # (m,) 1/s, of chunks whose waits count as those of small reads do


def with_hot_chunks_apart(
    data: np.ndarray, stored: np.ndarray, powers: np.ndarray, service: np.ndarray, other: OtherWork
) -> np.ndarray:
    """Nodes of the data chunks, (R, K), where some of a row's are read more than others; other rows stay as they are.

    Args:
        data: nodes of the data chunks of rows whose chunks are read alike, -1 after the last, (R, K).
        stored: (R, m) bool.
        powers: of direct small reads of each chunk, the rates (1/s) times the size (B) to the power of 0..3, (R, K, 4).
        service: raw moments of services as polynomials in the size, (3, 4, m).
        other: of the nodes.
    """
    there = data >= 0
    work = powers[:, :, 0] * there
    most = work.max(axis=1, initial=0.0)
    least = np.where(there, work, np.inf).min(axis=1, initial=np.inf)
    return moved(data, stored, powers, service, other, most > least * (1 + 1e-9))


def moved(
    data: np.ndarray,
    stored: np.ndarray,
    powers: np.ndarray,
    service: np.ndarray,
    other: OtherWork,
    movable: np.ndarray,
) -> np.ndarray:
    """Nodes of the data chunks, (R, K), such that little is waited for direct small reads, and because of them.

    Rows are placed in turn, those with the most work first: the chunk of the most work on the node that adds the least
    to rate times sojourn of all chunks (M/G/1), and so on; then each row again with the others held.

    Args:
        data: nodes of the data chunks now, -1 after the last, (R, K).
        stored: (R, m) bool.
        powers: as ``with_hot_chunks_apart`` takes them.
        service: (3, 4, m), as there.
        other: of the nodes.
        movable: (R,) bool, rows whose data chunks may be on other nodes of the row.
    """
    there = data >= 0
    read = movable & np.any(powers[:, :, 0] * there > 0, axis=1) & (stored.sum(axis=1) > 1)
    some = np.flatnonzero(read)
    if not some.size:
        return data
    placed = data.copy()
    state = np.zeros((3, stored.shape[1]))  # chunks 1/s, load, A_2
    state[0], state[1:] = other.waiting, other.sums[:2]
    rows, chunks = np.nonzero(there[~read])
    nodes = data[~read][rows, chunks]
    held = powers[~read][rows, chunks]
    np.add.at(state[0], nodes, held[:, 0])
    for sums, moment in zip(state[1:], service[:2], strict=True):
        np.add.at(sums, nodes, np.einsum("tp,pt->t", held, moment[:, nodes]))
    order = some[np.argsort(-np.sum(powers[some, :, 0] * there[some], axis=1), kind="stable")]
    _place(placed, read_only(stored), read_only(powers), read_only(service), state, order)
    return placed


@njit()
def _place(placed, stored, powers, service, state, order):
    nodes, most = stored.shape[1], placed.shape[1]
    taken = np.zeros(nodes, np.bool_)
    was = np.empty(most, np.int64)
    for turn in range(_PASSES):
        moved = False
        for row in order:
            k = 0
            while k < most and placed[row, k] >= 0:
                k += 1
            was[:k] = placed[row, :k]
            if turn > 0:
                for chunk in range(k):
                    _add(state, powers[row, chunk], service, placed[row, chunk], -1.0)
            taken[:] = False
            for chunk in np.argsort(-powers[row, :k, 0]):
                best, least = -1, np.inf
                # among equals the node that the chunk had, then one of the other data chunks
                for place in range(-1 - k, nodes):
                    node = place if place >= 0 else was[chunk] if place == -1 - k else was[-1 - place]
                    if stored[row, node] and not taken[node]:
                        price = _price(state, powers[row, chunk], service, node)
                        if price < least - 1e-12 * abs(least) or best < 0:
                            best, least = node, price
                taken[best] = True
                placed[row, chunk] = best
                _add(state, powers[row, chunk], service, best, 1.0)
                moved |= best != was[chunk]
        if not moved:
            return


@njit()
def _price(state, powers, service, node):
    """Growth of rate times sojourn of the chunks of a node, were some more read from it."""
    one, two = 0.0, 0.0
    for power in range(4):
        one += service[0, power, node] * powers[power]
        two += service[1, power, node] * powers[power]
    before = _waiting(state[0, node], state[1, node], state[2, node])
    return one + _waiting(state[0, node] + powers[0], state[1, node] + one, state[2, node] + two) - before


@njit()
def _waiting(rate, load, second):
    """Rate times mean wait, finite at any load."""
    if load < _BUSY:
        return rate * second / (2 * (1 - load))
    idle = 1 - _BUSY
    return rate * second / (2 * idle) * (1 + (load - _BUSY) / idle)


@njit()
def _add(state, powers, service, node, sign):
    state[0, node] += sign * powers[0]
    for power in range(4):
        state[1, node] += sign * service[0, power, node] * powers[power]
        state[2, node] += sign * service[1, power, node] * powers[power]
