"""Some thousand rows that stand for very many of several chunk sizes, to look for prices with.

What a row chooses at prices depends on its code, on where its chunk size lies between two sizes of the grid, and on how
its reads weigh against its storage cost. Rows that are close in all of it are added up to one, with the reads, writes,
chunks and bytes of all: what one choice costs them together. The sum of the cheapest costs of such rows is hence no
lower bound on that of theirs (each row may choose for itself), but prices that are good for it are good for them;
what they prove takes a pass over the rows themselves.
"""

from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.collapse import classes_of
from ecjax.planning.certified.data import Rows, rates_of
from ecjax.planning.certified.relax import Passes, ranks_of

_MANY = 100_000  # rows
# places between two sizes of the grid, and weights within a group, that are told apart: the first that leave few rows
_FINENESS = ((8, 16), (4, 8), (2, 4))
_TIMES = 4  # as few as that


class Thinned(NamedTuple):
    """Passes over rows that stand for others, and the group of each, (T,)."""

    passes: Passes
    group: np.ndarray


def thinned(passes: Passes, group: np.ndarray) -> Thinned | None:
    """Rows that stand for those of ``passes``; None where these are few, have charges of their own, or more sizes each.

    Args:
        passes: the rows, with theta set.
        group: (R,) groups by ``relax.groups_of``, which rows that are added up share.
    """
    service, rows = passes.service, passes.rows
    entries = np.diff(rows.start)
    if (
        rows.number < _MANY
        or len(rows.surcharge)
        or len(rows.reading)
        or not 1 <= entries.min() <= entries.max() <= 2
    ):
        return None
    first, two = rows.start[:-1], entries == 2
    second = np.where(two, first + 1, first)
    served = rows.read + rows.write
    both = served[first] + np.where(two, served[second], 0.0)
    part = np.where(two, served[second], 0.0) / np.where(both > 0, both, 1.0)
    groups, rank = int(group.max()) + 1, ranks_of(service, rows)
    code = classes_of(_without_sizes(rows), rates_of(rows))
    for column, most in ((rows.grid[first], len(service.size)), (two, 2), (group, groups)):
        code = code * most + column
    for places, weights in _FINENESS:
        place = np.minimum((part * places).astype(np.int64), places - 1)
        weight = rank * (groups * weights) // rows.number % weights
        cells = (code * places + place) * weights + weight
        _, example, of_row = np.unique(cells, return_index=True, return_inverse=True)
        if _TIMES * len(example) <= rows.number:
            return Thinned(Passes(service, _added(rows, example, of_row), 1), group[example])
    return None


def _without_sizes(rows: Rows) -> Rows:
    """The rows, all of one size: what is left of their classes are codes and nodes."""
    alike = np.ones(rows.number)
    return rows._replace(chunks=alike, bytes=alike)


def _added(rows: Rows, example: np.ndarray, of_row: np.ndarray) -> Rows:
    """Rows like the examples (T,), each with the sums of the rows that it stands for, of_row (R,)."""
    count, entries = len(example), np.diff(rows.start)
    start = np.concatenate([[0], np.cumsum(entries[example])])
    # the rows of a sum have as many entries as their example has, at the same sizes
    number = (
        np.repeat(start[of_row], entries) + np.arange(len(rows.grid)) - np.repeat(rows.start[:-1], entries)
    )
    grid = np.empty(start[-1], np.int64)
    grid[number] = rows.grid
    return rows._replace(
        start=start,
        grid=grid,
        read=np.bincount(number, rows.read, start[-1]),
        write=np.bincount(number, rows.write, start[-1]),
        hot=rows.hot[example],
        length=rows.length[example],
        chunks=np.bincount(of_row, rows.chunks, count),
        bytes=np.bincount(of_row, rows.bytes, count),
        allowed=rows.allowed[example] if len(rows.allowed) else rows.allowed,
    )
