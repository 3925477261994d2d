"""Starts that keep files with small chunks and with large ones on nodes of their own.

A short read that waits behind long ones takes many times its own time. Where sizes are far apart, plans that divide the
nodes between them may be far better than what best responses reach from a mixture: no file gains by moving alone.
"""

from collections.abc import Iterator

import numpy as np

from ecjax.planning.certified.data import Rows, Service
from ecjax.planning.certified.relax import Passes, respond

_LEAST_RATIO = 4.0  # of the mean times of chunks that are kept apart
_MOST_CUTS = 5
_STEPS = (-1, 0, 1)  # nodes more for the small ones than their share of the work
_SWEEPS = 3


def kept_apart(passes: Passes, chunk_price: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, float]]:
    """Choices (R, m) with small chunks on some nodes and large ones on the others, and their objective, s.

    None where sizes are alike.

    Args:
        passes: the rows.
        chunk_price: s, of a place at every node, (m,).
        seed: of the order in which rows choose.
    """
    rows = passes.rows
    try:
        for allowed in _divisions(passes.service, rows):
            passes.rows = rows._replace(allowed=allowed)
            kinds = np.zeros(allowed.shape, np.int8)
            objective = respond(passes, kinds, None, chunk_price, _SWEEPS, 1e-3, seed).objective
            passes.rows = rows
            yield kinds, objective
    finally:
        passes.rows = rows


def _divisions(service: Service, rows: Rows) -> Iterator[np.ndarray]:
    """Nodes that rows are kept to, (R, m) bool."""
    m, entries = len(rows.chunk_price), np.repeat(np.arange(rows.number), np.diff(rows.start))
    amount = rows.read + rows.write
    total = np.bincount(entries, amount, rows.number)
    size = np.bincount(entries, amount * service.size[rows.grid], rows.number) / np.where(total > 0, total, 1)
    work = rows.hot * np.bincount(entries, amount * service.moments[0].mean(axis=0)[rows.grid], rows.number)
    some = total > 0
    distinct, which = np.unique(size[some], return_inverse=True)
    if len(distinct) < 2 or m < 2:
        return
    of_size, count = np.bincount(which, work[some]), np.bincount(which, (rows.hot * total)[some])
    share = np.cumsum(of_size)[:-1] / of_size.sum()
    # mean time of a chunk above each cut, against that below
    ratio = (1 - share) / share / (count.sum() / np.cumsum(count)[:-1] - 1)
    at = np.linspace(1, m - 1, min(m - 1, _MOST_CUTS)).round() / m
    cuts = np.unique([*np.abs(share - at[:, None]).argmin(axis=1), ratio.argmax()])
    # nodes that are quick with small chunks before those that are quick with large ones
    order = np.argsort(service.mean[:, 0] / service.mean[:, -1], kind="stable")
    for cut in cuts[ratio[cuts] >= _LEAST_RATIO]:
        small = size <= distinct[cut]
        for nodes in sorted({int(np.clip(round(m * share[cut]) + step, 1, m - 1)) for step in _STEPS}):
            few = np.zeros(m, bool)
            few[order[:nodes]] = True
            allowed = np.where(small[:, None], few, ~few)
            if len(rows.allowed):
                allowed &= rows.allowed
            if _has_room(rows, allowed):
                yield allowed


def _has_room(rows: Rows, allowed: np.ndarray) -> bool:
    """Whether every row has nodes enough, and sites."""
    if rows.per_site:
        at_site = np.zeros((rows.number, rows.site.max() + 1), np.int64)
        np.add.at(at_site.T, rows.site, allowed.T)
        places = np.minimum(at_site, rows.per_site).sum(axis=1)
    else:
        places = allowed.sum(axis=1)
    return bool(np.all(places >= np.maximum(rows.length, rows.hot)))
