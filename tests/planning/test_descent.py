"""The descent driver on quadratic programs over a product of hypersimplices, with and without concave parts."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from ecjax.planning import Descent, Stopping, descend, project_hypersimplex
from ecjax.planning.descent import WINDOW
from ecjax.programs import program

ROWS, COLUMNS = 3, 4
K = np.array([1.0, 2.0, 3.0])
NESTED = Stopping(eps=1e-12, max_iterations=400, merged=False)
MERGED = Stopping(eps=1e-12, max_iterations=400, merged=True)


class Quadratic(NamedTuple):
    """1/2 x'Qx + c'x where a'x < b, infinite elsewhere; plus the concave weight sum log(1 + 10 x) / log 10."""

    q: np.ndarray  # (12, 12)
    c: np.ndarray  # (12,)
    a: np.ndarray  # (12,)
    b: np.ndarray  # ()
    weight: np.ndarray  # (3, 4)

    def value(self, x):
        """In NumPy, the concave part apart."""
        return 0.5 * x @ self.q @ x + self.c @ x

    def total(self, point):
        return self.value(point.ravel()) + np.sum(self.weight * np.log1p(10 * point)) / np.log(10)


def quadratic(seed: int, weight: float = 0.0, spread: float = 1.0) -> Quadratic:
    random = np.random.default_rng(seed)
    size = ROWS * COLUMNS
    factor = random.normal(size=(size, size)) * np.geomspace(1, spread, size)
    return Quadratic(
        factor.T @ factor / size,
        random.normal(size=size),
        np.zeros(size),
        np.asarray(np.inf),
        weight * random.uniform(0.5, 1.5, (ROWS, COLUMNS)),
    )


@partial(program, static_argnums=(3, 4))
def run(problem: Quadratic, start, scale, stopping: Stopping, with_concave: bool) -> Descent:
    def smooth(point, aux):
        x = point.reshape(-1)
        value = 0.5 * x @ problem.q @ x + problem.c @ x
        gradient = (problem.q @ x + problem.c).reshape(point.shape)
        return jnp.where(problem.a @ x < problem.b, value, jnp.inf), aux + 1, gradient

    def concave(point):
        value = jnp.sum(problem.weight * jnp.log1p(10 * point)) / np.log(10)
        return value, problem.weight * 10 / ((1 + 10 * point) * np.log(10))

    def project(point):
        return project_hypersimplex(point, jnp.asarray(K))

    return descend(smooth, concave if with_concave else None, project, start, jnp.zeros(()), scale, stopping)


def start_point(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed + 1000)
    return np.asarray(project_hypersimplex(random.uniform(0, 1, (ROWS, COLUMNS)), K))


def solved(problem, start, stopping=NESTED, with_concave=False, scale=None) -> Descent:
    scale = np.ones((ROWS, 1)) if scale is None else scale
    return jax.tree.map(
        np.asarray, run(problem, jnp.asarray(start), jnp.asarray(scale), stopping, with_concave)
    )


