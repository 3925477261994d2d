"""Marginals and curvature of rows at prices: against every whole choice, finite differences, and each other."""

import numpy as np
import pytest
from planning.smoothed.samples_of_rows import Sample, cheapest, costs, sample
from scipy.optimize import minimize

from ecjax.planning.smoothed import exact, host
from ecjax.planning.smoothed.backend import NUMPY
from ecjax.planning.smoothed.demand import by_node, by_site, demand_of
from ecjax.planning.smoothed.host_demand import host_demand
from ecjax.planning.smoothed.response import Prices, respond

# nodes, sites, most chunks per site
SHAPES = [(7, 0, 1), (8, 6, 1), (9, 4, 2), (10, 3, 3)]
BY_SHAPE = pytest.mark.parametrize(("nodes", "sites", "per_site"), SHAPES)


def share_out(number, part):
    return [part(0, number // 2), part(number // 2, number)]


def demands(drawn: Sample, with_places: bool):
    return (
        demand_of(NUMPY, drawn.by_place, drawn.grid, with_places),
        host_demand(drawn.by_node, drawn.sites, with_places, share_out),
    )


def marginals(drawn: Sample, answer) -> tuple[np.ndarray, np.ndarray]:
    hot, cold = answer.detail.hot, answer.detail.cold
    if hot.ndim == 3:
        hot, cold = (by_node(np, drawn.grid, values) for values in (hot, cold))
    return hot, cold


def smoothed(drawn: Sample, i: int, tau: float) -> float:
    """A_tau of a row by SciPy, from its definition; one chunk per site."""
    hot, cold = costs(drawn.by_node, drawn.prices, i)
    order, start = drawn.sites
    k, extra = drawn.by_node.hot[i], drawn.by_node.extra[i]

    def lagrangian(x):
        total = k * x[0] + extra * (x[1] if extra else 0.0)
        for s in range(len(start) - 1):
            at = order[start[s] : start[s + 1]]
            terms = [0.0, *((x[0] - hot[at]) / tau)]
            if extra:
                terms += [*((x[1] - cold[at]) / tau)]
            total -= tau * np.logaddexp.reduce(terms)
        return -total / tau

    first = np.array([np.sort(hot)[k - 1], np.sort(cold)[k + extra - 1]])
    return (
        -tau * minimize(lagrangian, first, method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-12}).fun
    )


@BY_SHAPE
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_choice_is_that_of_all_choices(nodes, sites, per_site, seed):
    drawn = sample(seed, nodes, 5, sites, per_site)
    rows = drawn.by_place
    places = (by_site(np, drawn.grid, values) for values in drawn.prices)
    read, place = places
    cold = rows.cold_cost + rows.chunks[:, None, None] * place
    hot = cold + rows.reading + rows.rate[:, None, None] * read
    found = exact.cheapest(NUMPY, hot, cold, rows.hot, rows.extra, per_site, np.zeros(5))
    for i in range(5):
        expected = cheapest(drawn, i)
        assert found.value[i] == pytest.approx(expected, rel=1e-12)
        room = np.empty((rows.hot[i] + rows.extra[i] + 1 + per_site, 2))
        of_node = costs(drawn.by_node, drawn.prices, i)
        by_host = host.cheapest(*of_node, rows.hot[i], rows.extra[i], drawn.sites, per_site, 0.0, room)
        assert by_host[0] == pytest.approx(expected, rel=1e-12)


@BY_SHAPE
@pytest.mark.parametrize("tau", [3e-4, 1e-5, 1e-8])
def test_marginals_add_up_and_are_the_same_by_place_and_by_node(nodes, sites, per_site, tau):
    drawn = sample(3, nodes, 6, sites, per_site)
    order, start = drawn.sites
    for demand in demands(drawn, True):
        answer = demand.answer(drawn.prices, np.full(6, tau))
        hot, cold = marginals(drawn, answer)
        assert answer.unfinished == 0
        np.testing.assert_allclose(hot.sum(axis=1), drawn.by_node.hot, atol=1e-6)
        np.testing.assert_allclose(cold.sum(axis=1), drawn.by_node.extra, atol=1e-6)
        assert hot.min() >= 0 and cold.min() >= 0 and (hot + cold).max() <= 1 + 1e-12
        for s in range(len(start) - 1):
            assert (hot + cold)[:, order[start[s] : start[s + 1]]].sum(axis=1).max() <= per_site + 1e-9
        assert not np.any((hot + cold)[np.isinf(drawn.by_node.cold_cost)])
    array, rows = (demand.answer(drawn.prices, np.full(6, tau)) for demand in demands(drawn, True))
    for one, other in zip(marginals(drawn, array), marginals(drawn, rows), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_allclose(array.requested, rows.requested, rtol=1e-6, atol=1e-6)
    assert array.dollars == pytest.approx(rows.dollars, rel=1e-6)


@pytest.mark.parametrize(("nodes", "sites"), [(7, 0), (8, 6)])
def test_a_smoothed_cost_is_never_above_the_cheapest_and_comes_close_when_cold(nodes, sites):
    drawn = sample(4, nodes, 4, sites)
    for i in range(4):
        expected = cheapest(drawn, i)
        warm, cold = smoothed(drawn, i, 1e-4), smoothed(drawn, i, 1e-6)
        assert warm < cold <= expected * (1 + 1e-9)
        assert cold == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("nodes", "sites"), [(7, 0), (8, 6)])
def test_marginals_are_the_slopes_of_the_smoothed_cost(nodes, sites):
    drawn, tau, step = sample(5, nodes, 3, sites), 5e-5, 1e-7
    hot, _ = marginals(drawn, demands(drawn, False)[1].answer(drawn.prices, np.full(3, tau)))
    for i in range(3):
        for j in range(0, nodes, 3):
            sides = []
            for sign in (1, -1):
                prices = drawn.prices.copy()
                prices[0, j] += sign * step
                sides.append(smoothed(drawn._replace(prices=prices), i, tau))
            slope = (sides[0] - sides[1]) / (2 * step) / drawn.by_node.rate[i]
            assert slope == pytest.approx(hot[i, j], abs=2e-4)


@BY_SHAPE
def test_curvature_is_how_demand_falls(nodes, sites, per_site):
    drawn = sample(6, nodes, 5, sites, per_site)
    tau = np.full(5, 1e-4)
    matrices = []
    for demand in demands(drawn, True):
        answer = demand.answer(drawn.prices, tau)
        matrices.append(demand.curvature(answer, drawn.prices, tau))
    expected = np.empty((2 * nodes, 2 * nodes))
    demand = demands(drawn, True)[0]
    for at in range(2 * nodes):
        step = np.zeros(2 * nodes)
        step[at] = 1e-8
        sides = [demand.answer(drawn.prices + sign * step.reshape(2, nodes), tau) for sign in (1, -1)]
        change = [np.concatenate([side.requested, side.chunks]) for side in sides]
        expected[:, at] = (change[1] - change[0]) / 2e-8
    for matrix in matrices:
        np.testing.assert_allclose(matrix, expected, rtol=1e-3, atol=1e-5 * np.abs(expected).max())
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9 * np.abs(matrix).max()
    # work alone is the upper left part
    without = demands(drawn, False)[1]
    answer = without.answer(drawn.prices, tau)
    np.testing.assert_allclose(
        without.curvature(answer, drawn.prices, tau), matrices[1][:nodes, :nodes], rtol=1e-9
    )


def test_rows_with_equal_costs_share_evenly():
    drawn = sample(7, 8, 2, masked=False)
    rows = drawn.by_place._replace(
        hot=np.array([3, 1]),
        extra=np.array([2, 0]),
        cold_cost=np.full((2, 8, 1), 1e-4),
        reading=np.zeros((2, 8, 1)),
    )
    flat = Prices(np.full((8, 1), 1e-4), np.zeros((8, 1)))
    answer = respond(NUMPY, rows, flat, np.full(2, 1e-9))
    np.testing.assert_allclose(answer.hot[..., 0], np.array([[3 / 8], [1 / 8]]) * np.ones(8), atol=1e-9)
    np.testing.assert_allclose(answer.cold[..., 0], np.array([[2 / 8], [0.0]]) * np.ones(8), atol=1e-9)
