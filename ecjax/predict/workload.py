"""From tables and laws to what ``ecjax.queueing.estimate`` takes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax import planning
from ecjax.planning.problem import NODE_WORK
from ecjax.queueing import estimate_latency, tail_bound
from ecjax.queueing.service_law import ServiceLaw, Stalls, UnitLaw
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import (
    DETERMINISTIC,
    EXPONENTIAL,
    FIRST_SAMPLE,
    KIND,
    KINDS,
    LINES,
    SAMPLES,
    SCALE,
    SCALE_PER_BYTE,
    STALLED,
    A,
    B,
    Laws,
)

_PARAMETERS = {
    "gamma": ("shape",),
    "lognormal": ("sigma",),
    "pareto": ("alpha", "ratio"),
    "weibull": ("shape",),
}
# made once, so that whatever a process estimates shares compiled programs
ESTIMATE, TAIL_BOUND = (
    jax.jit(predict, static_argnames=("levels", "group_count")) for predict in (estimate_latency, tail_bound)
)
_POINTS = 512  # samples that stand for two points with their probabilities


def workload_of(problem: planning.Problem, laws: Laws, stored: ArrayLike) -> Workload:
    """Reads of a scaled problem on nodes with these laws; writes and background work as work beside the reads.

    Args:
        problem: scaled; reads, chunk sizes, connection delays and other work are taken from it.
        laws: of the nodes.
        stored: (R, m) bool, chunks that writes load.
    """
    files, nodes = problem.files, problem.nodes
    holds = jnp.asarray(stored, float)
    return Workload.of(
        files.rate,
        files.chunk_bytes,
        files.k,
        node_laws(laws, nodes.count),
        (nodes.connect_mean, nodes.connect_variance),
        NODE_WORK(problem, jnp.zeros_like(holds), holds),
        nodes.channels,
    )


def node_laws(laws: Laws, nodes: int) -> ServiceLaw:
    """The laws of the first ``nodes`` entries, as distributions."""
    table = laws.table[:nodes].copy()
    # a constant U is 0 in a replay and 1 in a distribution
    table[np.ix_(table[:, KIND] == DETERMINISTIC, [SCALE, SCALE_PER_BYTE])] = 0.0
    stalls = _stalls_of(table)
    laws_of_u: dict[tuple, UnitLaw] = {}
    units = []
    for row in table:
        key = tuple(row[A:])
        if key not in laws_of_u:
            laws_of_u[key] = _unit(row, laws.samples)
        units.append(laws_of_u[key])
    offset, by_offset, scale, by_scale = np.ascontiguousarray(table[:, LINES].T)
    return ServiceLaw.of_nodes(units, offset, by_offset, scale, by_scale, stalls=stalls)


def _stalls_of(table: np.ndarray) -> Stalls | None:
    """Stalls of laws (l, COLUMNS), which then are without them."""
    stalled = table[:, KIND] == STALLED
    if not stalled.any():
        return None
    parts = [np.where(stalled, table[:, part], 0.0) for part in (A, B)]
    table[stalled, KIND] = EXPONENTIAL
    table[np.ix_(stalled, [A, B])] = 0.0
    return Stalls(*map(jnp.asarray, parts))


def _unit(row: np.ndarray, samples: np.ndarray) -> UnitLaw:
    kind, a, b = KINDS[int(row[KIND])], float(row[A]), float(row[B])
    if kind == "empirical":
        first = int(row[FIRST_SAMPLE])
        return UnitLaw.empirical(samples[first : first + int(row[SAMPLES])])
    if kind == "two_point":
        high = round(_POINTS * a)
        return UnitLaw.empirical(np.repeat([0.0, 1.0], [_POINTS - high, high]))
    names = _PARAMETERS.get(kind, ())
    return UnitLaw.named(kind, **dict(zip(names, (a, b), strict=False)))
