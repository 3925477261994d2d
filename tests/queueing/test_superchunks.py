import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from ecjax.queueing import ServiceMoments, fcfs, superchunk

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["d_superchunk"])
def test_vectors(case):
    given_, expected = case["inputs"], case["expected"]
    moments = ServiceMoments(*(jnp.array(given_[name]) for name in ("m1", "m2", "m3")))
    delay = superchunk(given_["rates"], moments, given_["xs"])
    assert_allclose(delay.mean, expected["ET"], rtol=1e-10)
    assert_allclose(delay.variance, expected["VarT"], rtol=1e-10)


def test_equals_classes_served_as_sums_of_chunks():
    # x exponential chunks together are one gamma-distributed job: its raw moments are x, x(x+1), x(x+1)(x+2)
    rates = np.array([[0.1, 0.02], [0.05, 0.03], [0.02, 0.04]])
    mean = np.array([1.0, 2.0])
    x = np.array([[1.0], [2.0], [3.0]])
    sums = ServiceMoments(x * mean, x * (x + 1) * mean**2, x * (x + 1) * (x + 2) * mean**3)
    expected, delay = fcfs(rates, sums), superchunk(rates, ServiceMoments.exponential(mean))
    assert_allclose(delay.mean, expected.mean, rtol=1e-13)
    assert_allclose(delay.variance, expected.variance, rtol=1e-13)


def test_single_chunks_are_fcfs_and_counts_choose_the_rows():
    moments = ServiceMoments.shifted_exponential([1.0, 0.5], [0.3, 0.2])
    rates = np.array([[0.2, 0.3]])
    assert_allclose(superchunk(rates, moments).mean[0], fcfs(rates[0], moments).mean, rtol=1e-14)
    gap = np.array([[0.1, 0.2], [0.0, 0.0], [0.05, 0.1]])
    delay, rows = superchunk(gap, moments), superchunk(gap[[0, 2]], moments, counts=[1, 3])
    assert_allclose(rows.mean, np.asarray(delay.mean)[[0, 2]], rtol=1e-14)
    assert_allclose(rows.variance, np.asarray(delay.variance)[[0, 2]], rtol=1e-14)


def test_alike_nodes_share_their_moments():
    rates = np.array([[0.1, 0.2], [0.05, 0.0]])
    delay = superchunk(rates, ServiceMoments.exponential(1.5))
    both = superchunk(rates, ServiceMoments.exponential([1.5, 1.5]))
    assert_allclose(delay.mean, both.mean, rtol=1e-15)
    assert_allclose(delay.variance, both.variance, rtol=1e-15)


def test_overload_is_infinite_with_finite_derivatives_elsewhere():
    moments = ServiceMoments.exponential([1.0, 1.0])
    rates = jnp.array([[0.1, 0.1], [0.2, 0.5]])
    assert_allclose(np.isinf(superchunk(rates, moments).mean), [[False, True]] * 2)
    jacobian = jax.jit(jax.jacobian(lambda rate: superchunk(rate, moments).variance))(rates)
    assert np.isfinite(np.asarray(jacobian)).all()


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"counts \(3,\)"):
        superchunk([[0.1], [0.2]], ServiceMoments.exponential([1.0]), counts=[1, 2, 3])
