import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecjax.tables.statistics.bins import BINS, bin_edges, log_bin


@given(st.floats(1e-15, 1e15), st.sampled_from([16, 32]))
def test_a_value_lies_within_the_edges_of_its_bin(value, per_octave):
    place = log_bin(value, per_octave)
    lower, upper = bin_edges(np.array([place]), per_octave)
    assert lower[0] * (1 - 1e-12) <= value <= upper[0] * (1 + 1e-12)
    assert np.isclose(upper[0] / lower[0], 2 ** (1 / per_octave))


def test_zero_has_a_bin_of_its_own_and_extremes_are_kept():
    assert log_bin(0.0, 32) == 0
    assert log_bin(1e-300, 32) == 1
    assert log_bin(1e300, 32) == BINS - 1
    lower, upper = bin_edges(np.array([0]), 32)
    assert lower[0] == upper[0] == 0
