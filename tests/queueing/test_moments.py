import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from ecjax.queueing import ServiceMoments

positive = st.floats(1e-6, 1e6)


def law_moments(law):
    return [law.moment(n) for n in (1, 2, 3)]


def arrays(moments):
    return [np.asarray(moment) for moment in (moments.first, moments.second, moments.third)]


@given(positive, positive)
def test_shifted_exponential_matches_scipy(shift, mean):
    moments = ServiceMoments.shifted_exponential(shift, mean)
    assert_allclose(arrays(moments), law_moments(stats.expon(loc=shift, scale=mean)), rtol=1e-12)
    # the variance is a difference of the moments, so that it loses the digits they share
    assert_allclose(moments.variance, mean**2, atol=1e-15 * 8 * float(moments.second))


@given(positive)
def test_exponential_and_constant(mean):
    assert_allclose(
        arrays(ServiceMoments.exponential(mean)), law_moments(stats.expon(scale=mean)), rtol=1e-12
    )
    constant = ServiceMoments.shifted_exponential(mean, 0.0)
    assert_allclose(arrays(constant), [mean, mean**2, mean**3], rtol=1e-15)
    assert constant.variance == 0


def test_variance_is_not_negative_when_moments_are_rounded():
    assert ServiceMoments(jnp.array(0.1), jnp.array(0.1**2 - 1e-18), jnp.array(1e-3)).variance == 0


def test_scaled_by_a_number_and_to_several_sizes():
    moments = ServiceMoments.shifted_exponential(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, 0.1, 2.0]))
    twice = moments.scaled(2)
    assert_allclose(twice.first, 2 * moments.first)
    assert_allclose(twice.second, 4 * moments.second)
    assert_allclose(twice.third, 8 * moments.third)
    sizes = moments.scaled(jnp.array([[1.0], [3.0]]))
    assert sizes.third.shape == (2, 3)
    assert_allclose(sizes.third, np.array([[1.0], [27.0]]) * np.asarray(moments.third))
    assert_allclose(sizes.variance[1], 9 * moments.variance, rtol=1e-12)
