"""Systematic sampling: marginals, exact numbers, random orders; probabilities in whole units."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ecjax.machine_code import njit
from ecjax.simulation import subset
from ecjax.simulation.system import UNIT, whole_units
from ecjax.streams import streams

COUNT = 100_000
LEAST = 1e-4  # p-value; seeds are fixed


@njit()
def draws(units, begin, end, count):
    """(count, n) whether each entry was drawn, and (count,) how many."""
    found, taken = np.zeros((count, end - begin), np.bool_), np.zeros(count, np.int64)
    order, chosen = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    start = streams.key(23, streams.DISPATCH)
    for i in range(count):
        taken[i] = subset.draw(units, begin, end, order, chosen, streams.stream(start, i))
        for j in range(taken[i]):
            found[i, chosen[j] - begin] = True
    return found, taken


@njit()
def orders(size, count):
    found = np.empty((count, size), np.int64)
    start = streams.key(29, streams.DISPATCH)
    for i in range(count):
        subset.shuffle(found[i], size, streams.stream(start, i))
    return found


@pytest.mark.parametrize(
    "probabilities",
    [
        [0.5] * 4,
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.5],
        [1.0, 0.0, 0.25, 0.75, 1.0, 0.0, 0.01, 0.99],
        [1 / 3] * 12,
        [1e-4, 1 - 1e-4],
        [1.0, 1.0, 0.0],
    ],
)
def test_marginals(probabilities):
    p = np.array(probabilities)
    need = int(round(p.sum()))
    before = 2  # another row comes first
    start = np.array([0, before, before + len(p)])
    units = whole_units(np.concatenate(([1.0, 0.0], p)), start, np.array([1, need]))
    found, taken = draws(units, before, before + len(p), COUNT)
    assert np.all(taken == need)
    assert np.all(found.sum(axis=1) == need)  # distinct
    for j, wanted in enumerate(p):
        drawn = int(found[:, j].sum())
        assert drawn == wanted * COUNT or 0 < wanted < 1
        assert stats.binomtest(drawn, COUNT, wanted).pvalue > LEAST


def test_requests_choose_independently():
    units = whole_units(np.full(4, 0.5), np.array([0, 4]), np.array([2]))
    found, _ = draws(units, 0, 4, COUNT)
    sets = found @ (1 << np.arange(4))
    table = np.zeros((16, 16))
    np.add.at(table, (sets[:-1], sets[1:]), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    assert table.shape == (6, 6)  # all pairs occur: the order is random
    assert stats.chi2_contingency(table).pvalue > LEAST


def test_equal_probabilities_draw_every_set_as_often():
    units = whole_units(np.full(5, 0.4), np.array([0, 5]), np.array([2]))
    found, _ = draws(units, 0, 5, COUNT)
    _, counts = np.unique(found @ (1 << np.arange(5)), return_counts=True)
    assert len(counts) == 10 and stats.chisquare(counts).pvalue > LEAST


def test_orders_are_equally_likely():
    found = orders(4, COUNT)
    codes = found @ (10 ** np.arange(4))
    wanted = sorted(int(np.array(p) @ (10 ** np.arange(4))) for p in permutations(range(4)))
    values, counts = np.unique(codes, return_counts=True)
    assert values.tolist() == wanted
    assert stats.chisquare(counts).pvalue > LEAST


@st.composite
def rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    probabilities, starts, needs = [], [0], []
    for _ in range(draw(st.integers(1, 5))):
        n = int(rng.integers(1, 40))
        need = int(rng.integers(1, n + 1))
        p = (np.arange(n) < need).astype(float)
        rng.shuffle(p)
        for _ in range(draw(st.integers(0, 30))):  # moves that keep the sum
            i, j = rng.integers(0, n, 2)
            step = rng.uniform(0, min(p[i], 1 - p[j])) if i != j else 0.0
            p[i], p[j] = p[i] - step, p[j] + step
        probabilities.append(np.clip(p + rng.uniform(-1, 1, n) * 1e-10 * (p > 0) * (p < 1), 0, 1))
        starts.append(starts[-1] + n)
        needs.append(need)
    return np.concatenate(probabilities), np.array(starts), np.array(needs)


@given(case=rows())
def test_whole_units(case):
    probabilities, start, need = case
    units = whole_units(probabilities, start, need)
    assert units.dtype == np.int64
    assert np.all(np.add.reduceat(units, start[:-1]) == need * UNIT)
    assert np.all((units >= 0) & (units <= UNIT))
    assert np.all(units[probabilities == 0] == 0) and np.all(units[probabilities == 1] == UNIT)
    np.testing.assert_allclose(units / UNIT, probabilities, atol=1e-8)


def test_whole_units_of_inexact_rows():
    """A sum that is off by up to 1e-6 is put right where there is room."""
    start, need = np.array([0, 3]), np.array([2])
    for off in (9e-7, -9e-7):
        units = whole_units(np.array([1.0, 0.5 + off, 0.5]), start, need)
        assert units.sum() == 2 * UNIT and units[0] == UNIT
    units = whole_units(np.array([1.0 - 1e-10, 1.0, 0.0]), start, need)
    assert units.tolist() == [UNIT, UNIT, 0]


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.5, 0.5], "row 0: probabilities sum to 1.5, not 2"),
        ([1.2, 0.8, 0.0], r"within \[0, 1\]"),
        ([-0.1, 1.0, 1.0], r"within \[0, 1\]"),
        ([np.nan, 1.0, 1.0], r"within \[0, 1\]"),
    ],
)
def test_whole_units_refuses(probabilities, message):
    with pytest.raises(ValueError, match=message):
        whole_units(np.array(probabilities), np.array([0, 3]), np.array([2]))
