"""How much better than a plan any plan can be under which nodes wait about as they do.

Where chunk sizes differ, or files are written, latency is not convex in a plan: the lower bound allows every node the
best of all levels of its wait, and a gap stays open that no better plan closes. A plan that differs in details leaves
the levels as they are. Over those levels alone the bound is nearly tight: it proves what moving chunks and reads
without another division of the work could gain.
"""

from contextlib import closing

import numpy as np

from ecjax.cores import available_cores, one_blas_thread
from ecjax.planning.certified.bound import lower_bound
from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import Passes, groups_of, relax
from ecjax.planning.jlcm import Solution
from ecjax.planning.problem import Problem, node_work

NEAR = 1.1  # factor within which a node stays
_PASSES = 50  # most, over the rows, for prices at other z


def is_convex(problem: Problem) -> bool:
    """Whether latency is convex in a plan at a fixed z: all chunks have one size, and nothing is written."""
    sizes = np.asarray(problem.files.chunk_bytes)
    return problem.writes is None and bool(np.all(sizes == sizes[:1]))


def nearby_bound(problem: Problem, theta: float, plan: Solution, tol: float) -> float:
    """Lower bound, s, of the objective of every plan whose nodes wait as those of ``plan`` do, to a factor ``NEAR``.

    What counts are the mean wait of a node and A_3 / A_2 of its work, which the mix of chunk sizes makes, each at least
    1 / NEAR and at most NEAR times what it is; nodes without work may get any.

    Args:
        problem: scaled.
        theta: s per dollar of mean cost per file.
        plan: of the problem, below a load of 1 at every node.
        tol: relative.
    """
    service, rows = flatten(problem)
    passes = Passes(service, rows, available_cores())
    passes.with_theta(theta / problem.files.count)
    # reads of one chunk have no z
    kinds, z = _whole(plan, rows.hot), 0.0 if service.alone else float(plan.evaluation.z)
    # matrices are small: threads would be in each other's way
    with one_blas_thread(), closing(passes):
        relaxed = relax(passes, groups_of(service, rows), kinds, z, np.inf, 1, fixed_z=True)
        return lower_bound(passes, relaxed, tol, _PASSES, _levels(problem, plan)).value


def _levels(problem: Problem, plan: Solution) -> np.ndarray:
    """Cells (m, 4) of 1/w and w/q around those of the plan."""
    load, second, third = np.asarray(node_work(problem, plan.probabilities, plan.stored.astype(float)))
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse, ratio = 2 * (1 - load) / second, 1.5 * second / third
    cells = np.stack([inverse / NEAR, inverse * NEAR, ratio / NEAR, ratio * NEAR], axis=1)
    cells[~(np.isfinite(inverse) & np.isfinite(ratio))] = (0.0, np.inf, 0.0, np.inf)
    return cells


def _whole(plan: Solution, hot: np.ndarray) -> np.ndarray:
    """Choices (R, m): the nodes that most of a row's reads use are all that they use."""
    probabilities, stored = np.asarray(plan.probabilities), np.asarray(plan.stored)
    rank = np.argsort(np.argsort(-probabilities, axis=1, kind="stable"), axis=1)
    return np.where(rank < hot[:, None], HOT, np.where(stored, COLD, NONE)).astype(np.int8)
