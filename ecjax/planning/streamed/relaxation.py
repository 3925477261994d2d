"""Prices, a lower bound and the marginals of bins, from counts of files."""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.model import Files, Nodes
from ecjax.planning.certified.certify import Settings
from ecjax.planning.certified.collapse import LEAST_BINS, Collapsed, Steps, collapse_steps, ends_of_all
from ecjax.planning.certified.data import Rows, Service, flatten
from ecjax.planning.certified.one_size_plan import prove
from ecjax.planning.certified.relax import Passes, most_dollars
from ecjax.planning.certified.smooth import Bins
from ecjax.planning.problem import Problem, prepare, scaled
from ecjax.planning.streamed.tally import Counts


class Sites(NamedTuple):
    """Failure domains.

    Attributes:
        site: (m,) of each node.
        per_site: most chunks of a file in one.
    """

    site: np.ndarray
    per_site: int


class Lane(NamedTuple):
    """What a plan is traded at.

    Attributes:
        theta: s per dollar of mean cost per file.
        rate_scale: of all rates.
        size_scale: of the chunk size.
    """

    theta: float
    rate_scale: float
    size_scale: float


class Relaxed(NamedTuple):
    """What placing the files needs, and what no plan is below.

    Attributes:
        bin_of_step: (S,) bin of each step.
        code_of_bin: (G,) code of its files.
        first_of_bin: (G,) files in the bins before it.
        sums: (G, m) hot marginals summed over the nodes in ``order``; the last is what a read takes.
        order: (m,) nodes, those of a site together.
        cold_order: (codes, m) nodes, those first where a chunk that is not read costs least.
        service: of nodes, for the latency of loads.
        rows: one for each step.
        lower_bound: s.
        turns: passes over the bins.
    """

    bin_of_step: np.ndarray
    code_of_bin: np.ndarray
    first_of_bin: np.ndarray
    sums: np.ndarray
    order: np.ndarray
    cold_order: np.ndarray
    service: Service
    rows: Rows
    lower_bound: float
    turns: int


class _StepPasses(Passes):
    """Passes over the steps, a row each, which stand for their files."""

    def __init__(self, service: Service, rows: Rows, threads: int, steps: Steps) -> None:
        super().__init__(service, rows, threads)
        self._of_rows = steps
        self._classes = int(steps.kind.max()) + 1

    @property
    def steps(self) -> Steps:
        return self._of_rows

    def most_dollars(self) -> float:
        rows, size = self.rows, self._of_rows.size
        return most_dollars(rows._replace(length=size * rows.length, hot=size * rows.hot))

    def ends(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        return ends_of_all(self.rows, self.steps)

    def collapsed(self, most: int) -> Collapsed:
        return collapse_steps(self.steps, max(most // self._classes, LEAST_BINS))


def problem_of(counts: Counts, nodes: Nodes, chunk_bytes: float, sites: Sites | None) -> Problem:
    """The problem with one row for each step, which has all its reads and stands for one file.

    Args:
        counts: of the files.
        nodes: m nodes.
        chunk_bytes: B, of every chunk.
        sites: failure domains; None where they limit nothing.
    """
    codes = counts.codes
    k, read, length = (np.array([getattr(code, name) for code in codes], float) for name in codes[0]._fields)
    size = np.full(len(counts.code), chunk_bytes)
    arrays = (
        size,
        size * (read / k)[counts.code],
        read[counts.code],
        (length - read)[counts.code],
        counts.total,
        np.zeros(len(size)),
    )
    problem = prepare(nodes, Files(*map(jnp.asarray, arrays)))
    if sites is None:
        return problem
    return replace(problem, site=jnp.asarray(sites.site, jnp.int32), per_site=sites.per_site)


def relaxed(counts: Counts, problem: Problem, lane: Lane, settings: Settings, threads: int) -> Relaxed:
    """Prices and a lower bound on the objective of all plans.

    Args:
        counts: of the files.
        problem: of the steps, as ``problem_of`` makes it.
        lane: what is planned for.
        settings: when to end.
        threads: at most.
    """
    service, rows = flatten(scaled(problem, lane.rate_scale, lane.size_scale))
    each = np.arange(len(counts.code))
    total, low, high = (lane.rate_scale * values for values in (counts.total, counts.low, counts.high))
    steps = Steps(each, counts.size, total, low, high, counts.code, each)
    passes = _StepPasses(service, rows, threads, steps)
    passes.with_theta(lane.theta / counts.files)
    try:
        bins = Bins(passes, 0.2 * settings.gap)
        relaxation, bound, turns = prove(bins, settings.gap, settings.passes)
    finally:
        passes.close()
    level, order = bins.fine, bins.sites[0]
    sums = np.cumsum(relaxation.hot[:, order], axis=1)
    sums *= (level.rows.hot / sums[:, -1])[:, None]
    example = level.collapsed.example
    first = counts.first
    rows = passes.rows
    cold = rows.chunks[first, None] * rows.chunk_price + rows.bytes[first, None] * rows.byte_price
    return Relaxed(
        bin_of_step=level.collapsed.of_row,
        code_of_bin=counts.code[example],
        first_of_bin=np.append(0, np.cumsum(level.collapsed.size))[:-1].astype(np.int64),
        sums=sums,
        order=order,
        cold_order=np.argsort(cold, axis=1, kind="stable"),
        service=passes.service,
        rows=rows,
        lower_bound=bound,
        turns=turns,
    )
