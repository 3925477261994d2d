"""J of a log's arrivals against a plain recursion, values of 40 digits, differences, and its theory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.traffic.lindley import again, forward, increments, values_and_prices, waits
from ecjax.traffic.penalties import mean_wait

# computed with 40 digits: work, bin, c, X, J, price
MEAN = mean_wait(3)
PRECISE = [
    (
        [0.5] * 6,
        1.0,
        0.4,
        [
            0.184428877022476,
            0.2760772460798941,
            0.32659230061667976,
            0.35581931539633105,
            0.37316997767178817,
            0.3836208913755455,
        ],
        0.9267394588628167,
        [
            0.6306088661764784,
            0.8375623495846003,
            0.9205772713026854,
            0.9211351741516609,
            0.846198096061836,
            0.6800657175975623,
        ],
    ),
    (
        [0.2, 0.2, 5.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        2.0,
        0.1,
        [
            0.010468635614927304,
            0.011073769708368045,
            3.0740840729651326,
            1.4068144194609833,
            0.1641008597917605,
            0.008439930169170922,
            0.00040344538075355975,
            1.9215200540629775e-05,
            9.150175233576758e-07,
            4.3572281098392685e-08,
        ],
        8.790810618120112,
        [
            0.03592081734980835,
            0.2635248369808894,
            4.156587524570191,
            2.2410871359845714,
            0.44730583333906415,
            0.01665811272357917,
            0.000771481636071773,
            3.668644693889113e-05,
            1.7469479847930583e-06,
            8.506970802762273e-08,
        ],
    ),
]


def plain(width, work, c):
    """The recursion as it is printed, one node."""
    x, total = 0.0, 0.0
    for d, a in zip(width, work, strict=True):
        y = x + a
        x = ((y - d - c) + ((y - d - c) ** 2 + 4 * c * y) ** 0.5) / 2
        total += d * x * x / (x + c) if x + c > 0 else 0.0
    return total + x * x / 2


def bursts(seed, bins=40, m=3):
    rng = np.random.default_rng(seed)
    width = rng.uniform(0.2, 3, bins)
    work = rng.exponential(1, (bins, m)) * rng.choice([0.1, 3.0], (bins, m), p=[0.8, 0.2]) * width[:, None]
    return width, work, rng.uniform(0.01, 0.5, m)


@pytest.mark.parametrize(("work", "bin_s", "c", "x", "j", "price"), PRECISE)
def test_values_to_forty_digits(work, bin_s, c, x, j, price):
    width = np.full(len(work), bin_s)
    value, workload, prices = values_and_prices(width, np.array(work)[:, None], np.array([c]))
    np.testing.assert_allclose(value, [j], rtol=1e-12)
    np.testing.assert_allclose(workload[:, 0], x, rtol=1e-12)
    np.testing.assert_allclose(prices[:, 0], price, rtol=1e-12)


def test_host_jax_and_plain_agree():
    width, work, c = bursts(1)
    value, workload, price = values_and_prices(width, work, c)
    np.testing.assert_allclose(value, [plain(width, work[:, j], c[j]) for j in range(3)], rtol=1e-11)
    by_jax, x = jax.jit(waits)(width, work, c)
    np.testing.assert_allclose(by_jax, value, rtol=1e-12)
    np.testing.assert_allclose(x, workload, rtol=1e-11)
    slope = jax.grad(lambda a: jnp.sum(waits(width, a, c)[0]))(work)
    np.testing.assert_allclose(slope, price, rtol=1e-9)


def test_prices_are_differences():
    width, work, c = bursts(2)
    _, _, price = values_and_prices(width, work, c)
    rng = np.random.default_rng(0)
    for _ in range(10):
        change = rng.normal(size=work.shape)
        step = 1e-6
        up, down = (
            forward(width, work + sign * step * change, c, MEAN, np.empty_like(work)).sum()
            for sign in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * step), np.sum(price * change), rtol=1e-6)


@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_convex_and_increasing_in_the_work(seed, share, fluid):
    width, one, c = bursts(seed)
    c = np.zeros_like(c) if fluid else c
    other = np.random.default_rng(seed + 1).permutation(one)
    mixed = share * one + (1 - share) * other
    a, b, between = (forward(width, work, c, MEAN, np.empty_like(one)) for work in (one, other, mixed))
    chord = share * a + (1 - share) * b
    assert np.all(between <= chord + 1e-12 * (1 + chord))
    more = forward(width, one + other, c, MEAN, np.empty_like(one))
    assert np.all(more >= np.maximum(a, b))
    # the tangent is below: what the lower bound on plans stands on
    _, _, price = values_and_prices(width, one, c)
    tangent = a + np.sum(price * (other - one), axis=0)
    assert np.all(b >= tangent - 1e-9 * (1 + np.abs(tangent)))


@pytest.mark.parametrize("bin_s", [0.1, 1.0, 20.0])
def test_constant_load_waits_as_by_pollaczek_and_khinchine(bin_s):
    rho, c, m_1 = 0.7, 0.06, 0.05
    width = np.full(20000, bin_s)
    value, workload, _ = values_and_prices(width, np.full((20000, 1), rho * bin_s), np.array([c]))
    np.testing.assert_allclose(workload[-1], c * rho / (1 - rho), rtol=1e-9)
    # mean wait of a chunk: (J / m_1) / chunks read
    chunks = rho * width.sum() / m_1
    np.testing.assert_allclose(value / m_1 / chunks, c * rho / (1 - rho), rtol=2e-3)


def test_fluid_queue():
    width, work = np.array([1.0, 2.0, 1.0, 1.0]), np.array([[3.0], [1.0], [0.0], [0.5]])
    value, workload, price = values_and_prices(width, work, np.zeros(1))
    np.testing.assert_allclose(workload[:, 0], [2, 1, 0, 0])
    np.testing.assert_allclose(value, [2 * 1 + 1 * 2])
    np.testing.assert_allclose(price[:, 0], [3, 2, 0, 0])
    by_jax, x = waits(width, work, np.zeros(1))
    np.testing.assert_allclose(x, workload)
    np.testing.assert_allclose(by_jax, value)


def test_increments_are_the_recursion_with_more_work():
    width, work, c = bursts(3)
    _, workload, _ = values_and_prices(width, work, c)
    rng = np.random.default_rng(3)
    more, factor = np.zeros((2, 40)), rng.uniform(0, 1, (2, 3))
    more[:, 7:12] = rng.uniform(0, 1, (2, 5))
    values = np.empty(3)
    increments(width, work, c, MEAN, more, factor, 7, 11, workload[6], values)
    changed = work + more.T @ factor
    before, after = (forward(width, each, c, MEAN, np.empty_like(work)) for each in (work, changed))
    np.testing.assert_allclose(values, after - before, rtol=1e-8)
    again(width, changed, c, 7, 11, workload)
    np.testing.assert_allclose(workload, values_and_prices(width, changed, c)[1], rtol=1e-9)
