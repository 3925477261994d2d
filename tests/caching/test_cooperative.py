"""Plans of edges that serve each other, against enumeration, an integer program, and one cache alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_cooperation import best_saved, drawn, item_saves
from scipy.optimize import Bounds, LinearConstraint, milp

from ecjax.caching import cooperative, exact
from ecjax.caching.cooperative import cooperative_plan, evaluate
from ecjax.caching.valuation import valuation
from ecjax.errors import UserError

FEW = np.array([0.1, 0.2, 0.5, 0.9])


def check(plan, rates, latency, between, capacity):
    """What holds for every plan."""
    assert (plan.contents.sum(axis=(1, 2)) <= capacity).all()
    by_hand = sum(
        item_saves(rates[:, m], latency[:, m], between, plan.contents[:, m]) for m in range(rates.shape[1])
    )
    assert plan.saved_per_s == pytest.approx(by_hand, rel=1e-12, abs=1e-12)
    assert plan.bound_per_s >= plan.saved_per_s


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([(2, 3, 2), (2, 2, 3), (3, 3, 2), (1, 4, 3)]), st.booleans())
def test_few_items_are_planned_as_well_as_any_plan(seed, size, ties):
    rates, latency, between = drawn(*size, seed, FEW if ties else None)
    capacity = np.random.default_rng(seed).integers(0, 5, size[0])
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    best = best_saved(rates, latency, between, capacity)
    assert plan.saved_per_s == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert plan.bound_per_s == pytest.approx(best, rel=1e-9, abs=1e-12)


@given(st.integers(0, 10**6), st.booleans())
def test_bound_holds_without_the_exact_search(seed, ties):
    size = (2, 3, 2)
    rates, latency, between = drawn(*size, seed, FEW if ties else None)
    capacity = np.random.default_rng(seed).integers(1, 5, size[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooperative, "is_small", lambda *_: False)
        plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    best = best_saved(rates, latency, between, capacity)
    assert plan.saved_per_s <= best * (1 + 1e-9) <= plan.bound_per_s * (1 + 2e-9) + 1e-12


def by_integer_program(rates, latency, between, capacity):
    """The most that can be saved: which chunks are kept, whence each read takes each chunk, how long a read takes."""
    edges, items, k = latency.shape
    kept = np.arange(edges * items * k).reshape(edges, items, k)
    source = kept.size + np.arange(edges * items * k * (edges + 1)).reshape(edges, items, k, edges + 1)
    took = kept.size + source.size + np.arange(edges * items).reshape(edges, items)
    size = kept.size + source.size + took.size
    rows, low, high = [], [], []

    def add(columns, factors, least, most):
        row = np.zeros(size)
        row[list(columns)] = factors
        rows.append(row)
        low.append(least)
        high.append(most)

    for e, m, j in np.ndindex(edges, items, k):
        times = np.append(np.minimum(between[e], 10.0), latency[e, m, j])
        add(source[e, m, j], 1.0, 1.0, 1.0)
        add([took[e, m], *source[e, m, j]], [1.0, *-times], 0.0, np.inf)
        for f in range(edges):
            add([source[e, m, j, f], kept[f, m, j]], [1.0, -1.0], -np.inf, 0.0)
    for f in range(edges):
        add(kept[f].ravel(), 1.0, 0.0, capacity[f])
    cost = np.zeros(size)
    cost[took.ravel()] = rates.ravel()
    whole = np.zeros(size)
    whole[kept.ravel()] = 1
    top = np.where(np.arange(size) < took[0, 0], 1.0, np.inf)
    found = milp(
        cost,
        integrality=whole,
        bounds=Bounds(0, top),
        constraints=LinearConstraint(np.array(rows), low, high),
    )
    assert found.status == 0
    return (rates * latency.max(axis=2)).sum() - found.fun


def test_integer_program_finds_nothing_better():
    rates, latency, between = drawn(3, 6, 6, 0, FEW)  # too large for the exact search
    capacity = np.array([3, 7, 5])
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    best = by_integer_program(rates, latency, between, capacity)
    assert 0.93 * best <= plan.saved_per_s <= best * (1 + 1e-6)
    assert plan.bound_per_s >= best * (1 - 1e-6)


def zipf(edges, items, k, seed):
    """Zipf's law at all edges, latencies of six nodes."""
    node = np.random.default_rng(seed).integers(0, 6, (items, k))
    latency = np.random.default_rng(seed + 1).uniform(0.1, 1.0, (edges, 6))[:, node]
    return np.tile(1.0 / np.arange(1, items + 1), (edges, 1)), latency


