"""Placement by matching, against all permutations and the plain model of service classes."""

from dataclasses import dataclass, replace
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optax.assignment import hungarian_algorithm
from planning.classes.plain_classes import (
    Plain,
    charges,
    class_problem,
    latencies,
    plain_classes,
    stable,
    work,
)
from problems import Case, moment_nodes, of_files, random_plan
from scipy.optimize import linear_sum_assignment

import ecjax.planning.classes.matching as module
import ecjax.planning.classes.matching_kinds as kinds_module
from ecjax.planning.classes.matching import Placed, place
from ecjax.planning.classes.model import ClassModel, class_work, even_weights, kind_reads, other_work, tolls
from ecjax.planning.classes.scheduling import Fixed, Goal
from ecjax.programs import program

NODES, FILES, THETA = 5, 40, 3.0  # three blocks of rows
SITE, PER_SITE = np.array([0, 0, 1, 1, 2]), 1
OF_CLASS = np.arange(FILES) % 2
FREE = jnp.full(2, jnp.inf)
MATCHED = program(jax.vmap(hungarian_algorithm))
OTHER = program(other_work)


@program
def WEIGHTS(model, probabilities, stored):
    return even_weights(model, class_work(model, kind_reads(model, probabilities), other_work(model, stored)))


@dataclass(frozen=True)
class Setting:
    """A plan of a problem, both ways."""

    model: ClassModel
    plain: Plain
    case: Case
    probabilities: np.ndarray  # (R, m)
    stored: np.ndarray  # (R, m) 0 or 1
    weights: np.ndarray  # (K, m)
    z: np.ndarray  # (K,)

    def latencies(self, probabilities, stored) -> np.ndarray:
        """By the plain model, at z."""
        rows = of_files(self.case, np.asarray(probabilities)), of_files(self.case, np.asarray(stored, float))
        return latencies(self.plain, *rows, self.weights, self.z)[0]

    def value(self, goal: Goal, probabilities, stored) -> float:
        """By the plain model, at z."""
        rows = of_files(self.case, np.asarray(probabilities)), of_files(self.case, np.asarray(stored, float))
        coefficient = np.asarray(goal.coefficient)
        latency = self.latencies(probabilities, stored)
        # 0 inf would be nan
        counted = sum(
            c * late for c, late in zip(coefficient, latency, strict=True) if c > 0 or late == np.inf
        )
        return counted + charges(self.plain, *rows, THETA)

    def goal(self, coefficient, limit=FREE, movable=None) -> Goal:
        kept, reading = tolls(self.model, THETA)
        rows = np.ones(len(self.stored), bool) if movable is None else movable
        return Goal(
            jnp.asarray(coefficient, float), jnp.asarray(limit, float), kept, reading, jnp.asarray(rows)
        )

    def place(self, goal: Goal, seed: int = 0) -> Placed:
        stored = jnp.asarray(self.stored > 0)
        fixed = Fixed(stored, OTHER(self.model, stored), jnp.asarray(self.weights))
        return place(
            self.model,
            goal,
            fixed,
            jnp.asarray(self.probabilities),
            jnp.asarray(self.z),
            jax.random.key(seed),
        )

    def after(self, placed: Placed) -> "Setting":
        return replace(
            self, probabilities=np.asarray(placed.probabilities), stored=np.asarray(placed.stored, float)
        )


def files(seed: int, sizes=(1e6, 3e6), k=(2, 2, 3, 3, 2)) -> pd.DataFrame:
    """Both classes have files of all sizes (of chunks); writes."""
    random = np.random.default_rng(seed)
    k = np.resize(k, FILES)
    return pd.DataFrame(
        {
            "file_id": np.arange(FILES),
            "bytes": np.resize(np.repeat(sizes, 2), FILES) * k,
            "k": k,
            "rate_per_s": np.exp(random.normal(0, 0.7, FILES)),
            "write_rate_per_s": 0.05 * np.exp(random.normal(0, 0.7, FILES)),
            "min_extra_chunks": 0,
        }
    )


