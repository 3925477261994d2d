"""Algorithm JLCM against SLSQP and brute force on small problems, and what every plan must hold on all of them."""

import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from scipy.optimize import minimize

from ecjax.options import checked
from ecjax.planning import Solution, batch, settings, starts
from ecjax.problem import builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.optimize.options import OptimizeOptions

THETA = [0.0, 5.0, 50.0]
METHODS = ("published", "oblivious_lb", "random_cp", "max_ec")
BASELINES = METHODS[1:]


def lane(plans, index: int = 0, method: str = "published") -> Solution:
    return jax.tree.map(lambda leaf: np.asarray(leaf[index]), plans.by_method[method])


@cache
def solved(name: str):
    """Plans of a case at every theta."""
    return problems.solve(problems.ALL[name](), THETA)


def cluster() -> problems.Case:
    """The built-in cluster, small."""
    options = ClusterOptions(hardware="tahoe", files=problems.FILES, nodes_per_site=2, k=[3, 4, 3, 2])
    return problems.Case(builtin.nodes(options).to_pandas(), builtin.files(options).to_pandas())


def model(case, stored):
    """The shared-z bound and its gradient at x = (probabilities on ``stored``, z), for SciPy to minimise over both."""
    share = (case.file("rate_per_s") / case.file("rate_per_s").sum())[:, None]
    rate, moments = case.file("rate_per_s")[:, None], problems.service(case)
    there = stored.astype(bool)

    def unpack(x):
        probabilities = np.zeros(there.shape)
        probabilities[there] = x[:-1]
        return probabilities

    def value_and_gradient(x):
        probabilities, z = unpack(x), x[-1]
        rho, second, third = problems.node_work(case, probabilities, stored)
        if rho.max() >= 1:
            return 1e6 * rho.max(), np.append(1e6 * (rate * moments[0])[there], 0)
        mean, variance = problems.chunk_delay(case, np.array([rho, second, third]))
        weights = share * probabilities
        root = np.sqrt((mean - z) ** 2 + variance)
        by_mean, by_variance = weights / 2 * (1 + (mean - z) / root), weights / 4 / root
        idle, wait = 1 - rho, second / (2 * (1 - rho))
        by_wait, by_spread = by_mean.sum(axis=0), by_variance.sum(axis=0)
        by_rho = by_wait * wait / idle + by_spread * (third / 3 / idle**2 + 2 * wait**2 / idle)
        by_second = by_wait / (2 * idle) + by_spread * wait / idle
        by_third = by_spread / (3 * idle)
        gradient = share / 2 * (mean - z + root)
        for moment, slope in zip(moments, (by_rho, by_second, by_third), strict=True):
            gradient = gradient + rate * moment * slope
        value = problems.bound_at(z, weights, mean, variance)
        return value, np.append(gradient[there], 1 - by_mean.sum())

    return value_and_gradient, unpack


def least_latency(case, stored) -> tuple[float, np.ndarray]:
    """SLSQP over probabilities on the chunks that are stored."""
    value_and_gradient, unpack = model(case, stored)
    there = stored.astype(bool)
    start = np.where(there, (case.k / there.sum(axis=1))[:, None], 0)
    if problems.node_work(case, start, stored)[0].max() >= 1:
        return np.inf, start
    rows = np.nonzero(there)[0]
    sums = np.zeros((len(stored), len(rows) + 1))
    sums[rows, np.arange(len(rows))] = 1
    found = minimize(
        value_and_gradient,
        np.append(start[there], problems.outcome(case, start, stored).z_s),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(rows) + [(None, None)],
        constraints=[{"type": "eq", "fun": lambda x: sums @ x - case.k, "jac": lambda x: sums}],
        options={"ftol": 1e-13, "maxiter": 300},
    )
    return found.fun, unpack(found.x)


@cache
def least_of_all() -> float:
    """Least latency of ``alike`` with every chunk there is."""
    case = problems.alike()
    return least_latency(case, np.ones_like(case.even))[0]


