"""Read kinds: the worked example of the document, brute force over tiny plans, and bounds below all of them."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from planning.read_kinds.kind_models import (
    direct_formula,
    nodes_of,
    of_any_sizes,
    one_hot_node,
    problem_of,
    small_reads,
    with_prices,
)
from scipy import optimize

from ecjax.planning.certified.node_levels import DIRECT, Chunks, Corners, node_minima
from ecjax.planning.problem import prepare
from ecjax.planning.read_kinds import KindModel, plan_kinds
from ecjax.planning.read_kinds import bound as bound_module
from ecjax.planning.read_kinds.bound import lower_bound
from ecjax.planning.read_kinds.everywhere import AnyPlacementTerm
from ecjax.planning.read_kinds.model import Loads, node_work, small_work
from ecjax.planning.read_kinds.node_minimum import node_minimum
from ecjax.planning.read_kinds.price_model import PriceModel
from ecjax.planning.read_kinds.read_terms import PlacementTerm, least_sums
from ecjax.planning.read_kinds.rectangle import RectangleBound
from ecjax.planning.read_kinds.sizes import few_sizes
from ecjax.planning.read_kinds.spread import prices_at

HOT, SLOW = (92.0, 30.0), (18.0, 30.0, 5.0)
Z = np.linspace(0.0, 0.2, 401)


@pytest.fixture(scope="module")
def hot():
    return one_hot_node(*HOT)


@pytest.mark.parametrize(
    ("share", "expected_ms"), [(0.0, 32.0), (0.2, 17.80), (0.27, 17.48), (0.5, 20.2), (1.0, 54.0)]
)
def test_bound_at_a_share_is_that_of_the_document(hot, share, expected_ms):
    degraded = hot.evenly(1.0) * np.array([share, *[0.0] * 7])[:, None]
    value = prices_at(hot, hot.loads(np.zeros((8, 8)), degraded))[0]
    digits = 1 if share in (0.0, 0.5) else 0 if share == 1.0 else 2
    assert round(1e3 * value, digits) == pytest.approx(expected_ms, abs=0.6 * 10**-digits)


def test_best_share_of_the_hot_node_is_that_of_the_document(hot):
    plan = plan_kinds(hot, np.full((8, 8), 0.5))
    share = plan.degraded.sum(axis=1) / 4
    assert 1e3 * plan.latency == pytest.approx(17.48, abs=0.005)
    assert share[0] == pytest.approx(0.27, abs=0.005)
    assert share[1:] == pytest.approx(np.zeros(7), abs=1e-6)
    assert np.all(plan.degraded <= share[:, None] + 1e-9)


def test_full_reads_beside_direct_ones_are_spread_for_them():
    """By a search over the probabilities of one file with full reads; all small reads are of its first node."""
    stored = np.ones((1, 3), bool)
    small = small_reads(stored, [0, 0], [0, 1], [0, 1], 2, [60.0, 5.0])
    model = KindModel(problem_of(nodes_of([0.006] * 3, [0.004] * 3), [2], [40.0], extra=1), stored, small)
    plan = plan_kinds(model, np.where(stored, 2 / 3, 0.0), 0.0)
    assert not plan.degraded.any()

    def value(point):
        full = np.append(point, 2 - point.sum())[None]
        if np.any(full < 0) or np.any(full > 1):
            return np.inf
        loads = model.loads(full, np.zeros(model.small.others.shape))
        return prices_at(model, loads)[0]

    best = optimize.minimize(value, [0.6, 0.7], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    assert plan.latency == pytest.approx(best.fun, rel=1e-5)
    assert plan.latency < 0.99 * value(np.array([2 / 3, 2 / 3]))


def test_best_share_of_a_slow_node_is_that_of_the_document():
    model = one_hot_node(*SLOW)
    direct = plan_kinds(model, np.full((8, 8), 0.5), 0.0)
    plan = plan_kinds(model, np.full((8, 8), 0.5))
    assert 1e3 * direct.latency == pytest.approx(36.1, abs=0.05)
    assert 1e3 * plan.latency == pytest.approx(15.03, abs=0.005)
    assert plan.degraded[0].sum() / 4 == pytest.approx(0.97, abs=0.005)


@pytest.mark.parametrize("system", [HOT, SLOW])
def test_document_s_plans_are_proven(system):
    model = one_hot_node(*system)
    plan = plan_kinds(model, np.full((8, 8), 0.5))
    least = lower_bound(model, plan, 1e-3)
    assert plan.latency * (1 - 2e-3) <= least <= plan.latency * (1 + 1e-9)


def test_overloaded_direct_reads_are_relieved():
    model = one_hot_node(130.0, 20.0)
    assert plan_kinds(model, np.full((8, 8), 0.5), 0.0).latency == np.inf
    plan = plan_kinds(model, np.full((8, 8), 0.5))
    assert plan.latency < 0.03
    assert plan.degraded[0].sum() / 4 > 0.3


def tiny(seed, full_rate):
    """Two files, k = 2 and n = 3 on four nodes that differ: a degraded read takes both other chunks."""
    random = np.random.default_rng(seed)
    nodes = nodes_of(random.uniform(0.004, 0.01, 4), random.uniform(0.002, 0.02, 4), 1e-3)
    rates = random.uniform(4.0, 14.0, 4)
    stored = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], bool)
    problem = problem_of(nodes, [2, 2], [full_rate, full_rate], extra=1)
    small = small_reads(stored, [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 2], 2, rates)
    return KindModel(problem, stored, small)


def values_on_a_grid(model, points, full):
    """Latency of every plan whose shares are on a grid, and full reads at given probabilities."""
    small = model.small
    shares = np.array(list(itertools.product(points, repeat=small.number)))
    takes = np.zeros((small.number, 4))
    np.put_along_axis(takes, small.others, 1.0, axis=1)
    pairs = list(zip(small.rate, small.node, strict=True))
    return direct_formula(model.problem.nodes, full, pairs, shares[:, :, None] * takes, (4.0, 1.0), Z)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_plan_of_a_grid_is_better_and_the_bound_is_below_all(seed):
    model = tiny(seed, 0.0)
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    x = np.zeros((4, 4))
    np.put_along_axis(x, model.small.others, plan.degraded, axis=1)
    pairs = list(zip(model.small.rate, model.small.node, strict=True))
    again = direct_formula(model.problem.nodes, [], pairs, x, (4.0, 1.0), Z)
    assert plan.latency == pytest.approx(again, rel=1e-4)
    best = values_on_a_grid(model, np.linspace(0, 1, 5), []).min()
    assert plan.latency <= best * (1 + 1e-5)
    least = lower_bound(model, plan, 1e-3)
    assert least <= plan.latency * (1 + 1e-9)
    assert least >= 0.97 * plan.latency


def tiny_wide(seed):
    """As ``tiny``, and of each file reads of both data chunks, which may take any two of the three nodes."""
    model = tiny(seed, 0.0)
    rates = np.random.default_rng(seed + 7).uniform(2.0, 8.0, 4)
    small = small_reads(
        model.stored, [0, 0, 1, 1], [0, 0, 0, 0], [[0, -1], [0, 1], [1, -1], [1, 2]], 2, rates
    )
    return KindModel(model.problem, model.stored, small)


def wide_pairs(model):
    small = model.small
    return [
        (rate, nodes[nodes >= 0] if width > 1 else int(nodes[0]))
        for rate, nodes, width in zip(small.rate, small.nodes, small.width, strict=True)
    ]


def values_of_wide_reads(model, points):
    """Latency of every plan on a grid: narrow reads by their shares, wide ones by shares of the pairs of nodes."""
    pairs = wide_pairs(model)
    ways = []
    for others, width in zip(model.small.others, model.small.width, strict=True):
        others = others[others >= 0]
        if width == 1:
            ways.append([np.bincount(others, [share] * 2, 4) for share in points])
            continue
        # without the first two nodes, which are the direct read
        two = [np.bincount(others[list(each)], minlength=4) for each in ((0, 2), (1, 2))]
        ways.append([a * two[0] + b * two[1] for a in points for b in points if a + b <= 1 + 1e-12])
    x = np.array(list(itertools.product(*ways)))
    return direct_formula(model.problem.nodes, [], pairs, x, (4.0, 1.0), Z[::4])


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_reads_of_several_chunks_no_plan_of_a_grid_is_better_and_the_bound_is_below_all(seed):
    model = tiny_wide(seed)
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    x = np.zeros((4, 5))
    np.put_along_axis(x, np.where(model.small.others < 0, 4, model.small.others), plan.degraded, axis=1)
    again = direct_formula(model.problem.nodes, [], wide_pairs(model), x[:, :4], (4.0, 1.0), Z)
    assert plan.latency == pytest.approx(again, rel=1e-4)
    best = values_of_wide_reads(model, np.linspace(0, 1, 4)).min()
    assert plan.latency <= best * (1 + 1e-4)
    least = lower_bound(model, plan, 1e-3)
    assert 0.97 * plan.latency <= least <= plan.latency * (1 + 1e-9)
    everywhere = lower_bound(model, plan, 1e-3, None, AnyPlacementTerm(model, model.problem, 0.0))
    assert 0.5 * plan.latency <= everywhere <= least * (1 + 1e-3)


@pytest.mark.parametrize("seed", [0])
def test_with_full_reads_no_plan_of_a_grid_is_better(seed):
    model = tiny(seed, 6.0)
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    least = lower_bound(model, plan, 8e-2)
    spreads = itertools.permutations((0.4, 0.6, 1.0))
    # (all plans, nodes) of each file
    full = np.array([[(*one, 0.0), (0.0, *two)] for one, two in itertools.product(list(spreads), repeat=2)])
    full = [(6.0, full[:, row, None]) for row in range(2)]
    best = values_on_a_grid(model, (0.0, 1.0), full).min()
    assert plan.latency <= best * (1 + 1e-5)
    assert 0.9 * plan.latency <= least <= plan.latency * (1 + 1e-9)


def test_bound_over_all_placements_is_below_every_one():
    chosen, theta = tiny(0, 0.0), 0.2
    prices = np.array([1.0, 3.0, 2.0, 1.5])
    problem = with_prices(chosen.problem, 1e-3 * prices)
    model = KindModel(problem, chosen.stored, chosen.small)
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    cost = 1e-3 * float((model.stored @ prices).sum())
    objective = plan.latency + theta * cost / 2
    least = lower_bound(model, plan, 1e-3, objective, AnyPlacementTerm(model, problem, theta))
    assert least is not None and least > 0.5 * objective
    rates = chosen.small.rate
    placements = [
        (data, spare)
        for data in itertools.permutations(range(4), 2)
        for spare in range(4)
        if spare not in data
    ]
    shares = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
    best = np.inf
    for one, two in itertools.product(placements, repeat=2):
        pairs = list(zip(rates, [*one[0], *two[0]], strict=True))
        sets = [{*one[0], one[1]}] * 2 + [{*two[0], two[1]}] * 2
        paid = theta * 1e-3 * sum(prices[j] for each in (sets[0], sets[2]) for j in each) / 2
        others = np.array([np.isin(np.arange(4), list(sets[row] - {pairs[row][1]})) for row in range(4)])
        values = direct_formula(problem.nodes, [], pairs, shares[:, :, None] * others, (4.0, 1.0), Z[::8])
        best = min(best, paid + values.min())
    assert least <= best * (1 + 1e-9)


def test_least_sums_are_those_of_sorted_rows():
    """Equal costs, infinite ones, and more asked for than there are."""
    random = np.random.default_rng(0)
    costs = random.integers(0, 6, (200, 9)).astype(float)
    costs[random.uniform(size=costs.shape) < 0.2] = np.inf
    k = random.integers(0, 12, 200)
    total, chosen = least_sums(costs, k)
    sums = [np.sort(row)[:some].sum() if some <= 9 else np.inf for row, some in zip(costs, k, strict=True)]
    np.testing.assert_allclose(total, sums)
    first = [
        np.isin(np.arange(9), np.argsort(row, kind="stable")[:some])
        for row, some in zip(costs, k, strict=True)
    ]
    np.testing.assert_array_equal(chosen, first)


@pytest.mark.parametrize("seed", range(20))
def test_node_minimum_is_close_below_a_grid(seed):
    random = np.random.default_rng(seed)
    small, full = random.uniform(0.005, 0.02), random.uniform(0.01, 0.04)
    scv = random.uniform(0.3, 1.5)
    moments = [small, (1 + scv) * small**2, 6 * small**3, full, (1 + scv) * full**2, 6 * full**3]
    steady = [small, scv * small**2, full, scv * full**2]
    node = np.array([0.1, 0.001, 0.0001, *moments, *steady])
    most = random.uniform(5.0, 40.0, 3) * np.array([1.0, 1.0, seed % 3 > 0])
    price, z = random.uniform(0.5, 4.0, 3) * small, np.array([full, 0.002, small, -0.001])
    close, least = 1e-4 * small * most.sum(), np.zeros(3)
    bound, _ = node_minimum(node, most, price, z, close, least)
    d, g, f = np.meshgrid(*(np.linspace(0, end, 61) for end in most), indexing="ij")
    s = d + g
    rho = node[0] + s * node[3] + f * node[6]
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = (node[1] + s * node[4] + f * node[7]) / (2 * (1 - rho))
        variance = (node[2] + s * node[5] + f * node[8]) / (3 * (1 - rho)) + wait**2

        def above(mean, own, centre, ahead):
            gap = mean + wait - centre
            root = np.sqrt(gap**2 + own + variance)
            return 0.5 * (gap + root) - 0.5 * (1 + gap / root) * ahead

        value = f * (above(node[11], node[12], z[0], z[1]) - price[0]) + d * (node[9] + wait - price[1])
        value += g * (above(node[9], node[10], z[2], z[3]) - price[2])
    value = np.where(rho < 1, value, np.inf)
    assert bound <= value.min() + 1e-12
    assert bound >= value.min() - 0.03 * abs(value.min()) - 2 * close


def test_many_sizes_are_gathered_into_few_that_keep_the_bytes():
    random = np.random.default_rng(0)
    size, rate = random.uniform(1, 100, 50), random.uniform(0, 1, 50)
    few, of = few_sizes(size, rate)
    assert len(few) <= 8
    assert rate @ few[of] == pytest.approx(rate @ size)
    few, of = few_sizes(np.array([3.0, 1.0, 3.0]), np.ones(3))
    assert few[of].tolist() == [3.0, 1.0, 3.0]


@pytest.mark.filterwarnings("error")
def test_many_sizes_that_are_never_read_are_one():
    few, of = few_sizes(np.arange(1.0, 11.0), np.zeros(10))
    assert len(few) == 1 and np.isfinite(few[0])
    assert not np.any(of)


def of_sizes(seed, full_sizes, small_sizes):
    """As ``tiny``, each file and each small read with a size of its own."""
    model = tiny(seed, 5.0)
    files = replace(model.problem.files, chunk_bytes=jnp.asarray(full_sizes))
    small = model.small._replace(size=np.asarray(small_sizes), rate=0.5 * model.small.rate)
    return KindModel(prepare(model.problem.nodes, files), model.stored, small)


@pytest.mark.parametrize(
    ("seed", "full_sizes"),
    [
        (1, (4.0, 9.0)),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((0, (4.0, 9.0)), (1, (5.0, 5.0)))),
    ],
)
def test_chunks_of_several_sizes_no_plan_of_a_grid_is_better_and_the_bound_is_below_all(seed, full_sizes):
    model = of_sizes(seed, full_sizes, (1.0, 3.0, 3.0, 0.5))
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    x = np.zeros((4, 4))
    np.put_along_axis(x, model.small.others, plan.degraded, axis=1)
    full = np.zeros((2, 4))
    np.put_along_axis(full, model.full_nodes, plan.full, axis=1)
    again = of_any_sizes(model, full, x, Z)
    assert plan.latency == pytest.approx(again, rel=1e-4)
    least = lower_bound(model, plan, 4.5e-2)
    assert 0.95 * plan.latency <= least <= plan.latency * (1 + 1e-9)
    everywhere = lower_bound(model, plan, 0.2, None, AnyPlacementTerm(model, model.problem, 0.0))
    assert 0.5 * plan.latency <= everywhere <= least * (1 + 1e-2)
    random = np.random.default_rng(seed)
    takes = np.zeros((4, 4))
    np.put_along_axis(takes, model.small.others, 1.0, axis=1)
    x = random.choice([0.0, 0.0, 0.1, 0.3, 1.0], (400, 4))[:, :, None] * takes
    full = np.zeros((400, 2, 4))
    for row in range(2):
        full[:, row, model.full_nodes[row]] = 1 - random.dirichlet((1.0, 1.0, 1.0), 400)
    best = of_any_sizes(model, full, x, Z[::4]).min()
    assert plan.latency <= best * (1 + 1e-3)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3))])
def test_no_goal_makes_the_bound_pass_a_plan(seed, monkeypatch):
    """Told that all plans are a quarter slower than one that is known, the search proves less than that one."""
    monkeypatch.setattr(bound_module, "_MOST_CELLS", 4_000_000)
    random = np.random.default_rng(seed)
    nodes = nodes_of(random.uniform(0.002, 0.01, 5), random.uniform(0.002, 0.02, 5), 1e-3)
    stored = np.array([random.permutation(5) < 4 for _ in range(3)])
    problem = problem_of(nodes, [2] * 3, random.uniform(0.5, 6, 3), extra=1)
    sizes = jnp.asarray(random.choice([2.0, 4.0, 9.0], 3))
    problem = prepare(nodes, replace(problem.files, chunk_bytes=sizes))
    data = np.array([np.flatnonzero(row)[:2] for row in stored]).ravel()
    # every other read is of two chunks
    pairs = np.stack([data, np.where(np.arange(6) % 2, np.roll(data, 1), -1)], axis=1)
    rates = random.uniform(1, 10, 6)
    small = small_reads(stored, np.repeat(np.arange(3), 2), np.tile([0, 1], 3), pairs, 2, rates)
    model = KindModel(problem, stored, small._replace(size=random.choice([0.2, 1.0, 3.0], 6)))
    plan = plan_kinds(model, np.where(stored, 0.5, 0.0))
    for reads in (None, AnyPlacementTerm(model, problem, 0.0)):
        least = lower_bound(model, plan, 0.05, 1.25 * plan.latency, reads)
        assert least is None or least <= plan.latency * (1 + 1e-9)


def test_more_sizes_than_the_model_has_have_no_bound(hot):
    small = small_reads(
        hot.stored, np.repeat(np.arange(8), 2), np.zeros(16, int), np.repeat(np.arange(8), 2), 4, [9.0] * 16
    )
    model = KindModel(hot.problem, hot.stored, small._replace(size=np.arange(1.0, 17.0)))
    assert lower_bound(model, plan_kinds(model, np.full((8, 8), 0.5)), 1e-2) is None


@pytest.mark.parametrize("seed", range(8))
def test_node_minimum_of_many_sizes_is_close_below_that_of_one(seed):
    """The same size in several classes, at every corner of a rectangle of z, as by loads; and below random loads."""
    random = np.random.default_rng(seed)
    means = np.sort(random.uniform(0.005, 0.04, 2))
    scv = random.uniform(0.3, 1.5)
    small, full = ([mean, (1 + scv) * mean**2, 6 * mean**3] for mean in means)
    steady = [means[0], scv * means[0] ** 2, means[1], scv * means[1] ** 2]
    node = np.array([0.1, 0.001, 0.0001, *small, *full, *steady])
    most, price = random.uniform(5.0, 40.0, 3), random.uniform(0.5, 4.0, 3) * means[[1, 0, 0]]
    centre, width = np.array([means[1], means[0]]), random.uniform(0.05, 0.3, 2) * means[::-1]
    ahead = np.array(list(itertools.product(*np.stack([-width, width], axis=1))))
    close = 1e-4 * means[0] * most.sum()
    # every class twice, half of its chunks each
    moments = np.array([full, small, small] * 2).T[:, None]
    mean, variance = moments[0], moments[1] - moments[0] ** 2
    chunks = Chunks(moments, mean, variance, np.array([0, DIRECT, 1] * 2), node[None, :3].copy())
    corners, least = Corners(centre, ahead, np.zeros((4, 1, 6))), np.zeros((1, 6))
    (bounds,), _ = node_minima(
        chunks, np.tile(most / 2, 2)[None], np.tile(price, 2)[None], corners, close, least
    )
    for corner in range(4):
        z = np.array([centre[0], ahead[corner, 0], centre[1], ahead[corner, 1]])
        one, _ = node_minimum(node, most[[1, 2, 0]], price, z, close, np.zeros(3))
        assert bounds[corner] <= one + close
        # where z ends above the centre more waiting than the loads bring may look cheaper
        tight = np.all(ahead[corner] < 0)
        assert bounds[corner] >= one - (close if tight else 0.1 * abs(one))
    model = PriceModel(chunks, 0.0)
    loads = random.uniform(0, 1, (2000, 1, 6)) * np.tile(most / 2, 2)
    loads *= random.uniform(0, 1, (2000, 1, 1))
    stable = loads[:, 0] @ moments[0, 0] + 0.1 < 1
    value = model.latency(loads[stable], tuple(centre))[:, 0] - loads[stable][:, 0] @ np.tile(price, 2)
    (at_centre,), _ = node_minima(
        chunks,
        np.tile(most / 2, 2)[None],
        np.tile(price, 2)[None],
        Corners(centre, np.zeros((1, 2)), np.zeros((1, 1, 6))),
        close,
        least,
    )
    assert at_centre[0] <= value.min() + 1e-12
    there = np.array([centre[0], 0.0, centre[1], 0.0])
    one, _ = node_minimum(node, most[[1, 2, 0]], price, there, close, np.zeros(3))
    assert abs(at_centre[0] - one) <= close
    assert np.sum(least) >= 0 and np.all(least <= np.tile(most / 2, 2) * (1 + 1e-12))


def test_no_prices_prove_more_than_the_model_of_them_says(hot):
    plan = plan_kinds(hot, np.full((8, 8), 0.5))
    bound = RectangleBound(hot, plan, PlacementTerm(hot), 1e-3, plan.latency)
    bound.cutting = True
    random, z = np.random.default_rng(0), bound.z
    tries = bound.slopes(z) * random.uniform(0.7, 1.4, (8, 8, 3))
    proved = [bound.proved(each, z) for each in tries]
    paid = bound.cuts.full_rate * z[0], z[1]
    most, prices = bound.cuts.best(z, paid, np.zeros((8, 3)), np.full((8, 3), 1.0))
    assert max(proved) <= most + 1e-9
    again = bound.proved(prices, z)
    assert again <= most + 1e-9
    for each, value in zip(tries, proved, strict=True):
        assert bound.cuts.best(z, paid, each, each)[0] == pytest.approx(value, rel=1e-3)


def test_files_without_redundancy_are_read_directly():
    nodes = nodes_of([0.006] * 3, [0.004] * 3)
    stored = np.array([[1, 1, 0]], bool)
    small = small_reads(stored, [0, 0], [0, 1], [0, 1], 2, [60.0, 5.0])
    model = KindModel(problem_of(nodes, [2], [3.0], extra=0), stored, small)
    plan = plan_kinds(model, np.array([[1.0, 1.0, 0.0]]))
    assert plan.degraded.sum() == 0
    assert lower_bound(model, plan, 5e-3) == pytest.approx(plan.latency, rel=1e-2)


def test_degraded_reads_begin_beside_others_that_have_no_redundancy():
    """Reads of one chunk of a slow node, decoded from five of 10 ms, beside four times as many that are all direct.

    M/G/1 where all are direct: 30.5 ms at the slow node, 10.06 ms at the others, 14.2 ms together.
    """
    nodes = nodes_of([0.018, *[0.006] * 5], [0.012, *[0.004] * 5])
    stored = np.array([[1] * 6, [0, 1, 1, 1, 1, 0]], bool)
    small = small_reads(stored, [0, 1, 1, 1, 1], [0, 0, 1, 2, 3], [0, 1, 2, 3, 4], 4, np.ones(5))
    model = KindModel(problem_of(nodes, [4, 4], [0.0, 0.0], extra=0), stored, small)
    plan = plan_kinds(model, np.where(stored, 4 / stored.sum(axis=1, keepdims=True), 0.0))
    assert plan.degraded.sum(axis=1) / 4 == pytest.approx([1.0, 0.0, 0.0, 0.0, 0.0], abs=1e-6)
    shares = np.linspace(0.0, 1.0, 11)
    x = np.zeros((11, 5, 6))
    x[:, 0, 1:] = 0.8 * shares[:, None]
    evenly = of_any_sizes(model, np.zeros((2, 6)), x, Z)
    assert 1e3 * evenly[0] == pytest.approx(14.2, abs=0.1)
    assert plan.latency <= evenly.min() * (1 + 1e-5)
    assert 1e3 * plan.latency == pytest.approx(11.5, abs=0.1)


def test_sizes_far_apart_are_not_one_and_those_that_are_never_read_do_not_count():
    few, of = few_sizes(np.array([*np.arange(1000.0, 1008.0), 1e6]), np.array([*[125.0] * 8, 0.14]))
    assert few[of] == pytest.approx([*[1003.5] * 8, 1e6])
    size = np.arange(1.0, 20.0)
    few, of = few_sizes(size, np.where(size > 11, 1.0, 0.0))
    assert few[of][size > 11].tolist() == size[size > 11].tolist()


def test_work_of_nodes_is_that_of_all_sizes_however_many():
    model = of_many_sizes(0)
    assert len(np.unique(model.small.size)) == 24 and not model.exact
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    full, x = at_all(plan, model)
    service, small, files = np.asarray(model.problem.nodes.service), model.small, model.problem.files
    left = small.rate * (1 - x.sum(axis=1) / 2)
    work = np.zeros((3, 4))
    for order in range(3):
        for row in range(12):
            moment = sum(service[order, p] * float(files.chunk_bytes[row]) ** p for p in range(4))
            work[order] += float(files.rate[row]) * full[row] * moment
        for read in range(24):
            moment = sum(service[order, p] * small.size[read] ** p for p in range(4))
            work[order] += moment * (
                small.rate[read] * x[read] + left[read] * (np.arange(4) == small.node[read])
            )
    found = node_work(Loads(*map(jnp.asarray, plan.loads)), model.moments)
    np.testing.assert_allclose(found, work, rtol=1e-9)
    np.testing.assert_allclose(
        small_work(model, plan.degraded), work - full_work(model, full), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_many_sizes_no_plan_at_random_is_much_better(seed):
    model, random = of_many_sizes(seed), np.random.default_rng(seed)
    plan = plan_kinds(model, np.where(model.stored, 2 / 3, 0.0))
    mine = of_any_sizes(model, *at_all(plan, model), Z)
    # what spreads are chosen by is next to what they come to
    assert plan.latency == pytest.approx(mine, rel=0.05)
    takes = np.zeros((24, 4))
    np.put_along_axis(takes, model.small.others, 1.0, axis=1)
    x = random.choice([0.0, 0.0, 0.0, 0.1, 1.0], (300, 24))[:, :, None] * takes
    full = np.zeros((300, 12, 4))
    for row in range(12):
        full[:, row, model.full_nodes[row]] = 1 - random.dirichlet((1.0, 1.0, 1.0), 300)
    assert mine <= of_any_sizes(model, full, x, Z[::4]).min() * (1 + 1e-2)


def of_many_sizes(seed):
    """Twelve files of 2 + 1 chunks on four nodes, each of a size of its own; small reads of their data chunks, too."""
    random = np.random.default_rng(seed)
    nodes = nodes_of(random.uniform(0.004, 0.01, 4), random.uniform(0.002, 0.02, 4), 1e-3)
    stored = np.array([random.permutation(4) < 3 for _ in range(12)])
    files = problem_of(nodes, [2] * 12, random.uniform(0.2, 0.8, 12), extra=1).files
    sizes = jnp.asarray(np.exp(random.uniform(0.0, 3.0, 12)))
    data = np.array([np.flatnonzero(row)[:2] for row in stored]).ravel()
    rates = random.uniform(0.5, 2.0, 24)
    small = small_reads(stored, np.repeat(np.arange(12), 2), np.tile([0, 1], 12), data, 2, rates)
    small = small._replace(size=np.exp(random.uniform(-2.0, 3.0, 24)))
    return KindModel(prepare(nodes, replace(files, chunk_bytes=sizes)), stored, small)


def at_all(plan, model):
    """Probabilities of full reads, (R, m), and x of small ones, (T, m)."""
    full, x = np.zeros(model.stored.shape), np.zeros((model.small.number, model.stored.shape[1]))
    np.put_along_axis(full, model.full_nodes, plan.full, axis=1)
    np.put_along_axis(x, model.small.others, plan.degraded, axis=1)
    return full, x


def full_work(model, full):
    """Moments of the work of full reads, (3, m)."""
    service, files = np.asarray(model.problem.nodes.service), model.problem.files
    powers = np.asarray(files.rate)[:, None] * np.asarray(files.chunk_bytes)[:, None] ** np.arange(4)
    return np.einsum("npm,rp,rm->nm", service, powers, full)
