"""Descents by the kernel beside those by separate operations, and when they are chosen."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecjax.planning import BatchSettings, Lanes, batch, jlcm, solve
from ecjax.planning.descent import Stopping, descend
from ecjax.planning.fused import choosing, kernel
from ecjax.planning.fused import descent as fused
from ecjax.planning.fused.kernel import Surrogate
from ecjax.planning.problem import step_scale
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.slopes import latency_slopes
from ecjax.studies.bench.setups.random_problem import random_problem

FILES, NODES = 40, 3
SHORT = Stopping(eps=1e-6, max_iterations=25)


def problem_with(masked: bool):
    problem = random_problem(FILES, NODES, 0.3, False, 3)
    k = jnp.asarray(1.0 + np.arange(FILES) % 2)
    problem = replace(problem, files=replace(problem.files, k=k), k=k, floor=k)
    allowed = np.ones((FILES, NODES), bool)
    allowed[::2, 1] = False
    return replace(problem, allowed=jnp.asarray(allowed)) if masked else problem


def test_a_descent_by_the_kernel_goes_the_same_way():
    """That by separate operations knows nothing of one chunk size, and keeps gradients of all probabilities."""
    problem, price, beta = problem_with(True), np.array([0.02, 0.01, 0.03]), 10.0
    start = project_hypersimplex(np.full((FILES, NODES), 0.5), problem.k, mask=problem.allowed)

    def latency(point, z):
        slopes = latency_slopes(problem, point, point, z)
        return slopes.value, slopes.z, slopes.by_probability

    def surrogate(point):
        each = np.broadcast_to(price / np.log(beta), (FILES, NODES))
        return jnp.sum(each * jnp.log1p(beta * point)), each / (point + 1 / beta)

    @jax.jit
    def by_operations(start, z):
        project = partial(project_hypersimplex, k=problem.k, mask=problem.allowed)
        return descend(latency, surrogate, project, start, z, step_scale(problem), SHORT)

    @jax.jit
    def by_kernel(start, z):
        return fused.descend(problem, Surrogate(jnp.asarray(price), beta), problem.allowed, start, z, SHORT)

    expected, result = (each(start, jnp.zeros(())) for each in (by_operations, by_kernel))
    assert int(result.iterations) == int(expected.iterations) > 10
    np.testing.assert_allclose(result.history, expected.history, rtol=1e-7)
    np.testing.assert_allclose(result.point, expected.point, atol=1e-6)
    assert float(result.aux) == pytest.approx(float(expected.aux), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("masked", [True, False])
def test_plans_of_many_theta_are_the_same(monkeypatch, masked):
    problem = problem_with(masked)
    lanes = Lanes(jnp.array([0.005, 0.05]), jnp.ones(2), jnp.array([1.0, 0.8]))
    how = BatchSettings(("published",), settings=replace(jlcm.Jlcm(), stopping=SHORT))
    by_operations = solve(problem, lanes, how).by_method["published"]
    monkeypatch.setattr(batch.choosing, "suits", lambda *_: True)
    by_kernel = solve(problem, lanes, how).by_method["published"]
    assert int(by_kernel.iterations.min()) > 10
    np.testing.assert_array_equal(by_kernel.iterations, by_operations.iterations)
    np.testing.assert_allclose(by_kernel.history, by_operations.history, rtol=1e-7)
    np.testing.assert_allclose(by_kernel.probabilities, by_operations.probabilities, atol=1e-6)
    np.testing.assert_array_equal(by_kernel.stored, by_operations.stored)


@pytest.mark.slow
def test_float32_ends_close(monkeypatch):
    problem = problem_with(False)
    lanes = Lanes(jnp.array([0.02]), jnp.ones(1), jnp.ones(1))
    objective = []
    for dtype, by_kernel in (("float64", False), ("float32", True)):
        monkeypatch.setattr(batch.choosing, "suits", lambda *_, by_kernel=by_kernel: by_kernel)
        plan = solve(problem, lanes, BatchSettings(("published",), dtype=dtype)).by_method["published"]
        assert bool(plan.converged[0])
        np.testing.assert_allclose(plan.probabilities[0].sum(axis=1), problem.k, atol=1e-9)
        objective.append(float(plan.evaluation.objective[0]))
    assert objective[1] == pytest.approx(objective[0], rel=5e-3)


def test_it_is_for_one_chunk_size_on_a_gpu(monkeypatch):
    assert not choosing.suits(random_problem(2, 3, 0.4, False, 0), SHORT)
    assert not choosing._runs()  # there is none
    monkeypatch.setattr(choosing, "_runs", lambda: True)
    monkeypatch.setattr(choosing, "_LEAST", FILES * NODES)
    assert choosing.suits(problem_with(True), SHORT)
    assert not choosing.suits(random_problem(FILES, NODES, 0.4, True, 3), SHORT)
    assert not choosing.suits(problem_with(False), replace(SHORT, merged=False))
    assert not choosing.suits(random_problem(FILES - 1, NODES, 0.4, False, 3), SHORT)
    writes = replace(problem_with(False), writes=jnp.ones((4, FILES)))
    assert not choosing.suits(writes, SHORT)


def test_what_a_device_gets_wrong_is_not_used(monkeypatch):
    """The check before the first use compares with the plain projection."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    interpreted = kernel.moved

    def check():
        choosing._runs.cache_clear()
        try:
            return choosing._runs()
        finally:
            choosing._runs.cache_clear()

    for wrong in (0.0, 1e-3):

        def mistaken(*values, wrong=wrong):
            trial = interpreted(*values, interpret=True)
            return trial._replace(point=trial.point + jnp.asarray(wrong, trial.point.dtype))

        monkeypatch.setattr(kernel, "moved", mistaken)
        assert check() == (wrong == 0)
    monkeypatch.setattr(kernel, "moved", lambda *values: interpreted(*values, interpret=False))
    assert not check()