def check_plan(case, plan: Solution, theta: float):
    """What a result must hold, from its probabilities and chunks alone."""
    probabilities, stored = (
        problems.of_files(case, np.asarray(a)) for a in (plan.probabilities, plan.stored)
    )
    np.testing.assert_allclose(probabilities.sum(axis=1), case.k, atol=1e-9)
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    assert not np.any(probabilities[~stored])
    floor = case.k + case.file("min_extra_chunks")
    rows = problems.of_files(case, np.arange(len(plan.stored)))
    floor = np.array([floor[rows == row].max() for row in rows])
    assert np.all(stored.sum(axis=1) >= floor)
    expected = problems.outcome(case, probabilities, stored)
    assert expected.load.max() < 1
    found = plan.evaluation
    np.testing.assert_allclose(found.load, expected.load, rtol=1e-10)
    np.testing.assert_allclose(found.latency_shared_z, expected.latency_shared_z_s, rtol=1e-9)
    np.testing.assert_allclose(found.latency, expected.latency_s, rtol=1e-9)
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-9)
    np.testing.assert_allclose(found.objective, expected.objective(theta), rtol=1e-9)


@pytest.mark.parametrize("name", problems.PLAIN)
def test_every_plan_is_feasible_and_evaluated_right(name):
    case = problems.PLAIN[name]()
    for index, theta in enumerate(THETA):
        plan = lane(solved(name), index)
        check_plan(case, plan, theta)


@pytest.mark.parametrize("name", problems.PLAIN)
def test_no_plan_is_worse_than_its_start(name):
    case = problems.PLAIN[name]()
    start = np.asarray(starts.uniform(case.problem(), jax.random.key(0)))
    before = problems.outcome(case, start, start > 0)
    for index, theta in enumerate(THETA):
        assert lane(solved(name), index).evaluation.objective <= before.objective(theta)


@pytest.mark.parametrize("name", problems.PLAIN)
def test_history_never_rises_from_latency_plus_surrogate_of_the_start(name):
    case = problems.PLAIN[name]()
    start = np.asarray(starts.uniform(case.problem(), jax.random.key(0)))
    latency = problems.outcome(case, start, np.ones_like(start)).latency_shared_z_s
    size = case.file("stored_bytes") if "stored_bytes" in case.files else case.file("bytes")
    price = (
        case.node("cost_per_chunk_dollars") + case.node("cost_per_byte_dollars") * (size / case.k)[:, None]
    )
    for index, theta in enumerate(THETA):
        plan = lane(solved(name), index)
        history = plan.history[~np.isnan(plan.history)]
        assert np.all(np.diff(history) <= 1e-12 * history[0])
        surrogate = np.sum(price * np.log1p(10 * start)) / np.log(10)
        assert history[0] == pytest.approx(latency + theta * surrogate / len(case.files), rel=1e-9)
        assert len(history) <= plan.iterations + 1


def test_without_a_price_the_latency_is_that_of_slsqp():
    plan = lane(solved("alike"), THETA.index(0.0))
    assert plan.converged
    assert plan.evaluation.latency_shared_z == pytest.approx(least_of_all(), rel=1e-6)


@pytest.mark.parametrize("load", [0.5, 1e-4])
def test_delays_that_hardly_vary_are_no_obstacle(load):
    case = problems.steady(load)
    plan = lane(problems.solve(case, [0.0] * len(THETA)))
    best, _ = least_latency(case, np.ones_like(case.even))
    assert plan.evaluation.latency_shared_z == pytest.approx(best, rel=1e-6)


def test_reads_that_are_spread_over_thousands_of_nodes_have_a_plan():
    """Each of 12,000 alike nodes has 1/12,000 of the reads then, below the probability that is negligible elsewhere."""
    options = ClusterOptions(files=4, nodes_per_site=4000, k=[1], rates=[1.0], slowdown=[1.0] * 3, load=0.5)
    case = problems.Case(builtin.nodes(options).to_pandas(), builtin.files(options).to_pandas())
    plan = lane(problems.solve(case, 0.0))
    check_plan(case, plan, 0.0)
    assert np.asarray(plan.evaluation.load).max() == pytest.approx(0.5, rel=0.02)


def test_with_a_floor_of_all_nodes_the_price_changes_nothing():
    """Every chunk is stored and paid for, so that reads may use all: the least latency whatever theta."""
    case = problems.alike()
    case = problems.Case(case.nodes, case.files.assign(min_extra_chunks=len(case.nodes) - case.files["k"]))
    plans = problems.solve(case, THETA)
    for index, theta in enumerate(THETA):
        plan = lane(plans, index)
        check_plan(case, plan, theta)
        assert plan.stored.all()
        assert plan.evaluation.latency_shared_z == pytest.approx(least_of_all(), rel=1e-6)


