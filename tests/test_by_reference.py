"""Named tuples behind a reference are to compiled functions what they are by value."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from ecjax.by_reference import Reference, by_reference
from ecjax.machine_code import njit


class Table(NamedTuple):
    values: np.ndarray
    places: np.ndarray
    chosen: np.ndarray
    factor: float
    rows: int


class Other(NamedTuple):
    values: np.ndarray


class Both(NamedTuple):
    factor: float
    table: Table
    other: Other


@njit(inner=True)
def _add(table, other):
    total = 0.0
    for i in range(table.rows):
        if table.chosen[i]:
            total += table.factor * table.values[table.places[i], 1]
            table.values[table.places[i], 0] = total
    # an array made here, behind whose back nothing is freed
    more = np.full(table.rows, other.values[0])
    values = other.values
    return total + more.sum() + len(values)


@njit()
def _by_value(table, other):
    return _add(table, other)


@njit()
def _behind_references(table, other):
    table, other = by_reference(table), by_reference(other)
    total = 0.0
    for _ in range(3):
        total = _add(table, other)
    return total


@njit()
def _nested(both):
    both = by_reference(both)
    table = by_reference(both.table)
    return both.factor * _add(table, both.other)


@njit()
def _of_no_such_field(table):
    return by_reference(table).nothing


def example(rows=5):
    random = np.random.default_rng(0)
    values = random.normal(size=(rows, 2))
    return Table(values, random.permutation(rows), random.random(rows) < 0.7, 2.5, rows)


def test_functions_read_and_write_the_same():
    one, other = example(), example()
    assert _behind_references(one, Other(np.ones(2))) == _by_value(other, Other(np.ones(2)))
    expected = 2.5 * one.values[one.places[one.chosen], 1].sum() + one.rows + 2
    assert _behind_references(one, Other(np.ones(2))) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(one.values, other.values)


def test_tuples_in_tuples_are_behind_references_too():
    one, other = example(), example()
    expected = 0.5 * _by_value(one, Other(np.ones(2)))
    assert _nested(Both(0.5, other, Other(np.ones(2)))) == expected
    np.testing.assert_array_equal(one.values, other.values)


def test_arrays_outlive_the_reference():
    table, other = example(), Other(np.ones(2))
    for _ in range(1000):
        _behind_references(table, other)
    assert np.isfinite(table.values).all()
    assert other.values.base is None
    np.testing.assert_array_equal(other.values, 1.0)


def test_types_differ_where_fields_do():
    float64, int64 = types.float64[::1], types.int64[::1]
    one, same, another = (Reference(types.NamedTuple((item,), Other)) for item in (float64, float64, int64))
    assert one == same and hash(one) == hash(same)
    assert one != another and str(one) != str(another)


def test_a_field_that_is_none_is_refused():
    with pytest.raises(TypingError, match="nothing"):
        _of_no_such_field(example())
