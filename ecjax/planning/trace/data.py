"""A planning problem under the arrivals of a log: reads by placement row and block of time, and what J weighs.

    objective = offset + sum_j w_j J_j(a_j) + sum_ij toll_ij pi_ij + sum_ij keep_ij s_ij        (s)
    a_bj = D_b (sum_i (N_ib pi_ij + Nw_ib s_ij) m_1[i, j] / D_block + background_j),   w_j = 1 / (m_1j chunks)

with s_ij 1 where a chunk is kept. The first term is the mean wait of a chunk; ``toll`` is the service and connection
that a chunk takes longer than at the row's fastest node (0 for nodes alike) and what reads cost in dollars; ``keep``
what storage costs. Counts are constant within a block of bins: one bin each, or the blocks of a denoised log.

In the order-statistic forms J is a bound on what the latest chunk of a read adds to a z that all reads share
(``ecjax.traffic.penalties``): w_j = 1 / (m_1j requests), offset = z, and the objective without dollars bounds the mean
latency of requests; a write waits for all its chunks, other work for each of its own. They need one chunk size, so that
work and chunks are one at every node.
"""

from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from ecjax.machine_code import writable
from ecjax.planning.problem import Problem, prices, reading_prices
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.penalties import EXCESS, MOST_SCV, WAIT, Penalty, mean_wait

_LEAST_DEVIATION = 0.1  # of a service, in parts of its mean, of ``EXCESS``


class Counts(NamedTuple):
    """Accesses of placement rows: entries start[i]:start[i + 1] belong to row i, in the order of their blocks."""

    start: np.ndarray  # (R + 1,)
    block: np.ndarray  # (P,)
    rate: np.ndarray  # (P,) 1/s, accesses of the block / its length
    bytes: np.ndarray  # (P,) B/s, each times the chunk size of its file


class Bins(NamedTuple):
    """Bins of the recursion, and the blocks within which counts are constant."""

    width: np.ndarray  # (B,) s
    edge: np.ndarray  # (K + 1,) first bin of every block


class Rows(NamedTuple):
    """What the choice for a placement row must keep to; for the loops."""

    hot: np.ndarray  # (R,) k
    length: np.ndarray  # (R,) least code length
    allowed: np.ndarray  # (R, m) bool
    site: np.ndarray  # (m,) 0, 1, ...
    per_site: int  # most chunks of a row per site; 0: no limit
    chunks: np.ndarray  # (R,) chunks that one placed chunk stands for
    capacity: np.ndarray  # (m,) chunks; infinite where there is no limit


class Form(NamedTuple):
    """What the objective is of a log."""

    kind: int  # of ``ecjax.traffic.penalties``
    z: float = 0.0  # s, shared by all reads


class Traced(NamedTuple):
    """The problem."""

    bins: Bins
    reads: Counts
    writes: Counts
    slope: np.ndarray  # (2, m) s and s/B: m_1(B) of every node
    background: np.ndarray  # (m,) load of other work
    c: np.ndarray  # (m,) s
    penalty: Penalty  # J, or an order-statistic form
    weight: np.ndarray  # (m,) 1/s
    # read, written and of other work, by which ``weight`` divides waits: none stored beyond need
    chunks: float
    offset: float  # s, z of these
    toll: np.ndarray  # (R, m) s
    keep: np.ndarray  # (R, m) s
    rows: Rows

    @property
    def number(self) -> int:
        """Number of placement rows R."""
        return len(self.rows.hot)


