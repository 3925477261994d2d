"""Certified plans of whole problems: gaps, constraints in plain NumPy, and problems at the edges."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import problems
import pytest
from planning.certified.untuned import (
    at_largest_load,
    check,
    files_of,
    limited,
    mixture_below,
    nodes_of,
    passes_of,
    tiny,
    untuned,
)

from ecjax.planning import BatchSettings, Certified, Lanes, batch, solve
from ecjax.planning.certified import Certificate, certify, one_size_plan, plan_lanes
from ecjax.planning.certified.splits import Split
from ecjax.planning.problem import EVALUATE

# seed, files, load, theta, most chunks of a file per site: three sites of four nodes
UNTUNED = [
    # half of them every day: near idle and near saturation the search takes other turns
    pytest.param(0, 300, 0.3, 0.0, 3, marks=pytest.mark.slow),
    (1, 300, 0.5, 1e-4, 3),
    pytest.param(2, 300, 0.7, 1e-3, 3, marks=pytest.mark.slow),
    (3, 300, 0.95, 1e-2, 3),
]
MORE = [
    (4, 500, 0.9, 0.0, 4),
    (5, 1000, 0.95, 1e-4, 3),
    (6, 300, 0.3, 1e-3, 4),
    (7, 500, 0.5, 1e-2, 3),
    (8, 1000, 0.7, 0.0, 4),
    (9, 300, 0.8, 1e-4, 3),
    (10, 500, 0.9, 1e-3, 4),
    (11, 1000, 0.95, 1e-2, 3),
]


def planned(problem, theta, rate=1.0, given=None, **changes):
    """Plans of a batch with a lane per theta (or per rate)."""
    lanes = Lanes(
        *(np.array(values, float) for values in np.broadcast_arrays(np.atleast_1d(theta), rate, 1.0))
    )
    return solve(problem, lanes, BatchSettings(**{"methods": ("certified",), **changes}), given)


def lane(plans, index=0, method="certified"):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], plans.by_method[method])


def gap_of(plans, index=0) -> float:
    return float(lane(plans, index).evaluation.objective / plans.lower_bound[index] - 1)


def whole(case, problem, theta, certificate: Certificate) -> float:
    """Objective of whole choices in NumPy, constraints checked."""
    hot, stored = certificate.probabilities, certificate.stored
    assert np.array_equal(hot.sum(axis=1), np.asarray(problem.k)) and not np.any(hot[~stored])
    assert np.all(stored.sum(axis=1) >= np.asarray(problem.floor))
    if problem.capacity is not None:
        assert np.all(np.asarray(problem.price_chunks) @ stored <= np.asarray(problem.capacity))
    row = slice(None) if problem.row is None else np.asarray(problem.row)
    return problems.outcome(case, hot[row], stored[row].astype(float)).objective(theta)


def untuned_is_closed(seed, files, load, theta, per_site):
    case = untuned(seed, files, load)
    problem = limited(case.problem(), site=np.arange(12) % 3, per_site=per_site)
    plans = planned(problem, theta, methods=("certified", "published"))
    plan = lane(plans)
    check(case, problem, theta, plan)
    assert 0 <= gap_of(plans) <= 1e-3
    assert plan.evaluation.objective <= lane(plans, 0, "published").evaluation.objective


@pytest.mark.parametrize(("seed", "files", "load", "theta", "per_site"), UNTUNED)
def test_problems_that_nobody_tuned_for(seed, files, load, theta, per_site):
    untuned_is_closed(seed, files, load, theta, per_site)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "files", "load", "theta", "per_site"), MORE)
def test_more_problems_that_nobody_tuned_for(seed, files, load, theta, per_site):
    untuned_is_closed(seed, files, load, theta, per_site)


# seed, nodes, files, load, theta, racks and most chunks of a file in one, prices
MANY_NODES = [
    (40, 300, 2000, 0.3, 1e-2, 30, 1, "three"),
    (41, 300, 3000, 0.5, 0.0, 0, 0, "all different"),
    (42, 300, 3000, 0.7, 1e-3, 15, 1, "three"),
    pytest.param(
        *(43, 300, 3000, 0.95, 1e-2, 30, 1, "all different"),
        marks=pytest.mark.xfail(reason="ten files for each node near saturation: a gap of 1.3e-3"),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "nodes", "files", "load", "theta", "racks", "per_rack", "prices"), MANY_NODES
)
def test_many_nodes_that_nobody_tuned_for(seed, nodes, files, load, theta, racks, per_rack, prices):
    """Plan, figures and bound are checked in plain NumPy; prices of nodes are of three kinds, or of one each."""
    case = untuned(seed, files, load, nodes=nodes)
    if prices == "three":
        kind = np.random.default_rng(seed).integers(0, 3, nodes)
        case = replace(case, nodes=case.nodes.assign(cost_per_chunk_dollars=np.array([1.0, 2.0, 5.0])[kind]))
    problem = case.problem()
    if racks:
        problem = limited(problem, site=np.arange(nodes) % racks, per_site=per_rack)
    plans = planned(problem, theta, methods=("certified", "published"))
    plan = lane(plans)
    check(case, problem, theta, plan)
    assert 0 <= gap_of(plans) <= 1e-3
    assert plans.lower_bound[0] <= mixture_below(case, problem, theta, plan, 5)
    assert plan.evaluation.objective <= lane(plans, 0, "published").evaluation.objective


@pytest.mark.parametrize(
    "sizes", [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(25, marks=pytest.mark.slow)]
)
def test_nodes_that_serve_several_at_once(sizes):
    """The gap of one size closes as ever; of several, no descent on the same problem is below the bound."""
    files = 300 if sizes == 1 else 60
    case = untuned(20, files, 0.8)
    rng = np.random.default_rng(3)
    size = rng.choice(np.geomspace(0.5, 2.0, sizes) if sizes > 1 else np.ones(1), files)
    case.files["bytes"] *= size
    several = case.problem()
    several = replace(
        several, nodes=replace(several.nodes, channels=jnp.asarray(rng.integers(1, 4, 12).astype(float)))
    )
    plans = planned(several, 1e-3, rate=0.9 if sizes == 1 else 1.8, methods=("certified", "published"))
    plan, other = lane(plans), lane(plans, method="published")
    bound = float(plans.lower_bound[0])
    assert bound <= float(plan.evaluation.objective) <= float(other.evaluation.objective) * (1 + 1e-6)
    assert gap_of(plans) <= (1e-3 if sizes == 1 else 0.05)
    assert 1 > plan.evaluation.load.max() > 0.3


def test_groups_share_their_nodes():
    case = untuned(20, 300, 0.6)
    k = 2 + np.arange(300) // 2 % 4
    group = [f"g{i // 2}" if i < 100 else None for i in range(300)]
    files = case.files.assign(k=k, bytes=1e6 * k, min_extra_chunks=np.arange(300) // 2 % 3, group=group)
    case = at_largest_load(replace(case, files=files), 0.6)
    problem = case.problem()
    assert problem.rows == 250
    certificate = certify(passes_of(problem, 1e-3), Certified(gap=1e-3))
    found = whole(case, problem, 1e-3, certificate)
    assert certificate.lower_bound <= found <= certificate.lower_bound * (1 + 1e-3)


def test_replicated_files():
    """k = 1 everywhere: the bound is the mean, at no z."""
    random = np.random.default_rng(21)
    files = files_of(random, 300, np.ones(300, int)).assign(rate_per_s=random.lognormal(0, 0.5, 300))
    case = at_largest_load(problems.Case(nodes_of(random, 12), files), 0.6)
    problem = case.problem()
    certificate = certify(passes_of(problem, 1e-3), Certified(gap=1e-3))
    found = whole(case, problem, 1e-3, certificate)
    assert certificate.lower_bound <= found <= certificate.lower_bound * (1 + 1e-3)


def test_a_node_that_costs_nothing():
    case = untuned(22, 300, 0.6)
    free = case.nodes["cost_per_chunk_dollars"].where(case.nodes.index != 4, 0.0)
    case = replace(case, nodes=case.nodes.assign(cost_per_chunk_dollars=free))
    problem = case.problem()
    certificate = certify(passes_of(problem, 0.01), Certified(gap=1e-3))
    found = whole(case, problem, 0.01, certificate)
    assert certificate.lower_bound <= found <= certificate.lower_bound * (1 + 1e-3)


def test_constant_services_have_a_plan():
    """The only one: both chunks of the file on both nodes. Nothing varies there until reads come."""
    law = {
        "delta_s": [0.01] * 2,
        "delta_s_per_byte": [1e-8] * 2,
        "psi_s": [0.0] * 2,
        "psi_s_per_byte": [0.0] * 2,
    }
    nodes = pd.DataFrame({"node_id": ["a", "b"]} | law | {"cost_per_chunk_dollars": [0.0] * 2})
    files = pd.DataFrame({"file_id": [0], "bytes": [2e6], "k": [2], "rate_per_s": [10.0]})
    case = problems.Case(nodes, files)
    plans, bounds, _ = plan_lanes(case.problem(), np.zeros(1), np.ones(1), np.ones(1), Certified())
    # M/D/1 of 20 ms at a load of 0.2; E + sqrt(V) of the longer of two
    wait, variance = 0.2 * 0.02 / (2 * 0.8), 10 * 0.02**3 / (3 * 0.8) + (0.2 * 0.02 / (2 * 0.8)) ** 2
    assert plans.evaluation.objective[0] == pytest.approx(0.02 + wait + variance**0.5, rel=1e-6)
    assert (
        plans.evaluation.objective[0] * (1 - 2e-3) < bounds[0] < plans.evaluation.objective[0] * (1 + 1e-12)
    )


@pytest.mark.parametrize("read", [True, False])
def test_nodes_that_cost_nothing_at_all(read):
    """Also beside a file that is never read: nothing that it may do costs anything."""
    case = untuned(23, 300, 0.6)
    case = replace(case, nodes=case.nodes.assign(cost_per_chunk_dollars=0.0))
    if not read:
        case.files.loc[7, "rate_per_s"] = 0.0
    problem = case.problem()
    certificate = certify(passes_of(problem, 0.01), Certified(gap=1e-3))
    found = whole(case, problem, 0.01, certificate)
    assert certificate.lower_bound <= found <= certificate.lower_bound * (1 + 1e-3)


@pytest.mark.parametrize("files", [1, 2, 7, 15])
def test_fewer_files_than_groups(files):
    case = untuned(26, files, 0.4, nodes=9)
    problem = case.problem()
    certificate = certify(passes_of(problem, 1e-3), Certified(gap=1e-3))
    found = whole(case, problem, 1e-3, certificate)
    assert 0 < certificate.lower_bound <= found * (1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_capacity_that_binds(seed):
    case = untuned(seed, 300, 0.5)
    problem = case.problem()
    theta = 1e-2
    free = certify(passes_of(problem, theta), Certified(gap=1e-3))
    held = free.stored.sum(axis=0)
    capacity = np.full(12, np.inf)
    dearest = np.argsort(-held)[:3]
    capacity[dearest] = held[dearest] // 2
    tight = limited(problem, capacity=capacity)
    certificate = certify(passes_of(tight, theta), Certified(gap=1e-3))
    found = whole(case, tight, theta, certificate)
    assert free.lower_bound <= certificate.lower_bound * (1 + 1e-3)
    assert certificate.lower_bound <= found <= certificate.lower_bound * (1 + 5e-3)
    assert found > whole(case, problem, theta, free) * 1.001


def test_capacity_without_room_to_spare():
    """Exactly as many places as chunks."""
    case = untuned(25, 120, 0.4)
    need = int((case.k + case.file("min_extra_chunks")).sum())
    capacity = np.full(12, need // 12)
    capacity[: need % 12] += 1
    problem = limited(case.problem(), capacity=capacity)
    certificate = certify(passes_of(problem, 1e-3), Certified(gap=1e-2))
    found = whole(case, problem, 1e-3, certificate)
    assert np.array_equal(certificate.stored.sum(axis=0), capacity)
    assert certificate.lower_bound <= found <= certificate.lower_bound * 1.05


@pytest.mark.slow  # two lanes compile anew
def test_overload_is_an_infinite_objective():
    """Beside a lane that is well."""
    case, problem, theta = tiny(0, "plain")
    plans = planned(problem, theta, rate=[1.0, 50.0])
    assert np.isfinite(lane(plans, 0).evaluation.objective)
    hopeless = lane(plans, 1)
    assert hopeless.evaluation.objective == np.inf and not hopeless.converged
    assert np.isfinite(plans.lower_bound[0])
    assert not np.isnan(plans.lower_bound[1])


def test_same_seed_same_plan_whatever_the_threads():
    problem = untuned(26, 9000, 0.7).problem()
    one, two, again = (certify(passes_of(problem, 1e-3, threads), Certified()) for threads in (1, 2, 1))
    for other in (two, again):
        np.testing.assert_array_equal(one.stored, other.stored)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        assert one.lower_bound == other.lower_bound and one.z == other.z


def test_another_seed_is_as_good():
    case = untuned(27, 300, 0.7)
    problem = case.problem()
    values = [
        whole(case, problem, 1e-3, certify(passes_of(problem, 1e-3), Certified(gap=1e-3, seed=seed)))
        for seed in (0, 1)
    ]
    assert values[0] == pytest.approx(values[1], rel=3e-3)


def test_a_batch_is_its_lanes():
    case = untuned(0, 300, 0.3)  # the shape of the untuned problems: one compilation
    problem = limited(case.problem(), site=np.arange(12) % 3, per_site=3)
    thetas, rates = [0.0, 1e-3, 1e-3], [1.0, 1.0, 1.5]
    batch = planned(problem, thetas, rates, certified=Certified(gap=1e-3))
    for index, (theta, rate) in enumerate(zip(thetas, rates, strict=True)):
        alone = planned(problem, theta, rate, certified=Certified(gap=1e-3))
        np.testing.assert_array_equal(lane(batch, index).stored, lane(alone).stored)
        np.testing.assert_array_equal(lane(batch, index).probabilities, lane(alone).probabilities)
        assert batch.lower_bound[index] == alone.lower_bound[0]
        check(case.scaled(rate=rate), problem, theta, lane(batch, index))


def test_a_given_plan_stays_mostly_in_place():
    """One file in a hundred is read more often, one in a hundred is new."""
    theta = 1e-3
    case = untuned(28, 300, 0.6)
    problem = case.problem()
    before = certify(passes_of(problem, theta), Certified(gap=5e-3))
    files = case.files.copy()
    changed = np.arange(0, 300, 100)
    files.loc[changed, "rate_per_s"] *= 1.5
    now = replace(case, files=files)
    start = np.where(before.probabilities > 0, 2, before.stored).astype(np.int8)
    start[changed + 1] = 0
    warm = certify(passes_of(now.problem(), theta), Certified(gap=5e-3), start)
    cold = certify(passes_of(now.problem(), theta), Certified(gap=5e-3))
    kept = np.setdiff1d(np.arange(300), np.concatenate([changed, changed + 1]))
    moved = (warm.stored[kept] != before.stored[kept]).any(axis=1).mean()
    assert moved <= 0.1
    assert moved < 0.5 * (cold.stored[kept] != before.stored[kept]).any(axis=1).mean()
    value = whole(now, now.problem(), theta, warm)
    assert warm.lower_bound <= value <= warm.lower_bound * (1 + 5e-3)
    assert value <= whole(now, now.problem(), theta, cold) * (1 + 5e-3)


def test_a_given_plan_that_is_still_the_best_is_kept():
    problem = untuned(29, 300, 0.6).problem()
    before = certify(passes_of(problem, 1e-3), Certified(gap=5e-3))
    start = np.where(before.probabilities > 0, 2, before.stored).astype(np.int8)
    after = certify(passes_of(problem, 1e-3), Certified(gap=5e-3), start)
    np.testing.assert_array_equal(after.stored, before.stored)
    np.testing.assert_array_equal(after.probabilities, before.probabilities)


def test_solve_starts_from_a_given_plan():
    case = untuned(0, 300, 0.3)
    problem = limited(case.problem(), site=np.arange(12) % 3, per_site=3)
    settings = Certified(gap=5e-3)
    before = lane(planned(problem, 1e-3, certified=settings))
    after = planned(problem, 1e-3, given=(before.probabilities, before.stored), certified=settings)
    np.testing.assert_array_equal(lane(after).stored, before.stored)
    assert gap_of(after) <= 5e-3


def test_rows_of_a_given_plan_that_crowd_a_site_are_placed_anew():
    """A limit per site that the earlier plan was not made for; it leaves room for the longest codes, 3 x 3 chunks."""
    case, site = untuned(0, 300, 0.3), np.arange(12) % 3
    settings = Certified(gap=5e-3)
    before = lane(planned(case.problem(), 1e-3, certified=settings))
    crowded = np.any([before.stored[:, site == each].sum(axis=1) > 3 for each in range(3)], axis=0)
    assert crowded.any() and not crowded.all()
    problem = limited(case.problem(), site=site, per_site=3)
    after = planned(problem, 1e-3, given=(before.probabilities, before.stored), certified=settings)
    check(case, problem, 1e-3, lane(after))
    assert 0 <= gap_of(after) <= 5e-3


def two_nodes(means, dollars) -> pd.DataFrame:
    """Exponential services."""
    mean = np.array(means)
    return pd.DataFrame(
        {
            "node_id": ["A", "B"],
            "service_mean_s": mean,
            "service_second_s2": 2 * mean**2,
            "service_third_s3": 6 * mean**3,
            "reference_bytes": 1e6,
            "cost_per_chunk_dollars": dollars,
        }
    )


@pytest.mark.parametrize(
    ("means", "dollars", "theta"), [((0.01, 0.01), (1.0, 10.0), 10.0), ((0.01, 5.0), (1.0, 1.0), 0.0)]
)
def test_no_saving_is_worth_a_broken_capacity(means, dollars, theta):
    """Two files, and room for one of them at the node that is ten times as cheap, or 500 times as fast."""
    files = pd.DataFrame({"file_id": ["f1", "f2"], "bytes": 1e6, "k": 1, "rate_per_s": 0.1})
    problem = limited(
        problems.Case(two_nodes(means, dollars), files).problem(), capacity=np.array([1.0, 2.0])
    )
    plans = planned(problem, theta)
    plan = lane(plans)
    assert plan.stored.sum(axis=0).tolist() == [1, 1]
    # M/M/1: E[S] / (1 - rho)
    latency = np.mean([mean / (1 - 0.1 * mean) for mean in means])
    expected = latency + theta * sum(dollars) / 2
    assert plan.evaluation.objective == pytest.approx(expected, rel=1e-9)
    assert plans.lower_bound[0] <= expected


@pytest.mark.parametrize("sizes", [(1e6,), (1e6, 2e6)])
def test_groups_of_many_files_break_no_capacity_by_one_chunk(sizes):
    """Five groups of a hundred files, and room for 499 chunks where they are cheapest."""
    group = np.repeat(np.arange(5), 100)
    files = pd.DataFrame(
        {
            "file_id": np.arange(500),
            "bytes": np.resize(sizes, 5)[group],
            "k": 1,
            "rate_per_s": 0.001,
            "group": [f"g{each}" for each in group],
        }
    )
    case = problems.Case(two_nodes((0.01, 0.01), (1.0, 1.1)), files)
    problem = limited(case.problem(), capacity=np.array([499.0, 1000.0]))
    assert problem.rows == 5
    plan = lane(planned(problem, 1000.0))
    assert plan.stored.sum(axis=0).tolist() == [4, 1]
    assert plan.evaluation.cost == pytest.approx(400 * 1.0 + 100 * 1.1)


def test_the_published_plan_is_taken_where_the_certified_one_breaks_a_capacity(monkeypatch):
    """Though it costs less than any plan that keeps it."""
    files = pd.DataFrame({"file_id": ["f1", "f2"], "bytes": 1e6, "k": 1, "rate_per_s": 0.1})
    case = problems.Case(two_nodes((0.01, 0.01), (1.0, 10.0)), files)
    problem = limited(case.problem(), capacity=np.array([1.0, 2.0]))

    certified_lanes = batch.certified_lanes

    def breaking(*arguments):
        plans, bounds, device = certified_lanes(*arguments)
        both_at_a = np.array([[1.0, 0.0], [1.0, 0.0]])
        worth = EVALUATE(problem, both_at_a, both_at_a > 0, 10.0)
        assert worth.objective < bounds[0]
        plan = jax.tree.map(lambda leaf: leaf[0], plans)._replace(
            probabilities=both_at_a, stored=both_at_a > 0, evaluation=worth
        )
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], plan), bounds, device

    monkeypatch.setattr(batch, "certified_lanes", breaking)
    plan = lane(planned(problem, 10.0))
    assert plan.stored.sum(axis=0).tolist() == [1, 1]
    assert plan.evaluation.cost == pytest.approx(11.0)


@pytest.mark.parametrize("bytes_of_new", [2e6, 8e6], ids=["one size", "several sizes"])
def test_a_given_plan_of_files_that_nobody_reads_any_more(bytes_of_new):
    random = np.random.default_rng(30)
    files = pd.DataFrame(
        {"file_id": ["a", "b"], "bytes": [2e6, bytes_of_new], "k": 2, "rate_per_s": [0.0, 1.0]}
    )
    case = problems.Case(nodes_of(random, 5), files)
    passes = passes_of(case.problem(), 1e-3)
    start = np.zeros((2, 5), np.int8)
    start[0, :2] = 2
    after = certify(passes, Certified(gap=5e-3), start)
    found = whole(case, case.problem(), 1e-3, after)
    assert after.lower_bound <= found
    assert found <= whole(case, case.problem(), 1e-3, certify(passes, Certified(gap=5e-3))) * (1 + 5e-3)


def test_without_a_price_dollars_of_scaled_sizes_do_not_raise_the_bound():
    """Every plan is the same, so that its objective is what no bound may exceed."""
    nodes = two_nodes((0.01, 0.02), (0.0, 0.0)).assign(cost_per_byte_dollars=1.0)
    files = pd.DataFrame({"file_id": np.arange(9), "bytes": 2.0, "k": 2, "rate_per_s": 1.0})
    problem = problems.Case(nodes, files).problem()
    # chunks of 1 B that are a million times as large
    plans, bounds, _ = plan_lanes(problem, np.zeros(1), np.ones(1), np.full(1, 1e6), Certified())
    assert bounds[0] <= float(plans.evaluation.objective[0]) * (1 + 1e-9)


@pytest.mark.parametrize("files", [4, 6])
def test_a_split_plan_gives_way_to_better_whole_choices(files, monkeypatch):
    """Few rows get others after their reads have been shared out; of more, overloaded ones are relieved."""
    asked = []

    def poor(bins, relaxation, plan, target, seed):
        asked.append(plan.objective)
        return Split((plan.kinds == 2).astype(float), plan.kinds > 0, 2 * plan.objective)

    monkeypatch.setattr(one_size_plan, "split_off", poor)
    _, problem, theta = tiny(0, "plain", files=files, nodes=8)
    certificate = certify(passes_of(problem, theta), Certified())
    assert asked and certificate.split is None
