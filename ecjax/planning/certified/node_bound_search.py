"""Branch and bound over the levels of one node's wait: bounds of the minimum of its Lagrangian."""

import heapq
from typing import NamedTuple

import numpy as np

from ecjax.machine_code import copy_into, njit
from ecjax.planning.certified.node_bound_cell import Terms, cell_bound, delay_terms, multiplier_slopes
from ecjax.planning.certified.node_bound_lp import solve

MOST_TURNS = 20  # of the descent from rates that are better than the best before
THINNEST = 16.0  # ratio of a cell's sides, in logarithms
APART = 1e-13
FIXED = (0.0, 0.0, 0.0, 0.0)  # multipliers that do not change with the levels


class Program(NamedTuple):
    """Linear program at some levels."""

    cost: np.ndarray  # (n,)
    first: np.ndarray  # (n,)
    second: np.ndarray  # (n,)
    x: np.ndarray  # (n,) its solution, 1/s
    basis: np.ndarray  # (2,)


@njit(inner=True)
def search(node, region, beyond, z, rate, alone, tol, work, limited, best):
    """Bounds of the minimum N of one node's Lagrangian; the cell with the least bound is split first.

    Args:
        node: ``Columns``, n of them.
        region: (p_1, p_2, g_1, g_2), the cell to search.
        beyond: s, lower bound of N at levels outside of it, at least -tol.
        z: s.
        rate: lambda_hat, 1/s.
        alone: whether phi is the mean delay.
        tol: s; the search ends when the bounds are as near.
        work: most cells.
        limited: whether N is over rates with levels in the region: the least linear program there is taken for it.
        best: (n,) 1/s, result: the rates with the least value met.

    Returns:
        (low, upper, cells): low <= N <= upper, the second of which is the value at ``best``, and how many cells
        were bounded.
    """
    n, reads, ends = len(node.most), len(node.mean), len(node.price)
    terms = Terms(np.empty(reads), np.empty(reads), np.empty(reads), np.empty((ends, reads)))
    program = Program(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.array([n, n + 1]))
    best[:] = 0.0
    bound, across, upper = _branch(node, region, z, rate, alone, tol, limited, 0.0, terms, program, best)
    cells = 1
    queue = [(bound, across, region, (program.basis[0], program.basis[1]))]
    while queue[0][0] < upper - tol and cells + 1 < work:
        parent, across, cell, basis = heapq.heappop(queue)
        for half in halves(cell, across):
            program.basis[0], program.basis[1] = basis
            bound, across, upper = _branch(
                node, half, z, rate, alone, tol, limited, upper, terms, program, best
            )
            cells += 1
            item = (max(bound, parent), across, half, (program.basis[0], program.basis[1]))
            heapq.heappush(queue, item)
    return min(queue[0][0], upper, beyond), upper, cells


@njit(inner=True)
def _branch(node, cell, z, rate, alone, tol, limited, upper, terms, program, best):
    """Bound of a cell, whether to split it across g (1) or p (0), and the least value at any rates so far."""
    reads = len(node.mean)
    if not alone and cell[2] * cell[0] * node.background[2] > 3 * (1 - node.background[0]):
        return np.inf, 0, upper
    p = inside(cell[0], cell[1])
    s = inside(cell[2], cell[3]) * p
    delay_terms(node, p, s, z, rate, alone, terms)
    a, b = multipliers(node, p, s, alone, terms, program)
    x = program.x
    bound = cell_bound(node, cell, p, s, terms, a, b, FIXED)
    if bound < upper - tol:
        slopes = multiplier_slopes(node, terms, p, s, a, b, program.basis, alone)
        bound = max(bound, cell_bound(node, cell, p, s, terms, a, b, slopes))
    work = work_of(node, x)
    by_p, by_s = -(x[:reads] @ terms.by_p), -(x[:reads] @ terms.by_s)
    if bound < upper - tol and work[1] > 0:
        # multipliers that make the levels stationary at the rates found
        level_a, level_b = 2 * by_p / work[1], 3 * by_s / work[2]
        bound = max(bound, cell_bound(node, cell, p, s, terms, level_a, level_b, FIXED))
    across = side_to_halve(cell, p * (by_p + 0.5 * a * work[1]), s * (by_s + b * work[2] / 3))
    if bound < upper and limited:
        value = x[:reads] @ terms.value - x @ node.middle_price
        if value < upper:
            upper = value
            copy_into(best, x)
    elif bound < upper:
        upper = _descend(node, work, z, rate, alone, tol, upper, program, best)
    return bound, across, upper


