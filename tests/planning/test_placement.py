"""Supports, durability floors, oblivious placements and starting points, against sorting and bisection row by row."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.planning import Jlcm, placement, starts
from ecjax.planning.jlcm import balanced, surrogate_load
from ecjax.planning.problem import node_work, prices
from ecjax.programs import program

CASE = problems.mixed()
PROBLEM = CASE.problem()
EVERY = np.ones((problems.FILES, problems.NODES), bool)

with_floor = program(placement.with_floor)
proportional = program(placement.proportional)
random_nodes = program(placement.random_nodes)


def water_filling(rates, k, stored):
    """min(1, c mu_j) over the stored chunks, with the c for which they sum to k, by bisection."""
    low, high = 0.0, 2 * k / rates[stored].min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * rates[stored]).sum() < k else (low, middle)
    return np.where(stored, np.minimum(1, high * rates), 0)


def test_ranks_count_the_smaller_ones_and_break_ties_by_order():
    values = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 5.0], [1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(placement.ranks(jnp.asarray(values)), [[2, 0, 1], [0, 1, 2], [1, 0, 2]])


def test_support_leaves_out_the_tail_of_a_descent():
    probabilities = jnp.asarray([[1.0, 0.9, 0.1 - 5e-5, 5e-5, 0.0]])
    np.testing.assert_array_equal(placement.support(probabilities), [[True, True, True, False, False]])


@given(st.integers(0, 2**32 - 1))
def test_floor_adds_the_cheapest_cold_chunks_and_no_more(seed):
    random = np.random.default_rng(seed)
    hot = np.zeros(EVERY.shape, bool)
    floor = np.zeros(problems.FILES)
    for i, k in enumerate(CASE.k.astype(int)):
        hot[i, random.permutation(problems.NODES)[: random.integers(k, problems.NODES + 1)]] = True
        floor[i] = random.integers(k, problems.NODES + 1)
    # few different prices: ties are frequent
    nodes = replace(
        PROBLEM.nodes,
        cost_per_chunk=jnp.asarray(random.integers(0, 3, problems.NODES).astype(float)),
        cost_per_byte=jnp.zeros(problems.NODES),
    )
    problem = replace(PROBLEM, floor=jnp.asarray(floor), nodes=nodes)
    stored = np.asarray(with_floor(problem, jnp.asarray(hot)))
    price = np.asarray(prices(problem))
    for i in range(problems.FILES):
        cold = [j for j in range(problems.NODES) if not hot[i, j]]
        cold.sort(key=lambda j, row=price[i]: (row[j], j))
        missing = max(0, int(floor[i]) - hot[i].sum())
        assert set(np.flatnonzero(stored[i])) == set(np.flatnonzero(hot[i])) | set(cold[:missing])


def test_floor_of_a_group_is_paid_by_all_its_files():
    """Two files of a group with different prices per node: the sum decides where the cold chunk goes."""
    case = problems.grouped()
    problem = case.problem()
    np.testing.assert_allclose(problem.price_chunks[:2], [4, 3])
    size = (case.file("bytes") / case.k)[case.files["group"].to_numpy() == "a"].sum()
    np.testing.assert_allclose(problem.price_bytes[0], size, rtol=1e-12)
    np.testing.assert_allclose(
        prices(problem)[0],
        4 * case.node("cost_per_chunk_dollars") + size * case.node("cost_per_byte_dollars"),
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", ["mixed", "affine", "idle", "grouped"])
def test_proportional_is_water_filling_in_the_service_rates(name):
    case = problems.ALL[name]()
    problem = case.problem()
    stored = problems.random_plan(case, problem.rows, seed=6)[1] > 0
    found = np.asarray(proportional(problem, jnp.asarray(stored)))
    mean = problems.service(case)[0]
    rate = case.file("rate_per_s")
    owner = problems.of_files(case, np.arange(problem.rows))
    k = problems.of_rows(case, problem.rows, case.k)
    for row in range(problem.rows):
        mine = owner == row
        weights = rate[mine] if rate[mine].sum() > 0 else np.ones(mine.sum())
        service = weights @ mean[mine] / weights.sum()  # of a chunk that is read
        np.testing.assert_allclose(found[row], water_filling(1 / service, k[row], stored[row]), atol=1e-10)


def test_even_is_k_over_n():
    stored = np.array(problems.random_plan(CASE, problems.FILES, seed=8)[1]) > 0
    found = np.asarray(placement.even(PROBLEM, jnp.asarray(stored)))
    np.testing.assert_allclose(found, np.where(stored, (CASE.k / stored.sum(axis=1))[:, None], 0), rtol=1e-15)


def test_random_nodes_are_exactly_as_many_as_asked_and_spread_alike():
    lengths = jnp.asarray(np.resize(np.arange(problems.NODES + 1, dtype=np.int32), 7000))
    drawn = np.asarray(random_nodes(PROBLEM, jax.random.key(3), lengths))
    np.testing.assert_array_equal(drawn.sum(axis=1), lengths)
    for length in range(1, problems.NODES):
        counts = drawn[np.asarray(lengths) == length].sum(axis=0)
        share = length / problems.NODES
        deviation = np.sqrt(1000 * share * (1 - share))
        assert np.all(np.abs(counts - 1000 * share) < 5 * deviation)
    again = np.asarray(random_nodes(PROBLEM, jax.random.key(3), lengths))
    np.testing.assert_array_equal(drawn, again)


@pytest.mark.parametrize("start, base", [("uniform", "even"), ("proportional", "proportional")])
def test_starts_are_feasible_near_their_base_and_tell_alike_nodes_apart(start, base):
    found = np.asarray(getattr(starts, start)(PROBLEM, jax.random.key(0)))
    np.testing.assert_allclose(found.sum(axis=1), CASE.k, atol=1e-12)
    assert np.all((found >= 0) & (found <= 1))
    near = np.asarray(getattr(placement, base)(PROBLEM, jnp.asarray(EVERY)))
    assert np.abs(found - near).max() < 2 * starts.PERTURBATION
    assert np.all(np.ptp(found[near.max(axis=1) < 0.9], axis=1) > 0)
    other = np.asarray(getattr(starts, start)(PROBLEM, jax.random.key(1)))
    assert np.abs(found - other).max() > 1e-3


MASK = np.ones(EVERY.shape, bool)
MASK[np.arange(problems.FILES), np.arange(problems.FILES) % problems.NODES] = False
MASK[3] = np.arange(problems.NODES) < CASE.k[3]  # as many nodes as chunks
MASKED = replace(PROBLEM, allowed=jnp.asarray(MASK))


@pytest.mark.parametrize("start", ["uniform", "proportional"])
def test_starts_keep_to_the_allowed_nodes(start):
    found = np.asarray(getattr(starts, start)(MASKED, jax.random.key(0)))
    np.testing.assert_allclose(found.sum(axis=1), CASE.k, atol=1e-12)
    assert np.all((found >= 0) & (found <= 1)) and not np.any(found[~MASK])
    np.testing.assert_array_equal(found[3], MASK[3])
    assert np.all(found[MASK] > 0)


def test_given_start_is_projected_on_the_allowed_nodes():
    plan = problems.random_plan(CASE, problems.FILES, seed=2)[0]
    found = np.asarray(starts.nearest(MASKED, jnp.asarray(plan)))
    np.testing.assert_allclose(found.sum(axis=1), CASE.k, atol=1e-12)
    assert not np.any(found[~MASK])
    fits = ~np.any(plan[:, :] * ~MASK, axis=1)
    np.testing.assert_allclose(found[fits], plan[fits], atol=1e-12)


def test_cold_chunks_go_to_allowed_nodes():
    hot = np.argsort(np.argsort(~MASK, axis=1, kind="stable"), axis=1) < CASE.k[:, None]
    floor = np.minimum(CASE.k + 2, MASK.sum(axis=1))
    problem = replace(MASKED, floor=jnp.asarray(floor))
    found = np.asarray(with_floor(problem, jnp.asarray(hot)))
    price = np.asarray(prices(PROBLEM))
    for row in range(problems.FILES):
        cold = [j for j in np.argsort(price[row], kind="stable") if MASK[row, j] and not hot[row, j]]
        expected = {*np.flatnonzero(hot[row]), *cold[: int(floor[row] - CASE.k[row])]}
        assert set(np.flatnonzero(found[row])) == expected


def test_start_with_k_equal_to_the_nodes_reads_all():
    problem = problems.idle().problem()
    found = np.asarray(starts.uniform(problem, jax.random.key(0)))
    every = np.asarray(problem.k) == problems.NODES
    assert every.any() and np.all(found[every] == 1)


def test_balanced_start_makes_an_overloaded_system_stable():
    """Nodes of very different speed: an even spread overloads the slow ones, the fast ones have room for all."""
    nodes = problems.moment_nodes()
    for power, name in enumerate(("service_mean_s", "service_second_s2", "service_third_s3"), start=1):
        nodes[name] *= np.array([1, 1, 1, 1, 1, 6]) ** power
    files = problems.mixed_files(k=(2,))
    case = problems.Case(nodes, files).at_load(1.5)
    problem = case.problem()
    start = jnp.asarray(case.even)
    loads = jax.jit(lambda problem, p: node_work(problem, p, jnp.ones_like(p))[0])
    assert np.max(loads(problem, start)) > 1
    found = jax.jit(balanced, static_argnums=2)(problem, start, Jlcm())
    assert np.max(loads(problem, found)) < 0.9
    np.testing.assert_allclose(np.asarray(found).sum(axis=1), case.k, atol=1e-12)
    np.testing.assert_allclose(surrogate_load(problem, found, Jlcm()), loads(problem, found), rtol=1e-12)
