"""Bounds and estimates by read kind, beside M/G/1 means and the simulation of the durability document."""

import numpy as np
import pytest
from planning.read_kinds.kind_models import nodes_of, of_any_sizes, one_hot_node, problem_of, small_reads
from scipy.optimize import minimize_scalar
from simulation.systems import law_table

from ecjax.planning.read_kinds import KindModel, plan_kinds
from ecjax.predict.kind_latencies import kind_estimates, small_bounds, small_shared_z
from ecjax.predict.workload import node_laws

D, P = 0.006, 0.004
M = D + P, D**2 + 2 * D * P + 2 * P**2, D**3 + 3 * D**2 * P + 6 * D * P**2 + 6 * P**3


def sojourn(rate):
    """Mean and variance at a node, s, s^2."""
    left = 1 - rate * M[0]
    wait = rate * M[1] / (2 * left)
    return M[0] + wait, M[1] - M[0] ** 2 + rate * M[2] / (3 * left) + wait**2


@pytest.fixture(scope="module")
def planned():
    model = one_hot_node(92.0, 30.0)
    return model, plan_kinds(model, np.full((8, 8), 0.5))


def test_bounds_of_each_kind_are_those_of_the_formulas(planned):
    model, plan = planned
    share = plan.degraded[0].sum() / 4
    hot, other = sojourn(92 * (1 - share)), sojourn(30 + 92 * share * 4 / 7)

    def last(z):
        return z + 2 * (other[0] - z + np.sqrt((other[0] - z) ** 2 + other[1]))

    least = minimize_scalar(last, bounds=(0, 0.1), method="bounded", options={"xatol": 1e-10}).fun
    bounds = small_bounds(model, plan.loads, plan.degraded)
    assert bounds.direct == pytest.approx([hot[0], *[other[0]] * 7], rel=1e-3)
    assert bounds.degraded[0] == pytest.approx(least, rel=1e-3)
    assert np.isnan(bounds.degraded[1:]).all()
    assert bounds.mean[0] == pytest.approx((1 - share) * hot[0] + share * least, rel=1e-3)


def test_estimate_is_the_simulation_of_the_document(planned):
    model, plan = planned
    service = node_laws(law_table("exponential", 8, offset=D, scale=P), 8)
    estimate = kind_estimates(
        model.problem, np.full((8, 8), 0.5), np.ones((8, 8), bool), model, plan.degraded, service
    )
    assert 1e3 * estimate.mean == pytest.approx(16.97, rel=0.01)
    full, direct, degraded = estimate.kind_mean
    assert np.isnan(full)
    rate = plan.loads.direct[0]
    exact = sum(
        each * sojourn(each if j == 0 else 30 + plan.loads.joined[0, j])[0] for j, each in enumerate(rate)
    )
    assert direct == pytest.approx(exact / rate.sum(), rel=1e-3)
    # the bound on degraded reads is 1.23 to 1.38 times a simulation, the document says
    assert 1.2 < small_bounds(model, plan.loads, plan.degraded).degraded[0] / degraded < 1.4
    share = float(plan.loads.joined_rate) / 302
    assert (1 - share) * direct + share * degraded == pytest.approx(estimate.mean, rel=1e-6)


def test_direct_reads_of_two_chunks_wait_for_the_last(planned):
    model, _ = planned
    # all reads of nodes 0 and 1 alone: both nodes serve each
    small = small_reads(model.stored, [0], [0], [[0, 1]], 4, [50.0])
    model = KindModel(model.problem, model.stored, small)
    nothing = np.zeros((1, 8))
    bounds = small_bounds(model, model.loads(np.zeros((8, 8)), nothing), nothing)
    mean, variance = sojourn(50.0)

    def last(z):
        return z + (mean - z) + np.sqrt((mean - z) ** 2 + variance)

    least = minimize_scalar(last, bounds=(0, 0.1), method="bounded", options={"xatol": 1e-10}).fun
    assert bounds.direct == pytest.approx([least], rel=1e-6)
    assert bounds.mean == pytest.approx([least], rel=1e-6)


def test_mean_of_small_reads_of_many_sizes_is_by_their_own():
    """Of sixteen sizes, by the formulas written out once more and a grid of z; the search knows eight means."""
    random = np.random.default_rng(0)
    nodes = nodes_of(random.uniform(0.004, 0.01, 4), random.uniform(0.002, 0.02, 4), 1e-3)
    stored = np.ones((8, 4), bool)
    data = np.tile([0, 1, 2, 3], 4)
    rates = random.uniform(0.5, 2.0, 16)
    small = small_reads(stored, np.repeat(np.arange(8), 2), np.tile([0, 1], 8), data, 2, rates)
    small = small._replace(size=np.exp(random.uniform(-2.0, 3.0, 16)))
    model = KindModel(problem_of(nodes, [2] * 8, [0.0] * 8), stored, small)
    degraded = model.evenly(1.0) * random.choice([0.0, 0.5, 1.0], (16, 1))
    x = np.zeros((16, 4))
    np.put_along_axis(x, small.others, degraded, axis=1)
    expected = of_any_sizes(model, np.zeros((8, 4)), x, np.linspace(-0.05, 0.2, 2501))
    found, z = small_shared_z(model, model.loads(np.zeros((8, 4)), degraded), degraded)
    assert found == pytest.approx(expected, rel=1e-6)
    assert -0.05 < z < 0.2
    direct, _ = small_shared_z(model, model.loads(np.zeros((8, 4)), 0 * degraded), 0 * degraded)
    assert direct == pytest.approx(of_any_sizes(model, np.zeros((8, 4)), 0 * x, np.zeros(1)), rel=1e-9)
