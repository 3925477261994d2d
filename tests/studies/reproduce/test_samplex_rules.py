"""What the rules of the SampleX paper compute by themselves, against other computations."""

import random
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from ecjax.caching.partitions import Partitions
from ecjax.studies.reproduce.claims.samplex.decisions import Point, proportion, update_partitions
from ecjax.studies.reproduce.claims.samplex.plans import second_peak
from ecjax.studies.reproduce.claims.samplex.studies import plateau_rates
from ecjax.studies.reproduce.claims.samplex.theorems import (
    draw_probabilities,
    example_2,
    example_6,
    online_updates,
    partition_values,
    partition_values_last,
    stuck_ratio,
)


@pytest.mark.parametrize(("tau", "capacity"), [(example_2(10.0), 4), (example_6(10.0), 3)])
def test_values_of_partitions_are_those_of_the_best_assignment(tau, capacity):
    """A solver of assignment problems, a column for each slot, finds the same values."""
    expected = []
    for x in Partitions(capacity, 3, 4):
        slots = np.repeat([1, 2, 3], x)
        worth = tau[:, slots]
        expected.append(worth[linear_sum_assignment(worth, maximize=True)].sum())
    np.testing.assert_allclose(partition_values(tau, capacity), expected)
    assert partition_values_last(tau, capacity) == pytest.approx(expected[-1])


def test_draws_in_shuffled_order_have_these_probabilities():
    capacity, k, count = 7, 3, 60_000
    draws, drawn = random.Random(0), Counter()
    for _ in range(count):
        x, left, order = [0] * k, capacity, [2, 3]
        draws.shuffle(order)
        for part in order:
            x[part - 1] = draws.randint(0, left // part)
            left -= part * x[part - 1]
        x[0] = left
        drawn[tuple(x)] += 1
    probability = draw_probabilities(capacity, k)
    assert probability.sum() == pytest.approx(1)
    found = [drawn[tuple(int(v) for v in x)] / count for x in Partitions(capacity, k)]
    np.testing.assert_allclose(found, probability, atol=5 * 0.5 / count**0.5)


def test_updates_of_all_partitions_never_lower_the_value():
    """With as many samples as there are partitions the current plan is among them."""
    assert online_updates(1000, 100, 0)[0] == 0


def test_updates_that_keep_the_current_plan_never_lower_the_value():
    """As policy samplex makes them; of those as printed some do."""
    assert online_updates(5, 300, 1, mended=True)[0] == 0
    fell, rose = online_updates(5, 300, 1)
    assert fell + rose == 300 and fell > 20


def test_second_peak_is_that_of_a_period():
    """A sine of period P over n places has autocorrelation 1 - P / n at lag P, nearly; a trend has no second peak."""
    wave = np.sin(2 * np.pi * np.arange(4000) / 400)
    assert second_peak(wave) == pytest.approx(0.9, abs=0.01)
    assert second_peak(np.arange(1000.0)) < 0


def test_shares_of_the_plateau():
    rates = plateau_rates()
    assert len(rates) == 1000
    assert rates.sum() == pytest.approx(1)
    assert rates[:50].sum() == pytest.approx(0.61)


def test_partitions_of_updates_are_possible():
    made = update_partitions(Point(100, 6), 2000, 0)
    assert len(made) == 1500
    assert 10 < made.max() <= Partitions(11, 6, 7).count == 37


@pytest.mark.parametrize("k", [2, 6])
def test_the_online_scheme_gets_stuck_at_the_values_of_the_example(k):
    """Ten items of 1001 and one of 999 stay; one chunk each of ten items of 1000 and of others of 998 is the best."""
    ratio, claimed = stuck_ratio(k)
    assert ratio == pytest.approx(11_009 / (10 * 1000 + (11 * k - 10) * 998), rel=1e-9)
    assert claimed == pytest.approx(1 - (2 * k - 1) / (11 * k)) and ratio < claimed


def test_times_in_proportion_are_on_a_line_through_the_origin():
    """Of 1 and 3 s for 1 and 2 samples the nearest slope is (1 + 6) / (1 + 4) = 1.4 s: off by 2 / 7 and 1 / 14."""
    samples = np.array([1, 5, 10, 20])
    assert proportion(samples, 0.7 * samples) == pytest.approx((0.7, 0.0), abs=1e-12)
    assert proportion(np.array([1, 2]), np.array([1.0, 3.0])) == pytest.approx((1.4, 2 / 7))
