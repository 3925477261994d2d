"""Estimates of classes with queues of their own: exact cases, and what they are where there is one class."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from ecjax.programs import program
from ecjax.queueing import (
    ServiceLaw,
    ServiceMoments,
    UnitLaw,
    Workload,
    estimate_latency,
    priority,
    weighted,
)
from ecjax.queueing.class_queues import ClassWrites, partitioned_queues, priority_queues
from ecjax.queueing.priority_dependence import priority_correlations

# compilation of its programs takes minutes in all
pytestmark = pytest.mark.slow

# one shape, so that few programs are compiled: 4 files of two classes, 5 nodes, k up to 3
M, MOST, CLASSES = 5, 3, 2
OF_FILE = jnp.array([0, 1, 0, 1])
SIZES, RATES = np.array([1.0, 1.0, 2.0, 2.0]), np.array([0.3, 0.2, 0.1, 0.2])
SPEEDS = np.array([1.3, 1.1, 1.0, 0.9, 0.8])
PI = np.array([[0.8, 0.7, 0.6, 0.5, 0.4], [1.0, 0.0, 0.0, 1.0, 1.0], [0.6] * 5, [0.4, 0.4, 0.4, 0.4, 0.4]])
WEIGHTS = np.array([[0.3, 0.4, 0.5, 0.6, 0.5], [0.7, 0.6, 0.5, 0.4, 0.5]])
SERVICE = ServiceLaw.of_nodes(UnitLaw.named("exponential"), offset=0.1, scale_per_byte=0.4 / SPEEDS)

estimated = program(estimate_latency, static_argnames="group_count")
_priority = program(priority_queues, static_argnums=3)
_parts = program(partitioned_queues)
APART = np.zeros((CLASSES, 2, M, M))  # no two nodes are written to at once
NOTHING = ClassWrites(np.zeros((4, M)), None, APART)


def by_priority(pi, load, of_file=OF_FILE, writes=NOTHING):
    return _priority(pi, load, of_file, CLASSES, writes)


def by_parts(pi, load, weights, of_file=OF_FILE):
    return _parts(pi, load, of_file, weights, NOTHING)


def reads(rates=RATES, service=SERVICE, other=(0.0, 0.0, 0.0)):
    return Workload.of(rates, SIZES, MOST, service, None, np.outer(other, np.ones(M)))


def told(pi, load, queues):
    return estimated(pi, load, groups=OF_FILE, group_count=CLASSES, queues=queues)


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "partitioned"])
def test_one_node_per_read_is_exact(queue):
    pi = np.array([[0.3, 0.2, 0.2, 0.2, 0.1]] * 4)
    load = reads(3 * RATES)
    queues = by_priority(pi, load) if queue == "priority" else by_parts(pi, load, WEIGHTS)
    # moments of each class over its two sizes
    member = np.asarray(OF_FILE)[None] == np.arange(CLASSES)[:, None]
    moments = np.stack(SERVICE.moments(jnp.asarray(SIZES)[:, None]))
    rates = np.einsum("ki,i,im->km", member, 3 * RATES, pi)
    service = ServiceMoments(
        *jnp.asarray(np.einsum("ki,i,im,nim->nkm", member, 3 * RATES, pi, moments) / rates)
    )
    exact = (priority(rates, service) if queue == "priority" else weighted(rates, service, WEIGHTS)).mean
    own = np.asarray(service.first) / (1 if queue == "priority" else WEIGHTS)
    slow = 1 / (np.ones_like(WEIGHTS) if queue == "priority" else WEIGHTS)[np.asarray(OF_FILE)]
    wait = (np.asarray(exact) - own)[np.asarray(OF_FILE)]
    mean = np.sum(pi * (wait + moments[0] * slow), axis=1)
    found = told(pi, load, queues)
    assert_allclose(found.file_mean, mean, rtol=1e-3)
    share = np.asarray(load.rate)
    for k in range(CLASSES):
        assert_allclose(found.group_mean[k], (share * member[k]) @ mean / (share @ member[k]), rtol=1e-3)
    assert_allclose(found.load, np.sum(rates * np.asarray(service.first), axis=0), rtol=1e-6)


@pytest.mark.slow
def test_partitions_are_queues_of_their_own():
    """What one class meets is a workload of its files alone on slower nodes."""
    load = reads()
    found = told(PI, load, by_parts(PI, load, WEIGHTS))
    for k in range(CLASSES):
        slower = reads(np.where(np.asarray(OF_FILE) == k, RATES, 0), SERVICE.slowed(1 / WEIGHTS[k]))
        alone = estimated(PI, slower)
        own = np.asarray(OF_FILE) == k
        assert_allclose(found.file_mean[own], alone.file_mean[own], rtol=1e-3)
        assert_allclose(found.file_quantiles[own], alone.file_quantiles[own], rtol=2e-3)
        assert_allclose(found.group_mean[k], alone.mean, rtol=1e-3)
        assert_allclose(found.group_quantiles[k], alone.quantiles, rtol=5e-3)


@pytest.mark.parametrize("queue", ["priority", "partitioned"])
def test_all_in_one_class_is_first_come_first_served(queue):
    load, second = reads(other=(0.1, 0.3, 1.5)), jnp.ones(4, int)
    plain = estimated(PI, load)
    if queue == "priority":
        found = told(PI, load, by_priority(PI, load, second))
    else:
        found = told(PI, load, by_parts(PI, load, np.stack([np.zeros(M), np.ones(M)]), second))
    assert_allclose(found.file_mean, plain.file_mean, rtol=1e-6)
    assert_allclose(found.file_quantiles, plain.file_quantiles, rtol=1e-6)


@pytest.mark.parametrize("queue", ["priority", "partitioned"])
def test_derivatives_are_finite_where_a_node_is_not_read_and_where_there_is_overload(queue):
    pi = np.roll(PI, 1, axis=0)
    pi[:, 2] = 0.0

    @jax.jit
    @jax.grad
    def slope(pi, load):
        found = by_priority(pi, load) if queue == "priority" else by_parts(pi, load, WEIGHTS)
        return found.correlation.sum() + found.waits.mass[:, :, :9].sum() + found.waits.idle.sum()

    for more in (1, 12):
        assert np.isfinite(slope(pi, reads(RATES * more))).all()


def test_overload_concerns_the_class_that_has_it():
    load = reads(RATES * np.array([1, 12, 1, 12]))
    found = told(PI, load, by_priority(PI, load))
    assert_allclose(np.isinf(found.file_mean), [False, True, False, True])
    assert np.isfinite(found.group_mean[0]) and np.isinf(found.group_mean[1])
    assert np.isfinite(found.group_quantiles[0]).all() and np.isinf(found.mean)
    # no part of a node at all, for a class that only its second file reads it by
    pi, load = PI.copy(), reads()
    pi[1] = [1.0, 0.0, 0.0, 1.0, 1.0]
    weights = np.array([[1.0, 0.4, 0.5, 0.6, 0.5], [0.0, 0.6, 0.5, 0.4, 0.5]])
    pi[3] = [0.0, 0.5, 0.5, 0.5, 0.5]
    found = told(pi, load, by_parts(pi, load, weights))
    assert_allclose(np.isinf(found.file_mean), [False, True, False, False])


def test_writes_are_work_of_the_class_of_their_file():
    """Reads of one node and writes of another file: the moments of both, by class."""
    pi = np.array([[0.3, 0.2, 0.2, 0.2, 0.1]] * 4)
    load, writes = reads(), np.zeros((4, M))
    writes[2] = 0.1
    found = told(pi, load, by_priority(pi, load, writes=ClassWrites(writes, None, APART)))
    moments = np.stack(SERVICE.moments(jnp.asarray(SIZES)[:, None]))
    member = np.asarray(OF_FILE)[None] == np.arange(CLASSES)[:, None]
    accesses = RATES[:, None] * pi + writes
    rates = np.einsum("ki,im->km", member, accesses)
    service = ServiceMoments(*jnp.asarray(np.einsum("ki,im,nim->nkm", member, accesses, moments) / rates))
    wait = np.asarray(priority(rates, service).mean - service.first)[np.asarray(OF_FILE)]
    assert_allclose(found.file_mean, np.sum(pi * (wait + moments[0]), axis=1), rtol=1e-3)


def test_a_class_before_much_work_depends_less():
    """Two alike classes: the last depends as all work does first come, first served, the first less."""
    pi, size = np.full((2, M), 0.6), np.ones(2)
    member, none = jnp.array([[True, False], [False, True]]), jnp.zeros((2, 3, M))
    correlations = jax.jit(priority_correlations)

    def of_first(share, load):
        rates = load / (0.6 * 0.5) * np.array([share, 1 - share])
        found = correlations(pi, rates, size, SERVICE_ALIKE, member, none)
        together = correlations(
            pi, rates, size, SERVICE_ALIKE, jnp.array([[True, True], [False, False]]), none
        )
        assert_allclose(found[1], together[0], rtol=1e-6, atol=1e-6)
        return float(found[0, 0, 1]), float(found[1, 0, 1])

    few, many, almost_all = of_first(0.05, 0.8), of_first(0.5, 0.8), of_first(0.9999, 0.8)
    assert 0 < few[0] < many[0] < almost_all[0] < almost_all[1]
    assert_allclose(almost_all[0], almost_all[1], rtol=2e-2)
    light = of_first(0.05, 1e-4)
    assert_allclose(*light, rtol=1e-2)


SERVICE_ALIKE = ServiceLaw.of_nodes(UnitLaw.named("exponential"), offset=0.1, scale=0.4, nodes=M)
