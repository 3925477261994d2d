"""A certified plan of one code for all files: which nodes keep their data chunks, which their parity."""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ecjax.planning import Problem
from ecjax.planning.certified.certify import Certificate, Settings, certify
from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.lanes import finished
from ecjax.planning.certified.relax import Passes
from ecjax.planning.problem import prepare

_THETA = 1e-9  # s per dollar: chunks beyond n cost something, and latency is all that counts
_NO_SPARE = np.zeros(0, int), np.zeros(0, int)


class CodePlan(NamedTuple):
    """Where the chunks of R placement rows are, and where they are read.

    Attributes:
        data: (R, m) bool, nodes with a data chunk
        stored: (R, m) bool, nodes with any chunk, n of each row
        probabilities: (R, m) share of a row's full reads that use the node
        gap: relative gap of the bound on their mean latency to a lower bound of every plan's; of files of many sizes
            both as if all had the chunk size of mean work, their work being kept
    """

    data: np.ndarray
    stored: np.ndarray
    probabilities: np.ndarray
    gap: float


def data_plan(problem: Problem, gap: float, seed: int, threads: int) -> Certificate:
    """Which nodes keep the data of every file, and a lower bound on the latency of all plans.

    The bound is one for every plan with more other work at the nodes, too: waits only grow with that.

    Args:
        problem: k of all files is that of the code; prices are left aside.
        gap: that is good enough.
        seed: of rounding.
        threads: at most.
    """
    service, rows = flatten(_priced(problem))
    passes = Passes(service, rows, threads)
    passes.with_theta(_THETA / problem.files.count)
    try:
        return certify(passes, Settings(gap=gap, seed=seed))
    finally:
        passes.close()


def code_plan(
    problem: Problem, n: int | np.ndarray, gap: float, seed: int, data: Certificate
) -> CodePlan | None:
    """The plan of least latency with n chunks of every file; None where it overloads a node.

    Full reads take data chunks, and are spread over parity chunks, too, where that closes the gap.

    Args:
        problem: with all other work at its nodes.
        n: chunks of every file, or (R,) of each, at most one on a node.
        gap: that is good enough
        seed: of where parity goes.
        data: where the data goes, planned for the same problem, or one with less other work.
    """
    chunks = data.hot if problem.per_site is None else _spread_over_sites(data.hot, n, problem)
    stored = _with_parity(chunks, n, problem, np.random.default_rng(seed))
    kinds = np.where(chunks, HOT, np.where(stored, COLD, NONE)).astype(data.kinds.dtype)
    # shared reads and other placements of the data's plan are of chunks where this code may have none
    placed = replace(
        data, kinds=kinds, spare=_NO_SPARE, split=None, placements=np.zeros((0, *kinds.shape), bool)
    )
    final = finished(_priced(problem), _THETA, placed, gap)
    latency = float(final.evaluation.latency_shared_z)
    if not np.isfinite(latency):
        return None
    bound = data.lower_bound - _THETA * float(np.max(n))
    return CodePlan(chunks, stored, np.asarray(final.probabilities), max(0.0, (latency - bound) / bound))


def _priced(problem: Problem) -> Problem:
    """All files with one size, and a price for each chunk."""
    nodes = problem.nodes
    ones = jnp.ones_like(nodes.cost_per_chunk)
    priced = replace(nodes, cost_per_chunk=ones, cost_per_byte=0 * ones)
    return replace(_one_size(replace(problem, nodes=priced)), site=problem.site, per_site=problem.per_site)


def _one_size(problem: Problem) -> Problem:
    """All files with the chunk size of mean work, and rates that keep the work of each."""
    files, first = problem.files, np.asarray(problem.nodes.work[0]).mean(axis=1)
    size, written, rate, writes = (
        np.asarray(each) for each in (files.chunk_bytes, files.write_bytes, files.rate, files.write_rate)
    )
    if np.all(size == size[0]) and np.all(written == size[0]):
        return problem
    mean = float(rate @ size / rate.sum())
    work, write_work = (
        np.polynomial.polynomial.polyval(each, first) / np.polynomial.polynomial.polyval(mean, first)
        for each in (size, written)
    )
    alike = replace(
        files,
        chunk_bytes=jnp.full_like(files.chunk_bytes, mean),
        stored_chunk_bytes=jnp.full_like(files.chunk_bytes, mean),
        rate=jnp.asarray(rate * work),
        write_rate=jnp.asarray(writes * write_work),
        whole_chunk_bytes=None,
    )
    return prepare(problem.nodes, alike, problem.row, problem.rows)


def _spread_over_sites(data: np.ndarray, n: int | np.ndarray, problem: Problem) -> np.ndarray:
    """The same where the data leave it to parity to spread n chunks over the sites as evenly as these have nodes.

    What is planned keeps to the most chunks of a site only, and may leave more sites without a chunk than there are
    parity chunks. Data moves from the busiest nodes of full sites to the least busy of others.
    """
    assert problem.site is not None and problem.per_site is not None
    site, files = np.asarray(problem.site), problem.files
    nodes_of_site = np.bincount(site)
    length = np.broadcast_to(n, len(data))
    # of each site, but for as many with one chunk more as are left
    evenly = np.minimum(nodes_of_site, problem.per_site - 1)
    if not evenly.any():
        return data
    per_chunk = np.asarray(problem.nodes.work[0])
    size = np.asarray(files.chunk_bytes)
    row = np.arange(len(data)) if problem.row is None else np.asarray(problem.row)
    # s of work for a node per s, were all reads of the data
    work = np.zeros(data.shape)
    np.add.at(
        work, row, np.asarray(files.rate)[:, None] * np.polynomial.polynomial.polyval(size, per_chunk).T
    )
    spread = data.copy()
    load = np.asarray(problem.nodes.background[0]) + (work * data).sum(axis=0)
    for at in np.argsort(-work.mean(axis=1), kind="stable"):
        more = max(0, length[at] - evenly.sum())
        while True:
            chunks = np.bincount(site[spread[at]], minlength=len(nodes_of_site))
            full = chunks > evenly
            if full.sum() <= more:
                break
            origin = np.where(spread[at] & full[site], load, -np.inf).argmax()
            target = np.where(~spread[at] & (chunks < evenly)[site], load + work[at], np.inf).argmin()
            spread[at, [origin, target]] = False, True
            load[origin] -= work[at, origin]
            load[target] += work[at, target]
    return spread


def _with_parity(
    data: np.ndarray, n: int | np.ndarray, problem: Problem, random: np.random.Generator
) -> np.ndarray:
    """Nodes with a chunk: those of the data, and others at random, of sites with the fewest chunks first."""
    stored = data.copy()
    rows = np.arange(len(data))
    site = np.arange(data.shape[1]) if problem.site is None else np.asarray(problem.site)
    member = (site[:, None] == np.arange(site.max() + 1)).astype(int)
    while True:
        short = stored.sum(axis=1) < n
        if not short.any():
            return stored
        draw = random.random(data.shape) - (stored @ member)[:, site]
        draw[stored] = -np.inf
        stored[rows[short], draw.argmax(axis=1)[short]] = True
