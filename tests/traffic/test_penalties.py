"""Order-statistic forms of the wait against their formulas, quadrature, differences, and what must be convex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from ecjax.queueing import Delay, latency_bound_at
from ecjax.traffic.lindley import again, forward, increments, values_and_prices
from ecjax.traffic.penalties import EXCESS, ORDER, Penalty, above, at_zero, integral, slope


def order(z, mean=1.0, scv=1.0, third=6.0, nodes=1):
    """h of a service of mean 1 s, so that z is in mean services; exponential."""
    one = np.ones(nodes)
    second = (1 + scv) * mean**2
    return Penalty(ORDER, (mean - z) * one, scv * mean**2 * one, 2 * third * mean**3 / (3 * second) * one)


def plain(penalty, x):
    at = x + penalty.shift[0]
    if penalty.kind == EXCESS:
        return (at + np.sqrt(at**2 + penalty.variance[0])) / 2
    return (at + np.sqrt(at**2 + penalty.variance[0] + penalty.q[0] * x + x * x)) / 2


def excess(z, nodes=1):
    one = np.ones(nodes)
    return Penalty(EXCESS, (1 - z) * one, 0.5 * one, 0 * one)


PENALTIES = [order(z) for z in (-100.0, -5.0, 0.3, 1.0, 4.0, 50.0)]
PENALTIES += [order(2.0, scv=0.0, third=1.0), order(1.0, scv=9.0, third=400.0), excess(0.0), excess(3.0)]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_values_slopes_and_integrals(penalty):
    first = plain(penalty, 0.0)
    assert at_zero(penalty, 0) == pytest.approx(first, rel=1e-9)
    for x in (0.0, 1e-6, 0.2, 1.5, 7.0, 300.0):
        assert above(penalty, 0, x) == pytest.approx(plain(penalty, x) - first, rel=1e-7, abs=1e-12)
        area = quad(lambda t: plain(penalty, t) - first, 0, x, limit=500, epsabs=1e-13, points=[min(x, 3.0)])[
            0
        ]
        assert integral(penalty, 0, x) == pytest.approx(area, rel=1e-7, abs=1e-9)
        if x > 0 and abs(x + penalty.shift[0]) > 1e-3:
            step = 1e-4 * x
            rise = above(penalty, 0, x + step) - above(penalty, 0, x - step)
            assert slope(penalty, 0, x) == pytest.approx(rise / (2 * step), rel=1e-4, abs=1e-5)


def drawn(seed, bins=40, m=3):
    rng = np.random.default_rng(seed)
    width = rng.uniform(0.2, 3, bins)
    work = rng.exponential(1, (bins, m)) * rng.choice([0.1, 3.0], (bins, m), p=[0.8, 0.2]) * width[:, None]
    return width, work, rng.uniform(0.5, 5, m)


@pytest.mark.parametrize(
    "penalty", [order(2.0, nodes=3), order(0.2, scv=9.0, third=400.0, nodes=3), excess(2.0, 3)]
)
def test_prices_are_differences_and_increments_more_work(penalty):
    width, work, c = drawn(1)
    _, workload, price = values_and_prices(width, work, c, penalty)
    rng = np.random.default_rng(0)
    for _ in range(5):
        change = rng.normal(size=work.shape)
        up, down = (
            forward(width, work + sign * 1e-6 * change, c, penalty, np.empty_like(work)).sum()
            for sign in (1, -1)
        )
        assert (up - down) / 2e-6 == pytest.approx(np.sum(price * change), rel=1e-6)
    more, factor, values = np.zeros((2, 40)), rng.uniform(0, 1, (2, 3)), np.empty(3)
    more[:, 7:12] = rng.uniform(0, 1, (2, 5))
    increments(width, work, c, penalty, more, factor, 7, 11, workload[6], values)
    changed = work + more.T @ factor
    before, after = (forward(width, each, c, penalty, np.empty_like(work)) for each in (work, changed))
    np.testing.assert_allclose(values, after - before, rtol=1e-8)
    again(width, changed, c, 7, 11, workload)
    np.testing.assert_allclose(workload, values_and_prices(width, changed, c)[1], rtol=1e-9)


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(-5, 20), st.floats(0, 9), st.booleans())
def test_convex_and_increasing_in_the_work(seed, share, z, scv, deep):
    """Lyapunov: the third moment is at least m_2^2; c is m_2/2."""
    second = 1 + scv
    rng = np.random.default_rng(seed)
    penalty = excess(z, 3) if deep else order(z, 1.0, scv, rng.uniform(1, 4) * second**2, 3)
    width, one, _ = drawn(seed)
    c = np.full(3, second / 2)
    other = np.random.default_rng(seed + 1).permutation(one)
    a, b, between = (
        forward(width, work, c, penalty, np.empty_like(one))
        for work in (one, other, share * one + (1 - share) * other)
    )
    chord = share * a + (1 - share) * b
    assert np.all(between <= chord + 1e-11 * (1 + chord))
    assert np.all(forward(width, one + other, c, penalty, np.empty_like(one)) >= np.maximum(a, b))
    _, _, price = values_and_prices(width, one, c, penalty)
    tangent = a + np.sum(price * (other - one), axis=0)
    assert np.all(b >= tangent - 1e-9 * (1 + np.abs(tangent)))


@pytest.mark.parametrize("z", [0.02, 0.1, 0.4])
def test_a_constant_load_has_the_latency_term_of_the_bound_at_mean_rates(z):
    """k/n reads of like nodes: z + sum pi/2 (E T - z + sqrt((E T - z)^2 + Var T)), T of M/G/1."""
    mean, scv, load = 0.05, 1.0, 0.7
    second, third = (1 + scv) * mean**2, 6 * mean**3
    c, q = second / (2 * mean), 2 * third / (3 * second)
    one = np.ones(1)
    penalty = Penalty(ORDER, (mean - z) * one, scv * mean**2 * one, q * one)
    value, _, _ = values_and_prices(np.full(200_000, 1.0), np.full((200_000, 1), load), c * one, penalty)
    rate = load / mean
    wait = rate * second / (2 * (1 - load))
    sojourn = mean + wait
    variance = second - mean**2 + rate * third / (3 * (1 - load)) + wait**2
    term = ((sojourn - z) + np.sqrt((sojourn - z) ** 2 + variance)) / 2
    # each read takes a chunk of each of 4 nodes
    assert z + 4 * value[0] / mean / (rate * 200_000) == pytest.approx(z + 4 * term, rel=1e-4)
    probabilities = np.full((1, 4), 1.0)
    exact = latency_bound_at(
        z * one, probabilities, Delay(np.full((1, 4), sojourn), np.full((1, 4), variance))
    )
    assert float(np.ravel(exact)[0]) == pytest.approx(z + 4 * term, rel=1e-12)
