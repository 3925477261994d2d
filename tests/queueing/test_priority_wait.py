"""Waits under priority against closed forms, exact moments, and the transform of Kella and Yechiali."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from ecjax.programs import program
from ecjax.queueing import ServiceLaw, ServiceMoments, UnitLaw, priority
from ecjax.queueing.ballot import worked_off
from ecjax.queueing.priority_wait import priority_wait_law
from ecjax.queueing.wait_law import wait_law

POINTS, SIZES = 4096, 2
waits_of = program(priority_wait_law, static_argnums=4)
served = program(worked_off)

LAWS = {
    "exponential": UnitLaw.named("exponential"),
    "gamma": UnitLaw.named("gamma", shape=3.0),
    "deterministic": UnitLaw.named("deterministic"),
}
CLASSES = 3
SHARES = np.array([[0.2, 0.05, 0.25], [0.1, 0.25, 0.15]])  # of the load of each size, by class
BYTES = np.array([[1.0], [3.0]])


def moments_of(law):
    """Pr(W = 0), mean and variance of the waits of node 0."""
    place = np.arange(law.mass.shape[-1])[None] * np.asarray(law.step)
    mass, idle = np.asarray(law.mass)[:, 0], np.asarray(law.idle)[:, 0]
    mean = np.sum(mass * place, axis=1)
    return idle + mass.sum(axis=1), mean, np.sum(mass * place**2, axis=1) - mean**2


def exact(rates, service):
    """Waits by their formulas, from the moments of each class over its sizes."""
    first, second, third = (np.asarray(moment)[:, 0] for moment in service.moments(jnp.asarray(BYTES)))
    total = rates.sum(axis=1)
    by_class = ServiceMoments(*(jnp.asarray(rates @ moment / total) for moment in (first, second, third)))
    sojourn = priority(total, by_class)
    return sojourn.mean - by_class.first, sojourn.variance - by_class.variance


@pytest.mark.parametrize("kind", list(LAWS))
@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_moments_are_the_exact_ones(kind, rho):
    service = ServiceLaw.of_nodes(LAWS[kind], offset=0.1, offset_per_byte=0.1, scale_per_byte=0.3, nodes=1)
    first = np.asarray(service.moments(jnp.asarray(BYTES))[0])[:, 0]
    rates = rho * SHARES.T / first[None, :]
    law = waits_of(jnp.asarray(rates[:, :, None]), jnp.asarray(BYTES), service, None, POINTS)
    total, mean, variance = moments_of(law)
    wanted = exact(rates, service)
    assert_allclose(total, 1, rtol=1e-6)
    assert_allclose(law.idle[:, 0], 1 - rho, rtol=2e-4)
    assert_allclose(mean, wanted[0], rtol=5e-4)
    assert_allclose(variance, wanted[1], rtol=3e-3)
    assert np.asarray(law.stable).all()


def two_exponential(rho):
    """Two classes of M/M/1 with a mean service of 1, in equal parts; the other size is not read."""
    service = ServiceLaw.of_nodes(LAWS["exponential"], scale=1.0, nodes=1)
    rates = np.zeros((CLASSES, SIZES, 1))
    rates[0, 0] = rates[1, 1] = rho / 2
    return waits_of(jnp.asarray(rates), jnp.asarray(BYTES), service, None, POINTS)


def tail_at(law, k, t):
    """Pr(W_k > t), linear between the middles of the lattice."""
    sums = np.asarray(law.idle)[k, 0] + np.cumsum(np.asarray(law.mass)[k, 0])
    return 1 - np.interp(t, (np.arange(POINTS) + 0.5) * float(law.step[k, 0]), sums)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_exponential_services_in_closed_form(rho):
    law, half = two_exponential(rho), rho / 2
    t = np.array([0.3, 1.0, 3.0, 6.0])
    assert_allclose(tail_at(law, 0, t), rho * np.exp(-(1 - half) * t), atol=1e-3)

    def transform(s):
        busy = (half + 1 + s - mpmath.sqrt((half + 1 + s) ** 2 - 4 * half)) / (2 * half)
        sigma = s + half - half * busy
        return (1 - rho) * sigma / (s - half + half / (1 + sigma))

    for t in (2.0, 10.0, 40.0):
        wanted = mpmath.invertlaplace(lambda s: (1 - transform(s)) / s, t, method="talbot")
        assert_allclose(tail_at(law, 1, t), float(wanted), atol=1e-3)


def test_classes_without_reads_leave_one_that_is_served_first_come_first_served():
    service = ServiceLaw.of_nodes(LAWS["gamma"], scale=1.0, scale_per_byte=0.2, nodes=1)
    rates = np.zeros((CLASSES, SIZES, 1))
    rates[1] = 0.1
    found = waits_of(jnp.asarray(rates), jnp.asarray(BYTES), service, None, POINTS)
    plain = jax.jit(wait_law, static_argnums=4)(
        jnp.asarray(rates[1]), jnp.asarray(BYTES), service, None, POINTS
    )
    assert_allclose(found.mass[1], plain.mass, atol=1e-9)
    assert_allclose(found.step[1], plain.step, rtol=1e-12)


def test_a_class_that_is_not_stable_delays_the_others_by_what_is_in_service():
    service = ServiceLaw.of_nodes(LAWS["exponential"], scale=1.0, nodes=1)
    rates = np.zeros((CLASSES, SIZES, 1))
    rates[0, 0], rates[1, 1], rates[2, 0] = 0.4, 5.0, 0.1
    law = waits_of(jnp.asarray(rates), jnp.asarray(BYTES), service, None, POINTS)
    assert_allclose(law.stable[:, 0], [True, False, False])
    total, mean, _ = moments_of(law)
    assert_allclose(total[0], 1, rtol=1e-4)
    assert_allclose(mean[0], 1 / 0.6, rtol=1e-3)
    assert np.isfinite(np.asarray(law.mass)).all()


def test_a_unit_of_work_is_worked_off_after_borel_many_units():
    """Constant services of one step: the number served in a busy period has the law of Borel."""
    points, rate = 512, 0.6
    one = np.eye(1, points, 1)[0]
    found = served(one, rate * one, 1.0)
    n = np.arange(1, points)
    wanted = np.exp(-rate * n + (n - 1) * np.log(rate * n) - special.gammaln(n + 1))
    assert_allclose(found[1:], wanted, atol=1e-9)
    assert abs(found[0]) < 1e-12
    # nothing arrives: an amount takes as long as it is
    amount = np.zeros(points)
    amount[[0, 5, 300]] = 0.2, 0.5, 0.3
    assert_allclose(served(amount, 0 * one, 1.0), amount, atol=1e-9)
