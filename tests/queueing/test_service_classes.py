"""Priority and weighted queues against exact values, limits and derivatives by differences."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from numpy.testing import assert_allclose

from ecjax.queueing import ServiceMoments, fcfs, priority, weighted

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


def moments(inputs, count):
    return ServiceMoments(
        *(jnp.broadcast_to(jnp.array(inputs[name]), (count,)) for name in ("m1", "m2", "m3"))
    )


@pytest.mark.parametrize("case", VECTORS["e_priority_K2"] + VECTORS["e_priority_K3"])
def test_priority_vectors(case):
    rates, expected = np.array(case["inputs"]["lam"]), case["expected"]
    service = moments(case["inputs"], len(rates))
    found = priority(rates, service)
    assert_allclose(found.mean, expected["ET"], rtol=1e-10)
    assert_allclose(found.variance, expected["VarT"], rtol=1e-10)
    # two nodes side by side
    both = priority(
        np.stack([rates, 0.5 * rates], axis=1),
        ServiceMoments(
            *(jnp.stack([part, part], axis=1) for part in (service.first, service.second, service.third))
        ),
    )
    assert_allclose(both.mean[:, 0], expected["ET"], rtol=1e-10)
    assert np.all(both.mean[:, 1] < both.mean[:, 0])


@pytest.mark.parametrize("case", VECTORS["f_weighted"])
def test_weighted_vectors(case):
    rates, weights, expected = (
        np.array(case["inputs"]["lam"]),
        np.array(case["inputs"]["w"]),
        case["expected"],
    )
    found = weighted(rates, moments(case["inputs"], len(rates)), weights)
    assert_allclose(found.mean, expected["ET"], rtol=1e-10)
    assert_allclose(found.variance, expected["VarT"], rtol=1e-10)


def test_one_class_is_first_come_first_served():
    service = ServiceMoments.shifted_exponential(jnp.array([[0.3, 0.5]]), jnp.array([[0.7, 0.2]]))
    rates = np.array([[0.6, 0.9]])
    plain = fcfs(rates, service)
    for found in (priority(rates, service), weighted(rates, service, [1.0])):
        assert_allclose(found.mean, plain.mean, rtol=1e-12)
        assert_allclose(found.variance, plain.variance, rtol=1e-12)


def test_the_mean_over_classes_of_one_law_does_not_depend_on_the_order():
    service = ServiceMoments.exponential(jnp.full(3, 1.0))
    rates = np.array([0.1, 0.5, 0.2])
    total = rates @ np.asarray(priority(rates, service).mean)
    assert_allclose(total, rates.sum() * 1 / (1 - 0.8), rtol=1e-12)


def test_a_class_that_is_not_stable_delays_those_before_it_by_what_is_in_service():
    # the second class always has work: whoever comes first waits for the rest of an exponential service
    found = priority(np.array([0.4, 5.0]), ServiceMoments.exponential(jnp.array([1.0, 2.0])))
    residual = 0.4 * 1.0 + 0.6 * 2.0
    assert_allclose(found.mean[0], 1.0 + residual / 0.6, rtol=1e-12)
    assert np.isinf(found.mean[1]) and np.isinf(found.variance[1])
    shares = weighted(np.array([0.4, 0.4]), ServiceMoments.exponential(jnp.ones(2)), [0.7, 0.3])
    assert np.isfinite(shares.mean[0]) and np.isinf(shares.mean[1])


@pytest.mark.slow
def test_derivatives():
    service = ServiceMoments.shifted_exponential(
        jnp.array([[0.3, 0.5], [0.4, 0.2]]), jnp.array([[0.2, 0.3], [0.1, 0.6]])
    )
    rates = jnp.array([[0.3, 0.2], [0.5, 0.4]])

    def by_priority(rate):
        delay = priority(rate, service)
        return delay.mean, delay.variance

    def by_weight(rate, weight):
        delay = weighted(rate, service, weight)
        return delay.mean, delay.variance

    check_grads(by_priority, (rates,), order=2, rtol=1e-4)
    check_grads(by_weight, (rates, jnp.array([0.4, 0.6])), order=2, rtol=1e-3)


def test_shapes_that_do_not_fit():
    service = ServiceMoments.exponential(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="broadcast"):
        priority(np.ones(2), service)
    with pytest.raises(ValueError, match="one per class"):
        weighted(0.1 * np.ones((2, 3)), service, np.ones(3))
