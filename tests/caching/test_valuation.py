"""Values of chunks: equation 1, by hand, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from ecjax.caching.valuation import checked_valuation, checked_whole, valuation
from ecjax.errors import UserError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def test_one_item_by_hand():
    # slowest first 7, 4, 4, 1
    assert valuation([2.0], [[4.0, 1.0, 7.0, 4.0]]).tolist() == [[0.0, 6.0, 6.0, 12.0, 14.0]]


@pytest.mark.parametrize("case", [case for case in VECTORS["tiny"] if case["note"].startswith("eq (1)")])
def test_vectors(case):
    rates, latency = (json.loads(part) for part in case["note"].removeprefix("eq (1): r=").split(" l(desc)="))
    assert valuation(rates, latency).tolist() == case["tau"]


def test_leading_axes_are_caches():
    rng = np.random.default_rng(1)
    rates, latency = rng.random((2, 3, 5)), rng.random((3, 5, 4))
    tau = valuation(rates, latency)
    assert tau.shape == (2, 3, 5, 5)
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(tau[at], valuation(rates[at], latency[at[1]]))
    assert (np.diff(tau, axis=-1) >= 0).all()


@pytest.mark.parametrize(
    "rates, latency, names",
    [
        ([1.0, -1.0], np.ones((2, 3)), ["rates", "-1", "(1,)"]),
        ([1.0, 1.0], [[1.0, 2.0], [1.0, np.nan]], ["latency_s", "nan", "(1, 1)"]),
        ([1.0, 1.0], np.ones((3, 2)), ["latency_s", "(3, 2)"]),
        (1.0, np.ones((3, 2)), ["latency_s", "(..., M, K)"]),
    ],
)
def test_refused(rates, latency, names):
    with pytest.raises(UserError) as error:
        valuation(rates, latency)
    assert all(name in str(error.value) for name in [*names, "allowed"]) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "tau, names",
    [
        ([0.0, 1.0], ["shape (2,)"]),
        ([[0.0, 1.0], [0.0, np.inf]], ["item 1", "inf"]),
        ([[0.0, np.nan, 2.0]], ["item 0", "nan"]),
        ([[1.0, 2.0]], ["item 0", "no chunk"]),
        ([[0.0, 1.0, 1.0], [0.0, 2.0, 1.0]], ["item 1", "2 chunks"]),
        ("many", ["table"]),
    ],
)
def test_refused_valuations(tau, names):
    with pytest.raises(UserError) as error:
        checked_valuation(tau)
    assert all(name in str(error.value) for name in ["tau", *names, "allowed"]) and "\n" not in str(
        error.value
    )


@pytest.mark.parametrize("value", [-1, 1.5, "3", None, True, np.nan])
def test_not_whole(value):
    with pytest.raises(UserError, match="capacity: found .*allowed: a whole number of at least 0"):
        checked_whole("capacity", value)
    assert checked_whole("capacity", np.int32(3)) == 3