def setting(
    queue: str, seed: int = 0, group: bool = False, sizes=(1e6, 3e6), k=(2, 2, 3, 3, 2), load: float = 0.4
) -> Setting:
    nodes, own = moment_nodes(seed, NODES), files(seed, sizes, k)
    if group:
        own["k"] = 2
        own["group"] = [f"g{i % 4}" if i < 20 else None for i in range(FILES)]
    case = Case(nodes, own).at_load(load)
    plain = plain_classes(case, OF_CLASS, queue)
    model = class_problem(case, OF_CLASS, queue)
    probabilities, stored = random_plan(case, model.problem.rows, seed)
    return told(case, plain, model, probabilities, stored)


def told(case: Case, plain: Plain, model: ClassModel, probabilities, stored) -> Setting:
    weights = np.asarray(WEIGHTS(model, jnp.asarray(probabilities), jnp.asarray(stored > 0)))
    done = work(plain, of_files(case, probabilities), of_files(case, stored))
    assert stable(plain, done, weights)
    z = latencies(plain, of_files(case, probabilities), of_files(case, stored), weights)[1]
    return Setting(model, plain, case, probabilities, stored, weights, z)


def restricted(given: Setting, seed: int) -> Setting:
    """Nodes that some rows may not use, full nodes, sites; reads that cost something. What there is is allowed."""
    random = np.random.default_rng(seed)
    chunks = np.ones(FILES) @ given.stored
    reading = random.uniform(0, 1, (FILES, NODES))
    problem = replace(
        given.model.problem,
        allowed=jnp.asarray((random.uniform(size=given.stored.shape) < 0.8) | (given.stored > 0)),
        capacity=jnp.asarray(np.maximum(chunks + random.integers(-1, 4, NODES), 1.0)),
        site=jnp.asarray(SITE, jnp.int32),
        reading=jnp.asarray(reading),
        per_site=PER_SITE,
    )
    return replace(
        given, model=replace(given.model, problem=problem), plain=replace(given.plain, reading=reading)
    )


def pairs(probabilities, stored) -> np.ndarray:
    """The pairs of every row in one order, (R, m, 2)."""
    both = np.stack([np.asarray(probabilities), np.asarray(stored, float)], axis=-1)
    return np.array([row[np.lexsort(row.T)] for row in both])


def permuted(given: Setting, row: int):
    """All placements in which only this row changes."""
    for order in permutations(range(NODES)):
        probabilities, stored = given.probabilities.copy(), given.stored.copy()
        probabilities[row], stored[row] = probabilities[row, list(order)], stored[row, list(order)]
        yield probabilities, stored


