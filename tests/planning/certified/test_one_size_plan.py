"""Plans of files with one chunk size: bins, prices from the smoothed dual, rounding, exchanges."""

import tracemalloc
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest
from planning.certified.test_relax import CONVEX
from planning.certified.test_rounding import THETA, constrained
from planning.certified.untuned import at_largest_load, limited, passes_of, relaxed_at, tiny, untuned

from ecjax.planning import prepare
from ecjax.planning.certified import Settings, one_size_plan, plan_lanes
from ecjax.planning.certified import collapse as collapsing
from ecjax.planning.certified.collapse import classes_of, collapse, steps_of
from ecjax.planning.certified.data import rates_of, sites_of
from ecjax.planning.certified.exchange import exchange
from ecjax.planning.certified.least_cost import least_costs
from ecjax.planning.certified.nodes import NodeMinima
from ecjax.planning.certified.one_size_plan import Plan, prove, round_off
from ecjax.planning.certified.relax import loads_of
from ecjax.planning.certified.rounding import worth
from ecjax.planning.certified.smooth import Bins
from ecjax.studies.bench.setups.random_problem import random_problem

THETA_OF_RANDOM = 0.02  # s per dollar


def proven_at(bins: Bins, relaxation) -> float:
    """What the prices of a relaxation prove at its z, s."""
    service, rows = bins.passes.service, bins.passes.rows
    minima = NodeMinima(service, rows).sums(relaxation.prices, np.array([relaxation.z]), 1e-12)[0]
    held = np.where(np.isfinite(rows.capacity), rows.capacity, 0.0)
    z = 0.0 if service.alone else relaxation.z
    return float(z + minima + relaxation.prices.cheapest - relaxation.prices.chunk @ held)


@pytest.mark.parametrize("kind", CONVEX)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_at_a_fixed_z_prices_and_marginals_meet_at_the_convex_optimum(kind, seed):
    _, problem, theta = tiny(seed, kind)
    bins = Bins(passes_of(problem, theta))
    z = bins.first_z()
    relaxation = bins.relax(z, fixed_z=True)
    exact = relaxed_at(problem, theta, z)
    assert relaxation.z == z
    assert proven_at(bins, relaxation) <= exact * (1 + 1e-7)
    assert proven_at(bins, relaxation) == pytest.approx(exact, rel=1e-4)
    assert relaxation.objective == pytest.approx(exact, rel=1e-3)


def test_bins_keep_what_they_gather():
    problem = untuned(3, 20_000, 0.6).problem()
    rows = passes_of(problem, THETA).rows
    bins = collapse(rows, steps_of(rows), 200)
    rate = rates_of(rows)
    assert len(bins.rate) <= 400
    assert bins.size.sum() == rows.number and len(bins.size) == bins.of_row.max() + 1
    np.testing.assert_allclose(bins.size * bins.rate, np.bincount(bins.of_row, rate), rtol=1e-12)
    classes = classes_of(rows, rate)
    np.testing.assert_array_equal(classes, classes[bins.example][bins.of_row])
    # neighbours in rate share a bin
    for one in np.unique(classes):
        of_class = np.flatnonzero(classes == one)
        by_rate = of_class[np.argsort(rate[of_class], kind="stable")]
        assert np.all(np.diff(bins.of_row[by_rate]) >= 0)
    assert sorted(bins.rank) == list(range(rows.number))


@pytest.mark.parametrize("loss", [1e-6, 0.0], ids=["rates that differ", "one rate"])
def test_the_bound_of_many_rows_is_a_hair_below_the_sum_over_all(loss):
    case = untuned(11, 30_000, 0.6)
    files = case.files.assign(k=4, bytes=4e6, min_extra_chunks=np.arange(30_000) % 2)
    files = files if loss else files.assign(rate_per_s=1.0)
    problem = at_largest_load(problems.Case(case.nodes, files), 0.6).problem()
    passes = passes_of(problem, THETA)
    rows, random = passes.rows, np.random.default_rng(11)
    read, place = random.uniform(1, 3, 12) * 1e-6, random.uniform(0, 1e-7, 12)
    costs = np.empty(rows.number)
    least_costs(0, rows.number, rows, rates_of(rows), read, place, sites_of(rows), costs)
    assert collapsing.ends_of(rows, passes.steps) is not None
    least = passes.least(read, place)
    assert costs.sum() * (1 - loss - 1e-12) <= least <= costs.sum() * (1 + 1e-12)


