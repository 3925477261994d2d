"""Single items at several edges, and prices of chunks, against enumeration and a linear program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_cooperation import all_kept, drawn, item_options, item_saves
from scipy.optimize import linprog

from ecjax.caching.cooperative_bound import least_bound
from ecjax.caching.cooperative_items import Items, best_at_prices, best_by_count, by_price, described

FEW = np.array([0.1, 0.2, 0.5, 0.9])
PLENTY = np.full(2, 1 << 40)


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_best_plan_of_an_item_at_prices(seed, ties, misled):
    rates, latency, between = drawn(2, 3, 3, seed, FEW if ties else None)
    random = np.random.default_rng(seed)
    price = random.choice(FEW, 2) if ties else random.random(2) * 0.3
    items = Items(*described(latency, between))
    known = random.integers(0, items.levels) if misled else np.zeros_like(items.levels)
    room = PLENTY.copy()
    net, keep = best_at_prices(rates, items, by_price(price), np.arange(3), room, known)
    used = np.zeros(2, int)
    for m in range(3):
        kept = np.array([[bool(keep[m, t] >> f & 1) for t in items.kind_of[m]] for f in range(2)])
        used += kept.sum(axis=1)
        best = max(
            item_saves(rates[:, m], latency[:, m], between, other) - price @ other.sum(axis=1)
            for other in all_kept(2, 3)
        )
        assert net[m] == pytest.approx(best, abs=1e-12)
        saved = item_saves(rates[:, m], latency[:, m], between, kept)
        assert saved - price @ kept.sum(axis=1) == pytest.approx(best, abs=1e-12)
    assert (PLENTY - room == used).all()


@given(st.integers(0, 10**6))
def test_items_take_what_room_is_left(seed):
    rates, latency, between = drawn(3, 6, 4, seed)
    items = Items(*described(latency, between))
    limit = np.random.default_rng(seed).integers(0, 6, 3)
    room = limit.copy()
    order = np.random.default_rng(seed).permutation(6)
    known = np.zeros_like(items.levels)
    _, keep = best_at_prices(rates, items, by_price(np.full(3, 1e-3)), order, room, known)
    subset = np.take_along_axis(keep, items.kind_of, axis=1)
    used = [(subset >> f & 1).sum() for f in range(3)]
    assert (room >= 0).all()
    assert (limit - room == used).all()


@given(st.integers(0, 10**6), st.booleans())
def test_best_chunks_of_one_edge_by_their_number(seed, ties):
    rates, latency, between = drawn(3, 2, 4, seed, FEW if ties else None)
    to_store = np.ascontiguousarray(between[:, 1])
    saved, which = best_by_count(rates, latency, to_store)
    for m in range(2):
        best = np.zeros(5)
        for kept in all_kept(1, 4):
            n = kept.sum()
            value = item_saves(rates[:, m], latency[:, m], to_store[:, None], kept)
            best[n] = max(best[n], value)
        assert saved[m] == pytest.approx(np.maximum.accumulate(best), abs=1e-12)
        for n in range(5):
            chosen = np.array([[bool(int(which[m, n]) >> j & 1) for j in range(4)]])
            assert chosen.sum() <= n
            value = item_saves(rates[:, m], latency[:, m], to_store[:, None], chosen)
            assert value == pytest.approx(saved[m, n], abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("capacity", [[1, 1], [6, 2], [9, 30], [200, 200]])
def test_least_bound_is_that_of_mixed_plans(capacity, ties):
    rates, latency, between = drawn(2, 12, 3, 11, FEW if ties else None)
    columns = [
        (m, counts, saves)
        for m, options in enumerate(item_options(rates, latency, between, 2))
        for counts, saves in options.items()
    ]
    one = np.array([[float(m == own) for own, _, _ in columns] for m in range(12)])
    chunks = np.array([counts for _, counts, _ in columns], float).T
    found = linprog(
        [-saves for _, _, saves in columns], A_ub=chunks, b_ub=capacity, A_eq=one, b_eq=np.ones(12)
    )
    items = Items(*described(latency, between))
    prices = least_bound(rates, items, np.array(capacity), np.full(2, 0.1))
    assert prices.bound_per_s == pytest.approx(-found.fun, rel=3e-6)
    assert prices.bound_per_s >= -found.fun * (1 - 1e-9)
    assert prices.bound_per_s == pytest.approx(prices.price @ capacity + prices.net.sum(), rel=1e-12)
