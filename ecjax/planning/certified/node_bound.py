"""Rigorous minimum of one node's Lagrangian, with chunks of several sizes and with writes: the hard half of the bound.

    N = min over read rates 0 <= x_c <= X_c and write rates 0 <= v_c <= V_c, with rho < 1, of
        sum_c x_c (phi_c(w, q; z)/lambda_hat - y_c) - sum_c v_c yw_c,
    phi_c = 1/2 [(w + e_c - z) + sqrt((w + e_c - z)^2 + q + w^2 + var_c)],
    A_p = background_p + sum_c (x_c + v_c) m_p(c),  w = A_2/(2 (1 - A_1)),  q = A_3/(3 (1 - A_1)).

It is not convex. ``node_minima`` branches over the levels (w, q); ``node_bound_cell`` says why its bounds hold. phi
falls in z, so N does: N(z_2) is a lower bound on all of [z_1, z_2]. Bounds are rigorous up to the rounding of float64.

Over a part of the levels the search is the same, and ends sooner: rates whose levels lie in a cell cost at least what
its linear programs do.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecjax.machine_code import copy_into, njit
from ecjax.planning.certified.data import Service
from ecjax.planning.certified.node_bound_cell import Columns
from ecjax.planning.certified.node_bound_search import search

# Calls a function for parts (first, last + 1) of so many nodes, maybe in several threads.
ShareOut = Callable[[int, Callable[[int, int], None]], object]
_OUTWARDS = 1e-12  # relative; keeps rounding from shutting out levels at the rim


class _Classes(NamedTuple):
    """Classes of chunks by kind (reads, and writes if there are any), over E ends of their sizes."""

    extremes: np.ndarray  # (2, 3, m, C) moments at the least and the largest size
    step: np.ndarray  # (E, 3, m, C) moments at the ends less those in the middle
    mean_step: np.ndarray  # (E, m, C) s
    variance_step: np.ndarray  # (E, m, C) s^2
    most: np.ndarray  # (kinds, m, C) 1/s
    price: np.ndarray  # (E, kinds, m, C) s per 1/s


def node_minima(
    service: Service,
    most_read: np.ndarray,
    price: np.ndarray,
    z: np.ndarray,
    tol: float,
    work: int,
    most_written: np.ndarray | None = None,
    write_price: np.ndarray | None = None,
    rates: np.ndarray | None = None,
    levels: np.ndarray | None = None,
    share_out: ShareOut | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lower bound of N of every node at every z, and the value at the best rates found.

    Args:
        service: C chunk sizes on m nodes; positive moments, background loads below 1.
        most_read: X, (m, C), 1/s.
        price: y >= 0, (m, C), s per 1/s of reads.
        z: (Z,), s; where ``service.alone`` they do not matter.
        tol: s > 0; a node is done when its bounds are as near.
        work: most cells of levels per node and z; a bound that ran out of them is valid and less tight.
        most_written: V, (m, C), 1/s; none where nothing is written.
        write_price: yw >= 0, (m, C), s per 1/s of writes.
        rates: (Z, kinds, m, C), 1/s, result where wanted: the best rates found, of reads, then writes if there are any.
        levels: (m, 4), cells p_1 <= 1/w <= p_2, g_1 <= w/q <= g_2: N over rates whose levels lie there, and ``upper``
            the least of their linear programs; all levels where p_2 is infinite.
        share_out: the nodes, to threads.

    Returns:
        (low, upper), (Z, m), s: low <= N <= upper <= 0; low >= upper - tol unless the work ran out.
    """
    moments = service.moments[None]
    nothing = np.zeros((1, *most_read.shape))
    classes = _Classes(
        np.concatenate([moments, moments]),
        np.zeros_like(moments),
        nothing,
        nothing,
        _kinds(most_read, most_written),
        _kinds(price, write_price)[None],
    )
    return _minima(service, classes, z, tol, work, rates, levels, share_out)


class Coefficients(NamedTuple):
    """Moments m_n(B) = sum_p values[n - 1, p] B^p, of a law whose mean and standard deviation are affine in B; >= 0."""

    work: np.ndarray  # (3, 4, m) of the work that a chunk brings
    served: np.ndarray  # (3, 4, m) of its service


