"""Cases of caches, small: rivals find the same, and every policy has its rows."""

from importlib.util import find_spec

import numpy as np
import pytest
from bench_cases import rows_of

from ecjax.caching.knapsack import plan
from ecjax.caching.replay import POLICIES
from ecjax.studies.bench.run import Settings
from ecjax.studies.bench.setups import caching, caching_peers

QUICK = Settings(repeats=1, quick=True, seed=3)


def test_the_integer_programme_finds_the_same():
    tau = caching._tau((12, 9, 4), 1)
    chunks = caching.by_integer_programme(tau, 9)
    assert chunks.sum() <= 9
    np.testing.assert_allclose(tau[np.arange(12), chunks.astype(int)].sum(), plan(tau, 9).value, rtol=1e-9)


def test_one_cache_beside_its_rivals():
    rows = rows_of("caching_offline", QUICK)
    assert [row.variant for row in rows] == [
        "ecjax exact",
        "whole dynamic programme",
        "ecjax exact",
        "SciPy milp (HiGHS)",
    ]
    assert all(row.target_s is None and row.min_s > 0 for row in rows)


def test_many_caches():
    rows = rows_of("caching_batched", QUICK)
    assert [row.lanes for row in rows] == [3, 3, 3, 21, 21]
    assert all(row.met is None for row in rows)


def test_peers_beside_libcachesim():
    rows = rows_of("caching_peers", QUICK)
    both = 2 if find_spec("libcachesim") else 1
    assert len(rows) == both * len(caching_peers.LIBRARY) and all(row.min_s > 0 for row in rows)
    assert not any("not the same" in row.note for row in rows)


@pytest.mark.slow  # compiles every policy
def test_every_policy_has_its_speed_and_its_decision():
    rows = rows_of("caching_online", QUICK)
    assert {row.variant.removeprefix("ecjax ") for row in rows if "decision" not in row.variant} == set(
        POLICIES
    )
    assert len(rows) == 2 * len(POLICIES) and rows[0].gap == 0