def slsqp(problem: Quadratic, start: np.ndarray) -> float:
    sums = LinearConstraint(np.kron(np.eye(ROWS), np.ones(COLUMNS)), K, K)
    found = minimize(
        problem.value,
        start.ravel(),
        jac=lambda x: problem.q @ x + problem.c,
        method="SLSQP",
        bounds=[(0, 1)] * (ROWS * COLUMNS),
        constraints=[sums],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success
    return found.fun


def values(found: Descent) -> np.ndarray:
    return found.history[~np.isnan(found.history)]


def assert_feasible(point):
    assert np.all(point >= 0) and np.all(point <= 1)
    np.testing.assert_allclose(point.sum(axis=1), K, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_convex_quadratic_reaches_the_optimum_of_slsqp(seed):
    problem, start = quadratic(seed), start_point(seed)
    found = solved(problem, start)
    assert found.converged
    assert_feasible(found.point)
    assert found.value == pytest.approx(problem.value(found.point.ravel()), rel=1e-12)
    assert found.value == pytest.approx(slsqp(problem, start), rel=1e-9, abs=1e-9)


def test_ill_conditioned_rows_of_different_scale():
    """The preconditioner of a row may be any positive number."""
    problem, start = quadratic(7, spread=10.0), start_point(7)
    for scale in (np.ones((ROWS, 1)), np.array([[1.0], [3.0], [0.3]])):
        found = solved(problem, start, scale=scale)
        assert found.value == pytest.approx(slsqp(problem, start), rel=1e-6, abs=1e-6)


def test_history_never_rises_starts_at_the_start_and_ends_at_the_value():
    problem, start = quadratic(1), start_point(1)
    found = solved(problem, start)
    history = values(found)
    assert len(history) == found.iterations + 1 <= NESTED.max_iterations + 1
    assert np.all(np.diff(history) <= 0)
    assert history[0] == pytest.approx(problem.value(start.ravel()), rel=1e-13)
    assert history[-1] == found.value


def test_a_start_at_the_optimum_stays_there():
    problem = quadratic(2)
    optimum = solved(problem, start_point(2)).point
    again = solved(problem, optimum)
    assert again.converged and again.iterations <= 3 * WINDOW
    np.testing.assert_allclose(again.point, optimum, atol=1e-6)


def test_flat_function_converges_at_once():
    problem = quadratic(3)
    flat = problem._replace(q=np.zeros_like(problem.q), c=np.zeros_like(problem.c))
    found = solved(flat, start_point(3))
    assert found.converged and found.iterations == WINDOW
    np.testing.assert_allclose(found.point, start_point(3), atol=1e-12)


def test_barrier_is_never_crossed():
    """The free optimum lies outside the domain: the descent falls and stays inside."""
    problem, start = quadratic(4), start_point(4)
    free = solved(problem, start)
    direction = (free.point - start).ravel()
    middle = direction @ (0.6 * free.point + 0.4 * start).ravel()
    walled = problem._replace(a=direction, b=np.asarray(middle))
    found = solved(walled, start)
    assert direction @ found.point.ravel() < middle
    assert np.all(np.isfinite(values(found))) and np.all(np.diff(values(found)) <= 0)
    assert_feasible(found.point)
    assert found.value < walled.value(start.ravel())


def test_start_just_inside_the_barrier_is_left():
    problem, start = quadratic(5), start_point(5)
    free = solved(problem, start)
    direction = (start - free.point).ravel()
    walled = problem._replace(a=direction, b=np.asarray(direction @ start.ravel() + 1e-12))
    found = solved(walled, start)
    assert found.converged
    assert found.value == pytest.approx(free.value, rel=1e-9, abs=1e-9)


def test_start_outside_the_domain_comes_back_as_it_was():
    problem, start = quadratic(6), start_point(6)
    outside = problem._replace(b=np.asarray(-1.0))  # 0 < -1 nowhere
    for with_concave in (False, True):
        found = solved(outside, start, with_concave=with_concave)
        assert not found.converged
        assert found.value == np.inf
        np.testing.assert_array_equal(found.point, start_projected(start))
        assert np.isfinite(found.point).all()


def start_projected(start):
    return np.asarray(project_hypersimplex(start, K))


def test_iteration_limit_is_no_convergence():
    problem, start = quadratic(1), start_point(1)
    found = solved(problem, start, Stopping(eps=1e-12, max_iterations=5))
    assert not found.converged
    assert found.iterations == 5
    assert found.history.shape == (6,) and not np.isnan(found.history).any()
    assert found.value < problem.value(start.ravel())


@pytest.mark.parametrize("stopping", [MERGED, NESTED], ids=["merged", "nested"])
@pytest.mark.parametrize("seed", range(3))
def test_concave_part_never_lets_the_objective_rise(stopping, seed):
    problem, start = quadratic(seed, weight=0.4), start_point(seed)
    found = solved(problem, start, stopping, with_concave=True)
    assert found.converged
    assert_feasible(found.point)
    history = values(found)
    assert np.all(np.diff(history) <= 0)
    assert history[0] == pytest.approx(problem.total(start), rel=1e-12)
    assert found.value == pytest.approx(problem.total(found.point), rel=1e-9)
    assert found.value == pytest.approx(history[-1], rel=1e-9)


@pytest.mark.parametrize("stopping", [MERGED, NESTED], ids=["merged", "nested"])
def test_end_of_a_concave_descent_is_stationary(stopping):
    """No feasible direction descends: the linear program on the gradient gains nothing there."""
    problem, start = quadratic(2, weight=0.4), start_point(2)
    found = solved(problem, start, stopping, with_concave=True)
    x = found.point
    slope = (problem.q @ x.ravel() + problem.c).reshape(x.shape)
    slope = slope + problem.weight * 10 / ((1 + 10 * x) * np.log(10))
    best = sum(np.sort(row)[: int(k)].sum() for row, k in zip(slope, K, strict=True))
    assert np.sum(slope * x) - best <= 1e-3 * abs(found.value)


def test_lanes_of_a_batch_do_not_see_each_other():
    """Also beside a lane that starts outside its domain and one that takes far longer."""
    starts = [start_point(seed) for seed in range(3)]
    lanes = [quadratic(0), quadratic(1)._replace(b=np.asarray(-1.0)), quadratic(7, spread=10.0)]
    stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *lanes)
    batched = jax.vmap(lambda problem, start: run(problem, start, jnp.ones((ROWS, 1)), NESTED, False))
    together = jax.tree.map(np.asarray, batched(stacked, jnp.asarray(np.stack(starts))))
    for lane, (problem, start) in enumerate(zip(lanes, starts, strict=True)):
        alone = solved(problem, start)
        assert together.converged[lane] == alone.converged
        np.testing.assert_allclose(together.value[lane], alone.value, rtol=1e-9)
        np.testing.assert_allclose(together.point[lane], alone.point, atol=1e-5)
    assert together.iterations[0] < together.iterations[2]
