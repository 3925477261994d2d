"""A planning problem as flat NumPy arrays for the loops over placement rows, with chunk sizes on a grid.

The loops see every chunk size as a mixture of two sizes of a grid of at most ``MOST_SIZES`` (exact where there are no
more sizes than that). Plans made with them are evaluated with the true sizes, and the lower bound holds for those too.
"""

import heapq
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ecjax.machine_code import writable
from ecjax.planning.problem import Problem, of_rows, reading_prices

MOST_SIZES = 16  # of the grid
_MOST_EDGES = 64  # of intervals within which files' sizes count as anywhere


class Service(NamedTuple):
    """What a chunk of every grid size does to a node and waits for there."""

    size: np.ndarray  # (C,) grid of chunk sizes, B, rising
    moments: np.ndarray  # (3, m, C) raw moments of the work that a chunk brings
    mean: np.ndarray  # (m, C) s, service and connection
    variance: np.ndarray  # (m, C) s^2
    background: np.ndarray  # (m, 3) sums of other work
    rate: float  # 1/s, reads of all files
    alone: bool  # every file has k = 1: the bound is the mean, at z = -inf
    penalty: float  # s, charged for a load of 1


class TrueSizes(NamedTuple):
    """What the grid hides where there are more sizes than it has."""

    coefficients: np.ndarray  # (3, 4, m): moments of work are sum_p coefficients[n - 1, p] B^p
    served: np.ndarray  # (3, 4, m): the same of service
    edge: np.ndarray  # (E,) B, rising: the grid sizes, and more between them
    between: (
        np.ndarray
    )  # (2, E - 1) 1/s, reads and writes of files with sizes between neighbouring edges, or of one of them
    on: np.ndarray  # (2, E) 1/s, of other files with the size of an edge


class Rows(NamedTuple):
    """Placement rows; entries start[i]:start[i + 1] of grid, read and write belong to row i."""

    start: np.ndarray  # (R + 1,)
    grid: np.ndarray  # (entries,) index of the grid size
    read: np.ndarray  # (entries,) 1/s
    write: np.ndarray  # (entries,) 1/s
    hot: np.ndarray  # (R,) k
    length: np.ndarray  # (R,) least code length
    chunks: np.ndarray  # (R,) chunks that one placed chunk stands for
    bytes: np.ndarray  # (R,) bytes of those
    per_dollar: float  # s per dollar of total cost, theta / r
    chunk_price: np.ndarray  # (m,) dollars
    byte_price: np.ndarray  # (m,) dollars
    surcharge: np.ndarray  # (R, m) dollars for keeping a chunk, or (0, m)
    reading: np.ndarray  # (R, m) dollars if all reads use the node, or (0, m)
    allowed: np.ndarray  # (R, m) bool, or (0, m)
    site: np.ndarray  # (m,)
    per_site: int  # most chunks per site; 0 for no limit
    capacity: np.ndarray  # (m,) chunks; infinite where there is no limit
    written: bool
    true_size: TrueSizes  # no edges where every size is on the grid

    @property
    def number(self) -> int:
        """Number of placement rows."""
        return len(self.hot)


def has_one_size(service: Service, rows: Rows) -> bool:
    """Whether all chunks have one size and nothing is written: the relaxation is convex at a fixed z then."""
    return len(service.size) == 1 and not rows.written


def rates_of(rows: Rows) -> np.ndarray:
    """Reads of every row, (R,) 1/s."""
    if len(rows.read) == rows.number:
        return rows.read
    return np.add.reduceat(np.append(rows.read, 0.0), rows.start[:-1])


