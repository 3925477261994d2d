"""Plans of many caches on a device against the exact knapsack of each."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.caching import exact_batched
from ecjax.caching.knapsack import exact_full, plan
from ecjax.errors import UserError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
CACHES, ITEMS, MOST = 5, 12, 4  # one shape: compiled once per largest capacity


def drawn(seed, kind):
    random = np.random.default_rng(seed)
    shape = (CACHES, ITEMS, MOST)
    if kind == "ties":
        steps = random.integers(0, 3, shape)
    elif kind == "sparse":
        steps = random.integers(0, 1000, shape) * (random.random(shape) < 0.3)
    else:
        steps = random.random(shape)
    return np.concatenate([np.zeros((CACHES, ITEMS, 1)), np.cumsum(steps, axis=2)], axis=2)


def values_of(tau, chunks):
    return np.take_along_axis(tau, chunks[..., None], axis=-1)[..., 0].sum(axis=-1)


def assert_as_good_as_alone(tau, capacity, chunks):
    for cache, row in enumerate(tau):
        for room, found in zip(np.atleast_1d(capacity[cache]), np.atleast_2d(chunks[cache]), strict=True):
            alone = plan(row, room)
            np.testing.assert_allclose(values_of(row, found), alone.value, rtol=1e-14)
            assert found.sum() == alone.chunks.sum() == exact_full(row, room).sum() <= room


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["ties", "sparse", "floats"]))
def test_every_cache_is_planned_as_alone(seed, kind):
    tau, random = drawn(seed, kind), np.random.default_rng(seed)
    capacity = random.permutation([0, 1, random.integers(2, 40), ITEMS * MOST, 10**6])
    chunks = exact_batched(tau, capacity)
    assert chunks.shape == (CACHES, ITEMS) and chunks.dtype == np.int64
    assert_as_good_as_alone(tau, capacity, chunks)


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.sampled_from(["ties", "floats"]))
def test_one_scan_plans_every_capacity(seed, kind):
    tau = drawn(seed, kind)
    capacity = np.tile(np.arange(ITEMS * MOST + 1), (CACHES, 1))
    chunks = exact_batched(tau, capacity)
    assert chunks.shape == (CACHES, ITEMS * MOST + 1, ITEMS)
    assert_as_good_as_alone(tau, capacity, chunks)
    assert (np.diff(values_of(tau[:, None], chunks), axis=1) >= -1e-13).all()


@pytest.mark.parametrize("memory_bytes", [1.0, 4000.0])
def test_batches_in_little_memory(memory_bytes):
    tau, capacity = drawn(3, "sparse"), np.array([48, 7, 20, 33, 5])
    np.testing.assert_array_equal(
        exact_batched(tau, capacity, memory_bytes=memory_bytes), exact_batched(tau, capacity)
    )


def test_integers_in_single_precision():
    tau, capacity = drawn(4, "ties"), np.array([48, 7, 20, 33, 5])
    np.testing.assert_array_equal(exact_batched(tau, capacity, "float32"), exact_batched(tau, capacity))


@pytest.mark.parametrize("exponent", [200, -200, 1000, -1000])
def test_single_precision_of_values_beyond_its_range(exponent):
    """Small whole numbers times a power of two: what is best is what it is for the numbers themselves."""
    tau, capacity = drawn(4, "ties"), np.array([48, 7, 20, 33, 5])
    chunks = exact_batched(np.ldexp(tau, exponent), capacity, "float32")
    assert_as_good_as_alone(tau, capacity, chunks)


def test_tiny_vectors_of_one_shape():
    by_shape = {}
    for case in VECTORS["tiny"]:
        by_shape.setdefault(np.shape(case["tau"]), []).append(case)
    cases = max(by_shape.values(), key=len)
    assert len(cases) > 1
    tau = np.array([case["tau"] for case in cases])
    chunks = exact_batched(tau, [case["C"] for case in cases])
    assert values_of(tau, chunks).tolist() == [case["optimum"] for case in cases]


def test_nothing_to_plan():
    assert exact_batched(np.zeros((0, 3, 2)), np.zeros(0, int)).shape == (0, 3)
    assert exact_batched(np.zeros((2, 0, 2)), [1, 2]).shape == (2, 0)
    assert exact_batched(np.zeros((2, 3, 4)), np.zeros((2, 0), int)).shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("tau", "capacity", "message"),
    [
        (np.zeros((2, 3)), [1, 2], r"tau: found shape \(2, 3\); allowed: \(B, M, K \+ 1\)"),
        ([[[0, 1]], [[0]]], [1, 2], "tau: found something that is not numbers"),
        (np.zeros((2, 3, 2)), [1, 2, 3], r"capacity: found shape \(3,\); allowed: \(2,\) or \(2, R\)"),
        (np.zeros((2, 3, 2)), 1, r"capacity: found shape \(\)"),
        (np.zeros((2, 3, 2)), [1, 2.5], "cache 0: capacity: found 1.0; allowed: a whole number"),
        (np.zeros((2, 3, 2)), [[1], [-2]], "cache 1: capacity: found -2"),
        ([[[0, 1]], [[0, -1]]], [1, 1], "cache 1: tau: found -1 for 1 chunks of item 0, less than"),
    ],
)
def test_mistakes_end_in_one_line(tau, capacity, message):
    with pytest.raises(UserError, match=message) as caught:
        exact_batched(tau, capacity)
    assert "\n" not in str(caught.value)


def test_another_type_is_refused():
    with pytest.raises(UserError, match="dtype: found 'float16'; allowed: float64, float32"):
        exact_batched(np.zeros((1, 1, 2)), [1], "float16")
