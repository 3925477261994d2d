"""From tables and laws to what ``ecjax.queueing.estimate`` takes."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax import planning
from ecjax.planning.problem import NODE_WORK
from ecjax.predict.common_writes import problem_writes
from ecjax.programs import program
from ecjax.queueing import estimate_latency, tail_bound
from ecjax.queueing.service_law import ServiceLaw, Stalls, UnitLaw
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import (
    DETERMINISTIC,
    EMPIRICAL,
    EMPIRICAL_STALLED,
    EXPONENTIAL,
    FIRST_SAMPLE,
    KIND,
    KINDS,
    LINES,
    SAMPLES,
    SCALE,
    SCALE_PER_BYTE,
    STALLED,
    WITH_STALLS,
    A,
    B,
    Laws,
)

_PARAMETERS = {
    "gamma": ("shape",),
    "lognormal": ("sigma",),
    "pareto": ("alpha", "ratio"),
    "two_point": ("share",),
    "weibull": ("shape",),
}


# made once, so that whatever a process estimates shares compiled programs
_STATIC = ("levels", "group_count")
ESTIMATE = program(estimate_latency, quick=True, static_argnames=_STATIC)
TAIL_BOUND = program(tail_bound, quick=True, static_argnames=_STATIC)
_STALLS = 8  # values that stand for those of an empirical law


def workload_of(problem: planning.Problem, laws: Laws, stored: ArrayLike) -> Workload:
    """Reads of a scaled problem on nodes with these laws; writes and background work as work beside the reads.

    Args:
        problem: scaled; reads, chunk sizes, connection delays and other work are taken from it.
        laws: of the nodes.
        stored: (R, m) bool, chunks that writes load.
    """
    files, nodes = problem.files, problem.nodes
    holds = jnp.asarray(stored, float)
    service = node_laws(laws, nodes.count)
    load = Workload.of(
        files.rate,
        files.chunk_bytes,
        files.k,
        service,
        connection_of(nodes.connect_mean, nodes.connect_variance),
        present(NODE_WORK(problem, jnp.zeros_like(holds), holds)),
        nodes.channels,
    )
    return replace(load, common_writes=problem_writes(problem, np.asarray(stored), service))


def present(values: ArrayLike) -> np.ndarray | None:
    """The same; None where all are 0: gamma laws of nothing take half of the time of an estimate."""
    array = np.asarray(values)
    return array if array.any() else None


def connection_of(mean: ArrayLike, variance: ArrayLike) -> tuple[ArrayLike, ArrayLike] | None:
    """Connection delays as ``Workload.of`` takes them, mean (s) and variance (s^2), (m,); None where all are 0."""
    return None if present(mean) is None and present(variance) is None else (mean, variance)


def node_laws(laws: Laws, nodes: int) -> ServiceLaw:
    """The laws of the first ``nodes`` entries, as distributions."""
    table = laws.table[:nodes].copy()
    # a constant U is 0 in a replay and 1 in a distribution
    table[np.ix_(table[:, KIND] == DETERMINISTIC, [SCALE, SCALE_PER_BYTE])] = 0.0
    stalls = _stalls_of(laws, nodes)
    without = {STALLED: EXPONENTIAL, EMPIRICAL_STALLED: EMPIRICAL}
    for kind, alone in without.items():
        rows = table[:, KIND] == kind
        table[rows, KIND] = alone
        table[np.ix_(rows, [A, B])] = 0.0
    laws_of_u: dict[tuple, UnitLaw] = {}
    units = []
    for row in table:
        key = tuple(row[A:])
        if key not in laws_of_u:
            laws_of_u[key] = _unit(row, laws.samples)
        units.append(laws_of_u[key])
    offset, by_offset, scale, by_scale = np.ascontiguousarray(table[:, LINES].T)
    return ServiceLaw.of_nodes(units, offset, by_offset, scale, by_scale, stalls=stalls)


def _stalls_of(laws: Laws, nodes: int) -> Stalls | None:
    """Stalls of the first ``nodes`` laws; of many values as few as tell their law."""
    stalled = np.isin(laws.table[:nodes, KIND], WITH_STALLS)
    if not stalled.any():
        return None
    count = _STALLS if np.any(laws.table[:nodes, KIND] == EMPIRICAL_STALLED) else 1
    times = np.zeros((nodes, count))
    for node in np.flatnonzero(stalled).tolist():
        stalls = laws.stalls(node)
        times[node] = stalls.reshape(count, -1).mean(axis=1) if len(stalls) > 1 else stalls
    probability = np.where(stalled, laws.table[:nodes, A], 0.0)[:, None] / count
    return Stalls(jnp.asarray(np.broadcast_to(probability, times.shape)), jnp.asarray(times))


def _unit(row: np.ndarray, samples: np.ndarray) -> UnitLaw:
    kind, a, b = KINDS[int(row[KIND])], float(row[A]), float(row[B])
    if kind == "empirical":
        first = int(row[FIRST_SAMPLE])
        return UnitLaw.empirical(samples[first : first + int(row[SAMPLES])])
    names = _PARAMETERS.get(kind, ())
    return UnitLaw.named(kind, **dict(zip(names, (a, b), strict=False)))