def traced(
    problem: Problem,
    reads: BinnedReads,
    writes: BinnedReads | None,
    theta: float,
    bins: Bins | None = None,
    form: Form | None = None,
) -> Traced:
    """The problem of a log.

    Args:
        problem: nodes, files and constraints, scaled; its rates count for nothing.
        reads: of the files, by blocks; counts are multiplied by no rate scale here.
        writes: by the same blocks; None: none.
        theta: s per dollar of mean cost per file.
        bins: of the recursion, within those of the reads, which are its blocks; None: every bin is a block.
        form: of the objective; None: the mean wait of chunks.

    Raises:
        ValueError: an order-statistic form of several chunk sizes, or of services whose scv is above 9.
    """
    bins = Bins(np.asarray(reads.width_s, float), np.arange(reads.bins + 1)) if bins is None else bins
    nodes, files = problem.nodes, problem.files
    size = np.asarray(files.chunk_bytes)
    by_row = _counts(problem, reads, bins, size)
    by_write = _counts(problem, writes, bins, np.asarray(files.write_bytes))
    slope = np.asarray(nodes.work)[0, :2]
    background = np.array(nodes.background)
    number = np.bincount(reads.file, reads.reads, reads.files)
    total = float(number @ _of_files(problem, problem.k))
    moments = _moments(problem, number, nodes.work)
    length = reads.length_s
    # c must not depend on the plan: the mixture of sizes as every node would see it
    share = total / nodes.count / length
    sums = share * moments[:2] + background[:2]
    c = np.where(sums[0] > 0, sums[1] / np.where(sums[0] > 0, 2 * sums[0], 1.0), 0.0)
    written = 0.0
    if writes is not None:
        count = np.bincount(writes.file, writes.reads, writes.files)
        written = float(count @ _of_files(problem, problem.floor))
    other = float(np.sum(background[0] / moments[0])) * length
    per_dollar = theta / files.count
    reading = reading_prices(problem)
    penalty, offset = mean_wait(nodes.count), 0.0
    chunks = total + written + other
    per_second = 1.0 / (moments[0] * chunks)
    toll = _slower(problem, number, total)
    if form is not None and form.kind != WAIT:
        written_files = np.zeros_like(number) if writes is None else count
        check_form(problem, number, written_files)
        requests = float(number.sum() + written_files.sum()) + other
        per_second, offset = 1.0 / (moments[0] * requests), form.z
        penalty = _penalty(problem, form, number, share * moments + background)
        toll = np.zeros_like(toll)  # the bound counts services themselves
    if reading is not None:
        toll = toll + per_dollar * np.asarray(reading)
    return Traced(
        bins=bins,
        reads=by_row,
        writes=by_write,
        slope=writable(slope),
        background=background[0],
        c=c,
        penalty=penalty,
        weight=per_second,
        chunks=chunks,
        offset=offset,
        toll=np.ascontiguousarray(toll),
        keep=np.ascontiguousarray(per_dollar * np.asarray(prices(problem))),
        rows=_rows(problem),
    )


def check_form(problem: Problem, reads: np.ndarray, writes: np.ndarray) -> None:
    """Whether a problem has order-statistic forms.

    Args:
        problem: nodes and files.
        reads: (r,) of each file.
        writes: (r,) of each file.

    Raises:
        ValueError: it has none, and why.
    """
    files = problem.files
    sizes = np.asarray(files.chunk_bytes)[reads + writes > 0], np.asarray(files.write_bytes)[writes > 0]
    size = np.unique(np.concatenate(sizes))
    if len(size) > 1:
        raise ValueError(
            f"chunks of {len(size)} sizes, from {size[0]:g} to {size[-1]:g} B; allowed: one size"
        )
    first, second, _ = _moments(problem, reads, problem.nodes.service)
    scv = second / first**2 - 1
    if scv.max() > MOST_SCV * (1 + 1e-9):
        raise ValueError(
            f"services of a squared coefficient of variation of {scv.max():.3g}; allowed: up to {MOST_SCV:g}"
        )


def _penalty(problem: Problem, form: Form, number: np.ndarray, sums: np.ndarray) -> Penalty:
    """What chunks cost at every node, in a queue of all work, of (3, m) sums of moments."""
    nodes = problem.nodes
    first, second, _ = _moments(problem, number, nodes.service)
    busy = sums[1] > 0
    q = np.where(busy, 2 * sums[2] / (3 * np.where(busy, sums[1], 1.0)), 0.0)
    variance = np.maximum(second - first**2, 0.0) + np.asarray(nodes.connect_variance)
    if form.kind == EXCESS:
        # more than there is where a service is nearly constant: without a kink, and above it
        q, variance = np.zeros_like(q), np.maximum(variance, (_LEAST_DEVIATION * first) ** 2)
    return Penalty(form.kind, first + np.asarray(nodes.connect_mean) - form.z, variance, q)


