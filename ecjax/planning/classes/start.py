"""Where the alternation for service classes starts: a placement with n chunks per row and a stable spread of reads."""

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning import limits, placement
from ecjax.planning.batch import Lanes, certified_lanes
from ecjax.planning.certified import Settings
from ecjax.planning.classes.relief import Start, relieved
from ecjax.planning.problem import Problem, usable
from ecjax.planning.projection import project_hypersimplex


def start_plan(
    problem: Problem, theta: float, how: str, seed: int, earlier: tuple[jax.Array, jax.Array] | None = None
) -> Start:
    """A placement of exactly ``problem.floor`` chunks per row whose node loads are below 1 if that can be had.

    Args:
        problem: scaled.
        theta: s per dollar of mean cost per file.
        how: "certified": the certified plan of the same reads served first come, first served, which keeps the limits
            of sites and nodes; "uniform" and "proportional": nodes drawn at random, read alike or in proportion to
            their speed.
        seed: of the draw.
        earlier: (R, m) probabilities and (R, m) bool of an earlier plan to start from instead.
    """
    if earlier is not None or how == "certified":
        if earlier is None:
            lanes = Lanes(*(jnp.asarray([value]) for value in (float(theta), 1.0, 1.0)))
            plan = certified_lanes(problem, lanes, Settings(seed=seed), None)[0]
            earlier = plan.probabilities[0], plan.stored[0]
        stored = _with_length(problem, *(jnp.asarray(part) for part in earlier))
        reads = project_hypersimplex(jnp.asarray(earlier[0]), problem.k, mask=stored.astype(float))
    else:
        drawn = placement.random_nodes(problem, jax.random.key(seed), problem.floor.astype(jnp.int32))
        even = placement.even(problem, drawn)
        stored = limits.within_limits(problem, even, drawn)
        reads = (placement.even if how == "uniform" else placement.proportional)(problem, stored)
    alike = np.zeros(problem.rows, int), np.ones((1, problem.nodes.count))
    return relieved(problem, Start(reads, stored), *alike)


def _with_length(problem: Problem, probabilities: jax.Array, stored: jax.Array) -> jax.Array:
    """The most read of the chunks and the cheapest further nodes, ``floor`` in all, (R, m) bool.

    The plan may have been made for other limits.
    """
    usable_chunks = stored & usable(problem)
    order = jnp.where(usable_chunks, -1 - probabilities, placement.chunk_prices(problem))
    placed = placement.ranks(order) < problem.floor.astype(jnp.int32)[:, None]
    return placed if limits.keeps(problem, placed) else limits.within_limits(problem, probabilities, placed)
