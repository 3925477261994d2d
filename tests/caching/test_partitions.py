"""Partitions: counts of the paper, order, ranks both ways, draws that are uniform."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_assignment import all_partitions
from scipy.stats import chisquare

from ecjax.caching.partitions import Partitions
from ecjax.errors import UserError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
SMALL = (st.integers(0, 14), st.integers(1, 5), st.integers(0, 9))


def test_table_2():
    assert {c: Partitions(int(c), 6).count for c in VECTORS["table_II"]["K6"]} == VECTORS["table_II"]["K6"]
    assert {k: Partitions(100, int(k), 1000).count for k in VECTORS["table_II"]["C100"]} == VECTORS[
        "table_II"
    ]["C100"]


def test_table_4():
    values = VECTORS["table_IV"]["values"]
    assert {k: Partitions(2 * int(k) - 1, int(k), int(k) + 1).count for k in values} == values


@pytest.mark.parametrize("case", VECTORS["counts"])
def test_counts(case):
    assert Partitions(case["C"], case["K"], case["M"]).count == case["count"]


def test_the_papers_sequence():
    case = VECTORS["chi_sequence_example"]
    assert np.array(list(Partitions(case["C"], case["K"], case["M"]))).tolist() == case["chi"]


@given(*SMALL)
def test_all_in_order_and_ranked(capacity, k, items):
    chi = Partitions(capacity, k, items)
    expected = all_partitions(capacity, k, items)
    assert [x.tolist() for x in chi] == expected
    assert [x.tolist() for block in chi.blocks(3) for x in block] == expected
    assert [chi.unrank(i).tolist() for i in range(chi.count)] == expected
    assert [chi.rank(x) for x in expected] == list(range(len(expected)))
    if expected:
        assert chi.last().tolist() == expected[-1]
    whole = [x[-1] for x in expected]
    for value in range(capacity // k + 2):
        ranks = chi.ranks_with_whole(value)
        assert [whole[i] for i in ranks] == [value] * whole.count(value)


@given(st.integers(0, 10**30), st.sampled_from([(1000, 15, 1000), (1000, 15, 100), (300, 40, 12)]))
def test_ranks_of_what_nobody_can_list(index, setting):
    chi = Partitions(*setting)
    index %= chi.count
    x = chi.unrank(index)
    assert x @ np.arange(1, chi.k + 1) == chi.capacity and x.sum() <= chi.items and x.min() >= 0
    assert chi.rank(x) == index


def test_draws_are_uniform():
    chi, draws = Partitions(9, 3, 6), random.Random(5)
    assert chi.count == 8  # of 12, four have more than 6 parts
    pairs = list(itertools.combinations(range(chi.count), 2))
    found = dict.fromkeys(pairs, 0)
    for _ in range(3000):
        ranks = sorted(chi.rank(x) for x in chi.sample(2, draws))
        found[tuple(ranks)] += 1  # two alike would be no key
    assert chisquare(list(found.values())).pvalue > 0.001


def test_no_more_samples_than_there_are():
    chi = Partitions(9, 3, 6)
    assert [chi.rank(x) for x in chi.sample(100, random.Random(1))] == list(range(8))
    assert [chi.rank(x) for x in chi.sample(100, random.Random(1), range(2, 5))] == [2, 3, 4]
    assert chi.sample(0, random.Random(1)) == []


def test_the_same_seed_the_same_draws():
    chi = Partitions(1000, 15, 1000)
    one, two, other = (np.array(chi.sample(5, random.Random(seed))) for seed in (1, 1, 2))
    assert (one == two).all() and (one != other).any()


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda: Partitions(-1, 3), ["capacity", "-1"]),
        (lambda: Partitions(10, 0), ["k", "0", "at least 1"]),
        (lambda: Partitions(10, 3, 2.5), ["items", "2.5"]),
        (lambda: Partitions(4, 3, 4).unrank(4), ["index", "4", "0 to 3"]),
        (lambda: Partitions(7, 3, 2).unrank(0), ["capacity", "7", "6"]),
        (lambda: Partitions(7, 3, 2).last(), ["capacity", "7", "6"]),
        (lambda: Partitions(4, 3, 4).rank([4, 1, 0]), ["partition", "[4, 1, 0]", "4 chunks"]),
        (lambda: Partitions(4, 3, 3).rank([4, 0, 0]), ["partition", "3 items"]),
        (lambda: Partitions(4, 3, 4).rank([4, 0]), ["partition", "3 whole numbers"]),
    ],
)
def test_refused(call, names):
    with pytest.raises(UserError) as error:
        call()
    assert all(name in str(error.value) for name in [*names, "allowed"]) and "\n" not in str(error.value)
