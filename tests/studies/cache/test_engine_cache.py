"""``ecjax cache`` by workers that share nothing with it."""

from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from engines import PickledEngine, open_pickled, same_tables
from rich.console import Console

from ecjax.caching.replay import replay
from ecjax.studies.cache import run as cache_run
from ecjax.studies.cache import sampling as cache_sampling
from ecjax.studies.cache.options import CacheOptions
from ecjax.studies.cache.study import cache_study
from ecjax.studies.spine import study as spine
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
TRACES = Path(__file__).parents[3] / "traces"


def options(out, **values):
    given = {"out": str(out), "reads": 600, "items": 40, "capacity": 20, "figures": [], "replan_reads": 200}
    return CacheOptions(**(given | values))


@pytest.fixture
def counted(monkeypatch):
    """Policies and seeds of the replays of more than a few reads."""
    names = []

    def count(reads, stored, network, policy, known, advance, planner):
        if len(reads.time_s) > 50:
            names.append((policy.name, policy.seed))
        return replay(reads, stored, network, policy, known, advance, planner)

    monkeypatch.setattr(cache_run, "replay", count)
    return names


def both(tmp_path, monkeypatch, **given):
    """The runs of a study in this process, which a worker that shares nothing with it finds too; and the engine."""
    engines = []

    @contextmanager
    def opened(options, accelerated):
        engines.append(PickledEngine())
        yield engines[-1]

    assert cache_study(options(tmp_path / "serial", **given), QUIET) == 0
    monkeypatch.setattr(spine, "open_engine", opened)
    assert cache_study(options(tmp_path / "pickled", **given), QUIET) == 0
    same_tables(tmp_path / "serial", tmp_path / "pickled")
    return read_results(tmp_path / "pickled", "runs"), engines[0]


def test_a_worker_that_shares_nothing_finds_the_same(tmp_path, monkeypatch):
    given = {"policy": ["lru", "samplex", "exact", "optimal_static", "agar"], "samples": [1, 3]}
    given |= {"jitter": 0.2, "fail": [None, "oregon/3"], "neighbours": 0.3, "period_s": 3.0}
    runs, engine = both(tmp_path, monkeypatch, **given)
    assert len(runs) == 2 * 7 and runs["above_optimum"].notna().all()
    [sent] = engine.sent
    assert sent < 20_000  # reads are drawn where they are replayed


def test_a_trace_is_sent_once_for_all_points(tmp_path, monkeypatch):
    trace, nodes = TRACES / "requests_objects.parquet", TRACES / "edges.parquet"
    given = {"trace": str(trace), "nodes": str(nodes), "k": [2, 3], "capacity": [5, 10], "policy": "lru"}
    runs, engine = both(tmp_path, monkeypatch, **given, items=1000, warm_up=0.0)
    [sent] = engine.sent
    columns = 8 * 3 * int(runs["requests"].iloc[0])
    assert columns < sent < columns + 50_000


def test_the_sampling_study_of_a_worker_finds_the_same(tmp_path, monkeypatch):
    given = {"partitions": [1, 4], "capacity": 8, "k": 3, "items": 20, "rounds": 4, "seeds": 2}
    runs, _ = both(tmp_path, monkeypatch, **given)
    assert len(runs) == 2 * (2 + 5 * 2) and runs["above_optimum"].max() > 0


def test_a_worker_finds_what_a_point_is_compared_with_once(tmp_path, monkeypatch, counted):
    monkeypatch.setattr(spine, "open_engine", open_pickled)
    assert cache_study(options(tmp_path, policy=["lru", "lfu", "none"], seeds=2), QUIET) == 0
    # one by one, and of one worker
    assert sorted(counted) == sorted(
        (name, seed) for name in ("lru", "lfu", "none", "optimal_static") for seed in (0, 1)
    )
    assert read_results(tmp_path, "runs")["above_optimum"].notna().all()
    del counted[:]
    # a run of its own is replayed for its row, and no more
    assert cache_study(options(tmp_path, policy=["lru", "optimal_static"]), QUIET) == 0
    assert counted == [("optimal_static", 0)]


def test_runs_finish_where_what_they_are_compared_with_fails(tmp_path, monkeypatch):
    def fails(reads, stored, network, policy, known, advance, planner):
        if policy.name == "optimal_static":
            raise MemoryError("no room")
        return replay(reads, stored, network, policy, known, advance, planner)

    monkeypatch.setattr(cache_run, "replay", fails)
    assert cache_study(options(tmp_path, policy=["lru", "none"]), QUIET) == 0
    assert cache_study(options(tmp_path, policy=["lfu", "optimal_static"]), QUIET) == 1
    runs = read_results(tmp_path, "runs").set_index("policy")
    assert dict(runs["status"]) == {"lru": "ok", "none": "ok", "lfu": "ok", "optimal_static": "failed"}
    assert runs["above_optimum"].isna().all()
    monkeypatch.undo()
    assert cache_study(options(tmp_path, policy=["lfu", "optimal_static"]), QUIET) == 0
    assert set(read_results(tmp_path, "runs")["status"]) == {"ok"}


def test_a_plan_that_fails_is_a_row_and_the_rest_finish(tmp_path, monkeypatch):
    sampled = cache_sampling._sampled

    def fails(study, scheme, samples, seed, rounds):
        if scheme == "clus" and samples == 4:
            raise MemoryError("no room")
        return sampled(study, scheme, samples, seed, rounds)

    monkeypatch.setattr(cache_sampling, "_sampled", fails)
    given = options(tmp_path, partitions=[1, 4], capacity=12, k=3, rounds=4, figures=["sampling"])
    console = Console(file=StringIO(), width=200)
    assert cache_study(given, console) == 1
    assert "1 run: MemoryError: no room" in console.file.getvalue()
    runs = read_results(tmp_path, "runs")
    assert len(runs) == 2 + 5 * 2 and (runs["status"] == "ok").sum() == 11
    monkeypatch.undo()
    assert cache_study(given, QUIET) == 0
    runs = read_results(tmp_path, "runs").set_index(["scheme", "samples"])
    assert set(runs["status"]) == {"ok"}
    assert np.isclose(
        runs.loc[("clus", 4), "above_optimum"],
        runs.loc[("clus", 4), "mean_s"] / runs.loc["optimal", "mean_s"].iloc[0] - 1,
    )
