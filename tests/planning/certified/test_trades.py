"""Rows that trade nodes: what they gain is what the plan gains, and near saturation little is left."""

import numpy as np
import pytest
from planning.certified.untuned import dear_and_cheap, limited, passes_of, untuned

from ecjax.planning.certified.certify import Settings, certify
from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.data import rates_of
from ecjax.planning.certified.relax import loads_of
from ecjax.planning.certified.trades import takers, trade
from ecjax.planning.certified.waits import slopes
from ecjax.planning.problem import EVALUATE


def drawn(passes, random):
    """Whole choices by chance that keep the limits of sites."""
    rows = passes.rows
    kinds = np.full((rows.number, len(rows.site)), NONE, np.int8)
    for i in range(rows.number):
        used = np.zeros(rows.site.max() + 1, int)
        count = 0
        for j in random.permutation(len(rows.site)):
            if count < rows.length[i] and used[rows.site[j]] < rows.per_site:
                kinds[i, j] = HOT if count < rows.hot[i] else COLD
                used[rows.site[j]] += 1
                count += 1
    return kinds


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_trades_gain_is_what_the_plan_gains(seed):
    random = np.random.default_rng(seed)
    problem = limited(untuned(seed, 60, 0.5, nodes=12).problem(), site=np.arange(12) % 5, per_site=2)
    problem = limited(problem, capacity=np.full(12, 40.0))
    passes = passes_of(problem, 0.01)
    service, rows = passes.service, passes.rows
    kinds = drawn(passes, random)
    loads, chunks, dollars = loads_of(passes, kinds)
    by_rate = takers(rates_of(rows), rows.hot, 12)
    own, room, z = loads[:, 0].copy(), chunks.copy(), 0.1
    before = slopes(service, loads, z).value + dollars
    over = np.maximum(chunks - rows.capacity, 0)
    gain = trade(by_rate, service, rows, rates_of(rows), kinds, own, room, z, 1e-9, np.inf)
    loads, chunks, dollars = loads_of(passes, kinds)
    assert gain > 0
    assert before - (slopes(service, loads, z).value + dollars) == pytest.approx(gain, rel=1e-9)
    np.testing.assert_allclose(own, loads[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(room, chunks)
    assert np.all(np.maximum(chunks - rows.capacity, 0) <= over)
    np.testing.assert_array_equal((kinds == HOT).sum(axis=1), rows.hot)
    np.testing.assert_array_equal((kinds != NONE).sum(axis=1), rows.length)
    at_site = np.stack([(kinds[:, rows.site == site] != NONE).sum(axis=1) for site in range(5)])
    assert at_site.max() <= 2


def test_of_very_many_rows_some_of_every_rate_trade():
    rate = np.random.default_rng(0).lognormal(0, 1, 10**6)
    rows = takers(rate, np.full(10**6, 5), 12)
    assert len(rows) * 12 * 5 <= 2e7
    np.testing.assert_allclose(
        np.quantile(rate[rows], [0.1, 0.5, 0.9]), np.quantile(rate, [0.1, 0.5, 0.9]), rtol=0.01
    )


@pytest.mark.slow
def test_racks_with_ten_files_for_each_node_near_saturation():
    problem = limited(untuned(4, 300, 0.95, nodes=30).problem(), site=np.arange(30) % 8, per_site=2)
    passes = passes_of(problem, 0.01)
    plan = certify(passes, Settings())
    worth = EVALUATE(problem, plan.probabilities, plan.stored, 0.01)
    assert plan.lower_bound <= worth.objective <= plan.lower_bound * 1.003


@pytest.mark.parametrize("theta", [pytest.param(1e2, marks=pytest.mark.slow), 1e10])
def test_no_dollars_are_worth_an_overload(theta):
    problem = untuned(2, 60, 0.95).problem()
    plan = certify(passes_of(problem, theta), Settings())
    worth = EVALUATE(problem, plan.probabilities, plan.stored, theta)
    assert worth.objective <= plan.lower_bound * 1.02


@pytest.mark.parametrize("seconds", [pytest.param(15, marks=pytest.mark.slow), 150])
def test_a_plan_that_overloads_no_node_comes_before_those_that_do(seconds):
    """However little these seem to cost, as the price of an overload is finite while plans are made."""
    files = 5_000
    problem, theta = dear_and_cheap(files).problem(), seconds * files
    plan = certify(passes_of(problem, theta), Settings(gap=1e-6))
    worth = EVALUATE(problem, plan.probabilities, plan.stored, theta)
    assert np.asarray(worth.load).max() < 1
    assert plan.lower_bound <= worth.objective <= plan.lower_bound * 1.01
