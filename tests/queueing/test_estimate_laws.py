"""Laws of services and waits against closed forms, SciPy and the exact moments of M/G/1."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, interpolate, stats

from ecjax.errors import UserError
from ecjax.programs import program
from ecjax.queueing import ServiceLaw, ServiceMoments, UnitLaw, Workload, fcfs
from ecjax.queueing.lattice import gamma_mass, service_mass
from ecjax.queueing.monotone import interpolate as monotone
from ecjax.queueing.service_law import cumulative, unit_moments
from ecjax.queueing.wait_law import wait_law

KINDS = {
    "deterministic": ({}, None),
    "exponential": ({}, stats.expon()),
    "gamma": ({"shape": 2.5}, stats.gamma(2.5)),
    "lognormal": ({"sigma": 0.8}, stats.lognorm(0.8)),
    "weibull": ({"shape": 0.7}, stats.weibull_min(0.7)),
    "pareto": ({"alpha": 1.5, "ratio": 50.0}, stats.truncpareto(1.5, 50.0)),
}
POINTS = 4096

waits_of = program(wait_law, static_argnums=(4, 5))
functions = program(cumulative)
masses = program(service_mass, static_argnums=(4, 5))
gamma_masses = program(gamma_mass, static_argnums=3)
between = program(monotone)


def of_mean_one(kind):
    """Service of mean 1, half of it an offset, and its moments."""
    parameters, law = KINDS[kind]
    mean = 1.0 if law is None else law.mean()
    moments = [1.0] * 3 if law is None else [law.moment(n) for n in (1, 2, 3)]
    u_1, u_2, u_3 = (moment * (0.5 / mean) ** n for n, moment in enumerate(moments, 1))
    service = ServiceLaw.of_nodes(UnitLaw.named(kind, **parameters), offset=0.5, scale=0.5 / mean, nodes=1)
    a = 0.5
    exact = ServiceMoments(
        jnp.array([a + u_1]),
        jnp.array([a**2 + 2 * a * u_1 + u_2]),
        jnp.array([a**3 + 3 * a**2 * u_1 + 3 * a * u_2 + u_3]),
    )
    return service, exact


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "deterministic"])
def test_tables_hold_the_laws(kind):
    parameters, law = KINDS[kind]
    table = UnitLaw.named(kind, **parameters)
    assert_allclose(unit_moments(table), [law.moment(n) for n in (1, 2, 3)], rtol=3e-4)
    u = law.ppf([0.01, 0.2, 0.5, 0.9, 0.99, 0.9999])
    probability, once, twice = functions(table, jnp.asarray(u))
    assert_allclose(1 - probability, law.sf(u), rtol=2e-3)
    low = law.support()[0]
    exact = [integrate.quad(law.cdf, low, x, limit=200)[0] for x in u]
    assert_allclose(once, exact, rtol=1e-3, atol=1e-6)
    exact = [integrate.quad(lambda y, x=x: (x - y) * law.cdf(y), low, x, limit=200)[0] for x in u]
    assert_allclose(twice, exact, rtol=1e-3, atol=1e-6)


def test_small_samples_keep_their_jumps_and_large_ones_their_law():
    table = UnitLaw.empirical([3.0, 1.0, 1.0, 2.0])
    probability, once, _ = functions(table, jnp.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0]))
    assert_allclose(probability, [0, 0.5, 0.5, 0.75, 1, 1])
    assert_allclose(once, [0, 0, 0.25, 0.5, 1.25, 2.25])
    rng = np.random.default_rng(1)
    sample = rng.gamma(2.0, size=100_000)
    moments = [np.mean(sample**n) for n in (1, 2, 3)]
    assert_allclose(unit_moments(UnitLaw.empirical(sample)), moments, rtol=2e-3)
    constant = unit_moments(UnitLaw.empirical(np.full(5000, 2.0)))
    assert_allclose(constant, [2.0, 4.0, 8.0], rtol=1e-12)


def test_lattices_keep_means_and_bounds_lie_above():
    unit = UnitLaw.named("gamma", shape=2.0)
    step, points = 0.037, 2048
    place = np.arange(points) * step
    plain, upper = (np.asarray(masses(unit, 0.3, 0.5, step, points, upper)) for upper in (False, True))
    assert_allclose(plain @ place, 1.3, rtol=1e-4)
    law = stats.gamma(2.0, 0.3, 0.5)
    assert (np.cumsum(upper) <= law.cdf(place) + 1e-4).all()
    assert_allclose(np.cumsum(upper), law.cdf(place), atol=1e-4)
    delay = np.asarray(gamma_masses(0.9, 0.4, step, points))
    assert_allclose([delay.sum(), delay @ place], [1, 0.9], rtol=1e-6)
    constant = np.asarray(gamma_masses(0.9, 0.0, step, points))
    assert_allclose([constant.sum(), constant @ place, (constant > 1e-9).sum()], [1, 0.9, 2], rtol=1e-6)


def wait_at(law, x):
    """Pr(W <= x) of node 0, linear between the middles of the lattice."""
    sums = law.idle[0] + np.cumsum(np.asarray(law.mass[0]))
    return np.interp(x, (np.arange(POINTS) + 0.5) * float(law.step[0]), sums)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_exponential_service_waits_as_in_mm1(rho):
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=2.0, nodes=1)
    law = waits_of(jnp.array([[rho / 2]]), jnp.array([[1.0]]), service, None, POINTS, False)
    assert_allclose(law.idle, 1 - rho, rtol=2e-4)
    x = np.array([0.3, 1, 2, 5, 8]) * 2 / (1 - rho)
    assert_allclose(wait_at(law, x), 1 - rho * np.exp(-x * (1 - rho) / 2), atol=1e-3 * rho)


@pytest.mark.parametrize("rho", [0.2, 0.7])
def test_constant_service_waits_as_in_md1(rho):
    service = ServiceLaw.of_nodes(UnitLaw.named("deterministic"), scale=1.0, nodes=1)
    law = waits_of(jnp.array([[rho]]), jnp.array([[1.0]]), service, None, POINTS, False)

    def erlang(x):
        terms = (
            (-rho * (x - j)) ** j / math.factorial(j) * math.exp(rho * (x - j)) for j in range(int(x) + 1)
        )
        return (1 - rho) * sum(terms)

    x = np.array([0.25, 0.6, 1.4, 2.3, 4.7])
    assert_allclose(wait_at(law, x), [erlang(v) for v in x], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_waits_have_the_moments_of_mg1(kind):
    service, exact = of_mean_one(kind)
    for rho in (0.3, 0.8):
        law = waits_of(jnp.array([[rho]]), jnp.array([[1.0]]), service, None, POINTS, False)
        place = np.arange(POINTS) * float(law.step[0])
        mean = np.asarray(law.mass[0]) @ place
        deviation = math.sqrt(np.asarray(law.mass[0]) @ place**2 - mean**2)
        wait = fcfs(jnp.array([rho]), exact)
        assert_allclose(law.idle[0] + law.mass[0].sum(), 1, atol=1e-5)
        assert_allclose(mean, wait.mean[0] - 1, rtol=1e-3)
        # the lattice splits each part between two points, and a cut tail has lost its end
        assert_allclose(deviation, math.sqrt(wait.variance[0] - exact.variance[0]), rtol=5e-3)


def test_waits_of_several_sizes_and_background():
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), offset=[0.1, 0.2], scale_per_byte=[0.5, 1.0])
    rates, sizes = jnp.array([[0.3, 0.1], [0.1, 0.1]]), jnp.array([[1.0, 1.0], [3.0, 3.0]])
    other = np.array([[0.1, 0.2], [0.3, 0.5], [1.5, 2.0]])
    law = waits_of(rates, sizes, service, other, POINTS, False)
    first, second, third = service.moments(sizes)
    sojourn = fcfs(rates, ServiceMoments(first, second, third), other)
    place = np.arange(POINTS)[None] * np.asarray(law.step)[:, None]
    mean = (np.asarray(law.mass) * place).sum(axis=1)
    square = (np.asarray(law.mass) * place**2).sum(axis=1)
    assert_allclose(mean, (sojourn.mean - first)[0], rtol=1e-3)
    assert_allclose(square - mean**2, (sojourn.variance - second + first**2)[0], rtol=2e-3)


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        ("beta", {}, "kind 'beta' is unknown"),
        ("gamma", {}, "['shape'] needed"),
        ("gamma", {"shape": -1.0}, "shape is -1.0"),
        ("pareto", {"alpha": 2.0, "ratio": 1.0}, "ratio is 1.0"),
    ],
)
def test_wrong_laws_are_named(kind, parameters, words):
    with pytest.raises(UserError) as mistake:
        UnitLaw.named(kind, **parameters)
    assert words in str(mistake.value)


def test_wrong_samples_and_workloads_are_named():
    with pytest.raises(UserError, match="sample 1 is -2.0"):
        UnitLaw.empirical([1.0, -2.0])
    with pytest.raises(UserError, match="no samples"):
        UnitLaw.empirical([])
    with pytest.raises(UserError, match=r"scale\[1\] is -1.0"):
        ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=[1.0, -1.0])
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=[1.0, 1.0])
    with pytest.raises(UserError, match=r"rates\[1\] is nan"):
        Workload.of([1.0, math.nan], 1.0, 2, service)
    with pytest.raises(UserError, match=r"k\[0\] is 3, it must be whole and at most 2"):
        Workload.of([1.0], 1.0, 3, service)
    with pytest.raises(UserError, match="takes no time at node 1"):
        Workload.of([1.0], 1.0, 1, ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=[1.0, 0.0]))
    with pytest.raises(UserError, match="rates are all 0"):
        Workload.of([0.0], 1.0, 1, service)


def test_monotone_interpolation_is_that_of_scipy():
    rng = np.random.default_rng(6)
    x, y = np.cumsum(rng.random(12)), np.cumsum(rng.random(12) * (rng.random(12) < 0.8))
    inside = np.linspace(x[1], x[-2], 50)
    assert_allclose(between(inside, x, y), interpolate.PchipInterpolator(x, y)(inside), rtol=1e-12)
    whole = np.asarray(between(np.linspace(x[0] - 1, x[-1] + 1, 200), x, y))
    assert (np.diff(whole) >= -1e-12).all() and whole[0] == y[0] and whole[-1] == y[-1]
    # a jump: two points in one place
    jump = np.asarray(
        between(jnp.array([0.5, 1.0, 1.5]), jnp.array([0.0, 1.0, 1.0, 2.0]), jnp.array([0.0, 0.0, 1.0, 1.0]))
    )
    assert_allclose(jump, [0, 0, 1])
