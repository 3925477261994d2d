"""Whether nodes are overloaded however reads are spread, and what is said of nodes that are.

The load of a node is linear in the spread of reads. The least load of the busiest node is that of the best mixture of
spreads: a linear program, solved by column generation. Prices y of the nodes' loads (>= 0, sum 1) bound it from below,

    min max_j rho_j >= sum_j y_j background_j + sum_rows (sum of the k least y_j work_j),

and the spread on the right is the next column.

All of it is NumPy, and rows that are alike are one: what overloads a cluster is said before anything is compiled.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.optimize import linprog

from ecjax.planning import Problem
from ecjax.problem.arrays import Rows, code_k, column, nodes_arrays

EVENLY = "with reads spread as evenly as they go"

_MOST_ENTRIES = 2e7  # of rows and nodes, in all columns: a few seconds
_ENOUGH_ENTRIES = 5e6  # once overload is certain: how much it is need not be known better
_MOST_COLUMNS = 200
_CLOSE = 1e-4  # relative distance of both bounds that is good enough for a message
_BLOCK = 10**6  # entries at a time
_ROUNDING = 1e-9


class Demand(NamedTuple):
    """What R placement rows ask of m nodes; rows of which every spread loads nodes alike, but for a factor, may be one.

    Attributes:
        service: (4, m) mean service times as polynomials in the chunk size: s / B^p.
        background: (m,) load of other work.
        reads: (4, R) sums over the row's files of rate B^p: B^p / s.
        writes: (4, R) the same for writes; None where nothing is written.
        k: (R,) chunks that a read takes.
        floor: (R,) chunks kept, at least.
        allowed: (R, m) bool, nodes that may hold a chunk of the row; None: all.
    """

    service: np.ndarray
    background: np.ndarray
    reads: np.ndarray
    writes: np.ndarray | None
    k: np.ndarray
    floor: np.ndarray
    allowed: np.ndarray | None = None

    def scaled(self, rate: float, size: float) -> "Demand":
        """The same with all rates and all file sizes multiplied."""
        powers = (rate * size ** np.arange(4.0))[:, None]
        return self._replace(
            reads=self.reads * powers, writes=None if self.writes is None else self.writes * powers
        )


def demand_of(problem: Problem) -> Demand:
    """What the rows of a problem ask for; limits of sites and of nodes' capacities are not looked at."""
    parts = problem.reads, problem.writes, problem.k, problem.floor, problem.allowed
    reads, writes, k, floor, allowed = (None if part is None else np.asarray(part) for part in parts)
    assert reads is not None and k is not None and floor is not None
    service, background = np.asarray(problem.nodes.work)[0], np.asarray(problem.nodes.background)[0]
    demand = Demand(service, background, reads, writes, k, np.maximum(floor, k), allowed)
    return demand if allowed is not None else _merged(demand)


def demand_of_tables(
    nodes: pa.Table, files: pa.Table, rows: Rows, size_scaling: str, per_node: int
) -> Demand:
    """What checked tables ask for, constraints aside, without a problem made of them.

    Args:
        nodes: checked nodes table.
        files: checked files table.
        rows: placement rows of the files.
        size_scaling: as ``arrays.nodes_arrays`` takes it.
        per_node: chunks of a file that each of its nodes keeps and serves together.
    """
    service = per_node * np.asarray(nodes_arrays(nodes, size_scaling).work)[0]
    code = code_k(files)
    read = np.maximum(column(files, "d"), code)
    floor = np.maximum(np.ceil((code + column(files, "min_extra_chunks")) / per_node), read / per_node)
    size, powers = column(files, "bytes"), np.arange(4.0)[:, None]
    rates = column(files, "rate_per_s"), column(files, "write_rate_per_s")
    # a write brings whole chunks, of which a read of more than k nodes takes a part
    reads, writes = (rate * (size / parts) ** powers for rate, parts in zip(rates, (read, code), strict=True))
    k = read / per_node
    if rows.of_file is not None:
        reads, writes = (
            np.stack([np.bincount(rows.of_file, part, rows.count) for part in parts])
            for parts in (reads, writes)
        )
        first = np.unique(rows.of_file, return_index=True)[1]
        k, least = k[first], np.zeros(rows.count)
        np.maximum.at(least, rows.of_file, floor)
        floor = least
    written = writes if np.any(rates[1] > 0) else None
    return _merged(
        Demand(
            service,
            column(nodes, "background_load") / column(nodes, "channels", 1.0),
            reads,
            written,
            k,
            floor,
        )
    )


