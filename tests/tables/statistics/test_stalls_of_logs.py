"""Stalls that a log shows: exact where its law is, near where delays are drawn, none where they do not explain it."""

import numpy as np
import pytest

from ecjax.tables.statistics.affine import AffineLaw, fit_affine, trimmed_exponential
from ecjax.tables.statistics.stalls import law_moments, stalling_law, stalls

LAW = AffineLaw(0.002, 2e-9, 0.004, 3e-9)
SIZES = np.array([64e3, 2.5e5, 1e6])


def drawn(probability, stall, count=60_000, seed=0):
    random = np.random.default_rng(seed)
    delta, psi = LAW.at(SIZES)
    delays = delta[:, None] + psi[:, None] * random.exponential(size=(len(SIZES), count))
    return delays + stall * (random.random(delays.shape) < probability)


def fitted(delays):
    """As ``analyze`` does, from the moments of each size, with and without its worst tenth."""
    kept = np.sort(delays, axis=1)[:, : delays.shape[1] * 9 // 10]
    counts = np.full(len(delays), float(delays.shape[1]))
    kept_moments = kept.mean(axis=1), kept.std(axis=1)
    return stalling_law(SIZES, counts, kept_moments, (delays.mean(axis=1), (delays**2).mean(axis=1)))


@pytest.mark.parametrize(("probability", "stall"), [(0.02, 0.08), (0.001, 2.0), (0.06, 0.1)])
def test_moments_of_a_mixture_tell_its_stalls(probability, stall):
    mean, second = 0.01, 3e-4
    measured = mean + probability * stall, second + 2 * mean * probability * stall + probability * stall**2
    assert stalls((mean, second), measured) == pytest.approx((probability, stall), rel=1e-9)


@pytest.mark.parametrize(
    "measured",
    [
        (0.009, 4e-4),  # faster on average
        (0.012, 3.2e-4),  # slower, but the second moment is less than any stall would make it
        (
            0.011 + 0.15 * 0.1,
            3e-4 + 2 * 0.01 * 0.15 * 0.1 + 0.15 * 0.01,
        ),  # more often than the fit leaves out
    ],
)
def test_other_moments_tell_none(measured):
    assert stalls((0.01, 3e-4), measured) == (0.0, 0.0)


@pytest.mark.parametrize(("probability", "stall"), [(0.02, 0.08), (0.005, 0.5), (0.05, 0.06)])
def test_the_law_and_its_stalls_are_recovered(probability, stall):
    law, share, time = fitted(drawn(probability, stall))
    assert share == pytest.approx(probability, rel=0.12)
    assert time == pytest.approx(stall, rel=0.08)
    np.testing.assert_allclose(np.add(*law.at(SIZES)), np.add(*LAW.at(SIZES)), rtol=0.03)
    np.testing.assert_allclose(law.at(SIZES)[1], LAW.at(SIZES)[1], rtol=0.08)


def test_small_chunks_tell_stalls_that_are_lost_among_large_ones():
    """Of 100 MB a service takes 1 s and varies by 0.3 s; of 1 kB 6 ms: both stall 0.5 s, 1 % of them."""
    law, sizes = AffineLaw(0.002, 1e-8, 0.004, 3e-9), np.array([1e3, 1e8])
    random = np.random.default_rng(4)
    delta, psi = law.at(sizes)
    delays = delta[:, None] + psi[:, None] * random.exponential(size=(2, 20_000))
    delays += 0.5 * (random.random(delays.shape) < 0.01)
    kept = np.sort(delays, axis=1)[:, :18_000]
    counts, measured = np.full(2, 2e4), (delays.mean(axis=1), (delays**2).mean(axis=1))
    _, probability, time = stalling_law(sizes, counts, (kept.mean(axis=1), kept.std(axis=1)), measured)
    assert probability == pytest.approx(0.01, rel=0.12)
    assert time == pytest.approx(0.5, rel=0.05)


def test_the_moments_of_the_log_are_kept_exactly():
    delays = drawn(0.03, 0.2)
    law, share, time = fitted(delays)
    mean, second = law_moments(law, SIZES, np.ones(len(SIZES)))
    assert mean + share * time == pytest.approx(delays.mean(), rel=1e-9)
    assert second + share * (2 * mean * time + time**2) == pytest.approx((delays**2).mean(), rel=1e-9)


def test_a_law_that_explains_the_log_is_left_as_it_is():
    delays = drawn(0.0, 0.0)
    law, share, time = fitted(delays)
    kept = np.sort(delays, axis=1)[:, : delays.shape[1] * 9 // 10]
    counts = np.full(len(delays), float(delays.shape[1]))
    assert (share, time) == (0.0, 0.0)
    assert law == fit_affine(SIZES, counts, kept.mean(axis=1), kept.std(axis=1))


def test_frequent_stalls_are_not_taken_for_rare_ones():
    _, share, time = fitted(drawn(0.3, 0.1))
    assert (share, time) == (0.0, 0.0)


def test_one_size_and_none_tell_no_law():
    factors = trimmed_exponential(0.1)
    kept = np.array([0.01 + factors[0] * 0.004]), np.array([factors[1] * 0.004])
    law, share, _ = stalling_law(SIZES[:1], np.array([100.0]), kept, (np.array([0.05]), np.array([0.1])))
    assert law.delta_s == pytest.approx(0.01) and np.isnan(law.psi_s_per_byte) and share == 0.0
    law, share, _ = stalling_law(SIZES[:1], np.array([3.0]), kept, (np.array([0.05]), np.array([0.1])))
    assert np.isnan(law.delta_s) and share == 0.0
