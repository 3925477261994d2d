"""Numbers in sentences."""

import pytest

from ecjax.studies.spine.sentences import compared, dollars_text, listed, with_interval
from ecjax.units import time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0312, "31.2 ms"),
        (4e-7, "0.4 µs"),
        (2.5e-5, "25 µs"),
        (1.0, "1 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7200.0, "2 h"),
        (200000.0, "2.31 days"),
        (0.0, "0 s"),
    ],
)
def test_times(seconds, text):
    assert time_text(seconds) == text


def test_dollars():
    values = (0.03124, 812.3, 999.4, 999.7, 1234567.0)
    assert [dollars_text(value) for value in values] == ["$0.0312", "$812", "$999", "$1,000", "$1,234,567"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(77.0, "23 % faster"), (100.0, "equal"), (103.14, "3.1 % slower"), (250.0, "slower by a factor of 2.5")],
)
def test_comparisons(value, text):
    assert compared(value, 100.0, "faster", "slower") == text


def test_comparisons_with_zero_name_no_factor():
    assert compared(0.0, 0.0, "faster", "slower") == "equal"
    assert compared(0.98, 0.0, "faster", "slower") == "slower"


def test_intervals_share_the_unit():
    assert with_interval(0.274, 0.0026) == "274 ± 2.6 ms"
    assert with_interval(0.274, None) == "274 ms"


def test_lists():
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
