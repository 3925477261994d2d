"""Laws from moments keep them; moments of laws by numerical integration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from ecjax.simulation import law_fit
from ecjax.simulation.laws import KINDS, Laws


def moments(row):
    polynomial = law_fit.polynomials(Laws(row[None], np.zeros(1)), 1)
    return polynomial[:, 0, 0]


@pytest.mark.parametrize("family", law_fit.FAMILIES)
@pytest.mark.parametrize("variance", [18.49, 0.0])
def test_moments_are_kept(family, variance):
    mean = 13.9
    third = 3476.8 if variance else mean**3
    found = moments(law_fit.fit(family, mean, variance + mean**2, third))
    assert found[0] == pytest.approx(mean, rel=1e-10)
    if family == "exponential":  # n! mean^n, also where the services do not vary
        assert found[1:] == pytest.approx([2 * mean**2, 6 * mean**3], rel=1e-9)
    elif family != "deterministic" or not variance:
        assert found[1] == pytest.approx(variance + mean**2, rel=1e-9)
    if family == "auto" or (family != "exponential" and not variance):
        assert found[2] == pytest.approx(third, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 3.0), st.floats(-2.0, 6.0))
def test_three_moments_of_any_time(variation, skewness):
    mean, deviation = 2.0, 2.0 * variation
    third = skewness * deviation**3 + 3 * mean * deviation**2 + mean**3
    second = mean**2 + deviation**2
    if third * mean <= second**2 * (1 + 1e-9):  # no non-negative law has such moments
        with pytest.raises(ValueError, match="never negative"):
            law_fit.fit("auto", mean, second, third)
        return
    row = law_fit.fit("auto", mean, second, third)
    assert row[0] >= 0
    assert moments(row) == pytest.approx([mean, second, third], rel=1e-7)


DENSITIES = {
    "exponential": (lambda u, a, b: math.exp(-u), 0, math.inf),
    "gamma": (lambda u, a, b: u ** (a - 1) * math.exp(-u) / math.gamma(a), 0, math.inf),
    "weibull": (lambda u, a, b: a * u ** (a - 1) * math.exp(-(u**a)), 0, math.inf),
    "pareto": (lambda u, a, b: a * u ** (-a - 1) / (1 - b**-a), 1, 50.0),
    "lognormal": (
        lambda u, a, b: math.exp(-(math.log(u) ** 2) / (2 * a * a)) / (u * a * math.sqrt(2 * math.pi)),
        0,
        math.inf,
    ),
}


@pytest.mark.parametrize("kind", DENSITIES)
def test_moments_are_integrals(kind):
    density, low, high = DENSITIES[kind]
    a, b = (0.4 if kind == "lognormal" else 1.7), 50.0
    row = np.zeros(9)
    row[[0, 2, 4, 5, 6]] = 0.3, 0.7, a, b, KINDS.index(kind)
    expected = [
        integrate.quad(lambda u, n=n: (0.3 + 0.7 * u) ** n * density(u, a, b), low, high, epsabs=1e-13)[0]
        for n in (1, 2, 3)
    ]
    assert moments(row) == pytest.approx(expected, rel=1e-7)


def test_stalls_are_moments_of_a_mixture_at_every_size():
    laws = Laws(np.zeros((2, 9)), np.zeros(1))
    laws.table[0, :7] = 0.3, 0.1, 0.7, 0.2, 0.25, 4.0, KINDS.index("exponential_with_stalls")
    laws.table[1, :7] = 0.3, 0.1, 0.7, 0.2, 0.0, 0.0, KINDS.index("exponential")
    polynomial = law_fit.polynomials(laws, 2)
    slowed = law_fit.polynomials(laws.slowed(np.array([3.0, 1.0])), 2)
    for size in (1.0, 7.0):
        fixed, random = 0.3 + 0.1 * size, 0.7 + 0.2 * size

        def moment(n, stall, fixed=fixed, random=random):
            return integrate.quad(lambda u: (fixed + stall + random * u) ** n * math.exp(-u), 0, math.inf)[0]

        for n in (1, 2, 3):
            expected = 0.75 * moment(n, 0.0) + 0.25 * moment(n, 4.0)
            there, alone = polynomial[n - 1].T @ size ** np.arange(4)
            assert there == pytest.approx(expected, rel=1e-9)
            assert alone == pytest.approx(moment(n, 0.0), rel=1e-9)
            assert slowed[n - 1, :, 0] @ size ** np.arange(4) == pytest.approx(3**n * expected, rel=1e-9)


def test_polynomials_in_the_chunk_size():
    laws = law_fit.empirical([np.array([1.0, 2.0, 4.0])], np.array([[0.5], [0.1]]), np.array([[0.2], [0.3]]))
    polynomial = law_fit.polynomials(laws, 1)[:, :, 0]
    for size in (1.0, 7.0):
        values = 0.5 + 0.1 * size + (0.2 + 0.3 * size) * laws.samples
        for n in (1, 2, 3):
            assert polynomial[n - 1] @ size ** np.arange(4) == pytest.approx(np.mean(values**n), rel=1e-12)


@pytest.mark.parametrize(("load", "second", "third"), [(0.3, 0.9, 4.0), (0.2, 0.5, 1.25), (0.2, 0.4, 1.5)])
def test_background_work_keeps_its_sums(load, second, third):
    rate, row = law_fit.background(load, second, third)
    found = rate * moments(row)
    assert found[:2] == pytest.approx([load, second], rel=1e-12)
    if row[6] != KINDS.index("exponential"):
        assert found[2] == pytest.approx(third, rel=1e-9)


def test_impossible_families_say_why():
    with pytest.raises(ValueError, match="above the mean"):
        law_fit.fit("shifted_exponential", 1.0, 3.0, 20.0)
    with pytest.raises(ValueError, match="at most"):
        law_fit.fit("pareto", 1.0, 1000.0, 1e7, 100.0)
