"""Runs whose rows cannot be computed or written: rows that say so, and none of their other rows."""

import time
from functools import partial
from itertools import islice
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest
from engines import PickledEngine

from ecjax.engine import Failed, Lost, Task
from ecjax.engine.serial import Serial
from ecjax.errors import UserError
from ecjax.studies.spine import batches
from ecjax.studies.spine.batches import Batch, Driven, run_batches, run_driven
from ecjax.tables import writer as writing
from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import FLOAT, INTEGER, Column
from ecjax.tables.store import ResultStore

NAMES = ["a" * 16, "b" * 16, "c" * 16]


TABLES = job_tables(
    "bench",
    (),
    history=(Column("iteration", INTEGER, "", ""), Column("objective", FLOAT, "", "")),
    timeline=(Column("start_s", FLOAT, "s", ""),),
)


class Named(NamedTuple):
    """What an item needs of a run."""

    run_id: str
    seed: int

    def row(self):
        return {"run_id": self.run_id, "job": "bench", "seed": self.seed}


class Item(NamedTuple):
    run: Named


def batch(*names):
    return Batch(None, {name: Item(Named(name, number)) for number, name in enumerate(names)})


def history(names):
    return pa.table({"run_id": names, "iteration": [0] * len(names), "objective": [1.0] * len(names)})


def solve(error, shared, items, worker):
    """Rows in history at once, those of timeline as they are written; the second run's cannot be made."""

    def timeline():
        for name, item in items.items():
            if item.run.seed == 1:
                raise error
            yield pa.table({"run_id": [name], "start_s": [0.0]})

    rows = [item.run.row() | {"status": "ok"} for item in items.values()]
    return rows, {"history": history(list(items)), "timeline": timeline()}


@pytest.mark.parametrize(
    "engine", [Serial(), PickledEngine(), PickledEngine(whole=True)], ids=["serial", "items", "tasks"]
)
@pytest.mark.parametrize("error", [MemoryError("no room"), OSError(12, "no memory")])
@pytest.mark.parametrize("seen", [True, False], ids=["shared", "sent"])
def test_rows_that_cannot_be_computed_are_those_of_a_failed_run(tmp_path, monkeypatch, engine, error, seen):
    if not seen and isinstance(engine, PickledEngine):
        monkeypatch.setattr(writing.DatasetWriter, "reaches", lambda self: False)
    with ResultStore(tmp_path, TABLES, {}) as store:
        run_batches([batch(*NAMES)], partial(solve, error), store, engine, "running")
    runs = pd.read_parquet(tmp_path / "runs").set_index("run_id").loc[NAMES]
    assert runs["status"].tolist() == ["ok", "failed", "ok"]
    assert str(error) in runs["error"].iloc[1]
    for dataset in ("history", "timeline"):
        assert sorted(pd.read_parquet(tmp_path / dataset)["run_id"]) == [NAMES[0], NAMES[2]]


def test_what_one_worker_cannot_write_the_driver_writes(tmp_path, monkeypatch):
    def refuse(self, run_ids, datasets, ok=None, write=writing.DatasetWriter.write):
        if self is not driver[0]:  # a worker has a copy
            raise UserError("out: cannot be written: Read-only file system")
        return write(self, run_ids, datasets, ok)

    driver = []
    monkeypatch.setattr(batches, "_SMALL_BYTES", 0)
    with ResultStore(tmp_path, TABLES, {}) as store:
        driver.append(store.writer)
        monkeypatch.setattr(writing.DatasetWriter, "write", refuse)
        run_batches([batch(NAMES[0])], partial(solve, OSError()), store, PickledEngine(), "running")
    assert pd.read_parquet(tmp_path / "timeline")["run_id"].tolist() == NAMES[:1]


@pytest.mark.parametrize("error", [Failed("MemoryError: no room"), Lost("the node died"), None])
def test_a_run_of_this_process_gets_the_engine_and_fails_as_a_row(tmp_path, error):
    engine = Serial()

    def driven(shared, items, where, advance):
        advance(1)
        assert where is engine
        if error is not None and NAMES[1] in items:
            raise error
        rows = [item.run.row() | {"status": "ok"} for item in items.values()]
        return rows, {"history": history(list(items))}

    with ResultStore(tmp_path, TABLES, {}) as store:
        run_driven([batch(name) for name in NAMES], Driven(driven, 3), store, engine, "running")
    runs = pd.read_parquet(tmp_path / "runs").set_index("run_id").loc[NAMES]
    assert runs["status"].tolist() == ["ok", "ok" if error is None else "failed", "ok"]
    assert runs["error"].dropna().tolist() == ([] if error is None else [str(error)])
    assert pd.read_parquet(tmp_path / "history")["run_id"].nunique() == (3 if error is None else 2)


@pytest.mark.parametrize("place", ["runs", "history", "a run that failed"])
@pytest.mark.parametrize("how", ["driven", "batches", "sent"])
def test_what_is_no_number_is_no_result(tmp_path, monkeypatch, place, how):
    """Of a run that is ok; the run becomes a row that says so."""
    if how == "sent":
        monkeypatch.setattr(writing.DatasetWriter, "reaches", lambda self: False)

    def rows_of(items):
        values = {name: float("nan") if item.run.seed == 1 else 1.0 for name, item in items.items()}
        failed = place == "a run that failed"
        rows = [item.run.row() | {"status": "failed" if failed else "ok"} for item in items.values()]
        if place == "runs":
            rows = [row | {"solve_s": values[row["run_id"]]} for row in rows]
            values = dict.fromkeys(values, 1.0)
        return rows, {"history": history(list(items)).set_column(2, "objective", [list(values.values())])}

    with ResultStore(tmp_path, TABLES, {}) as store:
        if how == "driven":
            driven = Driven(lambda shared, items, engine, advance: rows_of(items), 3)
            run_driven([batch(*NAMES[:2])], driven, store, Serial(), "running")
        else:
            engine = Serial()
            run_batches(
                [batch(*NAMES[:2])], lambda shared, items, worker: rows_of(items), store, engine, "running"
            )
    errors = pd.read_parquet(tmp_path / "runs").set_index("run_id").loc[NAMES[1], "error"]
    if place == "a run that failed":
        assert errors is None or pd.isna(errors)
    else:
        column = "runs.solve_s" if place == "runs" else "history.objective"
        assert f"{column} of a run that is ok: found nan; allowed: finite numbers, null" in errors


def test_what_the_user_did_wrong_ends_a_run_of_this_process(tmp_path):
    def driven(shared, items, where, advance):
        raise UserError("trace: wrong")

    with ResultStore(tmp_path, TABLES, {}) as store, pytest.raises(UserError, match="trace: wrong"):
        run_driven([batch(*NAMES)], Driven(driven, None), store, Serial(), "running")
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_map_that_is_given_up_does_not_halve_what_runs():
    calls = []

    def function(shared, items, worker):
        calls.append(len(items))
        while len(calls) < 2:  # the first is given up while the second runs
            time.sleep(0.001)
        return [worker.pool.submit(pow, 2, 2).result() for _ in range(100)]

    tasks = [Task(None, {str(number): number for number in range(64)}), Task(None, {"last": 0})]
    found = Serial().map(function, [*tasks, *tasks, *tasks], lambda items: None)
    next(iter(islice(found, 1)))
    found.close()
    assert max(calls) == 64 and len(calls) <= 6
