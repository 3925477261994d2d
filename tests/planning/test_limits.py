"""Limits per site and node: the repair of a placement against loops over rows, and what ``violations`` counts."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.planning import limits, placement
from ecjax.planning.problem import prices
from ecjax.programs import program

CASE = problems.mixed()
PROBLEM = CASE.problem()
R, M = problems.FILES, problems.NODES
SITE = np.array([0, 0, 1, 1, 2, 2], np.int32)

within_limits = program(limits.within_limits)
first_of_sites = program(placement.first_of_sites)
random_nodes = program(placement.random_nodes)


def drawn(seed: int, per_site: int | None, capacity=None):
    """A problem with masks that leave room, random probabilities on random supports, and what is stored."""
    random = np.random.default_rng(seed)
    allowed = np.ones((R, M), bool)
    allowed[np.arange(R), random.integers(0, M, R)] = random.random(R) < 0.5
    floor = np.minimum(np.asarray(PROBLEM.k) + random.integers(0, 2, R), 5)
    if per_site is not None:
        room = np.add.reduceat(allowed, [0, 2, 4], axis=1)
        floor = np.minimum(floor, np.minimum(room, per_site).sum(axis=1))
    problem = replace(
        PROBLEM,
        floor=jnp.asarray(floor),
        allowed=jnp.asarray(allowed),
        site=jnp.asarray(SITE),
        per_site=per_site,
        capacity=None if capacity is None else jnp.asarray(capacity),
    )
    order = np.where(allowed, random.random((R, M)), 2)
    ranks = np.argsort(np.argsort(order, axis=1), axis=1)
    hot = (ranks < np.asarray(PROBLEM.k)[:, None] + random.integers(0, 2, R)[:, None]) & allowed
    stored = hot | ((ranks < floor[:, None]) & allowed)
    probabilities = np.where(hot, random.uniform(0.01, 1, (R, M)), 0)
    return problem, probabilities, stored


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_first_of_sites_counts_those_before_on_the_same_site(seed, most):
    order = np.random.default_rng(seed).integers(0, 4, (R, M)).astype(float)  # ties are frequent
    problem = replace(PROBLEM, site=jnp.asarray(SITE), per_site=most)
    found = np.asarray(first_of_sites(problem, jnp.asarray(order)))
    for row in range(R):
        for j in range(M):
            before = [i for i in range(M) if SITE[i] == SITE[j] and (order[row, i], i) < (order[row, j], j)]
            assert found[row, j] == (len(before) < most)


@given(st.integers(0, 2**32 - 1))
def test_of_a_crowded_site_the_most_read_chunks_stay_and_the_cheapest_elsewhere_fill_the_floor(seed):
    problem, probabilities, stored = drawn(seed, per_site=1)
    found = np.asarray(within_limits(problem, jnp.asarray(probabilities), jnp.asarray(stored)))
    price, floor = np.asarray(prices(problem)), np.asarray(problem.floor)
    for row in range(R):
        taken: dict[int, int] = {}
        for j in sorted(
            np.flatnonzero(probabilities[row]), key=lambda j, row=row: (-probabilities[row, j], j)
        ):
            taken.setdefault(int(SITE[j]), int(j))
        assert set(taken.values()) <= set(np.flatnonzero(found[row]))
        rest = sorted(
            np.flatnonzero(np.asarray(problem.allowed)[row]),
            key=lambda j, row=row: (not stored[row, j], 0 if stored[row, j] else price[row, j], j),
        )
        for j in rest:
            if len(taken) < floor[row]:
                taken.setdefault(int(SITE[j]), int(j))
        assert set(taken.values()) == set(np.flatnonzero(found[row]))


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 2]))
def test_overfull_nodes_lose_chunks_to_the_cheapest_with_room(seed, per_site):
    """Row after row, the least read first, against a loop; every row keeps its floor, mask and sites."""
    random = np.random.default_rng(seed)
    capacity = random.integers(3, 12, M).astype(float)
    problem, probabilities, stored = drawn(seed, per_site, capacity)
    found = np.asarray(within_limits(problem, jnp.asarray(probabilities), jnp.asarray(stored)))
    expected = stored
    if per_site is not None:
        only = replace(problem, capacity=None)
        expected = np.asarray(within_limits(only, jnp.asarray(probabilities), jnp.asarray(stored)))
    expected = expected.copy()
    price, floor, allowed = (np.asarray(a) for a in (prices(problem), problem.floor, problem.allowed))
    for row in np.argsort(np.asarray(problem.row_share), kind="stable"):
        held = expected.sum(axis=0)
        if np.all(held <= capacity):
            break
        kept = [int(j) for j in np.flatnonzero(expected[row]) if held[j] <= capacity[j]]
        free = allowed[row] & ~expected[row] & (held + 1 <= capacity)
        for j in sorted(np.flatnonzero(free), key=lambda j, row=row: (price[row, j], j)):
            together = sum(SITE[i] == SITE[j] for i in kept)
            if len(kept) < floor[row] and (per_site is None or together < per_site):
                kept.append(int(j))
        if len(kept) >= floor[row]:
            expected[row] = False
            expected[row, kept] = True
    np.testing.assert_array_equal(found, expected)
    left = limits.violations(problem, found)
    assert left["floor"].times == left["allowed"].times == 0
    assert per_site is None or left["per_site"].times == 0
    assert left["capacity"].times <= limits.violations(problem, stored)["capacity"].times


def test_replacements_are_cheap_to_keep_and_to_read():
    """Two chunks on one site: the less read one moves, past the cheapest node, to the one that is cheap to read."""
    price = np.asarray(prices(PROBLEM))
    reading = np.zeros((R, M))
    reading[0, 2:5] = price.max() * np.array([2, 1, 4]) + price[0, 2:5].max() - price[0, 2:5]
    reading[0, 5] = 9 * price.max()
    problem = replace(
        PROBLEM,
        floor=jnp.full(R, 2.0),
        reading=jnp.asarray(reading),
        site=jnp.asarray(SITE),
        per_site=1,
    )
    probabilities = np.zeros((R, M))
    probabilities[:, :2] = [1.0, 0.9]
    arguments = jnp.asarray(probabilities), jnp.asarray(probabilities > 0)
    found = np.asarray(within_limits(problem, *arguments))
    assert np.flatnonzero(found[0]).tolist() == [0, 3]
    for row in range(1, R):
        assert np.flatnonzero(found[row]).tolist() == [0, 2 + int(np.argmin(price[row, 2:]))]
    full = replace(problem, per_site=None, capacity=jnp.asarray([99.0, R - 1, 99, 99, 99, 99]))
    least = int(np.argmin(np.asarray(problem.row_share)))
    moved = np.asarray(within_limits(replace(full, reading=jnp.roll(problem.reading, least, 0)), *arguments))
    assert np.flatnonzero(moved[least]).tolist() == [0, 3]


def test_a_placement_within_its_limits_stays():
    problem, probabilities, stored = drawn(3, None, np.full(M, 12.0))
    found = within_limits(problem, jnp.asarray(probabilities), jnp.asarray(stored))
    np.testing.assert_array_equal(found, stored)


def test_a_group_takes_the_room_of_all_its_files():
    """Two groups of four and three files: the node with room for six keeps the one that is read more."""
    case = problems.grouped()
    problem = case.problem()
    assert np.asarray(problem.price_chunks)[:2].tolist() == [4, 3]
    stored = np.zeros((problem.rows, M), bool)
    stored[0, [0, 1]] = stored[1, [0, 2, 3]] = True
    capacity = np.array([6.0, 20, 20, 20, 3, 20])
    problem = replace(
        problem,
        capacity=jnp.asarray(capacity),
        floor=jnp.asarray(stored.sum(axis=1).astype(float)),
    )
    loser = int(np.argmin(np.asarray(problem.row_share)[:2]))
    found = np.asarray(within_limits(problem, jnp.zeros(stored.shape), jnp.asarray(stored)))
    assert not found[loser, 0] and found[1 - loser, 0]
    np.testing.assert_array_equal(found.sum(axis=1), stored.sum(axis=1))
    assert limits.violations(problem, found)["capacity"] == (0, -1)
    assert limits.violations(problem, stored)["capacity"] == (1, 0)


def test_where_nothing_has_room_a_row_stays_and_the_violation_is_told():
    problem = replace(PROBLEM, capacity=jnp.full(M, 2.0), floor=PROBLEM.k)
    stored = np.zeros((R, M), bool)
    for row, k in enumerate(CASE.k.astype(int)):
        stored[row, :k] = True
    found = np.asarray(within_limits(problem, jnp.asarray(stored, float), jnp.asarray(stored)))
    np.testing.assert_array_equal(found.sum(axis=1), CASE.k)
    left = limits.violations(problem, found)["capacity"]
    held = found.sum(axis=0)
    assert left.times == np.sum(held > 2) > 0 and left.first == np.flatnonzero(held > 2)[0]


def test_violations_count_by_constraint():
    allowed = np.ones((R, M), bool)
    allowed[5, 4] = allowed[7, :2] = False
    problem = replace(
        PROBLEM,
        floor=jnp.asarray(np.full(R, 3.0)),
        allowed=jnp.asarray(allowed),
        site=jnp.asarray(SITE),
        per_site=1,
        capacity=jnp.asarray([100.0, 100, 100, 100, 11, 11]),
    )
    stored = np.zeros((R, M), bool)
    stored[:, [0, 2, 4]] = True
    assert limits.violations(problem, stored) == {
        "floor": (0, -1),
        "allowed": (2, 5),
        "per_site": (0, -1),
        "capacity": (1, 4),
    }
    stored[2, 4] = stored[3, 2] = False
    stored[[1, 9], 1] = True
    assert limits.violations(problem, stored) == {
        "floor": (2, 2),
        "allowed": (2, 5),
        "per_site": (2, 1),
        "capacity": (0, -1),
    }
    assert limits.violations(PROBLEM, stored).keys() == {"floor"}


@pytest.mark.parametrize("per_site", [None, 1])
def test_random_nodes_are_allowed_ones_and_not_too_many_on_a_site(per_site):
    rows = 600
    allowed = np.ones((rows, M), bool)
    allowed[:, 1] = False
    allowed[::2, 5] = False
    problem = replace(PROBLEM, allowed=jnp.asarray(allowed), site=jnp.asarray(SITE), per_site=per_site)
    lengths = jnp.asarray(np.resize(np.arange(4, dtype=np.int32), rows))
    found = np.asarray(random_nodes(problem, jax.random.key(0), lengths))
    np.testing.assert_array_equal(found.sum(axis=1), lengths)
    assert not np.any(found & ~allowed)
    if per_site is not None:
        assert np.add.reduceat(found, [0, 2, 4], axis=1).max() == 1
    one = found[(np.asarray(lengths) == 1) & allowed[:, 5]]
    assert np.all(np.abs(one.sum(axis=0)[[0, 2, 3, 4, 5]] - len(one) / 5) < 5 * np.sqrt(len(one) * 0.16))
