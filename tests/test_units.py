"""Times on the console: one unit for a column, and numbers without powers of ten."""

import math

import numpy as np
import pytest

from ecjax.units import SECONDS, bytes_text, count_text, fitting_unit, plain, time_text


@pytest.mark.parametrize(
    ("values_s", "name"),
    [
        ([12.0, 56.0, 127.0], "s"),
        ([0.6], "s"),
        ([0.4, 0.02], "ms"),
        ([0.12, 0.2, 40.0], "ms"),
        ([1e-5, 3e-5], "µs"),
        ([1e-9], "µs"),
        ([], "s"),
        ([0.0, math.nan, None, math.inf], "s"),
    ],
)
def test_the_unit_fits_the_median(values_s, name):
    assert fitting_unit(values_s).name == name


def test_cells():
    unit = fitting_unit([0.1], [0.2, 0.3])
    assert unit.cell(0.1234567) == "123.5" and unit.cell(0.0999, 2) == "100"
    assert unit.cell(None) == unit.cell(math.nan) == ""
    assert unit.interval(0.1234, 0.0012) == "123.4 ± 1.2" and unit.interval(0.1234, math.nan) == "123.4"
    assert unit.interval(math.nan, 0.1) == "" and SECONDS.interval(0.47171, 0.02) == "0.4717 ± 0.020"
    assert [SECONDS.cell(value) for value in (0.0, 0.5, 0.005, 0.00051, 12.0)] == [
        "0",
        "0.5000",
        "0.0050",
        "0.00051",
        "12.00",
    ]
    assert SECONDS.cell(123456.0) == "123,456"


@pytest.mark.parametrize(
    ("value", "words"),
    [(99.96, "100"), (999.7, "1,000"), (12345.6, "12,346"), (0.01234, "0.0123"), (-1e6, "-1,000,000")],
)
def test_no_powers_of_ten(value, words):
    assert plain(value, 3) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0312, "31.2 ms"),
        (0.9996, "1 s"),
        (0.9994, "999 ms"),
        (999.6e-6, "1 ms"),
        (119.4, "119 s"),
        (119.96, "2 min"),
        (7199.9, "2 h"),
        (2.5 * 86400, "2.5 days"),
        (1095 * 86400.0, "1,095 days"),
        (3e9, "34,722 days"),
        (-0.9996, "-1 s"),
        (2e-9, "0.002 µs"),
        (0.0, "0 s"),
        (math.inf, "inf s"),
    ],
)
def test_lengths_of_time_in_sentences(seconds, words):
    assert time_text(seconds) == words


def test_bytes_in_the_unit_that_fits():
    assert bytes_text(999.0) == "999 B" and bytes_text(2.5e9) == "2.5 GB" and bytes_text(3e16) == "30 PB"
    assert bytes_text(999_960) == "1 MB" and bytes_text(999_940) == "999.9 kB"


def test_numbers_of_things():
    assert count_text(1, "run") == "1 run" and count_text(0, "run") == "0 runs"
    assert count_text(np.int64(1200), "batch is", "batches are") == "1,200 batches are"
