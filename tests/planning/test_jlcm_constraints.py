"""Algorithm JLCM under real constraints: masks, surcharges, paid reads, limits per site and node."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from scipy.optimize import minimize
from test_jlcm import lane, model

from ecjax import planning
from ecjax.planning import Lanes
from ecjax.planning.limits import violations

R, M = problems.FILES, problems.NODES
THETA = (0.0, 5.0, 50.0)
METHODS = ("published", "oblivious_lb", "random_cp", "max_ec")
SITE = np.array([0, 0, 0, 1, 1, 1], np.int32)


def masks(case) -> np.ndarray:
    """A node that each file may not use."""
    floor = case.k + case.file("min_extra_chunks")
    order = np.argsort(np.argsort(np.random.default_rng(4).random((R, M)), axis=1), axis=1)
    return order < np.maximum(floor, 5)[:, None]


def solve(problem, theta=THETA, **changes):
    lanes = Lanes(np.array(theta), np.ones(len(theta)), np.ones(len(theta)))
    return planning.solve(problem, lanes, problems.solve_settings(**changes))


@cache
def charged() -> tuple[problems.Case, planning.Problem]:
    """One chunk size; masks, migration of a third of the chunks, dear reads on two nodes."""
    case = problems.alike()
    random = np.random.default_rng(2)
    reading = random.uniform(0, 1, (R, M)) * np.array([8, 0, 0, 0, 8, 0])
    surcharge = np.where(random.random((R, M)) < 0.3, 4.0, 0.0)
    problem = replace(
        case.problem(),
        allowed=jnp.asarray(masks(case)),
        surcharge=jnp.asarray(surcharge),
        reading=jnp.asarray(reading),
    )
    return case, problem


@cache
def charged_plans():
    return solve(charged()[1], methods=METHODS)


def check(case, problem, plan, theta):
    """Sums, masks, floors, and the figures recomputed from probabilities and chunks."""
    probabilities, stored = plan.probabilities, plan.stored
    np.testing.assert_allclose(probabilities.sum(axis=1), case.k, atol=1e-9)
    assert np.all((probabilities >= 0) & (probabilities <= 1)) and not np.any(probabilities[~stored])
    assert all(found.times == 0 for found in violations(problem, stored).values())
    expected = problems.outcome(case, probabilities, stored)
    assert expected.load.max() < 1
    cost = expected.cost
    if problem.reading is not None:
        cost += np.sum(np.asarray(problem.reading) * probabilities)
    if problem.surcharge is not None:
        cost += np.sum(np.asarray(problem.surcharge) * stored)
    np.testing.assert_allclose(plan.evaluation.cost, cost, rtol=1e-9)
    objective = expected.latency_shared_z_s + theta * cost / R
    np.testing.assert_allclose(plan.evaluation.objective, objective, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_plans_keep_to_the_allowed_nodes_and_pay_all_charges(method):
    case, problem = charged()
    for index, theta in enumerate(THETA):
        plan = lane(charged_plans(), index, method)
        check(case, problem, plan, theta)
        published = lane(charged_plans(), index).evaluation.objective
        assert published <= plan.evaluation.objective * (1 + 1e-12)
    if method == "max_ec":
        np.testing.assert_array_equal(plan.stored, np.asarray(problem.allowed))


def test_history_is_latency_surrogate_and_reads_and_never_rises():
    case, problem = charged()
    start = np.asarray(planning.STARTS["uniform"](problem, jax.random.key(0)))
    latency = problems.outcome(case, start, np.ones_like(start)).latency_shared_z_s
    price = np.asarray(planning.problem.prices(problem))
    for index, theta in enumerate(THETA):
        history = lane(charged_plans(), index).history
        history = history[~np.isnan(history)]
        assert np.all(np.diff(history) <= 1e-12 * history[0])
        surrogate = np.sum(price * np.log1p(10 * start)) / np.log(10) + np.sum(
            np.asarray(problem.reading) * start
        )
        assert history[0] == pytest.approx(latency + theta * surrogate / R, rel=1e-9)


@pytest.mark.parametrize("theta", [5.0, 50.0])
def test_reads_are_spread_as_slsqp_spreads_them_over_the_plan_s_chunks(theta):
    """For a fixed placement and one chunk size the objective is convex: SLSQP finds the optimum."""
    case, problem = charged()
    plan = lane(charged_plans(), THETA.index(theta))
    value_and_gradient, unpack = model(case, plan.stored.astype(float))
    toll = theta / R * np.asarray(problem.reading)[plan.stored]

    def objective(x):
        value, gradient = value_and_gradient(x)
        return value + toll @ x[:-1], gradient + np.append(toll, 0)

    rows = np.nonzero(plan.stored)[0]
    sums = np.zeros((R, len(rows) + 1))
    sums[rows, np.arange(len(rows))] = 1
    found = minimize(
        objective,
        np.append(plan.probabilities[plan.stored], plan.evaluation.z) + 0.01,
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(rows) + [(None, None)],
        constraints=[{"type": "eq", "fun": lambda x: sums @ x - case.k, "jac": lambda x: sums}],
        options={"ftol": 1e-13, "maxiter": 300},
    )
    own = plan.evaluation.latency_shared_z + np.sum(toll * plan.probabilities[plan.stored])
    assert own == pytest.approx(found.fun, rel=1e-6)


def test_surcharges_and_tolls_move_chunks_and_reads_away():
    _, problem = charged()
    nothing = jnp.zeros((R, M))
    free = solve(replace(problem, surcharge=nothing, reading=nothing), methods=METHODS)
    dear = charged_plans()
    assert lane(dear).evaluation.latency_shared_z == pytest.approx(
        lane(free).evaluation.latency_shared_z, rel=1e-6
    )
    for index in (1, 2):
        for charge, of in (("reading", "probabilities"), ("surcharge", "stored")):
            paid, before = (
                np.sum(np.asarray(getattr(problem, charge)) * getattr(lane(plans, index), of))
                for plans in (dear, free)
            )
            assert paid < before


@pytest.mark.slow
def test_limits_per_site_and_node_are_kept():
    """Writes, masks and limits at once; the baselines keep to all but the capacities."""
    case = problems.written()
    floor = np.minimum(case.k + case.file("min_extra_chunks"), 4)
    problem = replace(
        case.problem(),
        floor=jnp.asarray(floor),
        allowed=jnp.asarray(np.arange(M)[None] != np.resize([5, 1, 9], R)[:, None]),
        site=jnp.asarray(SITE),
        per_site=2,
        capacity=jnp.asarray([6.0, 7, 7, 12, 12, 8]),
    )
    theta = (5.0, 50.0, 500.0)
    plans = solve(problem, theta, methods=METHODS)
    for index in range(len(theta)):
        check(case, problem, lane(plans, index), theta[index])
        for method in METHODS[1:]:
            found = violations(problem, lane(plans, index, method).stored)
            assert found["allowed"].times == found["per_site"].times == found["floor"].times == 0
    loose = solve(replace(problem, capacity=jnp.full(M, jnp.inf)), theta, methods=METHODS)
    found = violations(problem, lane(loose, 2).stored)
    assert found["capacity"].times > 0, "the capacities are to matter in this case"