def merged_bins(data: Traced, most: int) -> Traced:
    """The same with neighbouring blocks merged to at most ``most``, each one bin: a coarser picture for searches."""
    bins = data.bins
    blocks = len(bins.edge) - 1
    lengths = np.add.reduceat(bins.width, bins.edge[:-1])
    group = np.minimum((np.cumsum(lengths) - 0.5 * lengths) / lengths.sum() * most, most - 1).astype(np.int64)
    group = np.unique(group, return_inverse=True)[1]
    width = np.bincount(group, lengths)
    if len(width) == blocks == len(bins.width):
        return data

    def of(counts: Counts) -> Counts:
        row = np.repeat(np.arange(len(counts.start) - 1), np.diff(counts.start))
        key, place = np.unique(row * len(width) + group[counts.block], return_inverse=True)
        weight = lengths[counts.block]
        block = key % len(width)
        sums = (
            np.bincount(place, weight * each, len(key)) / width[block] for each in (counts.rate, counts.bytes)
        )
        start = np.searchsorted(key // len(width), np.arange(len(counts.start)))
        return Counts(start, block, *sums)

    edges = Bins(width, np.arange(len(width) + 1))
    return data._replace(bins=edges, reads=of(data.reads), writes=of(data.writes))


def accesses_of_rows(counts: Counts, bins: Bins) -> np.ndarray:
    """Reads or writes of every row in the whole log, (R,).

    Args:
        counts: of R rows.
        bins: with their blocks.
    """
    lengths = np.add.reduceat(bins.width, bins.edge[:-1])
    number = len(counts.start) - 1
    row = np.repeat(np.arange(number), np.diff(counts.start))
    return np.bincount(row, counts.rate * lengths[counts.block], number)


def _counts(problem: Problem, binned: BinnedReads | None, bins: Bins, size: np.ndarray) -> Counts:
    rows = problem.rows
    if binned is None:
        nothing = np.zeros(0)
        return Counts(np.zeros(rows + 1, np.int64), np.zeros(0, np.int64), nothing, nothing)
    blocks = len(bins.edge) - 1
    lengths = np.add.reduceat(bins.width, bins.edge[:-1])
    row = binned.file if problem.row is None else np.asarray(problem.row, np.int64)[binned.file]
    key, place = np.unique(row * blocks + binned.bin, return_inverse=True)
    block = key % blocks
    rate = np.bincount(place, binned.reads, len(key)) / lengths[block]
    moved = np.bincount(place, binned.reads * size[binned.file], len(key)) / lengths[block]
    return Counts(np.searchsorted(key // blocks, np.arange(rows + 1)), block, rate, moved)


def _moments(problem: Problem, number: np.ndarray, law: ArrayLike) -> np.ndarray:
    """Moments of a read chunk's work or service, by (3, 4, m) polynomials, at every node, of all reads: (3, m)."""
    chunks = number * _of_files(problem, problem.k)
    share = chunks / chunks.sum()
    powers = np.stack([share @ np.asarray(problem.files.chunk_bytes) ** p for p in range(4)])
    moments = np.einsum("npm,p->nm", np.asarray(law), powers)
    # a node that takes no time at all would count without bounds
    return np.maximum(moments, 1e-9 * moments.max(axis=1, keepdims=True))


def _of_files(problem: Problem, rows: ArrayLike) -> np.ndarray:
    """Row values (R,) for every file (r,)."""
    values = np.asarray(rows)
    return values if problem.row is None else values[np.asarray(problem.row)]


def _slower(problem: Problem, number: np.ndarray, total: float) -> np.ndarray:
    """Service and connection of a row's chunk beyond those at its fastest allowed node, per chunk read: (R, m)."""
    nodes, rows = problem.nodes, problem.rows
    row = np.arange(rows) if problem.row is None else np.asarray(problem.row)
    size = np.asarray(problem.files.chunk_bytes)
    reads, moved = np.bincount(row, number, rows), np.bincount(row, number * size, rows)
    slope = np.asarray(nodes.service)[0]
    time = (slope[0] + np.asarray(nodes.connect_mean))[None] * reads[:, None] + slope[1][None] * moved[
        :, None
    ]
    usable = time if problem.allowed is None else np.where(np.asarray(problem.allowed), time, np.inf)
    return np.maximum(time - usable.min(axis=1, keepdims=True), 0.0) / total


def _rows(problem: Problem) -> Rows:
    m = problem.nodes.count
    capacity, site, per_site = problem.capacity, problem.site, problem.per_site
    hot = np.asarray(problem.k).round().astype(np.int64)
    allowed = np.ones((problem.rows, m), bool) if problem.allowed is None else np.array(problem.allowed, bool)
    return Rows(
        hot=hot,
        length=np.maximum(np.asarray(problem.floor).round().astype(np.int64), hot),
        allowed=allowed,
        site=np.zeros(m, np.int64) if site is None else np.unique(np.asarray(site), return_inverse=True)[1],
        per_site=0 if per_site is None else int(per_site),
        chunks=np.array(problem.price_chunks, float),
        capacity=np.full(m, np.inf) if capacity is None else np.array(capacity, float),
    )
