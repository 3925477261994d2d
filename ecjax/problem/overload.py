"""Whether nodes are overloaded however reads are spread, and what is said of nodes that are.

The load of a node is linear in the spread of reads. The least load of the busiest node is that of the best mixture of
spreads: a linear program, solved by column generation. Prices y of the nodes' loads (>= 0, sum 1) bound it from below,

    min max_j rho_j >= sum_j y_j background_j + sum_rows (sum of the k least y_j work_j),

and the spread on the right is the next column.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.optimize import linprog

from ecjax.optimize import Problem

EVENLY = "with reads spread as evenly as they go"

_MOST_ENTRIES = 1e8  # of rows and nodes, in all columns: some seconds
_MOST_COLUMNS = 200
_CLOSE = 1e-4  # relative distance of both bounds that is good enough for a message
_BLOCK = 10**6  # entries at a time
_ROUNDING = 1e-9


def overload(
    load: np.ndarray, background: np.ndarray, rate_scale: float, nodes: pa.Array, spread: str
) -> str:
    """One line that names the busiest node, its load, and what would help.

    Args:
        load: (m,) rho.
        background: (m,) what of it does not go with the rates.
        rate_scale: what the rates were multiplied by.
        nodes: (m,) ids.
        spread: how reads are spread, in words.
    """
    worst = int(np.argmax(load))
    goal = max(0.9, (1 + background[worst]) / 2)
    scale = rate_scale * (goal - background[worst]) / (load[worst] - background[worst])
    return (
        f"nodes: row {worst} (node_id={nodes[worst]}): load rho = {load[worst]:.3g} at rate_scale={rate_scale:g} "
        f"{spread}; below 1 is needed: lower the rates (rate_scale={scale:.2g} gives about {goal:.2g}), add nodes, or "
        "check that service times are service, not sojourn times"
    )


def least_overload(problem: Problem) -> np.ndarray | None:
    """Loads (m,) with reads spread as evenly as they go, if that overloads a node for certain.

    Limits of sites and of nodes' capacities are not looked at: they leave fewer spreads.

    Args:
        problem: scaled.

    Returns:
        None where some spread keeps every load below 1, or where that is not known after some seconds.
    """
    entries = problem.rows * problem.nodes.count
    columns, bound = [_in_proportion(problem)], -np.inf
    load, prices = columns[0], _prices_of_speed(problem)
    for _ in range(int(min(_MOST_COLUMNS, 1 + _MOST_ENTRIES / entries))):
        if load.max() < 1:
            return None
        least, column = _cheapest(problem, prices)
        columns.append(column)
        bound = max(bound, least)
        if bound > load.max() * (1 - _CLOSE):
            break
        load, prices = _mixed(np.array(columns))
    return load if bound >= 1 + _ROUNDING else None


def _mixed(loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mixture (m,) of some loads (n, m) whose largest is least, and the prices (m,) of loads that prove it."""
    count, nodes = loads.shape
    program = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.hstack([loads.T, -np.ones((nodes, 1))]),
        b_ub=np.zeros(nodes),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        method="highs",
    )
    prices = np.maximum(-program.ineqlin.marginals, 0.0)
    return program.x[:-1] @ loads, prices / prices.sum()


class _Block(NamedTuple):
    """Some placement rows; what they would load every node with."""

    reads: np.ndarray  # (rows, m) if all reads used the node
    writes: np.ndarray  # (rows, m) if it kept a chunk
    k: np.ndarray  # (rows, 1) chunks that a read takes
    floor: np.ndarray  # (rows, 1) chunks kept, at least
    allowed: np.ndarray  # (rows, m) bool


def _blocks(problem: Problem) -> Iterator[_Block]:
    """All rows that are read or written, some at a time."""
    service, reads = np.asarray(problem.nodes.service[0]), np.asarray(problem.reads)
    writes = np.zeros_like(reads) if problem.writes is None else np.asarray(problem.writes)
    k, floor = np.asarray(problem.k)[:, None], np.asarray(problem.floor)[:, None]
    allowed = None if problem.allowed is None else np.asarray(problem.allowed)
    busy = np.flatnonzero(reads[0] + writes[0] > 0)
    for part in np.array_split(busy, -(-len(busy) * service.shape[1] // _BLOCK)):
        work = reads[:, part].T @ service
        written = np.broadcast_to(0.0, work.shape) if problem.writes is None else writes[:, part].T @ service
        may = np.broadcast_to(True, work.shape) if allowed is None else allowed[part]
        yield _Block(work, written, k[part], np.maximum(floor[part], k[part]), may)


def _background(problem: Problem) -> np.ndarray:
    return np.array(problem.nodes.background[0], float)


def _prices_of_speed(problem: Problem) -> np.ndarray:
    """Prices (m,) at which a chunk costs as much at every node, where chunk sizes do not change which is faster."""
    work = sum(np.sum(block.reads + block.writes, axis=0) for block in _blocks(problem))
    speed = 1 / np.maximum(work, _ROUNDING * np.max(work))
    return speed / speed.sum()


def _in_proportion(problem: Problem) -> np.ndarray:
    """Loads (m,) where every row uses nodes in proportion to their speed, none more than fully."""
    load = _background(problem)
    for block in _blocks(problem):
        work = block.reads + block.writes
        speed = np.where(block.allowed, 1 / np.maximum(work, _ROUNDING * np.max(work)), 0.0)
        load += np.sum(_filled(speed, block.k) * block.reads, axis=0)
        if problem.writes is not None:
            load += np.sum(_filled(speed, block.floor) * block.writes, axis=0)
    return load


def _filled(speed: np.ndarray, count: np.ndarray) -> np.ndarray:
    """min(1, c speed) with rows that sum to ``count``: (rows, m)."""
    ordered = -np.sort(-speed, axis=1)
    tail = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]  # of a node and all that are slower
    full = np.arange(speed.shape[1])[None]
    factor = np.where(full < count, (count - full) / np.maximum(tail, np.finfo(float).tiny), 0.0)
    # the fastest nodes are full until the next one is not
    first = np.argmax(factor * ordered <= 1 + _ROUNDING, axis=1)[:, None]
    return np.minimum(1.0, np.take_along_axis(factor, first, axis=1) * speed)


def _cheapest(problem: Problem, prices: np.ndarray) -> tuple[float, np.ndarray]:
    """What no spread is below at prices (m,) of the nodes' loads, and the loads (m,) of one that is about there."""
    load = _background(problem)
    least = float(prices @ load)
    for block in _blocks(problem):
        cost = np.where(block.allowed, prices * block.reads, np.inf)
        used = _least(cost, block.k)
        least += float(np.sum(cost, where=used))
        if problem.writes is not None:
            written = np.where(block.allowed, prices * block.writes, np.inf)
            least += float(np.sum(written, where=_least(written, block.floor)))
            used = _least(cost + written, block.k)
            stored = _least(np.where(used, -1.0, written), block.floor)
            load += np.sum(block.writes, axis=0, where=stored)
        load += np.sum(block.reads, axis=0, where=used)
    return least, load


def _least(values: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The ``count`` least values of every row: (rows, m) bool."""
    mask = np.zeros(values.shape, bool)
    order = np.argsort(values, axis=1, kind="stable")
    np.put_along_axis(mask, order, np.arange(values.shape[1])[None] < count, axis=1)
    return mask
