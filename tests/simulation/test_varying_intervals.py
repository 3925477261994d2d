"""Intervals of means that change with time in all replications alike, as outages make them, against what is known."""

import numpy as np
import pytest
from scipy import stats

from ecjax.simulation.summary import interval, interval_beside_others

BATCHES = 256
MEAN = np.where((np.arange(BATCHES) > 100) & (np.arange(BATCHES) < 150), 5.0, 0.1)


def replications(random, number, phi):
    """Batches of some 100 requests each whose means are ``MEAN``, with noise that correlates from one to the next."""
    noise = np.empty((number, BATCHES))
    state = random.standard_normal(number)
    for place in range(BATCHES):
        state = phi * state + np.sqrt(1 - phi**2) * random.standard_normal(number)
        noise[:, place] = state
    count = random.poisson(100, noise.shape) + 1.0
    return list(np.stack([count, count * MEAN * (1 + 0.05 * noise)], axis=2))


@pytest.mark.parametrize("number", [2, 10])
@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_what_all_replications_have_alike_is_not_noise(number, phi):
    random = np.random.default_rng(4)
    errors, widths, apart = [], [], []
    for _ in range(150):
        made = replications(random, number, phi)
        count, total = np.sum(made, axis=(0, 1))
        errors.append(total / count - MEAN.mean())
        widths.append(interval_beside_others(made))
        apart.append(interval(made))
    inside = np.abs(errors) <= widths
    # 142.5 are 95 %; fewer than 134 have a chance below 1 %
    assert inside.sum() >= 134
    assert 0.8 < np.mean(widths) / (1.96 * np.std(errors)) < 1.4
    # beside each other, batches of an outage and others differ by tens of times as much
    assert np.mean(apart) > 20 * np.mean(widths)


def test_nothing_counted_has_no_interval():
    assert np.isnan(interval_beside_others([np.zeros((BATCHES, 2))] * 2))


@pytest.mark.parametrize("number", [2, 4, 7])
def test_of_one_batch_that_differs_the_interval_is_students(number):
    """All but one batch are the same in all replications: the interval is that of the means of the replications."""
    random = np.random.default_rng(number)
    made = np.stack([np.full(BATCHES, 100.0), 100 * MEAN], axis=1) * np.ones((number, 1, 1))
    made[:, 130, 1] += random.standard_normal(number)
    means = made[..., 1].sum(axis=1) / made[..., 0].sum(axis=1)
    expected = stats.t.ppf(0.975, number - 1) * means.std(ddof=1) / np.sqrt(number)
    assert interval_beside_others(list(made)) == pytest.approx(expected, rel=1e-9)
