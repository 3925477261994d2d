import mpmath
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecjax.tables.statistics.moments import merge_rows, pooled_rows, raw_moments, sample_rows, scaled_rows

NUMBERS = st.lists(st.floats(0, 1e3).filter(lambda x: x == 0 or x > 1e-3), min_size=1, max_size=30)


def exact_row(values):
    values = [mpmath.mpf(float(v)) for v in values]
    mean = mpmath.fsum(values) / len(values)
    return [len(values), mean, *(mpmath.fsum((v - mean) ** p for v in values) for p in range(2, 7))]


def row_of(values):
    values = np.asarray(values, float)
    return sample_rows(values, np.zeros(len(values), np.int64), 1)[0]


@given(NUMBERS, NUMBERS)
def test_merging_two_samples_is_the_row_of_both(first, second):
    rows = np.stack([row_of(first), row_of(second)])
    merge_rows(rows, rows[1:].copy(), np.array([0]))
    scale = max(max(first + second), 1e-3)
    exact = np.array([float(v) for v in exact_row(first + second)])
    powers = scale ** np.array([0, 1, 2, 3, 4, 5, 6]) * len(first + second)
    np.testing.assert_allclose(rows[0] / powers, exact / powers, atol=1e-12)


def test_many_batches_keep_the_digits_of_a_narrow_law():
    random = np.random.default_rng(3)
    values = 10 + 1e-5 * random.exponential(size=4_000)
    total = np.zeros((1, 7))
    for part in np.array_split(values, 37):
        merge_rows(total, row_of(part)[None], np.array([0]))
    exact = exact_row(values)
    for power in range(2, 7):
        assert abs(total[0, power] / float(exact[power]) - 1) < 1e-9
    moments, errors = raw_moments(total)
    with mpmath.workdps(40):
        for p in (1, 2, 3):
            powers = [mpmath.mpf(float(v)) ** p for v in values]
            mean = mpmath.fsum(powers) / len(powers)
            variance = mpmath.fsum((x - mean) ** 2 for x in powers) / len(powers) / (len(powers) - 1)
            assert abs(moments[0, p - 1] / float(mean) - 1) < 1e-14
            assert abs(errors[0, p - 1] / float(mpmath.sqrt(variance)) - 1) < 1e-8


def test_standard_errors_are_those_of_repeated_samples():
    random = np.random.default_rng(5)
    samples = random.exponential(2.0, (2000, 300))
    rows = sample_rows(samples.ravel(), np.repeat(np.arange(2000), 300), 2000)
    moments, errors = raw_moments(rows)
    spread = moments.std(axis=0)
    # exponential of mean 2: Var[x^p] = ((2p)! - p!^2) 2^(2p)
    theory = np.sqrt(np.array([1, 20, 684]) * 4.0 ** np.arange(1, 4) / 300)
    np.testing.assert_allclose(spread, theory, rtol=0.08)
    np.testing.assert_allclose(np.sqrt((errors**2).mean(axis=0)), theory, rtol=0.25)


def test_scaling_and_pooling():
    random = np.random.default_rng(1)
    parts = [random.gamma(2, 3, size) for size in (5, 8, 13)]
    rows = np.stack([row_of(part) for part in parts])
    factors = np.array([2.0, 0.5, 3.0])
    pooled = pooled_rows(scaled_rows(rows, factors), np.array([0, 1, 0]), 3)
    np.testing.assert_allclose(pooled[0], row_of(np.concatenate([2 * parts[0], 3 * parts[2]])), rtol=1e-12)
    np.testing.assert_allclose(pooled[1], row_of(0.5 * parts[1]), rtol=1e-12)
    assert np.all(pooled[2] == 0)


def test_samples_of_none_and_of_one():
    moments, errors = raw_moments(np.stack([np.zeros(7), row_of([3.0])]))
    assert np.isnan(moments[0]).all() and np.isnan(errors).all()
    np.testing.assert_allclose(moments[1], [3, 9, 27])
