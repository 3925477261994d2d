"""Rows and nodes drawn at random for the tests of the smoothed dual, by place and by node."""

import itertools
from typing import NamedTuple

import numpy as np

from ecjax.planning.smoothed.demand import Grid, by_site
from ecjax.planning.smoothed.latency import NodeLaw
from ecjax.planning.smoothed.response import Rows


class Sample(NamedTuple):
    """Rows by place and by node, their nodes, and prices of reads and places (2, m)."""

    law: NodeLaw
    grid: Grid
    sites: tuple[np.ndarray, np.ndarray]
    by_place: Rows
    by_node: Rows
    prices: np.ndarray


def sample(
    seed: int, nodes: int = 8, rows: int = 5, sites: int = 0, per_site: int = 1, masked=True
) -> Sample:
    """k from 1 to 3, up to two cold chunks; with ``sites`` nodes are dealt out to them one after the other."""
    random = np.random.default_rng(seed)
    mean = 0.01 * random.uniform(0.5, 2, nodes)
    background = np.stack([random.uniform(0, 0.3, nodes) * mean**p for p in (0, 1, 2)])
    k, extra = random.integers(1, 4, rows), random.integers(0, 3, rows)
    rate = random.lognormal(0, 1, rows)
    weight = random.integers(1, 50, rows).astype(float)
    rate *= 0.3 / mean.max() / (weight * k * rate).sum() * nodes
    law = NodeLaw(
        np.stack([mean, 1.5 * mean**2, 3 * mean**3]),
        mean + 0.001,
        0.5 * mean**2,
        background,
        float((weight * rate).sum()),
        0.0,
    )
    if sites:
        width = -(-nodes // sites)
        node = np.full((sites, width), nodes)
        for j in range(nodes):
            node[j % sites, j // sites] = j
    else:
        node = np.arange(nodes)[:, None]
    place = np.empty(nodes, np.int64)
    flat = node.ravel()
    place[flat[flat < nodes]] = np.flatnonzero(flat < nodes)
    order = flat[flat < nodes]
    start = np.append(0, np.cumsum((node < nodes).sum(axis=1)))
    cost = random.uniform(1, 2, (rows, nodes)) * 1e-4
    if masked and not sites:
        for i in range(rows):
            left_out = random.permutation(nodes)[: nodes - k[i] - extra[i] - 1]
            cost[i, left_out[: nodes // 3]] = np.inf
    reading = random.uniform(0, 1e-4, (rows, nodes))
    chunks = random.integers(1, 3, rows).astype(float)
    of_nodes = Rows(weight, rate, k, extra, chunks, cost, reading, per_site)
    unusable = np.full((rows, 1), np.inf)
    grid = Grid(node, place)
    of_places = of_nodes._replace(
        cold_cost=np.take(np.hstack([cost, unusable]), node, axis=1), reading=by_site(np, grid, reading)
    )
    prices = np.stack([random.uniform(1, 3, nodes) * 1e-4, random.uniform(0, 1e-5, nodes)])
    return Sample(law, grid, (order, start), of_places, of_nodes, prices)


def costs(rows: Rows, prices: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Cost of a hot and of a cold chunk of one row on every node, s."""
    cold = rows.cold_cost[i] + rows.chunks[i] * prices[1]
    return cold + rows.reading[i] + rows.rate[i] * prices[0], cold


def choices(drawn: Sample, i: int):
    """Every whole choice of a row: its hot and its cold nodes."""
    rows, (order, start) = drawn.by_node, drawn.sites
    m, k, n = len(order), int(rows.hot[i]), int(rows.hot[i] + rows.extra[i])
    site = np.empty(m, np.int64)
    for s in range(len(start) - 1):
        site[order[start[s] : start[s + 1]]] = s
    for stored in itertools.combinations(range(m), n):
        if np.bincount(site[list(stored)]).max() > rows.per_site or np.isinf(rows.cold_cost[i, stored]).any():
            continue
        for hot in itertools.combinations(stored, k):
            yield list(hot), [j for j in stored if j not in hot]


def cheapest(drawn: Sample, i: int) -> float:
    """Cost of the cheapest whole choice of a row, of all of them, s."""
    hot, cold = costs(drawn.by_node, drawn.prices, i)
    return min(hot[h].sum() + cold[c].sum() for h, c in choices(drawn, i))
