"""Random problems have the load that they state, and change as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ecjax.studies.bench.setups import read_kinds
from ecjax.studies.bench.setups.random_problem import (
    CHUNK_BYTES,
    changed,
    least_largest_load,
    random_problem,
    with_sizes,
)


def by_program(mean, k, traffic) -> float:
    """The least largest load by a linear program over all probabilities."""
    count, m = len(k), len(mean)
    cost = np.append(np.zeros(count * m), 1.0)
    sums = np.hstack([np.kron(np.eye(count), np.ones((1, m))), np.zeros((count, 1))])
    loads = np.hstack([np.kron(traffic, np.diag(mean)).reshape(m, count * m), -np.ones((m, 1))])
    bounds = [(0, 1)] * (count * m) + [(0, None)]
    found = linprog(cost, loads, np.zeros(m), sums, k, bounds)
    assert found.status == 0
    return found.fun


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 6))
def test_least_largest_load_is_that_of_a_linear_program(seed, count, m):
    rng = np.random.default_rng(seed)
    # few files on nodes that differ much: the limit of one chunk a node matters
    mean, traffic = 10 ** rng.uniform(-1.5, 0, m), rng.uniform(0.1, 2, count)
    k = rng.integers(1, m + 1, count).astype(float)
    np.testing.assert_allclose(least_largest_load(mean, k, traffic), by_program(mean, k, traffic), rtol=1e-8)


def test_least_largest_load_by_hand():
    # two chunks of every read on a fast and two slow nodes: the fast one cannot take both
    assert least_largest_load(np.array([1e-3, 1.0, 1.0]), np.array([2.0]), np.array([0.6])) == pytest.approx(
        0.3
    )
    # alike nodes share
    assert least_largest_load(np.full(4, 0.5), np.array([2.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx(
        0.5
    )


@pytest.mark.parametrize("mixed", [False, True])
def test_a_random_problem_has_its_load(mixed):
    problem = random_problem(30, 8, 0.7, mixed, seed=3)
    mean, size = np.asarray(problem.nodes.service[0, 1]), np.asarray(problem.files.chunk_bytes)
    traffic = np.asarray(problem.files.rate) * size
    assert by_program(mean, np.asarray(problem.k), traffic) == pytest.approx(0.7)
    assert len(np.unique(size)) == (30 if mixed else 1)
    assert size.min() >= CHUNK_BYTES / 2 and size.max() <= CHUNK_BYTES
    assert 1 < mean.max() / mean.min() <= 10
    costs = np.asarray(problem.nodes.cost_per_chunk)
    assert costs.min() >= 1 and costs.max() <= 5


def test_service_moments_are_those_of_a_gamma_law():
    service = np.asarray(random_problem(5, 8, 0.5, False, seed=0).nodes.service)
    first, second, third = service[0, 1], service[1, 2], service[2, 3]
    shape = first**2 / (second - first**2)
    scale = first / shape
    np.testing.assert_allclose(third, shape * (shape + 1) * (shape + 2) * scale**3)
    used = np.zeros((3, 4), bool)
    used[[0, 1, 2], [1, 2, 3]] = True
    assert np.all(service[~used] == 0)


def test_seeds():
    one, same, other = (random_problem(20, 8, 0.6, True, seed).files.rate for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_some_files_change_in_rate_and_nothing_else():
    before = random_problem(1000, 8, 0.6, True, seed=0)
    after = changed(before, part=0.01, factor=2.0, seed=1)
    ratio = np.asarray(after.files.rate) / np.asarray(before.files.rate)
    assert np.sum(ratio != 1) == 10
    assert ratio.min() >= 0.5 and ratio.max() <= 2
    np.testing.assert_array_equal(after.files.chunk_bytes, before.files.chunk_bytes)
    np.testing.assert_allclose(np.sum(after.share), 1)
    np.testing.assert_allclose(after.reads[1], after.files.rate * after.files.chunk_bytes)


@pytest.mark.parametrize(("sizes", "different"), [(5, 5), (30, 30), (99, 30)])
def test_sizes_of_logs_keep_the_load(sizes, different):
    problem = with_sizes(random_problem(30, 8, 0.4, False, seed=3), sizes, (2, 4), 0.7, seed=1)
    mean, size = np.asarray(problem.nodes.service[0, 1]), np.asarray(problem.files.chunk_bytes)
    k = np.asarray(problem.k)
    assert by_program(mean, k, np.asarray(problem.files.rate) * size) == pytest.approx(0.7)
    assert len(np.unique(size)) <= different and (sizes == 5 or len(np.unique(size)) == different)
    assert set(k) == {2, 4}
    np.testing.assert_array_equal(size, problem.files.stored_chunk_bytes)


def test_every_file_has_small_reads_of_one_of_its_chunks():
    model = read_kinds.random_model(20, 12, 0.5, seed=2)
    small = model.small
    assert np.all(model.stored.sum(axis=1) == read_kinds.K + read_kinds.EXTRA)
    assert np.all(model.stored[small.row, small.node])
    assert sorted(small.rate) == pytest.approx(sorted(np.asarray(model.problem.files.rate)))
    for node, others, stored in zip(small.node, small.others, model.stored, strict=True):
        assert {node, *others} == set(np.flatnonzero(stored))