@njit(inner=True)
def side_to_halve(cell, of_p, of_s):
    """Whether to split a cell across g (1) or p (0), by what relative changes of p and s would change, twice over."""
    of_p, of_g = of_p + of_s, of_s
    wide = np.log(cell[1] / cell[0]) if cell[0] > 0 else 4.0
    deep = np.log(cell[3] / cell[2])
    # the rates found may be 0 where others are not: no side is ever left much longer than the other
    return 1 if deep > THINNEST * wide or (of_g * deep > of_p * wide and wide <= THINNEST * deep) else 0


@njit(inner=True)
def multipliers(node, p, s, alone, terms, program):
    """Solve the linear program at the levels, of these terms there, from the basis there is; the multipliers."""
    n, reads = len(node.most), len(node.mean)
    for c in range(n):
        m_1 = node.moments[0, c]
        delay, price = terms.value[c] if c < reads else 0.0, node.middle_price[c]
        # columns that are alike must not be equal: the simplex method would exchange them for ever
        program.cost[c] = delay - price + APART * c * (abs(delay) + abs(price))
        program.first[c] = m_1 + 0.5 * p * node.moments[1, c]
        program.second[c] = 0.0 if alone else m_1 + s * node.moments[2, c] / 3
    free = 1 - node.background[0]
    room_first = max(0.0, free - 0.5 * p * node.background[1])
    room_second = 1.0 if alone else max(0.0, free - s * node.background[2] / 3)
    return solve(
        program.cost,
        program.first,
        program.second,
        room_first,
        room_second,
        node.most,
        program.basis,
        program.x,
    )


@njit(inner=True)
def _descend(node, work, z, rate, alone, tol, upper, program, best):
    """Least value at the rates found and at those that follow from their levels, and from theirs; or ``upper``."""
    reads = len(node.mean)
    terms = Terms(np.empty(reads), np.empty(reads), np.empty(reads), np.empty((len(node.price), reads)))
    for _ in range(MOST_TURNS):
        if work[0] >= 1 or work[1] <= 0 or work[2] <= 0:
            break
        p, s = 2 * (1 - work[0]) / work[1], 3 * (1 - work[0]) / work[2]
        delay_terms(node, p, s, z, rate, alone, terms)
        value = program.x[:reads] @ terms.value - program.x @ node.middle_price
        drop = upper - value
        if value < upper:
            upper = value
            copy_into(best, program.x)
        if drop <= 0.1 * tol:
            break
        multipliers(node, p, s, alone, terms, program)
        work = work_of(node, program.x)
    return upper


@njit(inner=True)
def work_of(node, x):
    """A_1, A_2, A_3."""
    first, second, third = node.background[0], node.background[1], node.background[2]
    for c in range(len(x)):
        first += x[c] * node.moments[0, c]
        second += x[c] * node.moments[1, c]
        third += x[c] * node.moments[2, c]
    return first, second, third


@njit(inner=True)
def inside(low, high):
    """Where to take the tangent: the middle of the logarithm, or nearer to the upper end of a wide interval.

    phi is like 1/p: a tangent far below the upper end would fall under 0 there.
    """
    return max(np.sqrt(low * high), 0.7 * high)


@njit(inner=True)
def halves(cell, across):
    """A cell in two, in the middle of the logarithm of p or g; an end p = 0 is halved."""
    p_1, p_2, g_1, g_2 = cell
    if across:
        g = np.sqrt(g_1 * g_2)
        return (p_1, p_2, g_1, g), (p_1, p_2, g, g_2)
    p = np.sqrt(p_1 * p_2) if p_1 > 0 else 0.25 * p_2
    return (p_1, p, g_1, g_2), (p, p_2, g_1, g_2)
