"""The order-statistic bound is the best there is: two-point delays of the same means and variances attain it."""

import numpy as np
import pytest
from scipy.optimize import brentq

from ecjax.queueing.bounds import latency_bound
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.moments import as_float


@pytest.mark.parametrize("k", [2, 3, 5, 8, 12])
def test_two_point_delays_attain_the_bound(k):
    """Equation 36 of the JLCM paper, with z from SciPy's root finder and the maximum listed state by state.

    At the best z the probabilities to be up sum to 1, so a joint law exists where exactly one node is up at a time:
    the marginal laws are as given, and the expected maximum is a sum over the k states.
    """
    random = np.random.default_rng(k)
    mean, variance = random.uniform(1, 30, k), random.uniform(0.5, 200, k)

    def up(z):
        return 0.5 + (mean - z) / (2 * np.sqrt((mean - z) ** 2 + variance))

    z = brentq(lambda at: up(at).sum() - 1, -1e3, 1e3, xtol=1e-13, rtol=1e-15)
    root = np.sqrt((mean - z) ** 2 + variance)
    delays = np.where(np.eye(k, dtype=bool), z + root, z - root)  # state, node
    states = up(z)

    first, second = states @ delays, states @ delays**2
    np.testing.assert_allclose(states.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(first, mean, rtol=1e-9)
    np.testing.assert_allclose(second - first**2, variance, rtol=1e-9)
    bound = latency_bound(np.ones(k), Delay(as_float(mean), as_float(variance)))
    np.testing.assert_allclose(states @ delays.max(axis=1), float(bound), rtol=1e-9)