@pytest.mark.parametrize("h", [0.05, 0.2, 0.4])
def test_many_items_are_planned_close_to_the_bound(h):
    rates, latency = zipf(3, 150, 9, 3)
    between = np.where(np.eye(3), 0.0, h)
    capacity = np.array([100, 60, 140])
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    assert plan.bound_per_s <= 1.01 * plan.saved_per_s


def test_edges_too_far_apart_plan_for_themselves():
    rates, latency = zipf(3, 40, 6, 5)
    capacity = np.array([10, 0, 50])
    best = 0.0
    for e in range(3):
        tau = valuation(rates[e], latency[e])
        best += tau[np.arange(40), exact(tau, capacity[e])].sum()
    for h in (np.inf, 1.0):
        plan = cooperative_plan(rates, latency, np.where(np.eye(3), 0.0, h), capacity)
        check(plan, rates, latency, np.where(np.eye(3), 0.0, h), capacity)
        assert plan.saved_per_s == pytest.approx(best, rel=1e-12)
        assert plan.bound_per_s == plan.saved_per_s


def test_edges_in_one_place_are_one_cache():
    rates, latency = zipf(1, 40, 6, 5)
    rates = np.array([[1.0], [0.5], [2.0]]) * rates
    latency = np.repeat(latency, 3, axis=0)
    capacity = np.array([10, 0, 50])
    plan = cooperative_plan(rates, latency, np.zeros((3, 3)), capacity)
    check(plan, rates, latency, np.zeros((3, 3)), capacity)
    tau = valuation(rates.sum(axis=0), latency[0])
    assert plan.saved_per_s == pytest.approx(tau[np.arange(40), exact(tau, 60)].sum(), rel=1e-12)
    assert plan.bound_per_s == plan.saved_per_s


def test_edges_in_one_place_go_on_with_what_they_keep():
    rates, latency = zipf(1, 40, 6, 5)
    rates, latency = np.repeat(rates, 3, axis=0), np.repeat(latency, 3, axis=0)
    capacity = np.array([10, 5, 30])
    before = cooperative_plan(rates, latency, np.zeros((3, 3)), capacity).contents
    other = rates * np.random.default_rng(1).uniform(0.3, 2.0, 40)
    anew = cooperative_plan(other, latency, np.zeros((3, 3)), capacity)
    plan = cooperative_plan(other, latency, np.zeros((3, 3)), capacity, before)
    check(plan, other, latency, np.zeros((3, 3)), capacity)
    np.testing.assert_array_equal(plan.contents.any(axis=0), anew.contents.any(axis=0))
    # what is in both plans stays where it is
    again = plan.contents.any(axis=0) & before.any(axis=0)
    assert 0 < again.sum() < plan.contents.sum() and (plan.contents == before)[:, again].all()


def test_many_edges_in_one_place_read_as_one():
    rates, latency = zipf(1, 30, 4, 6)
    share = np.random.default_rng(0).random((60, 1))
    capacity = np.ones(60, int)
    plan = cooperative_plan(share * rates, np.repeat(latency, 60, axis=0), np.zeros((60, 60)), capacity)
    assert (plan.contents.sum(axis=(1, 2)) <= capacity).all()
    tau = valuation(share.sum() * rates[0], latency[0])
    assert plan.saved_per_s == pytest.approx(tau[np.arange(30), exact(tau, 60)].sum(), rel=1e-12)
    assert plan.bound_per_s == plan.saved_per_s


@pytest.mark.parametrize("ties", [False, True])
def test_two_edges_in_each_of_two_places(ties):
    rates, latency, _ = drawn(4, 2, 2, 3, FEW if ties else None)
    latency = latency[[0, 0, 2, 2]]
    near = np.arange(4) // 2
    between = np.where(near[:, None] == near, 0.01, 0.3)
    capacity = np.array([1, 0, 1, 1])
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    best = best_saved(rates, latency, between, capacity)
    assert [plan.saved_per_s, plan.bound_per_s] == pytest.approx([best, best], rel=1e-9)


