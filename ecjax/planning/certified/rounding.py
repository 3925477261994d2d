"""From the mixture of the relaxation to whole choices: few rows are really mixed, and their errors are spread."""

from typing import NamedTuple

import numpy as np

from ecjax.planning.certified import loops
from ecjax.planning.certified.choice import HOT, NONE
from ecjax.planning.certified.relax import Passes, Relaxed, fits, loads_of, respond, worth
from ecjax.planning.certified.waits import slopes

_LEAST_WEIGHT = 1e-3
_SWEEPS = 12


class Plan(NamedTuple):
    """Whole choices, and what they come to."""

    kinds: np.ndarray  # (R, m)
    z: float  # s, the best for them
    objective: float  # s
    kept: bool  # whether no node is overloaded or holds more chunks than it can


def round_off(passes: Passes, relaxed: Relaxed, tol: float, seed: int, shuffled: bool = False) -> Plan:
    """Whole choices close to a mixture, improved by best responses.

    Args:
        passes: the rows.
        relaxed: the mixture.
        tol: relative gain of a sweep of best responses that ends them.
        seed: of the order of rows.
        shuffled: decide rows in an order that is only roughly that of their work.
    """
    service, rows = passes.service, passes.rows
    keep = relaxed.mixture.weight > _LEAST_WEIGHT
    columns, weight = relaxed.columns.take(keep), relaxed.mixture.weight[keep]
    order = np.argsort(columns.group, kind="stable")
    columns, weight = columns.take(order), weight[order]
    groups = int(relaxed.group.max()) + 1
    weight = weight / np.bincount(columns.group, weight, groups)[columns.group]
    start = np.searchsorted(columns.group, np.arange(groups + 1))
    # only prices that a column needs, and the last, which tell what choices cost
    needed = np.unique(np.append(columns.price[columns.price >= 0], len(relaxed.prices) - 1))
    prices = [relaxed.prices[index] for index in needed]
    price = np.where(columns.price < 0, -1, np.searchsorted(needed, columns.price))
    result = np.zeros_like(relaxed.kinds)
    work = np.zeros(rows.number)
    np.add.at(
        work, np.repeat(np.arange(rows.number), np.diff(rows.start)), rows.read * service.size[rows.grid]
    )
    if shuffled:
        work = work * np.exp(np.random.default_rng(seed).normal(size=rows.number))
    loops.spread_errors(
        np.argsort(-work, kind="stable"),
        rows,
        relaxed.group,
        start,
        weight,
        price,
        np.stack([p.read for p in prices]),
        np.stack([p.write for p in prices]),
        np.stack([p.chunk for p in prices]),
        relaxed.kinds,
        np.ascontiguousarray(relaxed.mixture.slopes.roots),
        result,
    )
    rounded = Plan(result.copy(), *worth(passes, result))
    better = Plan(
        result, *respond(passes, result, rounded.z, relaxed.mixture.chunk_price, _SWEEPS, tol, seed)
    )
    return min(rounded, better, key=rank)


def keeps_capacity(passes: Passes, kinds: np.ndarray) -> bool:
    """Whether no node holds more chunks than it can."""
    rows = passes.rows
    return not np.isfinite(rows.capacity).any() or fits(rows, loads_of(passes, kinds)[1])


def rank(plan: Plan) -> tuple[bool, float]:
    """What puts plans in order, the best first: whether they break a limit of a node, then their objective, s.

    One that breaks a capacity or overloads a node may seem to cost less than any that keeps them.
    """
    return not (plan.kept and np.isfinite(plan.objective)), plan.objective


def spare_chunks(passes: Passes, kinds: np.ndarray, z: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Chunks that would serve best to even out what whole choices cannot: rows and nodes, best first.

    A row with one chunk more than its reads need can share them out in any proportion. Good ones cost little for each
    read that they can move, and read at no higher a price. One chunk a row; limits of sites and nodes are kept.
    """
    service, rows = passes.service, passes.rows
    loads, chunks, _ = loads_of(passes, kinds)
    point = slopes(service, loads, z)
    entries = np.repeat(np.arange(rows.number), np.diff(rows.start))
    reads = np.bincount(entries, rows.read, rows.number)
    price = np.zeros(kinds.shape)
    np.add.at(price, entries, rows.read[:, None] * point.read[:, rows.grid].T)
    reads = np.maximum(reads, 1e-12 * service.rate)[:, None]
    stored = rows.chunks[:, None] * rows.chunk_price + rows.bytes[:, None] * rows.byte_price
    if len(rows.surcharge):
        stored = stored + rows.surcharge
    if len(rows.reading):
        price = price + rows.per_dollar * rows.reading
    price = price / reads
    dearest = np.where(kinds == HOT, price, -np.inf).max(axis=1, keepdims=True)
    score = price - dearest + rows.per_dollar * stored / reads
    free = kinds == NONE
    if len(rows.allowed):
        free &= rows.allowed
    if rows.per_site:
        at_site = np.zeros((rows.number, rows.site.max() + 1), np.int64)
        np.add.at(at_site.T, rows.site, (kinds != NONE).T)
        free &= at_site[:, rows.site] < rows.per_site
    score = np.where(free, score, np.inf)
    node = score.argmin(axis=1)
    best = score[np.arange(rows.number), node]
    order = np.argsort(best, kind="stable")[: 4 * most]
    selection: list[int] = []
    for i in order[np.isfinite(best[order])]:
        if len(selection) < most and chunks[node[i]] + rows.chunks[i] <= rows.capacity[node[i]]:
            chunks[node[i]] += rows.chunks[i]
            selection.append(i)
    return np.array(selection, np.int64), node[np.array(selection, np.int64)]