@pytest.mark.parametrize("queue, group", [("priority", False), ("priority", True), ("weighted", False)])
def test_a_row_alone_takes_the_best_of_all_permutations(queue, group):
    given = setting(queue, 3, group)
    # group g0 has files of class 0 in two sizes
    for row, coefficient in ((0, (1.0, 0.4)), (2, (0.0, 1.0)), (7, (0.3, 0.0)), (12, (0.0, 0.0))):
        goal = given.goal(coefficient, movable=np.arange(len(given.stored)) == row)
        values = [given.value(goal, *plan) for plan in permuted(given, row)]
        placed = given.place(goal)
        found = given.value(goal, placed.probabilities, placed.stored)
        np.testing.assert_allclose(found, min(values), rtol=1e-10)
        np.testing.assert_allclose(placed.value, found, rtol=1e-10)
        assert bool(placed.moved) == (min(values) < values[0] * (1 - 1e-11))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    queue=st.sampled_from(["priority", "weighted"]),
    coefficient=st.sampled_from([(1.0, 1.0), (1.0, 0.4), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)]),
    k=st.sampled_from([(2, 2, 3, 3, 2), (1, 2)]),  # or the first class reads one chunk
    slack=st.sampled_from([(np.inf, np.inf), (1.0, np.inf), (1.05, 1.0), (0.9, 1.02)]),
)
def test_the_objective_never_rises_and_nothing_is_broken(seed, queue, coefficient, k, slack):
    random = np.random.default_rng(seed)
    given = restricted(setting(queue, seed, k=k, load=random.uniform(0.1, 0.5)), seed)
    before = given.latencies(given.probabilities, given.stored)
    movable = random.uniform(size=FILES) < 0.8
    goal = given.goal(coefficient, np.array(slack) * before, movable)
    placed = given.place(goal, seed)
    probabilities, stored = np.asarray(placed.probabilities), np.asarray(placed.stored, float)

    found, start = (
        given.value(goal, probabilities, stored),
        given.value(goal, given.probabilities, given.stored),
    )
    np.testing.assert_allclose(placed.value, found, rtol=1e-10)
    changed = np.any((probabilities != given.probabilities) | (stored != given.stored), axis=1)
    assert placed.moved == changed.sum()
    assert found < start if changed.any() else found == start
    assert not changed[~movable].any()
    np.testing.assert_array_equal(pairs(probabilities, stored), pairs(given.probabilities, given.stored))

    latency = given.latencies(probabilities, stored)
    assert np.all(latency <= np.maximum(goal.limit, before) * (1 + 1e-11)), (
        "infinite where a class is not stable"
    )
    problem = given.model.problem
    assert np.all(stored[~np.asarray(problem.allowed)] == 0)
    sites = SITE[:, None] == np.arange(3)
    assert np.all(stored @ sites <= np.maximum(PER_SITE, given.stored @ sites))
    kept, was = stored.sum(axis=0), given.stored.sum(axis=0)
    assert np.all(kept <= np.maximum(problem.capacity, was))


def alike(queue: str, fast: float, load: float, probabilities: np.ndarray) -> Setting:
    """Nodes and files alike (sizes but for a byte: the shapes of the other tests), the last node faster."""
    nodes = pd.concat([moment_nodes(1, 1)] * NODES, ignore_index=True).assign(node_id=range(NODES))
    for name, power in (("service_mean_s", 1), ("service_second_s2", 2), ("service_third_s3", 3)):
        nodes.loc[NODES - 1, name] *= fast**power
    own = files(0, (2e6, 2e6 + 1), (2,)).assign(rate_per_s=1.0, write_rate_per_s=0.01)
    case = Case(nodes, own).at_load(load)
    plain, model = plain_classes(case, OF_CLASS, queue), class_problem(case, OF_CLASS, queue)
    given = told(case, plain, model, probabilities, (probabilities > 0).astype(float))
    return replace(given, weights=np.full((2, NODES), 0.5))


@pytest.mark.parametrize("queue", ["priority", "weighted"])
def test_what_every_row_alone_would_do_and_only_some_should(queue):
    # every row alone would have most of its reads at the last node, which is a little faster and empty
    turn = np.arange(FILES) // 2 % (NODES - 1)
    probabilities = np.array([[*np.roll([0.8, 0.4, 0.4, 0.4], first), 0.0] for first in turn])
    given = alike(queue, 0.9, 0.45, probabilities)
    goal = replace(given.goal((1.0, 1.0)), storing=jnp.zeros((FILES, NODES)))

    def value(probabilities):
        return given.latencies(probabilities, probabilities > 0).sum()

    everyone = probabilities.copy()
    for row in range(0, 2 * (NODES - 1)):
        best = min((plan for plan, _ in permuted(given, row)), key=value)
        assert best[row, -1] == 0.8 and value(best) < value(probabilities)
        everyone[row :: 2 * (NODES - 1)] = best[row]
    assert value(probabilities) < value(everyone)
    passes = [given]
    for seed in range(3):
        passes.append(passes[-1].after(passes[-1].place(goal, seed)))
    assert 0 < np.sum(passes[1].probabilities[:, -1] == 0.8) < FILES
    values = [value(step.probabilities) for step in passes]
    assert values[1] < values[0] and all(np.diff(values) <= 0)


