"""Where rows are few, a placement one chunk away may be much better: all of these are tried, again and again.

Descents and added chunks follow prices, which say what a small part of a row's reads would gain. With four files on
four nodes a row is no small part of anything.
"""

from collections.abc import Iterator

import numpy as np

from ecjax.planning.trace.data import Rows, Traced
from ecjax.planning.trace.relax import Relaxed, descend

_MOST_ENTRIES = 64  # rows times nodes
_MOST_STEPS = 2e7  # of all recursions: bins times nodes, some ten seconds
_SHORT = 20  # iterations of a descent that shows whether a placement is worth a whole one
_GAIN = 1e-3  # least part of the objective that counts


def improved(
    data: Traced, placed: np.ndarray, relaxed: Relaxed, fine: float, most: int
) -> tuple[np.ndarray, Relaxed]:
    """The placement, with its reads, from which no chunk that moves, comes or goes leads to a better one.

    As it came where rows are many. A search that takes long ends before.

    Args:
        data: the problem.
        placed: (R, m) bool.
        relaxed: its reads.
        fine: relative distance at which descents end.
        most: iterations of one.
    """
    if placed.size > _MOST_ENTRIES:
        return placed, relaxed
    left = _MOST_STEPS / (len(data.bins.width) * placed.shape[1])
    better = True
    while better and left > 0:
        better = False
        for other, start in _neighbours(data.rows, placed, relaxed.probabilities):
            trial = descend(data, start, fine, _SHORT, other)
            left -= 2 * trial.iterations
            if trial.point.objective < (1 - _GAIN) * relaxed.point.objective:
                placed, relaxed = other, descend(data, trial.probabilities, fine, most, other)
                left -= 2 * relaxed.iterations
                better = True
                break
            if left <= 0:
                break
    return placed, relaxed


def _neighbours(
    rows: Rows, placed: np.ndarray, probabilities: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Placements that differ in one chunk, and reads to start from; swaps come first."""
    swaps: list[tuple[int, int, int]] = []
    others: list[tuple[int, int, int]] = []
    for i in range(len(placed)):
        held = np.flatnonzero(placed[i]).tolist()
        free = np.flatnonzero(~placed[i] & rows.allowed[i]).tolist()
        swaps += [(i, j, l) for j in held for l in free]  # noqa: E741
        others += [(i, -1, l) for l in free]  # noqa: E741
        if len(held) > rows.length[i]:
            others += [(i, j, -1) for j in held]
    room = rows.capacity - rows.chunks @ placed
    for i, gone, new in [*swaps, *others]:
        other, start = placed.copy(), probabilities.copy()
        if gone >= 0:
            other[i, gone] = False
            start[i, gone] = 0.0
        if new >= 0:
            if not fits(rows, other[i], i, new, room):
                continue
            other[i, new] = True
            start[i, new] = probabilities[i, gone] if gone >= 0 else 0.0
        yield other, start


def fits(rows: Rows, placed: np.ndarray, i: int, j: int, room: np.ndarray) -> bool:
    """Whether a row with chunks on the nodes ``placed`` (m,) may have one more on node j, which has this room (m,)."""
    if room[j] < rows.chunks[i]:
        return False
    return rows.per_site == 0 or bool(np.sum(placed & (rows.site == rows.site[j])) < rows.per_site)
