"""Feasible starting points with every node load below 1."""

import jax
import jax.numpy as jnp

from ecjax.optimize import placement
from ecjax.optimize.problem import Problem
from ecjax.optimize.projection import project_hypersimplex

PERTURBATION = 0.1


def perturbed(probabilities: jax.Array, k: jax.Array, key: jax.Array) -> jax.Array:
    """The same point with every entry changed by up to 10 %, projected back: alike nodes become distinguishable."""
    noise = jax.random.uniform(key, probabilities.shape, probabilities.dtype, -PERTURBATION, PERTURBATION)
    return project_hypersimplex(probabilities * (1 + noise), k)


def uniform(problem: Problem, key: jax.Array) -> jax.Array:
    """Every node with probability k / m, perturbed: (R, m)."""
    every = jnp.ones((problem.rows, problem.nodes.count), bool)
    return perturbed(placement.even(problem, every), problem.k, key)


def proportional(problem: Problem, key: jax.Array) -> jax.Array:
    """Every node in proportion to its service rate, capped at 1, perturbed: (R, m)."""
    every = jnp.ones((problem.rows, problem.nodes.count), bool)
    return perturbed(placement.proportional(problem, every), problem.k, key)