def test_final_probabilities_are_the_best_for_the_placement():
    """Of the placement that theta leads to: SLSQP on its chunks, cold ones included, finds nothing better."""
    case = problems.alike()
    plan = lane(solved("alike"), THETA.index(5.0))
    best, _ = least_latency(case, plan.stored.astype(float))
    assert plan.evaluation.latency_shared_z == pytest.approx(best, rel=1e-6)


def test_cost_falls_and_latency_rises_with_theta():
    case = cluster()
    plans = problems.solve(case, [1.0, 30.0, 1000.0])
    found = [lane(plans, index).evaluation for index in range(3)]
    assert found[0].cost > found[1].cost > found[2].cost
    assert found[0].latency_shared_z < found[1].latency_shared_z < found[2].latency_shared_z
    for index, theta in enumerate((1.0, 30.0, 1000.0)):
        check_plan(case, lane(plans, index), theta)


@pytest.mark.slow
def test_frontier_of_the_built_in_cluster():
    """The default settings on 200 files: what the figures show."""
    options = ClusterOptions(hardware="tahoe", files=200)
    case = problems.Case(builtin.nodes(options).to_pandas(), builtin.files(options).to_pandas())
    theta = checked(OptimizeOptions(cluster=options)).theta
    plans = problems.solve(case, theta, methods=METHODS, settings=settings(10.0, 1e-4, 1000, "merged"))
    found = [lane(plans, index).evaluation for index in range(len(theta))]
    cost, latency = (
        np.array([getattr(each, name) for each in found]) for name in ("cost", "latency_shared_z")
    )
    # the last two may be one plan: the cheapest that there is
    assert np.all(np.diff(cost[:-1]) < 0) and cost[-1] <= cost[-2] * (1 + 1e-12)
    assert np.all(np.diff(latency[:-1]) > 0) and latency[-1] >= latency[-2] * (1 - 1e-12)
    for index, price in enumerate(theta):
        check_plan(case, lane(plans, index), price)
        for method in BASELINES:
            assert lane(plans, index, method).evaluation.objective > found[index].objective


@pytest.mark.parametrize(
    "make, theta", [(cluster, 1.0), (cluster, 100.0), (problems.mixed, 5.0), (problems.alike, 5.0)]
)
@pytest.mark.slow
def test_oblivious_schemes_are_worse(make, theta):
    case = make()
    plans = problems.solve(case, theta, methods=METHODS)
    best = lane(plans)
    for method in BASELINES:
        plan = lane(plans, method=method)
        assert plan.evaluation.objective > best.evaluation.objective
        assert plan.converged
        if np.isfinite(plan.evaluation.objective):
            check_plan(case, plan, theta)
    n, m = best.stored.sum(axis=1), best.stored.shape[1]
    balanced, random, longest = (lane(plans, method=method) for method in BASELINES)
    np.testing.assert_array_equal(balanced.stored, best.stored)
    np.testing.assert_array_equal(random.stored.sum(axis=1), n)
    np.testing.assert_allclose(random.probabilities[random.stored], np.repeat(case.k / n, n), rtol=1e-12)
    assert longest.stored.all()
    np.testing.assert_allclose(longest.probabilities, case.even[:, :m], rtol=1e-12)


def test_the_longest_code_takes_no_descent(monkeypatch):
    """It stands on all nodes whatever the plan of the published method is."""
    monkeypatch.setattr(batch, "_PUBLISHED", None)
    case = problems.mixed()
    longest = lane(problems.solve(case, THETA, methods=["max_ec"]), 1, "max_ec")
    assert longest.stored.all() and longest.iterations == 0
    np.testing.assert_allclose(longest.probabilities, case.even, rtol=1e-12)
    check_plan(case, longest, THETA[1])


def test_groups_and_writes():
    """Files of a group share their chunks; with writes, chunks cost latency as well."""
    case = problems.grouped()
    plans = problems.solve(case, [5.0, 500.0, 500.0], methods=METHODS)
    for method in METHODS:
        check_plan(case, lane(plans, method=method), 5.0)
        assert lane(plans).evaluation.objective <= lane(plans, method=method).evaluation.objective
    assert lane(plans).stored.shape[0] == case.problem().rows < len(case.files)
    assert lane(plans, 1).evaluation.cost < lane(plans).evaluation.cost


