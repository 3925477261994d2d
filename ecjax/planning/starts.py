"""Feasible starting points on the allowed nodes, for a descent to start from."""

import jax

from ecjax.planning import placement
from ecjax.planning.problem import Problem, usable
from ecjax.planning.projection import project_hypersimplex

PERTURBATION = 0.1


def perturbed(problem: Problem, probabilities: jax.Array, key: jax.Array) -> jax.Array:
    """The same point with every entry changed by up to 10 %, projected back: alike nodes become distinguishable."""
    noise = jax.random.uniform(key, probabilities.shape, probabilities.dtype, -PERTURBATION, PERTURBATION)
    return nearest(problem, probabilities * (1 + noise))


def uniform(problem: Problem, key: jax.Array) -> jax.Array:
    """Every allowed node with probability k / their number, perturbed: (R, m)."""
    return perturbed(problem, placement.even(problem, usable(problem)), key)


def proportional(problem: Problem, key: jax.Array) -> jax.Array:
    """Every allowed node in proportion to its service rate, capped at 1, perturbed: (R, m)."""
    return perturbed(problem, placement.proportional(problem, usable(problem)), key)


def nearest(problem: Problem, probabilities: jax.Array) -> jax.Array:
    """The feasible point nearest to any probabilities, (R, m)."""
    return project_hypersimplex(probabilities, problem.k, mask=problem.allowed)
