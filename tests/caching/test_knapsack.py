"""The exact knapsack against its whole dynamic programme, brute force, partitions and known optima."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import ecjax.caching
from ecjax.caching import sampling
from ecjax.caching.core_dp import core_dp
from ecjax.caching.full_dp import full_dp
from ecjax.caching.knapsack import exact, exact_full, plan
from ecjax.errors import UserError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def value_of(tau, chunks):
    return np.asarray(tau)[np.arange(len(tau)), chunks].sum()


def by_latencies(r, latency):
    """Equation 1 of latencies in descending order."""
    return np.concatenate(
        [
            np.zeros((len(r), 1), int),
            r[:, None] * (latency[:, :1] - latency[:, 1:]),
            r[:, None] * latency[:, :1],
        ],
        axis=1,
    )


def medium_tau(case):
    """The rule written in the vector."""
    m, k = np.arange(case["M"])[:, None], np.arange(case["K"])
    latency = np.array([520, 410, 690, 980, 140, 210])[(7 * m + 5 * k + (m * k) % 4) % 6]
    return by_latencies(1000000 // (m[:, 0] + 1), -np.sort(-latency, axis=1))


def drawn(seed, kind, items, most):
    """Increments of a kind: with ties, sparse, floats, items all alike, of nearly one slope, of equation 1."""
    random = np.random.default_rng(seed)
    if kind == "ties":
        steps = random.integers(0, 4, (items, most))
    elif kind == "sparse":
        steps = random.integers(0, 1000, (items, most)) * (random.random((items, most)) < 0.3)
    elif kind == "floats":
        steps = random.random((items, most))
    elif kind == "alike":
        steps = np.tile(random.integers(0, 5, most) * (random.random(most) < 0.5), (items, 1))
    elif kind == "near":
        steps, size = np.zeros((items, most), int), random.integers(1, most + 1, items)
        steps[np.arange(items), size - 1] = 1000 * size + random.integers(-3, 4, items)
    else:
        latency = random.choice([520, 410, 690, 980, 140, 210], (items, most))
        return by_latencies(random.integers(0, 9, items), -np.sort(-latency, axis=1))
    return np.concatenate([np.zeros((items, 1), steps.dtype), np.cumsum(steps, axis=1)], axis=1)


KINDS = st.sampled_from(["ties", "sparse", "floats", "alike", "near", "latencies"])


def partitions(total, most, parts):
    """Partitions of ``total`` into at most ``parts`` parts of at most ``most``."""
    if total == 0:
        yield ()
    elif parts > 0:
        for part in range(min(most, total), 0, -1):
            for rest in partitions(total - part, part, parts - 1):
                yield (part, *rest)


def best_of_partitions(tau, capacity):
    """The paper's optimum: items are assigned to the parts of every partition of C."""
    items, most = len(tau), tau.shape[1] - 1
    best = 0
    for parts in partitions(min(capacity, items * most), most, items):
        slots = tau[:, [*parts, *[0] * (items - len(parts))]]
        best = max(best, slots[linear_sum_assignment(slots, maximize=True)].sum())
    return best


@pytest.mark.parametrize("case", VECTORS["tiny"], ids=lambda case: case["name"])
@pytest.mark.parametrize("solve", [exact, exact_full])
def test_tiny_vectors(case, solve):
    chunks = solve(case["tau"], case["C"])
    assert value_of(case["tau"], chunks) == case["optimum"]
    assert chunks.sum() <= case["C"]
    assert best_of_partitions(np.array(case["tau"]), case["C"]) == case["optimum"]


@pytest.mark.parametrize("case", VECTORS["medium"], ids=lambda case: f"M={case['M']}")
def test_medium_vectors(case):
    tau = medium_tau(case)
    assert tau[3].tolist() == case["tau_row_3"]
    found = plan(tau, case["C"])
    assert (
        found.value
        == value_of(tau, found.chunks)
        == value_of(tau, exact_full(tau, case["C"]))
        == case["optimum"]
    )
    assert found.chunks.dtype == np.int64 and found.chunks.sum() <= case["C"]
    np.testing.assert_allclose(found.upper_bound, case["lp_bound"], rtol=1e-14)


@pytest.mark.parametrize("case", VECTORS["online_stuck"])
def test_where_replacing_online_gets_stuck(case):
    n, most, items, large = case["n"], case["K"], case["M"], 1000
    tau = np.zeros((items, most + 1), int)
    tau[:n, 1:], tau[:n, most] = large, large + 1
    tau[n, most] = large - 1
    tau[n + 1 :, 1:] = large - 2
    assert value_of(tau, exact(tau, case["C"])) == case["optimum"]


@given(st.integers(0, 10**6), KINDS, st.integers(1, 4), st.integers(1, 4), st.integers(0, 17))
def test_brute_force(seed, kind, items, most, capacity):
    tau = drawn(seed, kind, items, most)
    plans = np.array(list(itertools.product(range(most + 1), repeat=items)))
    plans = plans[plans.sum(axis=1) <= capacity]
    values = tau[np.arange(items), plans].sum(axis=1)
    near = values >= values.max() * (1 - 1e-15)
    for solve in (exact, exact_full):
        chunks = solve(tau, capacity)
        np.testing.assert_allclose(value_of(tau, chunks), values.max(), rtol=1e-15)
        assert chunks.sum() == plans[near].sum(axis=1).min()
    np.testing.assert_allclose(best_of_partitions(tau, capacity), values.max(), rtol=1e-14)


