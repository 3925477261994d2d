"""Roles that are nearly right, made right: swaps inside groups until no OSD is above its limit."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ecjax.rados.roles import RoleProblem

_MOST = 20_000  # swaps
_COPY = 0.3  # what a changed role counts, in squares of the mean work


def repaired(problem: "RoleProblem", data: np.ndarray, limit: np.ndarray) -> np.ndarray | None:
    """Swap roles until every OSD is within its limit; None where swaps one at a time do not lead there.

    At each step the busiest OSD, relative to its limit, gives a data role to a member of the same group: that which
    lowers the sum of the squares above the limits most, changed roles counted.

    Args:
        problem: groups.
        data: (N,) bool, to begin with.
        limit: (m,) work.
    """
    data = data.copy()
    group, osd = problem.group, problem.osd
    work = problem.work[group]
    load = np.bincount(osd[data], work[data], len(limit))
    order = np.argsort(osd, kind="stable")
    begin = np.searchsorted(osd[order], np.arange(len(limit) + 1))
    unit = float(problem.work[problem.work > 0].mean())
    for _ in range(_MOST):
        above = load - limit
        busiest = int(np.argmax(above))
        if above[busiest] <= 1e-7 * unit:
            return data
        mine = order[begin[busiest] : begin[busiest + 1]]
        pairs = _partners(problem, mine[data[mine]], data)
        if pairs is None:
            return None
        giver, taker = pairs
        moved, there = work[giver], above[osd[taker]]
        gain = above[busiest] ** 2 - np.maximum(above[busiest] - moved, 0) ** 2
        gain += np.maximum(there, 0) ** 2 - np.maximum(there + moved, 0) ** 2
        changed = problem.data[giver].astype(float) - problem.data[taker]
        score = np.where(gain > 1e-12 * unit**2, gain / unit**2 - _COPY * changed, -np.inf)
        best = int(np.argmax(score))
        if score[best] == -np.inf:
            return None
        a, b = giver[best], taker[best]
        data[a], data[b] = False, True
        load[osd[a]] -= work[a]
        load[osd[b]] += work[b]
    return None


def _partners(
    problem: "RoleProblem", givers: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Pairs of a position that is read, of some, and one of its group that is not; None where there are none."""
    group = problem.group[givers]
    size = problem.first[group + 1] - problem.first[group]
    giver = np.repeat(givers, size)
    offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    taker = np.repeat(problem.first[group], size) + offset
    free = ~data[taker]
    return (giver[free], taker[free]) if free.any() else None


def unneeded_undone(problem: "RoleProblem", data: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Take changed roles back where the limits allow it, those of the largest groups first.

    Args:
        problem: groups.
        data: (N,) bool, within the limits.
        limit: (m,) work.
    """
    data = data.copy()
    work = problem.work[problem.group]
    load = np.bincount(problem.osd[data], work[data], len(limit))
    changed = np.flatnonzero(np.add.reduceat(data != problem.data, problem.first[:-1]) > 0)
    for group in changed[np.argsort(-problem.work[changed], kind="stable")].tolist():
        inside = np.arange(problem.first[group], problem.first[group + 1])
        new = inside[data[inside] & ~problem.data[inside]].tolist()
        old = inside[~data[inside] & problem.data[inside]].tolist()
        weight = problem.work[group]
        for place in old:
            if new and load[problem.osd[place]] + weight <= limit[problem.osd[place]]:
                leaving = max(new, key=lambda each: load[problem.osd[each]] - limit[problem.osd[each]])
                new.remove(leaving)
                data[place], data[leaving] = True, False
                load[problem.osd[place]] += weight
                load[problem.osd[leaving]] -= weight
    return data
