import math

import mpmath
import numpy as np
import pytest

from ecjax.tables.statistics.affine import AffineLaw, fit_affine, trimmed_exponential

TRUTH = AffineLaw(0.020, 40e-9, 0.015, 25e-9)
SIZES = np.array([2.5e5, 5e5, 1e6, 2e6])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_moments_of_a_trimmed_exponential(share):
    cut = -mpmath.log(share)
    moment = [mpmath.quad(lambda x, p=p: x**p * mpmath.exp(-x), [0, cut]) / (1 - share) for p in (1, 2)]
    mean, deviation = trimmed_exponential(share)
    assert mean == pytest.approx(float(moment[0]), rel=1e-12)
    assert deviation == pytest.approx(float(mpmath.sqrt(moment[1] - moment[0] ** 2)), rel=1e-12)
    assert trimmed_exponential(0.0) == (1.0, 1.0)


def drawn(count, seed=0):
    delta, psi = TRUTH.at(SIZES)
    return delta[:, None] + psi[:, None] * np.random.default_rng(seed).exponential(size=(len(SIZES), count))


def trimmed(delays, share=0.1):
    kept = np.sort(delays, axis=1)[:, : delays.shape[1] - int(share * delays.shape[1])]
    return np.full(len(delays), float(delays.shape[1])), kept.mean(axis=1), kept.std(axis=1)


def test_fit_recovers_the_law_that_made_the_delays():
    law = fit_affine(SIZES, *trimmed(drawn(200_000)))
    np.testing.assert_allclose(law, TRUTH, rtol=0.03)


def test_reading_that_leaves_the_trimming_in_is_wrong():
    # Least squares of the trimmed mean and deviation as they are, Delta = mean - deviation: Psi 41 % too small.
    _, mean, deviation = trimmed(drawn(200_000))
    slope, constant = np.polyfit(SIZES, deviation, 1)
    assert slope / TRUTH.psi_s_per_byte == pytest.approx(0.5877, abs=0.01)
    assert constant / TRUTH.psi_s == pytest.approx(0.5877, abs=0.02)
    slope, constant = np.polyfit(SIZES, mean - deviation, 1)
    assert slope / TRUTH.delta_s_per_byte > 1.08 and constant / TRUTH.delta_s > 1.1


def test_exact_moments_are_fitted_exactly():
    factors = trimmed_exponential(0.1)
    delta, psi = TRUTH.at(SIZES)
    law = fit_affine(SIZES, np.array([100.0, 20.0, 50.0, 999.0]), delta + factors[0] * psi, factors[1] * psi)
    np.testing.assert_allclose(law, TRUTH, rtol=1e-9)


def test_classes_with_few_delays_take_no_part():
    factors = trimmed_exponential(0.1)
    delta, psi = TRUTH.at(SIZES)
    means = delta + factors[0] * psi
    means[0] = 77.0
    law = fit_affine(SIZES, np.array([19.0, 50.0, 50.0, 50.0]), means, factors[1] * psi)
    np.testing.assert_allclose(law, TRUTH, rtol=1e-9)
    assert all(map(math.isnan, fit_affine(SIZES, np.full(4, 19.0), means, psi)))


def test_one_size_does_not_tell_the_slopes():
    factors = trimmed_exponential(0.1)
    law = fit_affine(
        np.array([4096.0]), np.array([100.0]), np.array([2 + factors[0] * 0.5]), np.array([factors[1] * 0.5])
    )
    assert law.delta_s == pytest.approx(2) and law.psi_s == pytest.approx(0.5)
    assert math.isnan(law.delta_s_per_byte) and math.isnan(law.psi_s_per_byte)
    delta, psi = law.at(np.array([4096.0]))
    assert delta[0] == pytest.approx(2) and psi[0] == pytest.approx(0.5)


def test_terms_are_never_negative():
    law = fit_affine(SIZES, np.full(4, 100.0), np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.4, 0.3, 0.2, 0.1]))
    assert min(law) >= 0
