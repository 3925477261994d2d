"""Services that stall: the queue of one node by Pollaczek and Khinchine, laws of services and of reads by draws."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ecjax.predict.workload import ESTIMATE, TAIL_BOUND, node_laws
from ecjax.programs import program
from ecjax.queueing.lattice import residual_mass, service_mass
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.service_law import ServiceLaw, Stalls, UnitLaw
from ecjax.queueing.workload import Workload
from ecjax.simulation import law_fit
from ecjax.simulation.laws import KINDS, Laws
from ecjax.traffic.host_laws import host_readers
from ecjax.traffic.host_service import host_moments

FIXED, BY_BYTE, RANDOM, RANDOM_BY_BYTE = 0.002, 2e-9, 0.004, 3e-9
PROBABILITY, STALL = 0.02, 0.08
SIZES = np.array([64e3, 1e6])
# one shape for estimates: nodes, and most chunks of a read
NODES, CHUNKS = 6, 4

masses, residual_masses = (program(mass, static_argnums=(4, 5)) for mass in (service_mass, residual_mass))


def stalling(nodes=1):
    return ServiceLaw.of_nodes(
        UnitLaw.named("exponential"),
        FIXED,
        BY_BYTE,
        RANDOM,
        RANDOM_BY_BYTE,
        nodes,
        Stalls(jnp.full((nodes, 1), PROBABILITY), jnp.full((nodes, 1), STALL)),
    )


def cumulative(x, size):
    law = stats.expon(FIXED + BY_BYTE * size, RANDOM + RANDOM_BY_BYTE * size)
    return (1 - PROBABILITY) * law.cdf(x) + PROBABILITY * law.cdf(x - STALL)


def draws(random, size, count):
    stalls = STALL * (random.random(count) < PROBABILITY)
    return FIXED + BY_BYTE * size + random.exponential(RANDOM + RANDOM_BY_BYTE * size, count) + stalls


def test_moments_are_those_of_the_laws_of_a_replay():
    table = np.zeros((2, 9))
    table[:, :4] = FIXED, BY_BYTE, RANDOM, RANDOM_BY_BYTE
    table[:, 6] = KINDS.index("exponential")
    table[0, 4:7] = PROBABILITY, STALL, KINDS.index("exponential_with_stalls")
    laws = Laws(table, np.zeros(1))
    service = node_laws(laws, 2)
    expected = np.einsum("npm,sp->nsm", law_fit.polynomials(laws, 2), SIZES[:, None] ** np.arange(4))
    np.testing.assert_allclose(service.moments(SIZES[:, None]), expected, rtol=1e-4)
    np.testing.assert_allclose(host_moments(service, SIZES), expected, rtol=1e-4)
    slower = service.slowed(jnp.array([2.0, 1.0])).moments(SIZES[:, None])
    for power, moment in enumerate(slower, start=1):
        np.testing.assert_allclose(moment[:, 0], 2**power * expected[power - 1][:, 0], rtol=1e-4)


@pytest.mark.parametrize("upper", [False, True])
def test_masses_on_a_lattice_are_the_law(upper):
    points, step, size = 4096, 5e-5, SIZES[1]
    parts = FIXED + BY_BYTE * size, RANDOM + RANDOM_BY_BYTE * size, step, points, upper
    stalls = Stalls(jnp.array([PROBABILITY]), jnp.array([STALL]))
    mass = np.asarray(masses(UnitLaw.named("exponential"), *parts, stalls))
    x = np.arange(points) * step
    # running sums that keep means are averages over the step from a point on
    expected = cumulative(x if upper else x + step / 2, size)
    np.testing.assert_allclose(np.cumsum(mass), expected, atol=2e-4)
    residual = np.asarray(residual_masses(UnitLaw.named("exponential"), *parts, stalls))
    later = 1 - cumulative(x, size)
    # the density steps down where a stall begins
    np.testing.assert_allclose(np.cumsum(residual), np.cumsum(later) * step, atol=step)


def test_waits_of_one_node_are_those_of_pollaczek_and_khinchine():
    rate, service = np.array([40.0, 12.0]), stalling(NODES)
    first, second, third = (np.asarray(moment)[:, 0] for moment in service.moments(SIZES[:, None]))
    reads = np.zeros((2, NODES))
    reads[:, 0] = 1
    estimate = ESTIMATE(jnp.asarray(reads), Workload.of(rate, SIZES, CHUNKS, service), levels=(0.99,))
    wait = rate @ second / (2 * (1 - rate @ first))
    np.testing.assert_allclose(estimate.file_mean, first + wait, rtol=2e-3)
    # by Lindley's recursion
    random, count = np.random.default_rng(1), 400_000
    large = random.random(count) < rate[1] / rate.sum()
    services = np.where(large, draws(random, SIZES[1], count), draws(random, SIZES[0], count))
    waits, now = np.zeros(count), 0.0
    for place, gap in enumerate(random.exponential(1 / rate.sum(), count - 1)):
        now = max(now + services[place] - gap, 0.0)
        waits[place + 1] = now
    expected = np.quantile(waits + services, 0.99)
    assert float(estimate.quantiles[0]) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("probability", "stall"), [(1e-5, 30.0), (1e-4, 60.0)])
def test_stalls_of_a_minute_leave_milliseconds_sharp(probability, stall):
    """Of six idle nodes reads take four chunks of 5 ms and an exponential of 1 ms; few reads meet a stall."""
    stalls = Stalls(jnp.full((NODES, 1), probability), jnp.full((NODES, 1), stall))
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), 5e-3, scale=1e-3, nodes=NODES, stalls=stalls)
    load = Workload.of(np.full(2, 5e-8), SIZES, CHUNKS, service)
    reads = jnp.asarray(np.full((2, NODES), CHUNKS / NODES))
    slowest = -np.log(1 - (0.99 / (1 - probability) ** 4) ** 0.25)
    estimate = ESTIMATE(reads, load, levels=(0.99,))
    assert float(estimate.quantiles[0]) == pytest.approx(5e-3 + 1e-3 * slowest, rel=0.03)
    mean = 5e-3 + 1e-3 * (1 + 1 / 2 + 1 / 3 + 1 / 4) + (1 - (1 - probability) ** 4) * stall
    # linear between points of the law, of which few are between the two
    assert float(estimate.mean) == pytest.approx(mean, rel=0.15)
    bound = TAIL_BOUND(reads, load, levels=(0.99,))
    assert 5e-3 + 1e-3 * slowest <= float(bound.quantiles[0])


def test_laws_on_the_host_have_them_beside_connection_delays():
    points, none = np.linspace(0.001, 0.2, 50), np.zeros(1)
    chosen = np.ones((2, 1)), SIZES, SIZES, stalling()
    of = host_readers(points, *chosen, Delay(none, none))
    for place, size in enumerate(SIZES):
        np.testing.assert_allclose(of.alone[place, 0], cumulative(points, size), atol=1e-3)
    connecting = host_readers(points, *chosen, Delay(none + 0.01, none + 1e-5))
    random = np.random.default_rng(2)
    delays = random.gamma(10.0, 1e-3, 400_000)
    values = np.sort(draws(random, SIZES[0], 400_000) + delays)
    np.testing.assert_allclose(
        connecting.alone[0, 0], np.searchsorted(values, points) / len(values), atol=6e-3
    )