def test_rows_of_their_own_stay():
    random = np.random.default_rng(4)
    problem = limited(untuned(4, 600, 0.6).problem(), surcharge=random.uniform(0, 3, (600, 12)))
    rows = passes_of(problem, THETA).rows
    bins = collapse(rows, steps_of(rows), 100)
    assert np.array_equal(bins.of_row, np.arange(600)) and np.all(bins.size == 1)


def test_very_many_rows_of_their_own_are_planned_from_some(monkeypatch):
    monkeypatch.setattr(collapsing, "_MOST_OWN", 500)
    monkeypatch.setattr(one_size_plan, "_FEW", 0)
    random = np.random.default_rng(10)
    case = untuned(10, 4000, 0.6)
    now = np.argsort(random.random((4000, 12)), axis=1) < (case.k + case.file("min_extra_chunks"))[:, None]
    problem = limited(case.problem(), surcharge=np.where(now, 0.0, 2.0))
    bins = Bins(passes_of(problem, THETA))
    collapsed = bins.fine.collapsed
    assert not collapsed.alike and len(collapsed.size) <= 500 and collapsed.size.sum() == 4000
    np.testing.assert_allclose(
        collapsed.size * collapsed.rate, np.bincount(collapsed.of_row, rates_of(bins.passes.rows))
    )
    relaxation, bound, _ = prove(bins, 1e-4, 400)
    plan = round_off(bins, relaxation, bound * (1 + 1e-4), 1e-7, 0)
    stored = plan.kinds > 0
    assert np.all((plan.kinds == 2).sum(axis=1) == case.k)
    assert bound <= plan.objective <= bound * (1 + 2e-3)
    # most chunks stay where they are
    assert (stored & now).sum() > 0.5 * stored.sum()


