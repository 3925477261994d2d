"""Bounds of plans near a plan, against plans near it, the bound of all plans, and a brute-force optimum."""

from contextlib import closing
from itertools import combinations, product
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planning.certified.test_envelope import problem_of

from ecjax.planning.certified import NEAR, Settings, is_convex, nearby_bound, plan_lanes
from ecjax.planning.certified.bound import lower_bound
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import Passes, groups_of, relax, respond
from ecjax.planning.jlcm import Solution
from ecjax.planning.problem import EVALUATE, NODE_WORK, evaluate, node_work

ONE = np.ones(1)


def planned(problem, theta: float):
    """The certified plan and the bound of all plans."""
    plans, bound, _ = plan_lanes(problem, np.array([theta]), ONE, ONE, Settings())
    return jax.tree.map(lambda leaf: leaf[0], plans), float(bound[0])


def levels(problem, probabilities, stored) -> np.ndarray:
    """Mean waits of nodes and A_3 / A_2, (2, m)."""
    load, second, third = np.asarray(
        NODE_WORK(problem, jnp.asarray(probabilities), jnp.asarray(stored, float))
    )
    return np.stack([second / (2 * (1 - load)), third / second])


def is_near(problem, plan, probabilities, stored) -> bool:
    ratio = levels(problem, probabilities, stored) / levels(problem, plan.probabilities, plan.stored)
    return bool(np.all((ratio >= 1 / NEAR) & (ratio <= NEAR)))


@pytest.mark.parametrize("write", [pytest.param(0.0, marks=pytest.mark.slow), 0.05])
def test_no_plan_near_one_is_below_its_bound(write):
    """Plans that differ from it in where a few files are read."""
    problem, theta = problem_of(5, 60, 5, [0.5, 1.0], 0.7, write), 1.0
    plan, lowest = planned(problem, theta)
    bound = nearby_bound(problem, theta, plan, 1e-3)
    objective = float(plan.evaluation.objective)
    assert lowest * (1 - 1e-9) <= bound <= objective * (1 + 1e-9)
    # it says more than the bound of all plans
    assert objective - bound < 0.7 * (objective - lowest)
    random, near = np.random.default_rng(0), 0
    for _ in range(60):
        probabilities, stored = np.array(plan.probabilities), np.array(plan.stored)
        for row in random.choice(60, random.integers(1, 6), replace=False):
            order = random.permutation(5)
            probabilities[row], stored[row] = probabilities[row][order], stored[row][order]
        if is_near(problem, plan, probabilities, stored):
            near += 1
            other = EVALUATE(problem, jnp.asarray(probabilities), jnp.asarray(stored), jnp.asarray(theta))
            assert float(other.objective) >= bound * (1 - 1e-9)
    assert near >= 5


@pytest.mark.parametrize("seed", range(2))
def test_every_whole_plan_of_a_tiny_problem(seed):
    """Around each of some plans: the best of all whole plans near it."""
    problem, theta = problem_of(seed, 3, 4, [0.4, 1.0], 0.5), jnp.asarray(0.3)
    k = np.asarray(problem.k).astype(int)
    reads = np.zeros((np.prod([comb(4, each) for each in k]), 3, 4))
    for number, plan in enumerate(product(*(combinations(range(4), each) for each in k))):
        for row, nodes in enumerate(plan):
            reads[number, row, list(nodes)] = 1

    @jax.jit
    @jax.vmap
    def of(plan):
        return evaluate(problem, plan, plan > 0, theta), node_work(problem, plan, plan)

    values, work = jax.tree.map(np.asarray, of(jnp.asarray(reads)))
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.stack([work[:, 1] / (2 * (1 - work[:, 0])), work[:, 2] / work[:, 1]], axis=1)
    stable = np.flatnonzero(np.isfinite(values.objective))
    for number in stable[:: max(1, len(stable) // 4)]:
        evaluation = jax.tree.map(lambda leaf, number=number: leaf[number], values)
        plan = Solution(reads[number], reads[number] > 0, evaluation, *(None,) * 3)
        bound = nearby_bound(problem, float(theta), plan, 1e-3)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = at[stable] / at[number]
        # a node without work may get any
        free = ~np.isfinite(at[number]) | (at[number] == 0)
        near = np.all(((ratio >= 1 / NEAR) & (ratio <= NEAR)) | free, axis=(1, 2))
        assert near.any()
        assert values.objective[stable][near].min() >= bound * (1 - 1e-9)


def test_threads_do_not_change_bounds():
    problem, theta = problem_of(5, 60, 5, [0.5, 1.0], 0.7), 1.0
    service, rows = flatten(problem)
    bounds = []
    for threads in (1, 3):
        with closing(Passes(service, rows._replace(per_dollar=theta / 60), threads)) as passes:
            kinds = np.zeros((60, 5), np.int8)
            z = respond(passes, kinds, None, np.zeros(5), 6, 1e-3, 0).z
            relaxed = relax(passes, groups_of(service, rows), kinds, z, 1e-3, 20)
            bounds.append(lower_bound(passes, relaxed, 1e-2, 20).value)
    assert bounds[0] == bounds[1]


def test_which_problems_are_convex():
    assert is_convex(problem_of(0, 5, 4, [1.0], 0.5))
    assert not is_convex(problem_of(0, 5, 4, [0.5, 1.0], 0.5))
    assert not is_convex(problem_of(0, 5, 4, [1.0], 0.5, 0.1))