@pytest.mark.parametrize("factor, load", [(5.0, 1.1), (20.0, 1.1), (100.0, 1.5)])
def test_writes_of_chunks_that_the_floor_asks_for_find_room(factor, load):
    """All chunks everywhere overload the nodes, and so would the cold chunks on the cheapest ones alone."""
    files = problems.grouped().files
    files = files.assign(min_extra_chunks=2, write_rate_per_s=factor * files["write_rate_per_s"])
    case = problems.Case(problems.grouped().nodes, files).at_load(load)
    check_plan(case, lane(problems.solve(case, [100.0] * len(THETA))), 100.0)


def test_writes_shorten_codes_without_any_price():
    case = problems.grouped()
    lengths = []
    for factor in (0.01, 20.0):
        files = case.files.assign(write_rate_per_s=factor * case.files["write_rate_per_s"])
        busy = problems.Case(case.nodes, files).at_load(0.6)
        plan = lane(problems.solve(busy, [0.0] * len(THETA)))
        check_plan(busy, plan, 0.0)
        lengths.append(plan.stored.sum())
    assert lengths[0] > lengths[1]


def every_placement(case, theta):
    """Least objective over all placements, each with its best probabilities by SLSQP; the cheapest first."""
    count = len(case.nodes)
    floors = (case.k + case.file("min_extra_chunks")).astype(int)
    supports = [
        [s for n in range(floor, count + 1) for s in itertools.combinations(range(count), n)]
        for floor in floors
    ]
    placements = []
    for chosen in itertools.product(*supports):
        stored = np.zeros((len(floors), count))
        for row, nodes in enumerate(chosen):
            stored[row, list(nodes)] = 1
        placements.append((theta * problems.outcome(case, stored, stored).cost / len(floors), stored))
    best = np.inf
    for cost, stored in sorted(placements, key=lambda pair: pair[0]):
        if cost < best:  # the latency is above 0
            best = min(best, least_latency(case, stored)[0] + cost)
    return best


@pytest.mark.parametrize("theta", [pytest.param(3.0, marks=pytest.mark.slow), 30.0])
def test_brute_force_over_all_placements_is_never_above_and_not_far_below(theta):
    case = problems.tiny()
    plan = lane(problems.solve(case, theta))
    check_plan(case, plan, theta)
    best = every_placement(case, theta)
    assert best <= plan.evaluation.objective * (1 + 1e-6)
    assert plan.evaluation.objective <= 1.1 * best


def test_an_overloaded_start_is_recovered():
    case = problems.mixed().scaled(rate=1.9)
    even = problems.outcome(case, case.even, np.ones_like(case.even))
    assert even.load.max() > 1
    plans = problems.solve(problems.mixed(), THETA[1], rate=[1.0, 1.9, 50.0])
    check_plan(case, lane(plans, 1), THETA[1])


def test_a_given_start_is_kept_where_nothing_is_better():
    """Started at its own plan without a price, the method stays at it; a start with other sums is projected."""
    case = problems.alike()
    first = lane(solved("alike"), 0)
    free = [0.0] * len(THETA)
    again = lane(problems.solve(case, free, start_plan=tuple(map(jnp.asarray, first[:2]))))
    assert again.evaluation.objective == pytest.approx(first.evaluation.objective, rel=1e-6)
    nothing = jnp.zeros_like(case.even)
    empty = lane(problems.solve(case, free, start_plan=(nothing, nothing > 0)))
    check_plan(case, empty, 0.0)
    assert empty.evaluation.objective == pytest.approx(first.evaluation.objective, rel=1e-5)


@pytest.mark.slow
def test_nested_loop_falls_too_and_may_end_elsewhere():
    case = problems.tiny()
    plan = lane(problems.solve(case, 5.0, settings=settings(10.0, 1e-6, 500, "nested")))
    check_plan(case, plan, 5.0)
    history = plan.history[~np.isnan(plan.history)]
    assert np.all(np.diff(history) <= 0)
    start = np.asarray(starts.uniform(case.problem(), jax.random.key(0)))
    assert plan.evaluation.objective <= problems.outcome(case, start, start > 0).objective(5.0)
