"""A plan with nodes down: reads go to the surviving chunks, all failure scenarios as one compiled program.

In a scenario some nodes are down. A file with fewer surviving chunks than rebuild it is unavailable: its reads are
lost. All other files are read as ever, so that the nodes that are left carry more: how the reads spread is either what
clients do without a new plan (``nearest``) or the best there is for this placement (``optimal``). Writes go on to the
surviving chunks. Repair traffic is not added: give it as background load of the nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from ecjax.planning.descent import Stopping
from ecjax.planning.problem import Problem, evaluate, of_files
from ecjax.planning.rescheduling import nearest, reschedule
from ecjax.programs import program
from ecjax.status import Status

SCHEDULING = ("nearest", "optimal")
STOPPING = Stopping(eps=1e-6)

# Arrays of the size of the probabilities that a scenario holds at its peak.
_ARRAYS_PER_SCENARIO = 30


@dataclass(frozen=True)
class Outcomes:
    """What happens in every scenario; NumPy arrays over S scenarios.

    Latencies are of the reads that are served: nan where none is, infinite where a node stays overloaded.
    """

    latency: np.ndarray  # (S,) s, one z per file
    latency_shared_z: np.ndarray  # (S,) s, one z for all files
    max_load: np.ndarray  # (S,) largest load of a node that is up
    busiest: np.ndarray  # (S,) int, that node
    unavailable_files: np.ndarray  # (S,) int
    unavailable_share: np.ndarray  # (S,) of the read rate
    converged: np.ndarray  # (S,) bool, whether the rescheduling did

    @property
    def count(self) -> int:
        """Number of scenarios S."""
        return len(self.latency)

    @property
    def status(self) -> list[Status]:
        """How each scenario ended; infeasible where every read is lost."""
        return [
            Status.INFEASIBLE
            if np.isnan(shared)
            else Status.UNSTABLE
            if np.isinf(shared)
            else Status.OK
            if converged
            else Status.NOT_CONVERGED
            for shared, converged in zip(self.latency_shared_z, self.converged, strict=True)
        ]

    def mean(self) -> float:
        """Mean of ``latency`` over the scenarios that serve reads, s; nan where none does."""
        served = self.latency[~np.isnan(self.latency)]
        return float(served.mean()) if served.size else float("nan")

    def worst(self) -> int:
        """The scenario with the largest ``latency``; one that serves no read at all counts as the worst."""
        return int(np.argmax(np.where(np.isnan(self.latency), np.inf, self.latency)))


class _Lane(NamedTuple):
    latency: jax.Array
    latency_shared_z: jax.Array
    max_load: jax.Array
    busiest: jax.Array
    unavailable_files: jax.Array
    unavailable_share: jax.Array
    converged: jax.Array


def node_scenarios(nodes: int) -> np.ndarray:
    """Each node down alone: (m, m) bool."""
    return np.eye(nodes, dtype=bool)


def site_scenarios(site: ArrayLike) -> np.ndarray:
    """Each site down as a whole: (sites, m) bool, from the site of every node, (m,) int from 0."""
    index = np.asarray(site)
    return np.arange(index.max() + 1)[:, None] == index[None]


def disturbed(
    problem: Problem, stored: jax.Array, down: jax.Array, rebuild: jax.Array | None = None
) -> tuple[Problem, jax.Array]:
    """The problem that is left with nodes down, and the chunks that are left, (R, m) bool.

    Unavailable files have no reads and k = 0; shares are of the reads that are served (all 0 where none is). A file
    that is read from more chunks than rebuild it (d > k), and has fewer than d left, is read from all of those in
    larger parts.

    Args:
        problem: the problem.
        stored: (R, m) bool.
        down: (m,) bool.
        rebuild: (R,) chunks that rebuild a file; ``problem.k`` where absent.
    """
    up = ~down
    chunks = stored & up[None]
    survivors = chunks.sum(axis=-1).astype(problem.k.dtype)
    k = jnp.minimum(problem.k, survivors)
    available = survivors >= (problem.k if rebuild is None else rebuild)
    k = jnp.where(available, k, 0.0)
    larger = jnp.where(available, problem.k / jnp.where(k > 0, k, 1.0), 1.0)
    powers = jnp.stack([jnp.ones_like(larger), larger, larger**2, larger**3])
    of_file = of_files(problem, available)
    rate = jnp.where(of_file, problem.files.rate, 0.0)
    row_share = jnp.where(available, problem.row_share, 0.0)
    served = row_share.sum()
    served = jnp.where(served > 0, served, 1.0)
    return replace(
        problem,
        nodes=replace(problem.nodes, background=jnp.where(up[None], problem.nodes.background, 0.0)),
        files=replace(
            problem.files,
            k=of_files(problem, k),
            rate=rate,
            chunk_bytes=problem.files.chunk_bytes * of_files(problem, larger),
        ),
        k=k,
        share=jnp.where(of_file, problem.share, 0.0) / served,
        row_share=row_share / served,
        reads=jnp.where(available[None], problem.reads * powers, 0.0),
    ), chunks


def evaluate_scenarios(
    problem: Problem,
    probabilities: ArrayLike,
    stored: ArrayLike,
    down: ArrayLike,
    scheduling: str = "optimal",
    rebuild: ArrayLike | None = None,
    memory_bytes: float = 1e9,
) -> Outcomes:
    """Latency, loads and unavailable files of a plan in every scenario.

    Args:
        problem: the problem.
        probabilities: (R, m) of the plan.
        stored: (R, m) bool.
        down: (S, m) bool, the nodes that are down; a row without any is the undisturbed plan.
        scheduling: "nearest" (see ``nearest``), or "optimal": from there to the least latency with one z for all
            files, after bringing down the loads where a node is overloaded. ``converged`` is true for "nearest".
        rebuild: (R,) chunks that rebuild a file; ``problem.k`` where absent.
        memory_bytes: so many scenarios are computed at once as fit in here; on a CPU always one after the other,
            which is five times faster there.

    Raises:
        ValueError: an unknown scheduling.
    """
    if scheduling not in SCHEDULING:
        raise ValueError(f"scheduling: found {scheduling!r}; allowed: {', '.join(SCHEDULING)}")
    scenarios = np.asarray(down, bool)
    width = scenarios_at_once(problem, len(scenarios), memory_bytes)
    outcomes = _outcomes(
        unconstrained(problem),
        jnp.asarray(probabilities),
        jnp.asarray(stored, bool),
        jnp.asarray(scenarios),
        None if rebuild is None else jnp.asarray(rebuild, problem.k.dtype),
        scheduling,
        width,
    )
    return Outcomes(*map(np.asarray, outcomes))


def unconstrained(problem: Problem) -> Problem:
    """The problem without what a given placement does not depend on: problems that differ in it share programs."""
    return replace(
        problem, surcharge=None, reading=None, allowed=None, site=None, capacity=None, per_site=None
    )


def scenarios_at_once(problem: Problem, scenarios: int, memory_bytes: float) -> int:
    """How many scenarios run side by side: as fit in ``memory_bytes``, in batches of even width; one on a CPU.

    Descents of a batch go on until the last has converged, and XLA on CPUs runs batched ones no faster.
    """
    if jax.default_backend() == "cpu":
        return 1
    each = problem.rows * problem.nodes.count * problem.k.dtype.itemsize * _ARRAYS_PER_SCENARIO
    most = max(1, int(memory_bytes // each))
    return -(-scenarios // -(-scenarios // most))


def in_batches(function: Callable, scenarios: Any, width: int) -> Any:
    """``function`` of every scenario (leading axis of all arrays), ``width`` side by side; under ``jit``.

    The last is repeated to fill the last batch, so that all batches are one program.
    """
    count = len(jax.tree.leaves(scenarios)[0])
    last = -count % width
    full = jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], last, axis=0)]), scenarios)
    return jax.tree.map(lambda leaf: leaf[:count], lax.map(function, full, batch_size=width))


def _lane(
    problem: Problem,
    probabilities: jax.Array,
    stored: jax.Array,
    rebuild: jax.Array | None,
    scheduling: str,
    down: jax.Array,
) -> _Lane:
    served_problem, survivors = disturbed(problem, stored, down, rebuild)
    point = nearest(served_problem, probabilities, survivors)
    converged = jnp.ones((), bool)
    if scheduling == "optimal":
        final = reschedule(served_problem, point, survivors, STOPPING)
        point, converged = final.point, final.converged
    evaluation = evaluate(served_problem, point, survivors, jnp.zeros((), point.dtype))
    load = jnp.where(down, -jnp.inf, evaluation.load)
    lost = of_files(problem, served_problem.k == 0)
    any_served = served_problem.share.sum() > 0
    # the latency of reads does not show an overloaded node that only writes reach
    latency = jnp.where(jnp.isinf(evaluation.latency_shared_z), jnp.inf, evaluation.latency)
    return _Lane(
        latency=jnp.where(any_served, latency, jnp.nan),
        latency_shared_z=jnp.where(any_served, evaluation.latency_shared_z, jnp.nan),
        max_load=jnp.max(load),
        busiest=jnp.argmax(load).astype(jnp.int32),
        unavailable_files=lost.sum(dtype=jnp.int32),
        unavailable_share=jnp.sum(jnp.where(lost, problem.share, 0.0)),
        converged=converged,
    )


@partial(program, quick=True, static_argnums=(5, 6))
def _outcomes(problem, probabilities, stored, down, rebuild, scheduling, width) -> _Lane:
    def one(scenario: jax.Array) -> _Lane:
        return _lane(problem, probabilities, stored, rebuild, scheduling, scenario)

    return in_batches(one, down, width)