def test_too_many_edges_that_read_in_one_place():
    rates, latency, _ = drawn(7, 2, 2, 0)
    with pytest.raises(UserError, match="7 edges that help each other; allowed: at most 6"):
        cooperative_plan(rates, latency + 1.0, np.zeros((7, 7)), np.ones(7, int))


def test_two_of_three_edges_in_one_place():
    rates, latency, _ = drawn(3, 3, 2, 8)
    between = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, 0.3], [0.3, 0.3, 0.0]])
    capacity = np.array([1, 2, 2])
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    assert plan.saved_per_s == pytest.approx(best_saved(rates, latency, between, capacity), rel=1e-9)


@settings(max_examples=6)
@given(st.integers(0, 10**6))
def test_nearer_edges_and_more_room_save_no_less(seed):
    rates, latency, between = drawn(2, 4, 3, seed)
    capacity = np.array([2, 3])
    values = []
    for factor in (1e9, 1.0, 0.5, 0.1):
        changed = np.where(np.eye(2), 0.01, between * factor)
        values.append(cooperative_plan(rates, latency, changed, capacity).saved_per_s)
    assert (np.diff(values) >= -1e-9).all()
    more = cooperative_plan(rates, latency, between, capacity + [0, 2]).saved_per_s
    assert more >= values[1] - 1e-9


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_cooperation_is_no_worse_than_exact_plans_of_each(seed):
    rates, latency, between = drawn(3, 12, 6, seed, FEW)
    capacity = np.array([6, 9, 12])
    alone = np.zeros(latency.shape, bool)
    for e in range(3):
        counts = exact(valuation(rates[e], latency[e]), capacity[e])
        for m in range(12):
            alone[e, m, np.argsort(-latency[e, m], kind="stable")[: counts[m]]] = True
    plan = cooperative_plan(rates, latency, between, capacity)
    check(plan, rates, latency, between, capacity)
    assert plan.saved_per_s >= evaluate(alone, rates, latency, np.where(np.eye(3), 0.01, np.inf)) * (
        1 - 1e-12
    )


def test_an_item_that_gains_only_at_two_edges_at_once():
    latency = np.array([[[0.5, 0.5, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]] * 2)
    rates = np.array([[0.1, 100.0], [0.0, 0.0]])  # what is wanted most has too many chunks
    between = np.array([[0.1, 0.2], [0.2, 0.1]])
    plan = cooperative_plan(rates, latency, between, np.array([1, 1]))
    assert plan.saved_per_s == pytest.approx(0.1 * (0.5 - 0.2))
    assert plan.bound_per_s == pytest.approx(plan.saved_per_s)


def test_nothing_is_kept_for_nobody():
    _, latency, between = drawn(2, 5, 3, 0)
    plan = cooperative_plan(np.zeros((2, 5)), latency, between, np.array([3, 3]))
    assert not plan.contents.any()
    assert plan.saved_per_s == plan.bound_per_s == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rates": np.ones((2, 4))}, "rates: found shape (2, 4); allowed: (2, 5)"),
        ({"rates": -np.ones((2, 5))}, "rates: found numbers that are negative"),
        (
            {"latency_s": np.full((2, 5, 3), np.inf)},
            "latency_s: found numbers that are negative or not finite",
        ),
        ({"latency_s": np.ones((2, 5))}, "latency_s: found shape (2, 5)"),
        ({"between_s": np.full((2, 2), np.nan)}, "between_s: found numbers that are negative or NaN"),
        ({"capacity": np.array([1, -1])}, "capacity: found [1, -1]"),
        ({"capacity": np.array([1.5, 1])}, "capacity: found [1.5, 1.0]"),
        ({"kept": np.zeros((2, 5), bool)}, "kept: found shape (2, 5); allowed: (2, 5, 3)"),
    ],
)
def test_mistakes(change, words):
    rates, latency, between = drawn(2, 5, 3, 0)
    given = {"rates": rates, "latency_s": latency, "between_s": between, "capacity": np.array([3, 3])}
    with pytest.raises(UserError) as told:
        cooperative_plan(**given | change)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_too_many_edges_that_help_each_other():
    rates, latency, between = drawn(7, 2, 2, 0)
    with pytest.raises(UserError, match="7 edges that help each other; allowed: at most 6"):
        cooperative_plan(rates, latency + 1.0, between, np.ones(7, int))