def cell_minima(
    service: Service,
    coefficients: Coefficients,
    ends: np.ndarray,
    most_read: np.ndarray,
    price: np.ndarray,
    z: np.ndarray,
    tol: float,
    work: int,
    most_written: np.ndarray | None = None,
    write_price: np.ndarray | None = None,
    levels: np.ndarray | None = None,
    share_out: ShareOut | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same where a class is an interval of chunk sizes over which its rate may be spread at will.

    N is then the minimum over all ways to spread X_c and V_c over the sizes from ends[0, c] to ends[1, c]. The bound
    takes the tangent in the size (its error falls with the square of the intervals' width), so that low and upper can
    stay apart by more than ``tol``.

    Args:
        service: C chunk sizes, the middles of the intervals, on m nodes.
        coefficients: of the law of service.
        ends: (2, C), B.
        most_read: X, (m, C), 1/s.
        price: y >= 0, (2, m, C), s per 1/s of reads at the ends, linear in B between them.
        z: (Z,), s.
        tol: s > 0.
        work: most cells of levels per node and z.
        most_written: V, (m, C), 1/s.
        write_price: yw >= 0, (2, m, C), s per 1/s of writes.
        levels: (m, 4), cells of levels, as in ``node_minima``.
        share_out: the nodes, to threads.

    Returns:
        (low, upper), (Z, m), s.
    """
    middle = service.size
    rising = np.stack([1 + 0 * middle, 2 * middle, 3 * middle**2])
    slopes = np.einsum("npm,pc->nmc", coefficients.work[:, 1:], rising)
    extremes = np.stack(
        [np.einsum("npm,pc->nmc", coefficients.work, np.stack([b**p for p in range(4)])) for b in ends]
    )
    distance = (ends - middle)[:, None, None, :]
    step = slopes * distance
    served = np.einsum("npm,pc->nmc", coefficients.served[:2, 1:], rising)
    first = np.einsum("pm,pc->mc", coefficients.served[0], np.stack([middle**p for p in range(4)]))
    variance_slope = served[1] - 2 * first * served[0]
    prices = [_kinds(price[e], None if write_price is None else write_price[e]) for e in range(2)]
    classes = _Classes(
        extremes,
        step,
        served[0] * distance[:, 0],
        variance_slope * distance[:, 0],
        _kinds(most_read, most_written),
        np.stack(prices),
    )
    return _minima(service, classes, z, tol, work, levels=levels, share_out=share_out)


def _kinds(reads: np.ndarray, writes: np.ndarray | None) -> np.ndarray:
    """(kinds, m, C): reads, and writes if there are any."""
    return np.stack([reads] if writes is None else [reads, writes])


def _minima(service, classes, z, tol, work, rates=None, levels=None, share_out=None):
    z = np.ascontiguousarray(z, float)
    # of one layout: the search is compiled once
    classes = _Classes(*(np.ascontiguousarray(each) for each in classes))
    low, upper = np.empty((2, len(z), classes.most.shape[1]))
    if rates is None:
        rates = np.empty((0, *classes.most.shape))
    if levels is None:
        levels = np.tile([0.0, np.inf, 0.0, np.inf], (classes.most.shape[1], 1))

    def part(first: int, last: int) -> None:
        _each(first, last, service, classes, levels, z, tol, work, (low, upper, rates))

    if share_out is None:
        part(0, classes.most.shape[1])
    else:
        share_out(classes.most.shape[1], part)
    return low, upper


@njit()
def _each(first, last, service, classes, levels, z, tol, work, results):
    """Fill in the bounds of nodes from first to last - 1, and the rates unless they are empty.

    Arrays are as in ``Columns``, nodes, then classes last.
    """
    low, upper, rates = results
    sizes = service.mean.shape[1]
    for i in range(len(z)):
        for j in range(first, last):
            node, lightest, heaviest, columns = _columns(service, classes, j, z[i])
            if len(rates):
                rates[i, :, j] = 0.0
            if len(node.most) == 0:
                low[i, j] = upper[i, j] = 0.0
                continue
            region, beyond = region_of(node, lightest, heaviest, tol, 0.0)
            limited = levels[j, 1] < np.inf
            if limited:
                # as it is: nothing else is asked for, and what columns were left out had a part in these levels
                region, beyond = (levels[j, 0], levels[j, 1], levels[j, 2], levels[j, 3]), np.inf
            best = np.empty(len(columns))
            low[i, j], upper[i, j] = search(
                node, region, beyond, z[i], service.rate, service.alone, tol, work, limited, best
            )[:2]
            if len(rates):
                for t in range(len(columns)):
                    kind, c = divmod(columns[t], sizes)
                    rates[i, kind, j, c] = best[t]


@njit()
def _columns(service, classes, j, z):
    """The columns of node j that are worth their while on an empty node, and the moments at the ends of their sizes.

    Also their indices, kind x C + size. The others stay at 0 in the minimum: they cost, and make all else wait.
    """
    _, moments, mean, variance, background, rate, alone, _ = service
    extremes, step, mean_step, variance_step, most, price = classes
    kinds, ends, sizes = len(most), len(price), mean.shape[1]
    columns = np.empty(kinds * sizes, np.int64)
    n = reads = 0
    for kind in range(kinds):
        for c in range(sizes):
            worth = -np.inf
            for e in range(ends):
                delay = 0.0
                if kind == 0:
                    d, more = mean[j, c] - z, mean_step[e, j, c]
                    if alone:
                        delay = mean[j, c] + more
                    else:
                        root = np.sqrt(d * d + variance[j, c])
                        delay = 0.5 * (d + root + more)
                        if root > 0:
                            delay += 0.5 * (d * more + 0.5 * variance_step[e, j, c]) / root
                worth = max(worth, price[e, kind, j, c] - delay / rate)
            if worth > 0 and most[kind, j, c] > 0:
                columns[n] = kind * sizes + c
                n += 1
        if kind == 0:
            reads = n
    other = background[j].copy()
    if other[1] <= 0 or other[2] <= 0:
        # no work has one without the other; less of it only lowers the minimum
        other[1:] = 0.0
    node = Columns(
        other,
        np.empty((3, n)),
        np.empty((ends, 3, n)),
        np.empty(n),
        np.empty((ends, n)),
        np.empty(n),
        np.empty(reads),
        np.empty(reads),
        np.empty((ends, reads)),
        np.empty((ends, reads)),
    )
    lightest, heaviest = np.empty((3, n)), np.empty((3, n))
    for t in range(n):
        kind, c = divmod(columns[t], sizes)
        copy_into(node.moments[:, t], moments[:, j, c])
        copy_into(lightest[:, t], extremes[0, :, j, c])
        copy_into(heaviest[:, t], extremes[1, :, j, c])
        node.most[t] = most[kind, j, c]
        node.middle_price[t] = 0.0
        for e in range(ends):
            copy_into(node.step[e, :, t], step[e, :, j, c])
            node.price[e, t] = price[e, kind, j, c]
            node.middle_price[t] += price[e, kind, j, c] / ends
            if kind == 0:
                node.mean_step[e, t] = mean_step[e, j, c]
                node.variance_step[e, t] = variance_step[e, j, c]
        if kind == 0:
            node.mean[t] = mean[j, c]
            node.variance[t] = variance[j, c]
    return node, lightest, heaviest, columns[:n]


@njit(inner=True)
def region_of(node, lightest, heaviest, tol, ahead):
    """The cell (p_1, p_2, g_1, g_2) to search, and a lower bound of N beyond it.

    Args:
        node: ``Columns``.
        lightest: (3, n) moments at the least size.
        heaviest: (3, n) at the largest.
        tol: s.
        ahead: s per 1/s, by how much a chunk may cost less than phi.
    """
    load, second, third = node.background
    free = 1 - load
    p_2, g_1, g_2, beyond = np.inf, np.inf, 0.0, np.inf
    if second > 0:
        p_2 = 2 * free / second
        g_1 = g_2 = 1.5 * second / third
    for c in range(len(node.most)):
        load += node.most[c] * heaviest[0, c]
        second += node.most[c] * heaviest[1, c]
        g_1 = min(g_1, 1.5 * lightest[1, c] / heaviest[2, c])
        g_2 = max(g_2, 1.5 * heaviest[1, c] / lightest[2, c])
    p_1 = max(0.0, 2 * (1 - load) / second)
    if p_2 == np.inf:
        # at a = max y/(m_1 + m_2 p/2) every reduced cost is at least 0: N >= -a free
        beyond, p_2 = -tol, 2 * p_1
        for c in range(len(node.most)):
            dear = max(node.price[:, c].max() + ahead, 0.0) * free / tol
            p_2 = max(p_2, 2 * (dear - lightest[0, c]) / lightest[1, c], 2 / node.moments[0, c])
    p_2 *= 1 + _OUTWARDS
    return (min(p_1 * (1 - _OUTWARDS), p_2), p_2, g_1 * (1 - _OUTWARDS), g_2 * (1 + _OUTWARDS)), beyond
