"""Cases of the engine, small: the model is min of its two limits, and without Ray they say so."""

import heapq
import math

import pytest
from bench_cases import rows_of

from ecjax.studies.bench.run import Settings
from ecjax.studies.bench.setups import engine, engine_scaling, engine_speedup

QUICK = Settings(repeats=1, quick=True, seed=3)


@pytest.fixture
def without_ray(monkeypatch):
    for module in (engine, engine_scaling, engine_speedup):
        monkeypatch.setattr(module, "has_ray", lambda: False)


def test_overhead_without_ray(without_ray):
    *found, missing = rows_of("engine_overhead", QUICK)
    assert [row.variant for row in found] == ["ecjax, serial: hand out", "ecjax, serial: hand out and commit"]
    assert all(row.rows == 20 and row.min_s > 0 and row.target_s is None for row in found)
    assert missing.note == "Ray is not installed: not measured" and math.isnan(missing.min_s)


def test_commits_without_ray(without_ray):
    *found, missing = rows_of("engine_commits", QUICK)
    names = ["hand out and commit", "open again", "read runs", "verify"]
    assert [row.variant for row in found] == [f"ecjax, serial: {name}" for name in names]
    assert all(row.rows == 20 and row.min_s > 0 for row in found) and math.isnan(missing.min_s)


def test_speedup_without_ray(without_ray):
    serial, missing = rows_of("engine_speedup", QUICK)
    assert serial.variant == "ecjax, serial" and serial.min_s > 0 and missing.note


@pytest.mark.parametrize("case", ["engine_start", "engine_scaling"])
def test_cases_of_ray_alone(without_ray, case):
    (row,) = rows_of(case, QUICK)
    assert row.note == "Ray is not installed: not measured" and row.met is None


def test_the_model():
    """Two regimes, which meet where the driver is busy all the time."""
    model = engine_scaling.Model(trip_s=0.002, driver_s=0.0005)
    assert model.items_per_s(10, 0.098) == pytest.approx(100)
    assert model.items_per_s(10_000, 0.098) == pytest.approx(2000)
    assert model.items_per_s(200, 0.098) == pytest.approx(2000)
    assert model.items_per_s(1, 0.0) == pytest.approx(500)


def simulated(actors, items, item_s, trip_s, driver_s):
    """Items/s of workers that ask one driver for each item, event by event."""
    asks = [(0.0, worker) for worker in range(actors)]
    driver, ended = 0.0, 0.0
    for _ in range(items):
        asked, worker = heapq.heappop(asks)
        driver = max(driver, asked) + driver_s
        ended = max(ended, driver + (trip_s - driver_s) + item_s)
        heapq.heappush(asks, (driver + (trip_s - driver_s) + item_s, worker))
    return items / ended


@pytest.mark.parametrize("actors", [1, 10, 50, 200, 1000])
@pytest.mark.parametrize("item_s", [0.01, 0.1, 1.0, 10.0])
def test_the_model_beside_a_simulation(actors, item_s):
    """Of many rounds, whose last one ends unevenly."""
    model = engine_scaling.Model(trip_s=0.005, driver_s=0.0014)
    found = simulated(actors, 200 * actors, item_s, model.trip_s, model.driver_s)
    assert found == pytest.approx(model.items_per_s(actors, item_s), rel=0.01)


@pytest.mark.parametrize("actors", [1, 10, 200])
def test_whole_rounds(actors):
    for speed in (0.5, 30.0, 1e5):
        count = engine_scaling._items(speed, actors)
        assert count % actors == 0 and count >= 2 * actors
        assert count <= max(engine_scaling.MOST_ITEMS + actors, 2 * actors)


def test_items_replay_their_own_seeds(monkeypatch):
    both = engine_speedup.replay_several(1, {"a": 4, "b": 5}, None)
    alone = [engine_speedup.replay_several(1, {"x": seed}, None) for seed in (4, 5)]
    assert both == pytest.approx(sum(alone), rel=1e-12) and alone[0] != alone[1]