def test_nothing_moves_for_nothing():
    # nodes alike and equally loaded, nodes with the same pairs and such that could change places at no loss
    turns = np.array([np.roll([0.8, 0.7, 0.5, 0.0, 0.0], i // 2) for i in range(FILES)])
    for queue in ("priority", "weighted"):
        given = alike(queue, 1.0, 0.5, turns)
        placed = given.place(given.goal((1.0, 1.0)))
        assert placed.moved == 0
        np.testing.assert_array_equal(placed.probabilities, turns)


def test_limits_that_are_reached_leave_moves_to_be_found():
    # storage cost is all that counts, and both classes are as late as they may be
    given = setting("priority", 5)
    steps = [given]
    for seed in range(4):
        before = given.latencies(given.probabilities, given.stored)
        steps.append(steps[-1].after(steps[-1].place(given.goal((0.0, 0.0), before), seed)))
    goal = given.goal((0.0, 0.0))
    costs = [given.value(goal, step.probabilities, step.stored) for step in steps]
    cheapest = np.sort(np.asarray(given.goal((0.0, 0.0)).storing), axis=1)
    least = sum(row[: int(n)].sum() for row, n in zip(cheapest, given.stored.sum(axis=1), strict=True))
    # at least a third of what could be saved without any limit
    assert costs[-1] < costs[0] - (costs[0] - least) / 3
    assert np.all(given.latencies(steps[-1].probabilities, steps[-1].stored) <= before * (1 + 1e-11))


def test_many_kinds_are_merged_for_the_search_alone(monkeypatch):
    given = setting("priority", 2, sizes=(2e6, 3e6))
    goal = given.goal((1.0, 0.4))
    every = given.place(goal, 1)
    monkeypatch.setattr(kinds_module, "MOST_KINDS", 2)
    monkeypatch.setattr(kinds_module, "_MERGED", 2)
    monkeypatch.setattr(module, "_SECTIONS", 2)
    jax.clear_caches()
    merged = given.place(goal, 1)
    jax.clear_caches()
    start = given.value(goal, given.probabilities, given.stored)
    found = given.value(goal, merged.probabilities, merged.stored)
    np.testing.assert_allclose(merged.value, found, rtol=1e-10)
    assert start - found > 0.9 * (start - float(every.value))


def test_fewer_kinds_keep_reads_bytes_and_classes():
    given = setting("priority", 2, group=True, sizes=tuple(np.linspace(0.5e6, 3e6, FILES // 2)))
    model = replace(given.model, mix=None)
    fewer = jax.jit(kinds_module.fewer_kinds)(model)
    assert len(fewer.kind_bytes) == kinds_module._MERGED and fewer.mix is not None
    rates, size = np.asarray(given.plain.share), np.asarray(model.problem.files.chunk_bytes)
    kind = np.asarray(fewer.kind_of_file)
    np.testing.assert_array_equal(np.asarray(fewer.kind_class)[kind], OF_CLASS)
    row = of_files(given.case, np.arange(len(given.stored)))
    expected = np.zeros(fewer.mix.shape)
    np.add.at(expected, (kind, row), rates)
    np.testing.assert_allclose(fewer.mix, expected, atol=1e-15)
    for number in np.unique(kind):
        own = kind == number
        np.testing.assert_allclose(
            fewer.kind_bytes[number], np.average(size[own], weights=rates[own] * 2), rtol=1e-12
        )
        others = np.isin(OF_CLASS, OF_CLASS[own]) & ~own
        assert not np.any((size[others] > size[own].min()) & (size[others] < size[own].max()))


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_the_assignment_costs_what_that_of_scipy_costs(seed, scale):
    random = np.random.default_rng(seed)
    cost = scale * random.normal(size=(16, NODES, NODES))
    cost[::2] = np.round(cost[::2] / scale) * scale  # ties
    rows, columns = MATCHED(jnp.asarray(cost))
    for own, row, column in zip(cost, np.asarray(rows), np.asarray(columns), strict=True):
        assert sorted(row) == sorted(column) == list(range(NODES))
        np.testing.assert_allclose(
            own[row, column].sum(), own[linear_sum_assignment(own)].sum(), rtol=1e-12, atol=1e-12 * scale
        )