def test_steps_of_many_classes_and_a_file_that_is_never_read_need_little_memory():
    """Between a rate of none and others there are 10^5 steps, which 3000 classes would make gigabytes."""
    case, random = untuned(6, 3000, 0.6), np.random.default_rng(6)
    rate = case.file("rate_per_s")
    rate[7] = 0.0
    problem = limited(
        problems.Case(case.nodes, case.files.assign(rate_per_s=rate)).problem(),
        surcharge=random.uniform(0, 3, (3000, 12)),
    )
    rows = passes_of(problem, THETA).rows
    tracemalloc.start()
    steps = steps_of(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
    # every row has prices of its own
    assert len(steps.size) == 3000 and np.all(steps.size == 1)
    np.testing.assert_array_equal(steps.total[steps.of_row], rates_of(rows))
    np.testing.assert_array_equal(steps.example[steps.of_row], np.arange(3000))
    np.testing.assert_array_equal(steps.kind[steps.of_row], classes_of(rows, rates_of(rows)))


def test_masks_and_places_of_clients_make_classes():
    random = np.random.default_rng(5)
    case = untuned(5, 900, 0.6)
    allowed, client = np.ones((900, 12), bool), random.integers(0, 2, 900)
    allowed[::3, 0] = False
    rate = case.file("rate_per_s")
    problem = limited(
        case.problem(), allowed=allowed, reading=rate[:, None] * random.uniform(0, 1e-3, (2, 12))[client]
    )
    rows = passes_of(problem, THETA).rows
    classes = classes_of(rows, rates_of(rows))
    kinds = list(zip(case.k, case.file("min_extra_chunks"), client, allowed[:, 0], strict=True))
    assert classes.max() + 1 == len(set(kinds))
    for one in np.unique(classes):
        assert len({kinds[i] for i in np.flatnonzero(classes == one)}) == 1


def keeps(case, problem, kinds) -> bool:
    stored, site = kinds > 0, np.asarray(problem.site)
    return bool(
        np.all((kinds == 2).sum(axis=1) == case.k)
        and np.all((kinds == 1).sum(axis=1) == case.file("min_extra_chunks"))
        and not np.any(stored & ~np.asarray(problem.allowed))
        and all(stored[:, site == s].sum(axis=1).max() <= problem.per_site for s in range(site.max() + 1))
        and np.all(stored.sum(axis=0) <= np.asarray(problem.capacity))
    )


@pytest.mark.parametrize("seed", range(2))
def test_plans_keep_the_constraints_and_lose_little(seed):
    case, problem = constrained(seed)
    bins = Bins(passes_of(problem, THETA))
    relaxation, bound, _ = prove(bins, 1e-4, 400)
    plan = round_off(bins, relaxation, bound * (1 + 1e-4), 1e-7, 0)
    assert keeps(case, problem, plan.kinds)
    expected = problems.outcome(case, (plan.kinds == 2).astype(float), (plan.kinds > 0).astype(float))
    assert plan.z == pytest.approx(expected.z_s, rel=1e-5)
    assert plan.objective == pytest.approx(expected.objective(THETA), rel=1e-8)
    assert bound <= plan.objective <= bound * (1 + 1e-2)


def test_many_files_are_placed_by_systematic_sampling(monkeypatch):
    """Sites and masks are kept there, too, and the loads are those of the marginals."""
    monkeypatch.setattr(one_size_plan, "_FEW", 0)
    case = untuned(6, 3000, 0.7)
    random = np.random.default_rng(6)
    allowed = np.ones((3000, 12), bool)
    allowed[random.random(3000) < 0.3, 11] = False
    problem = limited(
        case.problem(), site=np.arange(12) % 3, per_site=3, allowed=allowed, capacity=np.full(12, np.inf)
    )
    bins = Bins(passes_of(problem, THETA))
    relaxation, bound, _ = prove(bins, 1e-4, 400)
    sampled = one_size_plan._rounded(bins, relaxation)
    assert keeps(case, problem, sampled)
    loads = loads_of(bins.passes, sampled)[0]
    np.testing.assert_allclose(loads, relaxation.loads, rtol=0.05, atol=0.01 * relaxation.loads.max())
    plan = round_off(bins, relaxation, bound, 1e-7, 0)
    assert keeps(case, problem, plan.kinds)
    assert bound <= plan.objective <= min(bound * (1 + 1e-3), worth(bins.passes, sampled)[1])


def test_limits_of_a_site_that_bind_nobody_change_nothing():
    """Codes of at most nine chunks, and sites of 30 nodes: bounds are those without a limit."""
    problem = untuned(12, 60, 0.6, nodes=60).problem()
    expected = prove(Bins(passes_of(problem, THETA)), 1e-4, 400)
    for per_site in (25, 1000):
        within = limited(problem, site=np.arange(60) % 2, per_site=per_site)
        relaxation, bound, _ = prove(Bins(passes_of(within, THETA)), 1e-4, 400)
        assert bound == pytest.approx(expected[1], rel=1e-4)
        assert relaxation.objective == pytest.approx(expected[0].objective, rel=1e-4)


@pytest.mark.parametrize("together", [1, 3])
def test_an_exchange_gains_what_it_says(together):
    case, problem = constrained(2, files=60)
    bins = Bins(passes_of(problem, THETA))
    rows, random = bins.passes.rows, np.random.default_rng(0)
    plan = one_size_plan.respond(bins, np.zeros((60, 12), np.int8), 1e-9, random)
    assert keeps(case, problem, plan.kinds)
    # a worse plan: some rows on other nodes
    kinds = plan.kinds.copy()
    kinds[:9] = np.roll(kinds[:9], 1, axis=0)[np.argsort(random.random(9))]
    fits = np.all((kinds == 2).sum(axis=1) == case.k)
    kinds = kinds if fits and keeps(case, problem, kinds) else plan.kinds.copy()
    z = plan.z
    loads, chunks, _ = loads_of(bins.passes, kinds)
    at_z = objective_at(case, kinds, z)
    tuples = random.integers(0, 60, (400, together))
    gain = exchange(
        tuples, bins.passes.service, rows, rates_of(rows), kinds, loads[:, 0].copy(), chunks, z, 1.0
    )
    assert keeps(case, problem, kinds)
    assert gain >= 0
    assert objective_at(case, kinds, z) == pytest.approx(at_z - gain, rel=1e-9)


def objective_at(case, kinds, z) -> float:
    """Objective of whole choices at a z, s: from the law of the nodes in NumPy."""
    passes = passes_of(case.problem(), THETA)
    loads, _, dollars = loads_of(passes, kinds)
    service = passes.service
    work = service.background + loads * service.moments[:, :, 0].T
    room = 1 - work[:, 0]
    wait = work[:, 1] / (2 * room)
    spread = work[:, 2] / (3 * room) + wait**2 + service.variance[:, 0]
    d = wait + service.mean[:, 0] - z
    return float(z + (loads[:, 0] / service.rate * 0.5 * (d + np.sqrt(d**2 + spread))).sum() + dollars)


def test_an_earlier_plan_that_is_good_enough_stays():
    problem = untuned(1, 300, 0.6).problem()
    bins = Bins(passes_of(problem, THETA))
    relaxation, bound, _ = prove(bins, 1e-4, 400)
    plan = round_off(bins, relaxation, bound * (1 + 1e-4), 1e-7, 0)
    start = plan.kinds.copy()
    start[:3] = 0
    tried, enough, value = one_size_plan.placed_anew(bins, start, 1e-2, 0)
    assert isinstance(enough, Plan) and enough is tried[-1]
    assert value <= enough.objective <= value * 1.01
    np.testing.assert_array_equal(enough.kinds[3:], plan.kinds[3:])
    assert np.all((enough.kinds[:3] == 2).sum(axis=1) == np.asarray(problem.k)[:3])


def test_nodes_and_files_that_are_nearly_alike():
    """Three kinds of nodes, reads of each file a whole number: ties everywhere."""
    random = np.random.default_rng(9)
    case = untuned(9, 240, 0.5)
    kind = np.arange(12) // 4
    mean = (0.035 + 0.01 * kind) * (1 + 0.002 * random.normal(size=12))
    nodes = case.nodes.assign(
        service_mean_s=mean,
        service_second_s2=1.013 * mean**2,
        service_third_s3=1.04 * mean**3,
        connect_mean_s=0.0,
        connect_var_s2=0.0,
        cost_per_chunk_dollars=np.array([8.0, 6.0, 4.0])[kind] * 1e-5,
    )
    files = case.files.assign(
        k=4, bytes=4e6, min_extra_chunks=2, rate_per_s=random.geometric(0.1, 240) / 58.0
    )
    case = at_largest_load(problems.Case(nodes, files), 0.5)
    for theta in (100.0, 10_000.0):
        bins = Bins(passes_of(case.problem(), theta))
        relaxation, bound, _ = prove(bins, 1e-4, 400)
        plan = round_off(bins, relaxation, bound * (1 + 1e-4), 1e-7, 0)
        assert bound <= plan.objective <= bound * (1 + 3e-4)


@pytest.mark.parametrize("k", [5, 7])
def test_nodes_and_files_of_a_few_kinds(k):
    """Forty nodes of each of three speeds, 250 files of each of four rates: as prices get cold, kinks everywhere."""
    case = untuned(1, 1000, 0.4, 120)
    speed = np.repeat([1.0, 1.3, 1.6], 40)
    mean = 0.035 * speed
    nodes = case.nodes.assign(
        service_mean_s=mean,
        service_second_s2=1.1 * mean**2,
        service_third_s3=1.4 * mean**3,
        connect_mean_s=np.repeat([5e-4, 1e-3, 2e-3], 40),
        connect_var_s2=np.repeat([1e-8, 4e-8, 1.6e-7], 40),
        cost_per_chunk_dollars=1.0,
    )
    rate = np.tile([0.9, 0.75, 0.6, 1.1], 250)
    files = case.files.assign(k=k, bytes=1e6 * k, min_extra_chunks=0, rate_per_s=rate)
    bins = Bins(passes_of(at_largest_load(problems.Case(nodes, files), 0.4).problem(), 1e-9), 1e-4)
    relaxation, bound, _ = prove(bins, 1e-3, 200)
    reads = k * bins.passes.service.rate
    assert relaxation.loads.sum() == pytest.approx(reads, rel=1e-4)
    plan = round_off(bins, relaxation, bound * (1 + 1e-3), 1e-6, 0)
    assert bound <= plan.objective <= bound * (1 + 2e-3)


def test_bounds_are_close_at_low_loads_too():
    """Intervals of z have at least what proved the longer ones that they are parts of."""
    problem = random_problem(60, 12, 0.6, False, 2)
    problem = replace(problem, site=jnp.arange(12) % 4, per_site=3)
    rates = np.array([0.003, 0.1])
    plans, bounds, _ = plan_lanes(problem, np.full(2, THETA_OF_RANDOM), rates, np.ones(2), Settings())
    objective = np.asarray(plans.evaluation.objective)
    assert np.all(bounds <= objective) and np.all(objective <= bounds * (1 + 1e-4))


def test_of_plans_of_equal_latency_without_a_price_the_cheapest_counts():
    """Two nodes and two dear copies of them: reads are as fast with parity on either."""
    problem = random_problem(40, 6, 0.01, False, 1)
    nodes = problem.nodes
    alike = replace(
        nodes,
        service=jnp.broadcast_to(nodes.service[..., :1], nodes.service.shape),
        connect_mean=0 * nodes.connect_mean,
        connect_variance=0 * nodes.connect_variance,
        cost_per_chunk=jnp.asarray([1.0, 1.0, 1.0, 9.0, 9.0, 9.0]),
    )
    files = replace(problem.files, k=jnp.ones(40), min_extra_chunks=jnp.ones(40))
    plans, bounds, _ = plan_lanes(prepare(alike, files), np.array([0.0, 1e-9]), *np.ones((2, 2)), Settings())
    free, priced = np.asarray(plans.evaluation.cost)
    assert free <= priced * (1 + 1e-6)
    assert np.all(bounds <= np.asarray(plans.evaluation.objective) * (1 + 1e-12))
