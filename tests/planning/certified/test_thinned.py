"""Rows that stand for many of several sizes: sums are kept, cheapest costs are close, and bounds hold for the rows."""

import numpy as np
import pytest
from planning.certified.test_envelope import problem_of, relaxed_of

from ecjax.planning.certified import bound, thinned
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import Passes, groups_of


def made(problem):
    service, rows = flatten(problem)
    passes = Passes(service, rows, 1)
    passes.with_theta(1.0 / rows.number)
    return passes, groups_of(service, rows)


@pytest.mark.parametrize("write", [0.0, 0.05])
def test_sums_are_kept_and_cheapest_costs_are_close(monkeypatch, write):
    monkeypatch.setattr(thinned, "_MANY", 1000)
    problem = problem_of(3, 20_000, 5, np.random.default_rng(3).lognormal(0, 1, 20_000), 0.7, write)
    passes, group = made(problem)
    rows, sizes = passes.rows, len(passes.service.size)
    some = thinned.thinned(passes, group)
    few = some.passes.rows
    assert 100 < few.number <= rows.number / 4
    for name in ("read", "write"):
        there, here = (np.bincount(each.grid, getattr(each, name), sizes) for each in (few, rows))
        np.testing.assert_allclose(there, here, rtol=1e-12)
    assert few.chunks.sum() == pytest.approx(rows.chunks.sum())
    assert few.bytes.sum() == pytest.approx(rows.bytes.sum())
    for k in np.unique(rows.hot):
        assert few.chunks[few.hot == k].sum() == pytest.approx(rows.chunks[rows.hot == k].sum())
    random = np.random.default_rng(0)
    for _ in range(5):
        read, write_price = random.uniform(0.5, 2, (2, 5, sizes)) * passes.service.size
        chunk = random.uniform(0, 1e-4, 5)
        # each row may choose for itself; those that are added up may not
        whole = passes.cheapest(read, write_price, chunk, group, 16)
        added = some.passes.cheapest(read, write_price, chunk, some.group, 16)
        assert whole[0] <= added[0] * (1 + 1e-12) <= whole[0] * 1.005
        np.testing.assert_allclose(added[1][0].sum(), whole[1][0].sum(), rtol=0.05)


def test_few_rows_and_charges_of_their_own_are_left_alone():
    passes, group = made(problem_of(3, 400, 5, np.random.default_rng(3).lognormal(0, 1, 400), 0.7))
    assert thinned.thinned(passes, group) is None


@pytest.mark.slow
@pytest.mark.parametrize("write", [0.0, 0.05])
def test_the_bound_is_as_good_within_a_fiftieth_of_the_gap(monkeypatch, write):
    sizes = np.random.default_rng(3).lognormal(0, 0.5, 20_000)
    passes, relaxed, _ = relaxed_of(problem_of(3, 20_000, 5, sizes, 0.7, write), 1.0)
    before = bound.lower_bound(passes, relaxed, 1e-4, 50).value
    monkeypatch.setattr(thinned, "_MANY", 1000)
    monkeypatch.setattr(thinned, "_FINENESS", ((2, 2),))
    assert thinned.thinned(passes, relaxed.group) is not None
    after = bound.lower_bound(passes, relaxed, 1e-4, 50).value
    assert after <= relaxed.objective
    assert relaxed.objective - after <= (relaxed.objective - before) * 1.02 + 1e-4 * relaxed.objective
