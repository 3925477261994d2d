"""Plans of all edges on JAX's device: when, and with the same results."""

import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from ecjax.caching import batched
from ecjax.caching.system import Policy
from ecjax.errors import UserError
from ecjax.precision import device_name
from ecjax.studies.cache import device_plans
from ecjax.studies.cache.device_plans import edges_planner
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.study import cache_study
from ecjax.tables.results import read_results


def policy(name="optimal_static", capacity=10):
    return Policy(name, capacity, 1800.0, 0.9, 5, 60.0, 0, 0)


def test_runs_say_what_planned_them_and_are_the_same(tmp_path):
    rows = {}
    for device in ("host", "jax"):
        options = CacheOptions(
            out=str(tmp_path / device),
            reads=1500,
            items=30,
            capacity=[20],
            edges=4,
            period_s=5.0,
            nodes={"near": [0.1, 0.2, 0.15, 0.12], "far": [0.31, 0.37, 0.33, 0.3], "away": 0.9},
            policy=["optimal_static", "exact_periodic", "lru"],
            figures=[],
            device=device,
        )
        assert cache_study(options, Console(quiet=True)) == 0
        rows[device] = read_results(tmp_path / device, "runs").set_index("policy").sort_index()
    assert list(rows["host"]["run_id"]) == list(rows["jax"]["run_id"])
    for name in ("mean_s", "chunk_hit_ratio", "filled_chunks"):
        assert_allclose(rows["jax"][name], rows["host"][name], rtol=1e-9)
    assert set(rows["host"]["device"]) == {"cpu"}
    assert dict(rows["jax"]["device"]) == {
        "exact_periodic": device_name(),
        "lru": "cpu",
        "optimal_static": device_name(),
    }


@pytest.mark.parametrize(
    ("edges", "items", "capacity", "backend", "there"),
    [
        (10_000, 5000, 20, "gpu", True),
        (10_000, 5000, 20, "cpu", False),  # processors are faster than the program on them
        (3, 1000, 100, "gpu", False),  # over before the program is there
        (10_000, 1000, 2000, "gpu", False),  # the core of the knapsack has less to do
    ],
)
def test_a_gpu_plans_many_small_caches_by_itself(edges, items, capacity, backend, there, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(device_plans, "usable_bytes", lambda: 1e9)
    assert (edges_planner("auto", policy(capacity=capacity), edges, items, 6) is not None) == there


def test_what_does_not_fit_is_said(monkeypatch):
    monkeypatch.setattr(device_plans, "usable_bytes", lambda: 1e6)
    assert edges_planner("host", policy(capacity=10**6), 3, 10**4, 6) is None
    assert edges_planner("jax", policy("lru", 10**6), 3, 10**4, 6) is None
    allowed = (
        "device=jax: found optimal_static of 10,000 items with room for 60,000 chunks, 1 GB an edge; allowed"
    )
    with pytest.raises(UserError, match=allowed):
        edges_planner("jax", policy(capacity=10**6), 3, 10**4, 6)


def test_plans_that_run_side_by_side_do_not_share_out_one_memory_twice(monkeypatch):
    planning, most = [], []

    def planned(tau, capacity, *, memory_bytes):
        planning.append(memory_bytes)
        most.append(len(planning))
        time.sleep(0.01)
        planning.pop()
        return np.zeros(tau.shape[:2], int)

    monkeypatch.setattr(batched, "exact_batched", planned)
    planner = edges_planner("jax", policy(), 2, 10, 3)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: planner(np.zeros((2, 10, 4)), 5), range(4)))
    assert most == [1, 1, 1, 1]
