"""The normal distribution beside SciPy's."""

import jax
import numpy as np
import pytest
from scipy import stats

from ecjax.queueing.normal import normal_cumulative

POINTS = np.concatenate([np.linspace(-12, 9, 4001), [-37.0, 0.0, 40.0, np.inf, -np.inf]])


def test_normal_cumulative_is_that_of_scipy_relative_to_itself():
    np.testing.assert_allclose(normal_cumulative(POINTS), stats.norm.cdf(POINTS), rtol=1e-12)


@pytest.mark.parametrize("x", [-3.0, 0.0, 0.7])
def test_derivatives_are_the_density_and_its_own(x):
    assert jax.grad(normal_cumulative)(x) == pytest.approx(stats.norm.pdf(x), rel=1e-12)
    assert jax.grad(jax.grad(normal_cumulative))(x) == pytest.approx(-x * stats.norm.pdf(x), rel=1e-12)
