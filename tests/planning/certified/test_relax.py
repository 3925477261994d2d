"""The relaxation against an independent convex solve, what its first order promises, and prices of places."""

import numba
import numpy as np
import pytest
from planning.certified.untuned import KINDS, limited, passes_of, relaxation_of, relaxed_at, tiny, untuned

from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import groups_of, mixtures, relax, respond
from ecjax.planning.certified.waits import best_z, slopes

CONVEX = ("plain", "sites", "mask", "capacity", "charges", "background", "alone")


def started(problem, theta):
    passes = passes_of(problem, theta)
    m = problem.nodes.count
    kinds = np.zeros((passes.rows.number, m), np.int8)
    z = respond(passes, kinds, None, np.zeros(m), 6, 1e-3, 0).z
    return passes, groups_of(passes.service, passes.rows), kinds, z


@pytest.mark.parametrize("kind", CONVEX)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_at_a_fixed_z_it_is_the_convex_optimum(kind, seed):
    _, problem, theta = tiny(seed, kind)
    passes, group, kinds, z = started(problem, theta)
    exact = relaxed_at(problem, theta, z)
    for found in mixtures(passes, group, kinds, z, 1e-9, 60, True):
        # the first order bounds what is left at every step
        assert found.objective >= exact - 1e-7 * abs(exact)
        assert found.objective - found.open <= exact + 1e-7 * abs(exact)
    assert found.z == z
    assert found.objective == pytest.approx(exact, rel=1e-6)


def test_z_is_the_best_for_the_mixture():
    _, problem, theta = tiny(0, "plain")
    passes, group, kinds, z = started(problem, theta)
    found = relax(passes, group, kinds, z, 1e-8, 100)
    assert found.z == pytest.approx(best_z(passes.service, found.mixture.loads), rel=1e-9)
    assert found.objective <= relaxed_at(problem, theta, found.z) * (1 + 1e-7)


def test_prices_are_of_the_right_nodes_and_sums():
    """The cheapest choices at the last prices, chosen row by row in NumPy."""
    case = untuned(0, 60, 0.7)
    problem = case.problem()
    passes, group, kinds, z = started(problem, 0.01)
    found = relax(passes, group, kinds, z, 1e-6, 100)
    prices = found.prices[-1]
    dollars = 0.01 / 60 * case.node("cost_per_chunk_dollars")
    total = 0.0
    for rate, k, extra in zip(case.file("rate_per_s"), case.k, case.file("min_extra_chunks"), strict=True):
        read = rate * prices.read[:, 0]
        chosen = [
            np.sort((dollars + read)[hot])[: int(k)].sum() + np.sort(dollars[~hot])[: int(extra)].sum()
            for hot in cuts(read, int(k), int(extra))
        ]
        total += min(chosen)
    assert prices.cheapest == pytest.approx(total, rel=1e-10)


def cuts(difference, k, extra):
    """All ways to cut the nodes in two by what reads cost on them."""
    order = np.argsort(difference)
    for cut in range(k, len(order) - extra + 1):
        hot = np.zeros(len(order), bool)
        hot[order[:cut]] = True
        yield hot


@pytest.mark.parametrize("seed", range(3))
def test_capacity_is_kept_and_priced_where_it_binds(seed):
    case = untuned(seed, 80, 0.5)
    need = (case.k + case.file("min_extra_chunks")).sum()
    free = case.problem()
    cheap = np.argsort(case.node("cost_per_chunk_dollars"))[:6]
    capacity = np.full(12, np.inf)
    capacity[cheap] = np.floor(0.05 * need * np.arange(1, 7))
    problem = limited(free, capacity=capacity)
    passes, group, kinds, z = started(problem, 0.1)
    found = relax(passes, group, kinds, z, 1e-8, 200)
    held = found.mixture.weight @ found.columns.chunks
    price = found.mixture.chunk_price
    assert np.all(held <= capacity * (1 + 1e-6))
    assert np.all(price >= 0) and np.all(price[np.isinf(capacity)] == 0)
    # nothing is charged where room is left
    limits = np.isfinite(capacity)
    assert np.max(price[limits] * (capacity - held)[limits]) <= 1e-6 * found.objective
    binding = limits & (held > 0.9999 * capacity)
    assert binding.any() and np.all(price[binding] > 0)
    # one place more is worth the price, to first order
    without = relax(*started(free, 0.1), 1e-8, 200)
    assert without.objective < found.objective
    j = int(np.argmax(price))
    more = capacity + (np.arange(12) == j)
    passes = passes_of(limited(free, capacity=more), 0.1)
    after = relax(passes, group, kinds, found.z, 1e-9, 200, fixed_z=True)
    before = relax(passes_of(problem, 0.1), group, kinds, found.z, 1e-9, 200, fixed_z=True)
    assert before.objective - after.objective == pytest.approx(price[j], rel=0.05)


def test_objective_counts_chunks_beyond_capacity():
    """Fewer places than chunks: the relaxation pays the high price instead of breaking off."""
    _, problem, theta = tiny(0, "plain")
    short = limited(problem, capacity=np.ones(4))
    assert relaxation_of(short, theta).least_load() is None
    passes, group, kinds, z = started(short, theta)
    found = relax(passes, group, kinds, z, 1e-6, 50)
    assert np.isfinite(found.objective)
    assert found.objective > found.z + found.mixture.latency + found.mixture.dollars


def test_threads_change_no_digit():
    """Sums over the same parts of the rows, in the same order."""
    problem = untuned(0, 40_000, 0.7).problem()
    one, three = passes_of(problem, 0.01, 1), passes_of(problem, 0.01, 3)
    group = groups_of(one.service, one.rows)
    random = np.random.default_rng(0)
    read, write = random.random((12, 1)) * 1e-5, np.zeros((12, 1))
    alike = [
        passes.cheapest(read, write, np.zeros(12), group, int(group.max()) + 1) for passes in (one, three)
    ]
    assert alike[0][0] == alike[1][0]
    for left, right in zip(alike[0][1], alike[1][1], strict=True):
        np.testing.assert_array_equal(left, right)
    three.close()


def test_groups_are_even_and_ordered_by_weight():
    problem = untuned(1, 100, 0.7).problem()
    passes = passes_of(problem, 0.01)
    group = groups_of(passes.service, passes.rows)
    assert np.ptp(np.bincount(group)) <= 1 and group.max() == 15
    rate = np.asarray(problem.files.rate)
    means = [rate[group == g].mean() for g in range(16)]
    assert np.all(np.diff(means) > 0)


def test_best_responses_never_raise_the_objective():
    problem = untuned(2, 50, 0.8).problem()
    passes = passes_of(problem, 0.05)
    kinds = np.zeros((50, 12), np.int8)
    values = [
        respond(passes, kinds, None if n == 0 else z, np.zeros(12), 1, 0.0, n)[:2]
        for n, z in ((0, 0), (1, 0.1))
    ]
    assert values[1][1] <= values[0][1] * (1 + 1e-12)
    assert (
        slopes(passes.service, passes.totals(kinds, np.zeros(50, np.int64), 1)[0][0], values[1][0]).value > 0
    )


def test_loops_are_compiled_once_for_all_problems():
    """Numba makes another version where an array is read-only or laid out otherwise."""
    assert len({numba.typeof(flatten(tiny(1, kind, files)[1])) for kind in KINDS for files in (1, 3)}) == 1