def _merged(demand: Demand) -> Demand:
    """Rows made one where nodes are loaded in the same proportions: where no chunk sizes, k, floor or writes differ."""
    powers = np.any(demand.service != 0, axis=1)
    keys: list[np.ndarray] = [demand.k, demand.floor]
    for part in (demand.reads, demand.writes):
        if part is not None and powers.sum() > 1:
            used = part[powers]
            parts, exponents = np.frexp(used[1:] / np.where(used[0] > 0, used[0], 1.0))
            keys += list(np.ldexp(np.round(parts, 12), exponents))
    if demand.writes is not None:
        keys += [np.any(part > 0, axis=0) for part in (demand.reads, demand.writes)]
    order = np.lexsort(keys)
    new = np.zeros(len(order), bool)
    for key in keys:
        ordered = np.asarray(key)[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    new[0] = True
    starts = np.flatnonzero(new)

    def summed(part: np.ndarray) -> np.ndarray:
        return np.add.reduceat(part[:, order], starts, axis=1)

    return demand._replace(
        reads=summed(demand.reads),
        writes=None if demand.writes is None else summed(demand.writes),
        k=demand.k[order[starts]],
        floor=demand.floor[order[starts]],
    )


def overload(
    load: np.ndarray, background: np.ndarray, rate_scale: float, nodes: pa.Array, spread: str
) -> str:
    """One line that names the busiest node, or one that other work alone overloads, its load, and what would help.

    Args:
        load: (m,) rho.
        background: (m,) what of it does not go with the rates.
        rate_scale: what the rates were multiplied by.
        nodes: (m,) ids.
        spread: how reads are spread, in words.
    """
    alone = bool(background.max() >= 1)
    worst = int(np.argmax(background if alone else load))
    busy = f"nodes: row {worst} (node_id={nodes[worst]}): load rho = {load[worst]:.3g}"
    if alone:
        return (
            f"{busy}, {background[worst]:.3g} of it other work of the node (background_load), which does not go with "
            "the rates; below 1 is needed: less other work, or a faster node"
        )
    goal = max(0.9, (1 + background[worst]) / 2)
    scale = rate_scale * (goal - background[worst]) / (load[worst] - background[worst])
    return (
        f"{busy} at rate_scale={rate_scale:g} {spread}; below 1 is needed: lower the rates (rate_scale={scale:.2g} "
        f"gives about {goal:.2g}), add nodes, or check that service times are service, not sojourn times"
    )


def least_overload(demand: Demand) -> np.ndarray | None:
    """Loads (m,) with reads spread as evenly as they go, if that overloads a node for certain.

    Args:
        demand: scaled.

    Returns:
        None where some spread keeps every load below 1, or where that is not known after some seconds.
    """
    if not demand.reads[0].any() and demand.writes is None:
        return None  # all reads are small ones, which are looked at with their kinds
    entries = len(demand.k) * len(demand.background)
    columns, bound = [_in_proportion(demand)], -np.inf
    load, prices = columns[0], _prices_of_speed(demand)
    for count in range(1, 1 + int(min(_MOST_COLUMNS, 1 + _MOST_ENTRIES / entries))):
        if load.max() < 1:
            return None
        least, column = _cheapest(demand, prices)
        columns.append(column)
        bound = max(bound, least)
        certain = bound >= 1 + _ROUNDING
        if bound > load.max() * (1 - _CLOSE) or (certain and count * entries > _ENOUGH_ENTRIES):
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


def _blocks(demand: Demand) -> Iterator[_Block]:
    """All rows that are read or written, some at a time."""
    service, reads, allowed = demand.service, demand.reads, demand.allowed
    writes = np.zeros_like(reads) if demand.writes is None else demand.writes
    k, floor = demand.k[:, None], demand.floor[:, None]
    busy = np.flatnonzero(reads[0] + writes[0] > 0)
    for part in np.array_split(busy, -(-len(busy) * service.shape[1] // _BLOCK)):
        work = reads[:, part].T @ service
        written = np.broadcast_to(0.0, work.shape) if demand.writes is None else writes[:, part].T @ service
        may = np.broadcast_to(True, work.shape) if allowed is None else allowed[part]
        yield _Block(work, written, k[part], floor[part], may)


def _prices_of_speed(demand: Demand) -> np.ndarray:
    """Prices (m,) at which a chunk costs as much at every node, where chunk sizes do not change which is faster."""
    work = sum(np.sum(block.reads + block.writes, axis=0) for block in _blocks(demand))
    speed = 1 / np.maximum(work, _ROUNDING * np.max(work))
    return speed / speed.sum()


def _in_proportion(demand: Demand) -> np.ndarray:
    """Loads (m,) where every row uses nodes in proportion to their speed, none more than fully."""
    load = demand.background.astype(float)
    for block in _blocks(demand):
        work = block.reads + block.writes
        speed = np.where(block.allowed, 1 / np.maximum(work, _ROUNDING * np.max(work)), 0.0)
        load += np.sum(_filled(speed, block.k) * block.reads, axis=0)
        if demand.writes is not None:
            load += np.sum(_filled(speed, block.floor) * block.writes, axis=0)
    return load


def _filled(speed: np.ndarray, count: np.ndarray) -> np.ndarray:
    """min(1, c speed) with rows that sum to ``count``: (rows, m)."""
    ordered = -np.sort(-speed, axis=1)
    tail = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]  # of a node and all that are slower
    full = np.arange(speed.shape[1])[None]
    # nothing is left for nodes without speed
    factor = np.where(full < count, (count - full) / np.where(tail > 0, tail, 1.0), 0.0)
    # the fastest nodes are full until the next one is not
    first = np.argmax(factor * ordered <= 1 + _ROUNDING, axis=1)[:, None]
    return np.minimum(1.0, np.take_along_axis(factor, first, axis=1) * speed)


def _cheapest(demand: Demand, prices: np.ndarray) -> tuple[float, np.ndarray]:
    """What no spread is below at prices (m,) of the nodes' loads, and the loads (m,) of one that is about there."""
    load = demand.background.astype(float)
    least = float(prices @ load)
    for block in _blocks(demand):
        cost = np.where(block.allowed, prices * block.reads, np.inf)
        used = _least(cost, block.k)
        least += float(np.sum(cost, where=used))
        if demand.writes is not None:
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
    order = np.argpartition(values, np.unique(count.astype(int)) - 1, axis=1)
    np.put_along_axis(mask, order, np.arange(values.shape[1])[None] < count, axis=1)
    return mask
