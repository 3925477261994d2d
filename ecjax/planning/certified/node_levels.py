"""The least of a node's latency minus what prices earn, over all loads of full and small chunks of any sizes.

    N = min over rates 0 <= x_c <= X_c of sum_c x_c (phi_c - y_c),

c a kind and size of chunks: phi_c is the sojourn's mean where a read is of one chunk, else (d + sqrt(d^2 + V)) / 2, d
its mean less the z of its kind and V its variance. The levels of the node's wait are searched as in ``node_bound``,
which says why the bounds hold. For z within a rectangle there is one partition of the levels into cells: phi is convex
in the levels and z together, so that its tangent plane at a cell's centre and the middle of z is below it. At fixed
levels and rates the plane is affine in z, as prices may be, and so the least of a cell is concave in z, as is the sum
of the least cells of all nodes: over the rectangle it is least at a corner.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import copy_into, njit
from ecjax.planning.certified.node_bound import region_of
from ecjax.planning.certified.node_bound_cell import Columns, Terms, cell_bound, multiplier_slopes
from ecjax.planning.certified.node_bound_search import (
    FIXED,
    MOST_TURNS,
    Program,
    halves,
    inside,
    multipliers,
    side_to_halve,
    work_of,
)

_MOST_CELLS = 4_000  # of a node
DIRECT = -1  # kind of chunks that are waited for alone; the others are numbers of a z


class Chunks(NamedTuple):
    """What nodes may serve: C kinds and sizes of chunks on m nodes."""

    moments: np.ndarray  # (3, m, C) raw moments of service, s, s^2, s^3
    mean: np.ndarray  # (m, C) s, sojourn without waiting
    variance: np.ndarray  # (m, C) s^2
    kind: np.ndarray  # (C,) number of their z, or ``DIRECT``
    beside: np.ndarray  # (m, 3) load, A_2, A_3 of other work


class _Search(NamedTuple):
    """What the search of a node with n columns works in, at Q corners."""

    terms: Terms
    by_z: np.ndarray  # (n,) slopes of the terms by z
    shifted: np.ndarray  # (n,) terms at a corner
    program: Program
    rates: np.ndarray  # (n,) 1/s, that are tried
    best: np.ndarray  # (n,) 1/s, the best for the first corner
    values: np.ndarray  # (Q,)
    dearer: np.ndarray  # (Q, n) s


class Corners(NamedTuple):
    """A rectangle of z by kind, and prices that are affine in z."""

    centre: np.ndarray  # (2,) s
    ahead: np.ndarray  # (Q, 2) s, of the centre
    dearer: np.ndarray  # (Q, m, C) s, how much prices are above those at the centre


@njit(error_model="numpy")
def node_minima(chunks, most, prices, corners, close, least):
    """Lower bounds of N of every node at every corner, (m, Q), valid together; and how many cells they took.

    Args:
        chunks: ``Chunks``.
        most: (m, C) largest loads, 1/s.
        prices: (m, C) s, at the centre.
        corners: ``Corners``.
        close: s/s, how much less than N a node's bound may be.
        least: (m, C) 1/s, loads to look at first; result: the best that were met for the first corner.
    """
    low = np.zeros((len(most), len(corners.ahead)))
    cells = 0
    for j in range(len(most)):
        cells += _node_minimum(chunks, j, most[j], prices[j], corners, close, least[j], low[j])
    return low, cells


@njit(inner=True, error_model="numpy")
def _node_minimum(chunks, j, most, prices, corners, close, least, low):
    """Of node j into ``low``, see ``node_minima``; the cell with the least bound is split first."""
    node, kinds, columns, more = _columns(chunks, j, most, prices, corners)
    count, ends = len(columns), len(corners.ahead)
    upper = np.zeros(ends)
    search = _Search(
        Terms(np.empty(count), np.empty(count), np.empty(count), np.zeros((1, count))),
        np.empty(count),
        np.empty(count),
        Program(
            np.empty(count), np.empty(count), np.empty(count), np.empty(count), np.array([count, count + 1])
        ),
        np.empty(count),
        np.zeros(count),
        np.empty(ends),
        np.empty((ends, count)),
    )
    for corner in range(ends):
        for c in range(count):
            search.dearer[corner, c] = corners.dearer[corner, j, columns[c]]
    for c in range(count):
        search.rates[c] = least[columns[c]]
    least[:] = 0.0
    if count == 0:
        return 1
    region, beyond = region_of(node, node.moments, node.moments, close, more)
    low[:] = min(beyond, 0.0)
    _better(node, kinds, corners, search, upper)
    # cells, how and from where they go on, the least of their bounds, and a heap of those that are not done
    bounds = np.empty((_MOST_CELLS + 2, ends))
    cells, ahead = np.empty((_MOST_CELLS + 2, 4)), np.empty((_MOST_CELLS + 2, 3), np.int64)
    key, heap = np.empty(_MOST_CELLS + 2), np.empty(_MOST_CELLS + 2, np.int64)
    cells[0] = region
    ahead[0, 0] = _bound(node, kinds, region, corners, close, search, upper, bounds[0])
    ahead[0, 1:] = search.program.basis
    key[0] = bounds[0].min()
    heap[0] = 0
    made = waiting = 1
    while waiting and key[heap[0]] < np.inf:
        first = heap[0]
        waiting -= 1
        _sink(key, heap, waiting, heap[waiting])
        if made + 2 > _MOST_CELLS or np.all(bounds[first] >= upper - close):
            for corner in range(ends):
                low[corner] = min(low[corner], bounds[first, corner])
            continue
        cell = (cells[first, 0], cells[first, 1], cells[first, 2], cells[first, 3])
        for half in halves(cell, ahead[first, 0]):
            search.program.basis[:] = ahead[first, 1:]
            ahead[made, 0] = _bound(node, kinds, half, corners, close, search, upper, bounds[made])
            ahead[made, 1:] = search.program.basis
            cells[made] = half
            key[made] = bounds[made].min()
            _rise(key, heap, waiting, made)
            waiting += 1
            made += 1
    for c in range(count):
        least[columns[c]] = search.best[c]
    return made


@njit(inner=True)
def _before(key, cell, other):
    """Whether a cell comes off the heap before another: of equal ones the older."""
    return key[cell] < key[other] or (key[cell] == key[other] and cell < other)


@njit(inner=True)
def _rise(key, heap, place, cell):
    """Put a cell on the heap, at its end or further up."""
    while place > 0 and _before(key, cell, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = cell


@njit(inner=True)
def _sink(key, heap, count, cell):
    """Put a cell on the heap, of so many, in place of the first or further down."""
    place, below = 0, 1
    while below < count:
        if below + 1 < count and _before(key, heap[below + 1], heap[below]):
            below += 1
        if not _before(key, heap[below], cell):
            break
        heap[place] = heap[below]
        place, below = below, 2 * below + 1
    heap[place] = cell


@njit(inner=True, error_model="numpy")
def _bound(node, kinds, cell, corners, close, search, upper, bounds):
    """Fill in the bounds of a cell at every corner, lower the least values that were met; the side to halve."""
    background, terms, program, x = node.background, search.terms, search.program, search.program.x
    if cell[2] * cell[0] * background[2] > 3 * (1 - background[0]):
        bounds[:] = np.inf
        return 0
    p = inside(cell[0], cell[1])
    s = inside(cell[2], cell[3]) * p
    _terms(node, kinds, p, s, corners.centre, terms, search.by_z)
    there = Terms(search.shifted, terms.by_p, terms.by_s, terms.step)
    across = 0
    for corner in range(len(bounds)):
        for c in range(len(kinds)):
            search.shifted[c] = terms.value[c] + _at_corner(search, kinds, c, corners, corner)
        a, b = multipliers(node, p, s, False, there, program)
        slopes = multiplier_slopes(node, there, p, s, a, b, program.basis, False)
        work = work_of(node, x)
        by_p, by_s = -(x @ terms.by_p), -(x @ terms.by_s)
        enough = upper[corner] - close
        bound = cell_bound(node, cell, p, s, there, a, b, FIXED)
        if bound < enough:
            bound = max(bound, cell_bound(node, cell, p, s, there, a, b, slopes))
        if bound < enough and work[1] > 0 and work[2] > 0:
            # multipliers that make the levels stationary at these rates
            level_a, level_b = 2 * by_p / work[1], 3 * by_s / work[2]
            bound = max(bound, cell_bound(node, cell, p, s, there, level_a, level_b, FIXED))
        bounds[corner] = bound
        if bound < enough:
            across = side_to_halve(cell, p * (by_p + 0.5 * a * work[1]), s * (by_s + b * work[2] / 3))
    if np.any(bounds < upper):
        copy_into(search.rates, x)
        _better(node, kinds, corners, search, upper)
    return across


@njit(inner=True)
def _at_corner(search, kinds, c, corners, corner):
    """What a chunk of a column costs more at a corner than at the centre, as the tangent plane says."""
    more = -search.dearer[corner, c]
    if kinds[c] != DIRECT:
        more += search.by_z[c] * corners.ahead[corner, kinds[c]]
    return more


@njit(inner=True, error_model="numpy")
def _better(node, kinds, corners, search, upper):
    """Lower the least values at the corners by rates, and by those that follow from their levels, and from theirs."""
    rates, terms, values = search.rates, search.terms, search.values
    for _ in range(MOST_TURNS):
        work = work_of(node, rates)
        if work[0] >= 1 or work[1] <= 0 or work[2] <= 0:
            break
        p, s = 2 * (1 - work[0]) / work[1], 3 * (1 - work[0]) / work[2]
        _terms(node, kinds, p, s, corners.centre, terms, search.by_z)
        for corner in range(len(values)):
            values[corner] = 0.0
            for c in range(len(kinds)):
                each = terms.value[c] - node.middle_price[c] + _at_corner(search, kinds, c, corners, corner)
                values[corner] += rates[c] * each
        gained = np.any(values < upper)
        if values[0] < upper[0]:
            copy_into(search.best, rates)
        for corner in range(len(values)):
            upper[corner] = min(upper[corner], values[corner])
        if not gained:
            break
        multipliers(node, p, s, False, terms, search.program)
        copy_into(rates, search.program.x)


@njit(inner=True, error_model="numpy")
def _columns(chunks, j, most, prices, corners):
    """The columns of node j that may be worth their while on an empty node, their kinds and their indices.

    The others stay at 0 in the minimum: they cost, and make all else wait. Also by how much a chunk may cost less than
    at the centre, s.
    """
    sizes = len(most)
    columns = np.empty(sizes, np.int64)
    n = 0
    most_less = 0.0
    for c in range(sizes):
        delay, kind = chunks.mean[j, c], chunks.kind[c]
        if kind != DIRECT:
            delay = _positive_part(delay - corners.centre[kind], chunks.variance[j, c])
        less = 0.0
        for corner in range(len(corners.ahead)):
            ahead = 0.0 if kind == DIRECT else max(corners.ahead[corner, kind], 0.0)
            less = max(less, ahead + corners.dearer[corner, j, c])
        most_less = max(most_less, less)
        if most[c] > 0 and prices[c] + less > delay:
            columns[n] = c
            n += 1
    columns = columns[:n]
    other = chunks.beside[j].copy()
    if other[1] <= 0 or other[2] <= 0:
        # no work has one without the other; less of it only lowers the minimum
        other[1:] = 0.0
    node = Columns(
        other,
        np.empty((3, n)),
        np.zeros((1, 3, n)),
        np.empty(n),
        np.empty((1, n)),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.zeros((1, n)),
        np.zeros((1, n)),
    )
    kinds = np.empty(n, np.int64)
    for t in range(n):
        c = columns[t]
        for power in range(3):
            node.moments[power, t] = chunks.moments[power, j, c]
        node.most[t] = most[c]
        node.price[0, t] = node.middle_price[t] = prices[c]
        node.mean[t], node.variance[t] = chunks.mean[j, c], chunks.variance[j, c]
        kinds[t] = chunks.kind[c]
    return node, kinds, columns, most_less


@njit(inner=True, error_model="numpy")
def _positive_part(d, variance):
    """(d + sqrt(d^2 + V)) / 2 without cancellation where d is far below 0."""
    root = np.sqrt(d * d + variance)
    if d > 0:
        return 0.5 * (d + root)
    return 0.5 * variance / (root - d) if root > 0 else 0.0


@njit(inner=True, error_model="numpy")
def _terms(node, kinds, p, s, centre, terms, by_z):
    """Fill in phi of every column at levels, and its slopes by these and by z."""
    value, by_p, by_s, _ = terms
    w, q = 1 / p, 1 / s
    for c in range(len(kinds)):
        if kinds[c] == DIRECT:
            value[c], by_p[c], by_s[c], by_z[c] = w + node.mean[c], -w * w, 0.0, 0.0
            continue
        d = w + node.mean[c] - centre[kinds[c]]
        rest = w * w + q + node.variance[c]
        root = np.sqrt(d * d + rest)
        value[c] = _positive_part(d, rest)
        by_p[c] = -0.5 * w * w * (1 + (d + w) / root)
        by_s[c] = -0.25 * q * q / root
        by_z[c] = -value[c] / root
