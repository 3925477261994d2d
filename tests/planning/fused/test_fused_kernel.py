"""A step as one kernel: what it computes, without a device that runs it, and that it lowers for one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from ecjax.planning.fused.kernel import TILE, Surrogate, Weights, moved

NODES, BETA, STEP = 5, 10.0, 0.2


def sample(dtype, files=2 * TILE):
    random = np.random.default_rng(0)
    k = random.integers(1, NODES, files).astype(float)
    upper = np.ones((NODES, files), bool)
    upper[random.integers(0, NODES, files), np.arange(files)] = k == NODES - 1
    point = upper * (k / upper.sum(axis=0))
    share, scale = random.uniform(0, 1, (2, files))
    weights = Weights(*(values.astype(dtype) for values in (share / files, scale + 0.1, k)))
    slope, price = random.uniform(1, 2, (2, NODES))
    return point.astype(dtype), weights, slope, price, upper


@pytest.mark.parametrize(("dtype", "with_surrogate"), [("float32", True), ("float64", False)])
def test_a_step_is_the_projected_gradient_step(dtype, with_surrogate):
    point, weights, slope, price, upper = sample(dtype)
    surrogate = Surrogate(jnp.asarray(price), BETA) if with_surrogate else None
    trial = jax.jit(lambda point, upper: moved(point, weights, slope, jnp.asarray(STEP), surrogate, upper))(
        point, upper
    )
    share, scale, k = (np.asarray(values, float) for values in weights)
    # the concave price is price log(beta p + 1)/log(beta)
    rise = price[:, None] / np.log(BETA) / (point + 1 / BETA) * with_surrogate
    new, move = np.asarray(trial.point, float), np.asarray(trial.point, float) - point
    tolerance = 2e-6 if dtype == "float32" else 1e-12
    for i in (0, 1, TILE - 1, TILE, len(k) - 1):
        target = point[:, i] - STEP * scale[i] * (share[i] * slope + rise[:, i])
        nearest = minimize(
            lambda p, target=target: ((p - target) ** 2).sum(),
            point[:, i].astype(float),
            jac=lambda p, target=target: 2 * (p - target),
            bounds=[(0, float(top)) for top in upper[:, i]],
            constraints=LinearConstraint(np.ones(NODES), k[i], k[i]),
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 500},
        )
        np.testing.assert_allclose(new[:, i], nearest.x, atol=1e-6)
    np.testing.assert_allclose(new.sum(axis=0), k, atol=10 * tolerance)
    np.testing.assert_allclose(trial.reads, (move * share).sum(axis=1), rtol=1e3 * tolerance, atol=tolerance)
    np.testing.assert_allclose(trial.length, (move**2 / scale).sum(), rtol=10 * tolerance)
    np.testing.assert_allclose(trial.ahead, (rise * move).sum(), rtol=1e2 * tolerance)
    cost = with_surrogate * (price[:, None] * np.log1p(BETA * new)).sum() / np.log(BETA)
    np.testing.assert_allclose(trial.surrogate, cost, rtol=10 * tolerance)


@pytest.mark.parametrize(("dtype", "limited"), [("float32", True), ("float64", False)])
def test_it_lowers_for_cuda(dtype, limited):
    """Without a device: what would run on one exports."""
    point, weights, slope, price, upper = sample(dtype)
    step = partial(moved, surrogate=Surrogate(price, BETA), interpret=False)
    program = jax.jit(step)
    check = jax.export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")
    arguments = point, weights, slope, jnp.asarray(STEP)
    try:
        exported = jax.export.export(program, platforms=["cuda"], disabled_checks=[check])(
            *arguments, upper=upper if limited else None
        )
    except RuntimeError as error:
        if "No supported GPU" not in str(error):
            raise
        pytest.skip("this JAX lowers kernels only beside a GPU")
    assert exported.platforms == ("cuda",)