def sites_of(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Nodes site by site (m,), and where each site starts (S + 1,); each is its own site without a limit."""
    m = len(rows.site)
    if rows.per_site == 0:
        return np.arange(m), np.arange(m + 1)
    count = np.bincount(rows.site)
    return np.argsort(rows.site, kind="stable"), np.append(0, np.cumsum(count))


def grid_of(sizes: np.ndarray, rates: np.ndarray, most: int) -> np.ndarray:
    """The distinct sizes, or, of more than ``most``, those between which straight lines through the moments err least.

    Relative to a power of B the error grows with the square of an interval's width in log B; the intervals count by
    their share in the sums of rate x B, B^2 and B^3. The one where one size more mends most is split first, so that a
    finer grid has the sizes of a coarser one.

    Args:
        sizes: (r,) B.
        rates: (r,) 1/s, of reads and writes.
        most: sizes.
    """
    if sizes.min() == sizes.max():
        return sizes[:1]
    distinct, which = np.unique(sizes, return_inverse=True)
    if len(distinct) <= most:
        return distinct
    rate = np.bincount(which, rates)
    power = rate * np.stack([distinct**p for p in (1, 2, 3)])
    share = power / np.maximum(power.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    sums, place = np.append(0.0, np.cumsum(share.sum(axis=0))), np.log(distinct)

    def split(first: int, last: int) -> tuple[float, int, int, int]:
        """Minus what the best size between two gains, and the three."""
        inside = np.arange(first + 1, last)
        if not len(inside):
            return 0.0, first, first, last
        errors = (place[inside] - place[first]) ** 2 * (sums[inside] - sums[first + 1])
        errors += (place[last] - place[inside]) ** 2 * (sums[last] - sums[inside + 1])
        whole = (place[last] - place[first]) ** 2 * (sums[last] - sums[first + 1])
        best = int(np.argmin(errors))
        return float(errors[best] - whole), first, int(inside[best]), last

    cells = [split(0, len(distinct) - 1)]
    knots = [0, len(distinct) - 1]
    while len(knots) < most and cells[0][0] < 0:
        _, first, middle, last = heapq.heappop(cells)
        knots.append(middle)
        heapq.heappush(cells, split(first, middle))
        heapq.heappush(cells, split(middle, last))
    return distinct[np.sort(knots)]


class _Accesses(NamedTuple):
    """Reads and writes of files: an entry for each, and another for its writes where they bring other chunks."""

    row: np.ndarray  # (a,)
    size: np.ndarray  # (a,) B, of a chunk
    reads: np.ndarray  # (a,) 1/s
    writes: np.ndarray  # (a,) 1/s


def _accesses(problem: Problem) -> _Accesses:
    files = problem.files
    row = np.arange(files.count) if problem.row is None else np.asarray(problem.row)
    size, written, reads, writes = (
        np.asarray(each) for each in (files.chunk_bytes, files.write_bytes, files.rate, files.write_rate)
    )
    apart = np.flatnonzero((written != size) & (writes > 0))
    if not len(apart):
        return _Accesses(row, size, reads, writes)
    none = np.zeros(len(apart))
    return _Accesses(
        np.append(row, row[apart]),
        np.append(size, written[apart]),
        np.append(reads, none),
        np.append(np.where(written == size, writes, 0.0), writes[apart]),
    )


def flatten(problem: Problem) -> tuple[Service, Rows]:
    """Arrays for the loops; ``per_dollar`` is 0 and to be set for each theta."""
    files, nodes = problem.files, problem.nodes
    accesses = _accesses(problem)
    grid = grid_of(accesses.size, accesses.reads + accesses.writes, MOST_SIZES)
    powers = np.stack([grid**p for p in range(4)])
    moments = np.ascontiguousarray(np.einsum("npm,pc->nmc", np.asarray(nodes.work), powers))
    served = np.einsum("npm,pc->nmc", np.asarray(nodes.service)[:2], powers)
    connect = np.asarray(nodes.connect_mean), np.asarray(nodes.connect_variance)
    share = np.asarray(problem.share)
    service = Service(
        # a single size is a view of JAX's memory: loops would be compiled once more for it
        size=writable(grid, float),
        moments=moments,
        mean=served[0] + connect[0][:, None],
        variance=np.maximum(served[1] - served[0] ** 2, 0) + connect[1][:, None],
        background=writable(np.asarray(nodes.background).T, float),
        rate=float(np.sum(files.rate)),
        alone=bool(np.sum(share * np.asarray(files.k)) <= 1 + 1e-12),
        # certainly more than a little overload should save
        penalty=float(100 * np.max(moments[0])),
    )
    rows = _rows(problem, accesses, grid)
    return service, rows


def _rows(problem: Problem, accesses: _Accesses, grid: np.ndarray) -> Rows:
    nodes, m = problem.nodes, problem.nodes.count

    def dense(values, dtype: type = float) -> np.ndarray:
        return np.zeros((0, m), dtype) if values is None else writable(values, dtype)

    capacity, per_site = problem.capacity, problem.per_site
    site = np.zeros(m, np.int64)
    if problem.site is not None:
        site = np.unique(np.asarray(problem.site), return_inverse=True)[1].astype(np.int64)
    if per_site is not None and per_site >= np.bincount(site).max():
        site, per_site = np.zeros(m, np.int64), None  # it holds for every plan
    return Rows(
        **_entries(problem, accesses, grid),
        hot=np.asarray(problem.k).round().astype(np.int64),
        length=np.asarray(problem.floor).round().astype(np.int64),
        chunks=writable(problem.price_chunks, float),
        bytes=writable(problem.price_bytes, float),
        per_dollar=0.0,
        chunk_price=writable(nodes.cost_per_chunk, float),
        byte_price=writable(nodes.cost_per_byte, float),
        surcharge=dense(None if problem.surcharge is None else of_rows(problem, problem.surcharge)),
        reading=dense(reading_prices(problem)),
        allowed=dense(problem.allowed, bool),
        site=site,
        per_site=0 if per_site is None else int(per_site),
        capacity=np.full(m, np.inf) if capacity is None else writable(capacity, float),
        written=problem.writes is not None,
        true_size=_true_sizes(problem, accesses, grid),
    )


def _entries(problem: Problem, accesses: _Accesses, grid: np.ndarray) -> dict[str, np.ndarray]:
    """The entries of all rows, as ``Rows`` has them."""
    row, size, reads, writes = accesses
    r = len(size)
    if problem.row is None and len(grid) == 1:
        return dict(
            start=np.arange(r + 1),
            grid=np.zeros(r, np.int64),
            read=writable(reads, float),
            write=writable(writes, float),
        )
    upper = np.clip(np.searchsorted(grid, size), min(1, len(grid) - 1), len(grid) - 1)
    lower = np.maximum(upper - 1, 0)
    width = np.where(upper > lower, grid[upper] - grid[lower], 1.0)
    part = np.where(upper > lower, (size - grid[lower]) / width, 0.0)
    # explicit zeros keep the patterns of reads and writes alike
    pattern = np.concatenate([part < 1, part > 0])
    where = np.concatenate([row, row])[pattern], np.concatenate([lower, upper])[pattern]

    def by_row(rate: np.ndarray) -> sparse.csr_array:
        values = np.concatenate([rate * (1 - part), rate * part])[pattern]
        table = sparse.coo_array((values, where), shape=(problem.rows, len(grid))).tocsr()
        table.sort_indices()
        return table

    read, write = by_row(reads), by_row(writes)
    return dict(
        start=read.indptr.astype(np.int64),
        grid=read.indices.astype(np.int64),
        read=read.data,
        write=write.data,
    )


def _true_sizes(problem: Problem, accesses: _Accesses, grid: np.ndarray) -> TrueSizes:
    size, rates = accesses.size, (accesses.reads, accesses.writes)
    laws = writable(problem.nodes.work, float), writable(problem.nodes.service, float)
    if len(grid) < MOST_SIZES or np.isin(size, grid).all():
        return TrueSizes(*laws, np.zeros(0), np.zeros((2, 0)), np.zeros((2, 0)))
    edge = grid_of(size, rates[0] + rates[1], _MOST_EDGES)
    on = np.isin(size, edge)
    place = np.searchsorted(edge, size)
    between = np.stack([np.bincount(place[~on] - 1, rate[~on], len(edge) - 1) for rate in rates])
    at_edge = np.stack([np.bincount(place[on], rate[on], len(edge)) for rate in rates])
    # a size beside which more is read and written counts as in that interval: half as many classes
    beside = np.append(between.sum(axis=0), 0.0)
    below = np.concatenate([[0.0], beside[:-1]])
    joined = np.maximum(beside, below) > at_edge.sum(axis=0)
    into = np.arange(len(edge)) - (below > beside)
    for row, alone in zip(between, at_edge, strict=True):
        row += np.bincount(into[joined], alone[joined], len(row))
    at_edge[:, joined] = 0.0
    return TrueSizes(*laws, edge, between, at_edge)
