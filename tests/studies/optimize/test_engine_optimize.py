"""``ecjax optimize`` through an engine: the same tables from each; what memory cannot hold is planned in parts."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import problems
import pytest
from engines import PickledEngine, same_tables

from ecjax.errors import UserError
from ecjax.studies.optimize import run as optimize_run
from ecjax.studies.optimize.batches import Item, Way, batches
from ecjax.studies.spine import study
from ecjax.studies.spine.run import Run

THETA = [1.0, 5.0, 50.0]
TWO = np.resize([1, 2], problems.FILES)


def on(engine, monkeypatch) -> None:
    monkeypatch.setattr(study, "open_engine", lambda *_: nullcontext(engine))


@pytest.mark.slow  # compiles a program of each width
def test_batches_of_other_widths_give_the_same_tables(tmp_path, monkeypatch):
    given = {"method": ["certified", "published"], "theta": THETA, "memory_bytes": None}
    problems.study(tmp_path / "serial", problems.mixed(), **given)
    engine = PickledEngine(whole=True)
    on(engine, monkeypatch)
    assert problems.study(tmp_path / "other", problems.mixed(), **given)[0] == 0
    runs = pd.read_parquet(tmp_path / "other" / "runs")
    assert sorted(runs["batch_runs"]) == [2, 2, 4, 4, 4, 4], "two lanes, then one: a batch for each worker"
    assert len(engine.sent) == 1
    same_tables(tmp_path / "serial", tmp_path / "other")


@pytest.mark.slow
def test_queues_by_class_give_the_same_tables_run_by_run(tmp_path, monkeypatch):
    case = problems.mixed()
    case = problems.Case(case.nodes, case.files.assign(service_class=TWO), case.size_scaling)
    given = {"method": None, "theta": 0.0, "eps": 0.01, "start": "uniform", "queue": "priority"}
    given |= {"importance": [[1, 2], [1, 5]], "rate_scale": [1.0, 30.0]}
    assert problems.study(tmp_path / "serial", case, **given)[0] == 1
    on(PickledEngine(), monkeypatch)
    assert problems.study(tmp_path / "other", case, **given)[0] == 1
    same_tables(tmp_path / "serial", tmp_path / "other")


def test_the_least_overload_of_all_is_told(tmp_path, monkeypatch):
    on(PickledEngine(), monkeypatch)
    with pytest.raises(UserError, match="rate_scale=40 "):
        problems.study(tmp_path / "out", problems.mixed(), method="published", rate_scale=[50.0, 40.0, 60.0])
    assert not any((tmp_path / "out").glob("*/*.parquet"))


def test_a_batch_that_memory_cannot_hold_is_planned_in_parts_and_what_fails_is_a_row(tmp_path, monkeypatch):
    widths = []

    def small(problem, lanes, *more):
        widths.append(lanes.count)
        if lanes.count > 1 or lanes.theta[0] == THETA[2]:
            raise MemoryError("no room")
        return solve(problem, lanes, *more)

    solve = optimize_run.planning.solve
    out, given = tmp_path / "out", {"method": "published", "theta": THETA, "memory_bytes": None}
    monkeypatch.setattr(optimize_run.planning, "solve", small)
    code, text = problems.study(out, problems.mixed(), **given)
    assert code == 1 and "1 run failed: MemoryError: no room" in text
    assert widths == [3, 1, 2, 1, 1]
    runs = pd.read_parquet(out / "runs").set_index("theta").loc[THETA]
    assert runs["status"].tolist() == ["ok", "ok", "failed"]
    same = ["file_count", "node_count", "input_id", "version", "seed"]
    assert runs[same].drop_duplicates().shape[0] == 1
    params = [json.loads(text) for text in runs["params"]]
    assert [each.pop("theta") for each in params] == THETA and params[0] == params[1] == params[2]
    monkeypatch.setattr(optimize_run.planning, "solve", solve)
    assert problems.study(out, problems.mixed(), **given | {"memory_bytes": 1.0})[0] == 0
    problems.study(tmp_path / "undisturbed", problems.mixed(), **given | {"memory_bytes": 1.0})
    same_tables(tmp_path / "undisturbed", out)


@pytest.mark.parametrize(
    ("widest", "missing", "lanes", "width"),
    [(9, 9, [9], 9), (100, 9, [9], 9), (4, 9, [3, 3, 3], 3), (2, 9, [2] * 4 + [1], 2), (1, 9, [1] * 9, 1)]
    + [(4, 4, [3, 1], 3), (9, 1, [1], 9), (9, 0, [], 9)],
)
def test_batches_of_what_is_missing_are_as_wide_as_those_of_the_whole(widest, missing, lanes, width):
    grid = [
        Item(Run("optimize", {"lane": lane, "method": method}, "", 0), Way(method, "fcfs"), lane)
        for lane in range(9)
        for method in ("published", "max_ec")
    ]
    case, finished = SimpleNamespace(small=None), {item.run.run_id for item in grid[2 * missing :]}
    made = batches([(case, grid)], lambda _: widest, False, finished)
    assert [len(batch.items) for batch in made] == [2 * count for count in lanes]
    assert all(batch.shared is case for batch in made)
    items = [(name, item, len(batch.items)) for batch in made for name, item in batch.items.items()]
    assert all((item.width, item.batch_runs) == (width, runs) for _, item, runs in items)
    assert [name for name, *_ in items] == [item.run.run_id for item in grid[: 2 * missing]]