@given(st.integers(0, 10**6), KINDS, st.integers(1, 60), st.integers(1, 9), st.floats(0, 1.1))
def test_the_core_is_as_good_as_the_whole(seed, kind, items, most, part):
    tau = drawn(seed, kind, items, most)
    capacity = int(part * items * most)
    found, whole = plan(tau, capacity), exact_full(tau, capacity)
    assert found.chunks.sum() <= capacity
    if kind == "floats":
        np.testing.assert_allclose(found.value, value_of(tau, whole), rtol=1e-14)
    else:  # all sums are exact
        assert found.value == value_of(tau, found.chunks) == value_of(tau, whole)
        assert found.chunks.sum() == whole.sum()
    assert found.upper_bound >= found.value


@pytest.mark.parametrize("most", [5, 12])
@pytest.mark.parametrize("order", [1, -1])
def test_many_items_change_to_fill_one_chunk(most, order):
    """n items of K chunks fit but for one chunk; K - 2 of them have to make room for K - 1 items of K - 1 chunks."""
    n, large, small = 30, np.zeros(most + 1, int), np.zeros(most + 1, int)
    large[most], small[most - 1 :] = 1000 * most + 1, 1000 * (most - 1)
    tau = np.array([large] * n + [small] * n)[::order]
    for solve in (exact, exact_full):
        assert value_of(tau, solve(tau, n * most + 1)) == 1000 * (n * most + 1) + n - (most - 2)


def test_many_options_are_left():
    for most in (5, 12):
        tau = drawn(most, "near", 300, most)
        for capacity in range(500, 500 + most):
            assert value_of(tau, exact(tau, capacity)) == value_of(tau, exact_full(tau, capacity))


@given(st.integers(0, 10**6), KINDS, st.integers(1, 30), st.integers(1, 6))
def test_values_rise_with_the_capacity(seed, kind, items, most):
    tau = drawn(seed, kind, items, most)
    values = [plan(tau, capacity).value for capacity in range(items * most + 2)]
    assert (np.diff(values) >= -1e-13 * values[-1]).all()
    np.testing.assert_allclose(values[-1], tau[:, -1].sum(), rtol=1e-14)


@given(st.integers(0, 10**6), KINDS, st.integers(2, 30), st.integers(1, 6), st.integers(0, 60))
def test_the_order_of_items_does_not_matter(seed, kind, items, most, capacity):
    tau = drawn(seed, kind, items, most)
    order = np.random.default_rng(seed).permutation(items)
    np.testing.assert_allclose(plan(tau[order], capacity).value, plan(tau, capacity).value, rtol=1e-14)


def test_items_all_alike_fill_the_capacity_as_far_as_it_gains():
    tau = np.tile([0, 0, 0, 7], (1000, 1))
    found = plan(tau, 302)
    assert (found.value, found.chunks.sum(), found.upper_bound) == (700, 300, pytest.approx(302 * 7 / 3))


def test_nothing_is_kept_without_gain():
    tau = [[0, 5, 5, 5], [0, 0, 0, 0], [0, 0, 3, 3]]
    for solve in (exact, exact_full):
        assert solve(tau, 100).tolist() == [1, 0, 2]
        assert solve(tau, 0).tolist() == [0, 0, 0]


def test_no_items():
    assert exact(np.zeros((0, 7)), 5).shape == exact_full(np.zeros((0, 7)), 5).shape == (0,)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, bool])
def test_other_types_of_numbers(dtype):
    tau = np.array([[0, 0, 1], [0, 1, 1]], dtype)
    assert exact(tau, 2).tolist() == [0, 1] and exact(tau, np.int32(3)).tolist() == [2, 1]


def test_what_is_given_is_left_alone_and_compiled_for_once():
    tau = drawn(1, "floats", 20, 4)
    before, chunks, compiled = tau.copy(), exact(tau, 11), len(core_dp.signatures)
    tau.setflags(write=False)
    np.testing.assert_array_equal(exact(tau, 11), chunks)
    np.testing.assert_array_equal(exact(np.asfortranarray(tau)[::-1], np.uint8(11)), chunks[::-1])
    np.testing.assert_array_equal(tau, before)
    assert len(core_dp.signatures) == compiled


@pytest.mark.parametrize(
    ("tau", "capacity", "message"),
    [
        ([[0, 1], [0, -1]], 1, "tau: found -1 for 1 chunks of item 1, less than"),
        ([[1, 2]], 1, "tau: found 1 for no chunk of item 0; allowed: 0"),
        ([[0, np.nan, 1]], 1, "tau: found nan for item 0; allowed: finite"),
        ([[0, np.inf]], 1, "tau: found inf for item 0"),
        ([0, 1], 1, r"tau: found shape \(2,\); allowed: \(M, K \+ 1\)"),
        ([[0, 1], [0]], 1, "tau: found something that is not a table of numbers"),
        (np.zeros((2, 300)), 1, "tau: found 299 chunks per item; allowed: at most 255"),
        ([[0, 1]], -1, "capacity: found -1; allowed: a whole number of at least 0"),
        ([[0, 1]], 1.5, "capacity: found 1.5; allowed: a whole number of at least 0"),
    ],
)
def test_mistakes_end_in_one_line(tau, capacity, message):
    with pytest.raises(UserError, match=message) as caught:
        exact(tau, capacity)
    assert "\n" not in str(caught.value)


def test_public_names():
    assert ecjax.caching.exact is exact
    assert ecjax.caching.exact_batched.__module__ == "ecjax.caching.batched"
    assert ecjax.caching.samplex is sampling.samplex
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ecjax.caching.nothing  # noqa: B018


def test_importing_the_package_loads_neither_jax_nor_numba():
    code = "import sys, ecjax.caching; sys.exit('jax' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_whole_counts_chunks_from_the_smallest_capacity():
    chunks = np.zeros(2, np.int64)
    assert full_dp(np.array([[0.0, 2.0], [0.0, 2.0]]), 2, chunks) == 4.0 and chunks.tolist() == [1, 1]
