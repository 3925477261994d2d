"""Market clearing: SciPy's assignments, and prices at which every slot has what it wants most."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_assignment import all_partitions, assignment_value, plan_value, valuations

from ecjax.caching.clearing import Market, clear_in_turn
from ecjax.caching.partitions import Partitions
from ecjax.errors import UserError


class Cleared(NamedTuple):
    chunks: np.ndarray  # (M,)
    value: float
    price: np.ndarray  # (M,), of an item
    utility: np.ndarray  # (K,), what a slot has above its price; inf where there is none


def clear(tau, partition):
    """The best assignment to one partition, and the prices that the algorithm leaves."""
    targets = np.concatenate([[0], partition])[None]
    order = np.argsort(-tau.T, axis=1, kind="stable")
    values, chunks, utility = np.empty(1), np.empty(len(tau), np.int64), np.empty(tau.shape[1])
    clear_in_turn(tau, order, targets, values, chunks, utility)
    utility[targets[0] == 0] = np.inf
    utility[0] = 0.0
    return Cleared(chunks, values[0], (tau - utility).max(axis=1), utility[1:])


def assert_clears(tau, partition, cleared):
    """Everybody has what they want most at these prices, and nothing that costs is unsold."""
    exact = 1e-12 * max(1.0, tau.max())
    assert np.bincount(cleared.chunks, minlength=tau.shape[1])[1:].tolist() == list(partition)
    assert cleared.value == pytest.approx(plan_value(tau, cleared.chunks), rel=1e-12)
    assert (cleared.price >= 0).all() and (cleared.price[cleared.chunks == 0] <= exact).all()
    for k, slots in enumerate(partition, 1):
        if slots:
            utility = tau[:, k] - cleared.price
            assert cleared.utility[k - 1] >= -exact
            assert utility.max() <= cleared.utility[k - 1] + exact
            assert (utility[cleared.chunks == k] >= cleared.utility[k - 1] - exact).all()
        else:
            assert np.isinf(cleared.utility[k - 1])


@given(valuations(), st.randoms(use_true_random=False))
def test_best_assignment_and_prices(drawn, draws):
    tau, capacity = drawn
    partition = draws.choice(all_partitions(capacity, tau.shape[1] - 1, len(tau)))
    cleared = clear(tau, partition)
    assert cleared.value == pytest.approx(assignment_value(tau, partition), rel=1e-12, abs=1e-12)
    assert_clears(tau, partition, cleared)


@given(valuations(most_items=5, most_k=4))
def test_all_partitions_in_turn(drawn):
    tau, capacity = drawn
    chi = Partitions(capacity, tau.shape[1] - 1, len(tau))
    values, chunks = Market(tau, min(capacity, len(tau))).best_of_all(chi)
    np.testing.assert_allclose(values, [assignment_value(tau, x) for x in chi], rtol=1e-12, atol=1e-12)
    assert plan_value(tau, chunks) == pytest.approx(values.max()) and chunks.sum() == capacity


@pytest.mark.parametrize("items, k, capacity", [(300, 6, 100), (60, 15, 400), (40, 3, 120)])
def test_larger(items, k, capacity):
    rng = np.random.default_rng(items)
    tau = np.concatenate([np.zeros((items, 1)), np.cumsum(rng.random((items, k)) ** 4, axis=1)], axis=1)
    tau /= np.arange(1, items + 1)[:, None]
    chi = Partitions(capacity, k, items)
    partitions = [chi.unrank(chi.count * i // 7) for i in range(7)]
    market = Market(tau, max(x.sum() for x in partitions))
    values, chunks = market.best(partitions)
    np.testing.assert_allclose(values, [assignment_value(tau, x) for x in partitions], rtol=1e-12)
    assert plan_value(tau, chunks) == pytest.approx(values.max(), rel=1e-12)
    for partition in partitions[::3]:
        assert_clears(tau, partition, clear(tau, partition))


def test_more_blocks_than_one():
    # 19858 partitions are cleared in five runs
    rng = np.random.default_rng(3)
    tau = np.concatenate([np.zeros((70, 1)), np.cumsum(rng.integers(0, 9, (70, 6)), axis=1)], axis=1)
    chi = Partitions(60, 6, 70)
    values, chunks = Market(tau, 60).best_of_all(chi)
    some = range(0, chi.count, 1500)
    assert [values[i] for i in some] == [assignment_value(tau, chi.unrank(i)) for i in some]
    assert plan_value(tau, chunks) == values.max()


@pytest.mark.parametrize(
    "partition, names",
    [
        ([1, 2], ["3 whole numbers"]),
        ([1, -1, 0], ["3 whole numbers"]),
        ([-5, 0, 0], ["3 whole numbers"]),
        ([0.5, 0, 0], ["3 whole numbers"]),
        ([2, 1, 0], ["3 slots", "2, one item for each"]),
    ],
)
def test_refused(partition, names):
    with pytest.raises(UserError) as error:
        Market(np.arange(4.0) * np.ones((2, 1)), 3).best([partition])
    assert all(name in str(error.value) for name in ["partition", *names, "allowed"])
