"""Shares of the nodes for fixed reads, against SciPy and against every choice of bounds that hold."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning.classes.plain_classes import class_problem, latencies, plain_classes, work
from problems import FILES, Case, random_plan
from scipy.optimize import LinearConstraint, minimize

from ecjax.planning.classes.model import kind_reads, other_work
from ecjax.planning.classes.weights import least_weights, on_simplex, weigh
from ecjax.programs import program

ON_SIMPLEX = program(on_simplex)
FEW_NODES = 3


def small(load: float, seed: int = 0) -> Case:
    """Three nodes, so that SciPy has few unknowns; other work at one of them, and writes."""
    nodes = problems.moment_nodes(seed, FEW_NODES).assign(
        background_load=[0.1, 0.0, 0.0], background_second=[0.15, 0.0, 0.0], background_third=[0.4, 0.0, 0.0]
    )
    files = problems.mixed_files(seed, k=(1, 2, 2)).assign(min_extra_chunks=0)
    files["write_rate_per_s"] = 0.05 * files["rate_per_s"].to_numpy()[::-1]
    return Case(nodes, files).at_load(load)


class Setting:
    """Reads of a case at random places, and what belongs to them."""

    def __init__(self, case: Case, classes: int, seed: int = 0) -> None:
        of_class = np.arange(FILES) % classes
        self.model = class_problem(case, of_class, "weighted")
        self.plain = plain_classes(case, of_class, "weighted")
        self.own, self.kept = random_plan(case, FILES, seed)
        self.load = work(self.plain, self.own, self.kept)[0]
        assert self.load.sum(axis=0).max() < 0.99
        self.reads = kind_reads(self.model, jnp.asarray(self.own))
        self.other = other_work(self.model, jnp.asarray(self.kept > 0))

    def shares(self, seed: int) -> np.ndarray:
        """Weights above the loads, (K, m)."""
        parts = np.random.default_rng(seed).uniform(0.1, 1.0, self.load.shape)
        return self.load + (1 - self.load.sum(axis=0)) * parts / parts.sum(axis=0)

    def weigh(self, coefficient, start, limit=None):
        classes = len(coefficient)
        limit = np.full(classes, np.inf) if limit is None else limit
        arrays = (jnp.asarray(np.asarray(each, float)) for each in (coefficient, limit))
        return weigh(self.model, *arrays, self.reads, self.other, jnp.asarray(start), jnp.zeros(classes))

    def latencies(self, weights, z=None) -> np.ndarray:
        return latencies(self.plain, self.own, self.kept, weights, z)[0]

    def best(self, coefficient: np.ndarray, start: np.ndarray) -> float:
        """Least sum_k c_k L_k over weights and z by SciPy: convex in both together."""
        shape, count = start.shape, start.size
        sums = np.zeros((shape[1], count + shape[0]))
        for j in range(shape[1]):
            sums[j, np.arange(shape[0]) * shape[1] + j] = 1
        z = latencies(self.plain, self.own, self.kept, start)[1]
        z = np.where(np.isfinite(z), z, 0.0)  # of no meaning where reads take one chunk

        def value(point):
            weights = np.maximum(point[:count].reshape(shape), self.load * (1 + 1e-9) + 1e-12)
            return coefficient @ latencies(self.plain, self.own, self.kept, weights, point[count:])[0]

        low = np.concatenate([(self.load + 1e-6).ravel(), np.full(shape[0], -np.inf)])
        found = minimize(
            value,
            np.concatenate([start.ravel(), z]),
            method="SLSQP",
            bounds=list(zip(low, np.full(len(low), np.inf), strict=True)),
            constraints=LinearConstraint(sums, 1.0, 1.0),
            options={"maxiter": 500, "ftol": 1e-14},
        )
        weights = found.x[:count].reshape(shape)
        assert np.abs(weights.sum(axis=0) - 1).max() < 1e-9
        return float(coefficient @ self.latencies(weights))


@pytest.mark.parametrize("load", [0.3, 0.85])
@pytest.mark.parametrize("coefficient", [(0.5, 0.5), (1.0, 0.02), (0.3, 0.5, 0.2)])
def test_shares_are_the_best_that_scipy_finds(coefficient, load):
    setting = Setting(small(load), len(coefficient))
    start = setting.shares(1)
    found = setting.weigh(coefficient, start)
    weights = np.asarray(found.weights)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-14)
    assert np.all(weights > setting.load)
    told = setting.latencies(weights)
    np.testing.assert_allclose(found.latency, told, rtol=1e-9)
    best = setting.best(np.array(coefficient), start)
    assert np.array(coefficient) @ told == pytest.approx(best, rel=1e-6)


@given(
    seed=st.integers(0, 10_000),
    load=st.floats(0.15, 0.6),
    coefficient=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda c: max(c) > 0.01),
    tight=st.lists(st.floats(0.9, 3.0), min_size=3, max_size=3),
)
def test_the_objective_never_rises_and_limits_are_kept(seed, load, coefficient, tight):
    setting = Setting(small(load, 1), 3, seed)
    start = setting.shares(seed)
    before = setting.latencies(start)
    limit = before * tight  # those below 1 are broken from the start, and may not be broken further
    found = setting.weigh(coefficient, start, limit)
    weights = np.asarray(found.weights)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-13)
    assert np.all(weights > setting.load)
    after = setting.latencies(weights)
    np.testing.assert_allclose(found.latency, after, rtol=1e-9)
    assert np.array(coefficient) @ after <= np.array(coefficient) @ before * (1 + 1e-12)
    assert np.all(after <= np.maximum(limit, before) * (1 + 1e-9))


def test_any_start_ends_alike():
    setting = Setting(small(0.6), 3)
    coefficient = np.array([0.5, 0.3, 0.2])
    values = [
        coefficient @ np.asarray(setting.weigh(coefficient, setting.shares(seed)).latency)
        for seed in range(3)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-7)


def test_many_at_once_end_as_one_by_one():
    # from where nothing is left to gain, so that rounding decides
    setting, coefficient = Setting(small(0.6), 3), jnp.asarray([0.5, 0.3, 0.2])
    best = np.asarray(setting.weigh(coefficient, setting.shares(0)).weights)
    near = jnp.asarray([setting.load + (1 + off) * (best - setting.load) for off in 1e-12 * np.arange(8)])
    near = near / jnp.sum(near, axis=1, keepdims=True)

    def one(start):
        limit = jnp.full(3, jnp.inf)
        return weigh(
            setting.model, coefficient, limit, setting.reads, setting.other, start, jnp.zeros(3)
        ).latency

    found = np.asarray(jax.jit(jax.vmap(one))(near))
    for start, told in zip(near, found, strict=True):
        np.testing.assert_allclose(told, setting.weigh(coefficient, start).latency, rtol=1e-9)


def test_a_class_of_no_importance_gets_the_least_share_and_stays_finite():
    setting = Setting(small(0.6), 3)
    found = setting.weigh([0.6, 0.0, 0.4], setting.shares(0))
    least = np.asarray(least_weights(jnp.asarray(setting.load)))
    # a fiftieth above its load, and a hundredth of a third of what no class needs
    spare = 1 - setting.load.sum(axis=0)
    np.testing.assert_allclose(least, setting.load * 1.02 + 0.01 * spare / 3, rtol=1e-12)
    np.testing.assert_allclose(found.weights[1], least[1], rtol=1e-9)
    assert np.isfinite(np.asarray(found.latency)).all()


def test_the_least_shares_leave_room_on_nodes_that_are_almost_full():
    load = np.array([[0.3, 0.6, 0.0, 0.0], [0.3, 0.399, 0.999, 0.0]])
    least = np.asarray(least_weights(jnp.asarray(load)))
    assert np.all(least > load)
    assert np.all(least.sum(axis=0) < 1)


@given(
    classes=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    decades=st.floats(0.0, 6.0),
    room=st.sampled_from([1e-6, 0.1, 1.0]),
)
def test_nearest_shares_by_trying_every_set_of_bounds_that_hold(classes, seed, decades, room):
    random = np.random.default_rng(seed)
    point = random.normal(0.3, 1.0, classes)
    bend = 10.0 ** random.uniform(-decades, decades, classes)
    least = (1 - room) * random.dirichlet(np.ones(classes))
    best, value = None, np.inf
    for free in itertools.product([False, True], repeat=classes):
        free = np.array(free)
        if not free.any():
            continue
        w = least.copy()
        nu = (point[free].sum() - (1 - least[~free].sum())) / np.sum(1 / bend[free])
        w[free] = point[free] - nu / bend[free]
        off = np.sum(bend * (w - point) ** 2)
        if np.all(w >= least - 1e-9) and off < value:
            best, value = w, off
    found = np.asarray(ON_SIMPLEX(*(jnp.asarray(each)[:, None] for each in (point, bend, least))))[:, 0]
    assert found.sum() == pytest.approx(1.0, rel=1e-14)
    assert np.all(found >= least - 1e-15)
    np.testing.assert_allclose(found, best, atol=1e-7)
