"""The projection node by node, against bisection in exact enough arithmetic."""

import jax.numpy as jnp
import numpy as np
import pytest

from ecjax.planning.fused.columns import project_columns
from ecjax.programs import program


@program
def projected(points, upper, k):
    return jnp.stack(project_columns(list(points), None if upper is None else list(upper), k))


def bisected(points, upper, k):
    """By 200 halvings of the bracket, in float64."""
    low, high = (points - upper).min(axis=0), points.max(axis=0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        enough = np.clip(points - middle, 0, upper).sum(axis=0) >= k
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.clip(points - 0.5 * (low + high), 0, upper)


NODES = 5


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_it_is_the_nearest_point(scale):
    random = np.random.default_rng(1)
    points = random.normal(0, scale, (NODES, 500))
    points[:, ::5] = np.round(points[:, ::5], 1)  # ties
    upper = random.integers(0, 2, (NODES, 500)).astype(float)
    upper[0] = 1
    for bounds in (np.ones_like(upper), upper):
        # from nothing to all there is, whole numbers and others
        k = np.floor(random.uniform(0, 1, 500) * (bounds.sum(axis=0) + 1))
        k[::3] = random.uniform(0, 1, len(k[::3])) * bounds.sum(axis=0)[::3]
        p = np.asarray(projected(points, None if bounds is not upper else upper, k))
        assert (p >= 0).all() and (p <= bounds).all()
        np.testing.assert_allclose(p.sum(axis=0), k, atol=1e-12)
        np.testing.assert_allclose(p, bisected(points, bounds, k), atol=1e-12 * max(1, scale))


def test_float32_at_any_scale():
    """Steps to a vertex are a billion times as long as the set is wide; sums are those of the set all the same."""
    random = np.random.default_rng(0)
    for scale in (1.0, 1e9):
        points = random.normal(0, scale, (NODES, 500)).astype(np.float32)
        k = random.integers(0, NODES + 1, 500).astype(np.float32)
        p = np.asarray(projected(points, None, k))
        np.testing.assert_allclose(p.sum(axis=0), k, atol=5e-6)
        exact = bisected(points.astype(float), np.ones(points.shape), k.astype(float))
        assert np.abs(p - exact).max() < (1e-5 if scale == 1 else 1e-3)
