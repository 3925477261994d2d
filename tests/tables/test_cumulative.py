"""Lines of distributions in bins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ecjax.tables.cumulative import cumulative


def test_nothing_lies_between_bins():
    values, shares = cumulative([1.0, 2.0, 10.0], [2.0, 3.0, 11.0], [1, 2, 1])
    assert_allclose(values, [1, 2, 3, 10, 11])
    assert_allclose(shares, [0, 0.25, 0.75, 0.75, 1])


def test_the_order_and_the_division_of_bins_do_not_matter():
    values, shares = cumulative([10.0, 1.0, 2.0, 1.0], [11.0, 2.0, 3.0, 2.0], [2, 1, 4, 1])
    assert_allclose(values, [1, 2, 3, 10, 11])
    assert_allclose(shares, [0, 0.25, 0.75, 0.75, 1])


@pytest.mark.parametrize("seed", range(5))
def test_the_share_at_any_value_is_that_of_even_bins(seed):
    """Against the sum over bins of the part of each that lies at or below."""
    random = np.random.default_rng(seed)
    edges = np.sort(random.uniform(0, 10, 12))
    used = random.choice(11, 6, replace=False)
    lower, upper, count = edges[used], edges[used + 1], random.integers(1, 9, 6)
    at = random.uniform(-1, 11, 50)
    parts = np.clip((at[:, None] - lower) / (upper - lower), 0, 1) @ count / count.sum()
    values, shares = cumulative(lower, upper, count)
    assert np.all(np.diff(values) > 0) and np.all(np.diff(shares) >= 0)
    assert_allclose(np.interp(at, values, shares), parts, atol=1e-12)
