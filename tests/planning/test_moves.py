"""Best moves of chunks against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.planning import moves
from ecjax.planning.moves import Limits, Moves, Prices, best_moves


def random_case(seed: int, rows: int = 5, nodes: int = 6, scenarios: int = 4):
    random = np.random.default_rng(seed)
    k = random.integers(1, 4, rows)
    stored = np.zeros((rows, nodes), bool)
    for row, least in zip(stored, k, strict=True):
        row[random.permutation(nodes)[: random.integers(least, nodes + 1)]] = True
    up = random.random((scenarios, nodes)) > 0.25
    read = random.uniform(0, 1, (scenarios, rows, nodes))
    floor = np.minimum(k + random.integers(0, 3, rows), stored.sum(axis=1))
    return Prices(read, random.normal(0, 0.3, (rows, nodes)), up), stored, k, floor


def enumerated(
    prices: Prices, stored, k: int, floor: int, row: int, allowed, sites, per_site, spare=0
) -> float:
    """Largest gain of a move of one row, trying all of them."""

    def reads(there: np.ndarray) -> np.ndarray:
        """Least price of k survivors in every scenario, inf where there are fewer.

        As many as ``spare`` may be missing; each costs as much as the dearest of the chunks before the move.
        """
        of = []
        for read, up in zip(prices.read[:, row], prices.up, strict=True):
            dearest = read[stored & up].max(initial=-np.inf)
            left = np.sort(np.append(read[there & up], np.full(spare, dearest)))
            of.append(left[:k].sum() if len(left) >= k else np.inf)
        return np.array(of)

    before = reads(stored)
    best = -np.inf
    nodes = [*range(len(stored)), None]
    for out, into in itertools.product(nodes, nodes):
        if (out is None and into is None) or (out is not None and not stored[out]):
            continue
        if into is not None and (stored[into] or not allowed[into]):
            continue
        after = stored.copy()
        if out is not None:
            after[out] = False
        if into is not None:
            after[into] = True
            if sum(after[sites == sites[into]]) > per_site:
                continue
        if after.sum() < floor:
            continue
        counted = np.isfinite(before)
        change = reads(after)[counted] - before[counted]
        kept = prices.storing[row] @ (after.astype(float) - stored)
        if np.isfinite(change).all():
            best = max(best, -change.sum() - kept)
    return best


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.booleans(), st.sampled_from([1, 2, 6]))
def test_gains_are_those_of_enumeration(seed, narrow, per_site):
    prices, stored, k, floor = random_case(seed)
    sites = np.array([0, 0, 1, 1, 2, 2])
    allowed = np.random.default_rng(seed).random(stored.shape) > (0.4 if narrow else -1)
    limits = Limits(allowed=allowed if narrow else None, site=sites, per_site=per_site)
    found = best_moves(prices, stored, k, floor, limits)
    for row in range(len(stored)):
        own = enumerated(prices, stored[row], k[row], floor[row], row, allowed[row], sites, per_site)
        assert found.gain[row] == pytest.approx(own, rel=1e-9, abs=1e-12)
        if np.isfinite(own):
            # the gain is that of the move that is named
            alone = moves.apply(found, np.array([row]), stored, np.ones(len(stored)), Limits())
            assert alone[row].sum() - stored[row].sum() == int(found.target[row] >= 0) - int(
                found.source[row] >= 0
            )
            assert np.array_equal(np.delete(alone, row, 0), np.delete(stored, row, 0))


@settings(max_examples=25)
@given(st.integers(0, 2**31))
def test_rows_that_fewer_chunks_rebuild_are_read_in_larger_parts(seed):
    prices, stored, k, floor = random_case(seed)
    rebuild = np.random.default_rng(seed).integers(1, k + 1)
    anywhere, apart = np.ones(6, bool), np.arange(6)
    found = best_moves(prices, stored, k, floor, Limits(), rebuild)
    for row, spare in enumerate(k - rebuild):
        left = (stored[row] & prices.up).sum(axis=1)
        if np.any(left == 0):
            continue  # no chunk tells what a larger part would cost
        own = enumerated(prices, stored[row], k[row], floor[row], row, anywhere, apart, 6, spare)
        assert found.gain[row] == pytest.approx(own, rel=1e-9, abs=1e-12)


def test_rows_worked_on_in_parts_are_the_same(monkeypatch):
    prices, stored, k, floor = random_case(1, rows=40)
    whole = best_moves(prices, stored, k, floor, Limits())
    monkeypatch.setattr(moves, "_ELEMENTS", 100)
    parts = best_moves(prices, stored, k, floor, Limits())
    for one, other in zip(vars(whole).values(), vars(parts).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_full_nodes_get_no_more_chunks():
    """Node 2 has room for three more files: the first row stands for two, the last move is left out."""
    stored = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1]], bool)
    chunks = np.array([2.0, 1.0, 1.0, 1.0])
    every = Moves(np.ones(4), np.array([0, 0, 1, 1]), np.array([2, 2, 2, -1]))
    limits = Limits(capacity=np.array([9.0, 9.0, 4.0]))
    after = moves.apply(every, np.arange(4), stored, chunks, limits)
    np.testing.assert_array_equal(after, [[0, 0, 1], [0, 0, 1], [0, 1, 0], [0, 0, 1]])
