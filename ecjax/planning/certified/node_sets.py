"""Nodes of few placement rows: the sets of rows that each may keep, and its best one at prices.

A node with a set counts as a node of its own: it serves at most all reads of the set's rows, beside their writes.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ecjax.planning.certified.data import Rows, Service, rates_of
from ecjax.planning.certified.node_bound import ShareOut
from ecjax.planning.certified.node_bound import node_minima as minima_at
from ecjax.planning.certified.node_levels import DIRECT, Chunks, Corners, node_minima

_SERVED = 1e-9  # of all reads of a row: less is none
_WORK = 300  # cells of levels that the search for one minimum may open


class StatePrices(NamedTuple):
    """Prices made for a z, s.

    Attributes:
        read: (E,) mu, s per 1/s, of the entries of the rows.
        kept: (R,) nu, s per chunk of a row.
        z: s.
    """

    read: np.ndarray
    kept: np.ndarray
    z: float


class Answers(NamedTuple):
    """The best set of rows of every node at some prices.

    Attributes:
        bound: s, without z.
        loads: (m, E) 1/s.
        kept: (m, R) 0 or 1.
        cost: (m,) s, latency and dollars.
    """

    bound: float
    loads: np.ndarray
    kept: np.ndarray
    cost: np.ndarray


@dataclass(frozen=True)
class States:
    """Sets of rows at every node; a node with a set counts as a node of its own, (m S,)."""

    service: Service
    most: np.ndarray  # (m S, E) 1/s
    kept: np.ndarray  # (S, R) 0 or 1
    dollars: np.ndarray  # (m, S) s; infinite for what a node may not keep, or cannot write
    discount: np.ndarray  # (m, E) s per 1/s, what a read costs at a node
    asked: np.ndarray  # (E,) 1/s, k times the reads
    least: np.ndarray  # (R,) chunks
    longest: np.ndarray  # (R,)
    storage: float  # s, what the least chunks cost on their cheapest nodes
    kind: np.ndarray  # (m,) nodes of a kind are alike, whatever they keep
    first: np.ndarray  # (K,) a node of each kind
    row: np.ndarray  # (E,) row of every entry
    written: np.ndarray  # (R,) bool
    met: np.ndarray  # (m S, E) 1/s, the best rates of the last search, where the next one looks first
    share_out: ShareOut

    @property
    def minima(self) -> int:
        """How many each price takes: nodes that are alike have one for every set."""
        return len(self.first) * len(self.kept)


def states_of(service: Service, rows: Rows, share_out: ShareOut) -> States:
    """All sets of rows at every node.

    Args:
        service: nodes.
        rows: few of them, all chunk sizes on the grid.
        share_out: the nodes, to threads.
    """
    m, number = len(service.mean), rows.number
    row = np.repeat(np.arange(number), np.diff(rows.start))
    kept = np.array(list(product((0, 1), repeat=number)))
    moments = service.moments[:, :, rows.grid]
    written = np.einsum("se,e,nme->msn", kept[:, row], rows.write, moments)
    background = service.background[:, None] + written
    cost = np.outer(rows.chunks, rows.chunk_price) + np.outer(rows.bytes, rows.byte_price)
    cost = rows.per_dollar * (cost + rows.surcharge if len(rows.surcharge) else cost)
    dollars = cost.T @ kept.T
    may = rows.allowed.T if len(rows.allowed) else np.ones((m, number), bool)
    least = np.maximum(rows.length, rows.hot)
    cheapest = np.sort(np.where(may.T, cost, np.inf), axis=1)
    storage = sum(float(each[:n].sum()) for each, n in zip(cheapest, least, strict=True))
    barred = (~may @ kept.T > 0) | (kept @ rows.chunks > rows.capacity[:, None] * (1 + 1e-12))
    # a node that its writes alone overload
    over = background[:, :, 0] >= 1
    dollars[barred | over] = np.inf
    background[over] = 0.0
    discount = np.zeros((m, len(row)))
    if len(rows.reading):
        rate = rates_of(rows)
        discount = (rows.per_dollar * rows.reading / np.where(rate > 0, rate, 1.0)[:, None]).T[:, row]
    count = len(kept)
    described = [dollars, discount, service.mean[:, rows.grid], service.variance[:, rows.grid]]
    described += [
        moments.transpose(1, 0, 2),
        background,
        rows.site[:, None] if rows.per_site else dollars[:, :0],
    ]
    alike = np.concatenate([each.reshape(m, -1) for each in described], axis=1)
    _, first, kind = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return States(
        service._replace(
            size=service.size[rows.grid],
            moments=np.ascontiguousarray(np.repeat(moments, count, axis=1)),
            mean=np.repeat(service.mean[:, rows.grid], count, axis=0),
            variance=np.repeat(service.variance[:, rows.grid], count, axis=0),
            background=background.reshape(m * count, 3),
        ),
        np.tile(kept[:, row] * rows.read * (1 + 1e-12), (m, 1)),
        kept,
        dollars,
        discount,
        rows.hot[row] * rows.read,
        least.astype(float),
        may.sum(axis=0).astype(float),
        storage,
        kind.ravel(),
        first,
        row,
        np.add.reduceat(rows.write, rows.start[:-1]) > 0,
        np.zeros((m * count, len(row))),
        share_out,
    )


def net_price(states: States, read: np.ndarray) -> np.ndarray:
    """Price of latency of a read of every node with every set, (m S, E) s per 1/s, where reads are worth mu (E,)."""
    price = np.maximum(read - states.discount, 0.0)
    return np.repeat(price, states.dollars.shape[1], axis=0)


class Between(NamedTuple):
    """An interval of z, or one.

    Attributes:
        middle: s.
        ends: (Q,) s, the ends, or the one z.
    """

    middle: float
    ends: np.ndarray


def minima_between(
    service: Service, most: np.ndarray, price: np.ndarray, between: Between, tol: float, rates: np.ndarray
) -> np.ndarray:
    """Latency less the price of the reads of nodes, at least: (Q, nodes) s, by the tangents in z at the middle.

    Args:
        service: of the nodes.
        most: (nodes, E) 1/s.
        price: (Q, nodes, E) s per 1/s at the ends, >= 0.
        between: the z.
        tol: s, that the minimum of a node may leave open.
        rates: (nodes, E) 1/s, to look at first; result: the best that were met for the first end.
    """
    kind = np.full(most.shape[1], DIRECT if service.alone else 0)
    chunks = Chunks(service.moments, service.mean, service.variance, kind, service.background)
    ahead = np.zeros((len(between.ends), 2))
    ahead[:, 0] = 0.0 if service.alone else between.ends - between.middle
    # of one layout: the search is compiled once
    price = np.ascontiguousarray(price)
    centre = price.mean(axis=0)
    corners = Corners(np.array([between.middle, 0.0]), ahead, (price - centre) * service.rate)
    low, _ = node_minima(chunks, most, centre * service.rate, corners, tol * service.rate, rates)
    return low.T / service.rate


def minima_of_sets(states: States, reads: np.ndarray, between: Between, tol: float) -> np.ndarray:
    """The same of a node of every kind with every set, (Q, K, S) s; 0 where it may not have the set.

    What serves nothing of a row costs no less without it, if nothing is written to it: most sets need no search of
    their own.

    Args:
        states: of the nodes.
        reads: (Q, E) mu at the ends, s per 1/s.
        between: the z.
        tol: s, that the minimum of a node may leave open.
    """
    price = np.stack([net_price(states, each) for each in reads])
    kept, count = states.kept > 0, len(states.kept)
    # a set (S, 1) and another (1, S) without some of its rows
    within = np.all((kept[None] <= kept[:, None]) & ((kept[None] == kept[:, None]) | ~states.written), axis=2)
    open_ = np.isfinite(states.dollars[states.first])
    low = np.zeros((len(reads), *open_.shape))
    for rows in range(kept.shape[1], -1, -1):
        kind, which = np.nonzero(open_ & (kept.sum(axis=1) == rows))
        if not len(kind):
            continue
        place = states.first[kind] * count + which
        service, most = some_of(states, place)
        rates = states.met[place]
        least = minima_between(service, most, price[:, place], between, tol, rates)
        states.met[place] = rates
        serves = np.zeros((len(kind), kept.shape[1]), bool)
        np.logical_or.at(serves.T, states.row, (rates > _SERVED * most).T)
        for number, (at, of, served) in enumerate(zip(kind, which, serves, strict=True)):
            alike = open_[at] & within[of] & np.all(served <= kept, axis=1)
            alike[of] = True
            low[:, at, alike] = least[:, number, None]
            open_[at, alike] = False
    return low


def some_of(states: States, which: np.ndarray) -> tuple[Service, np.ndarray]:
    """Some of the m S nodes with a set, and the most that they serve, (count, E) 1/s."""
    service = states.service
    chosen = service._replace(
        moments=np.ascontiguousarray(service.moments[:, which]),
        mean=service.mean[which],
        variance=service.variance[which],
        background=service.background[which],
    )
    return chosen, states.most[which]


def answers(states: States, prices: StatePrices, z: float, tol: float) -> Answers:
    """What every node does at prices, to a tolerance of s for all of them."""
    m, count = states.dollars.shape
    price = net_price(states, prices.read)
    rates = np.zeros((1, 1, *states.most.shape))
    low, value = minima_at(
        states.service,
        states.most,
        price,
        np.array([z]),
        tol / m,
        _WORK,
        rates=rates,
        share_out=states.share_out,
    )
    least = low[0].reshape(m, count) + states.dollars - states.kept @ prices.kept
    best = least.argmin(axis=1)
    at, which = (np.arange(m), best), np.arange(m) * count + best
    loads = rates[0, 0][which]
    latency = value[0][which] + np.sum(loads * price[which], axis=1)
    paid = states.dollars[at] + np.sum(loads * states.discount, axis=1)
    reads = float(prices.read @ states.asked)
    chunks = float(np.minimum(prices.kept * states.least, prices.kept * states.longest).sum())
    return Answers(reads + chunks + float(least[at].sum()), loads, states.kept[best], latency + paid)
