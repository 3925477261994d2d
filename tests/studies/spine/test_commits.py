"""Small batches are committed together: soon, all of them, and whatever ends the work."""

import time

import pandas as pd
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.studies.spine import commits as module
from ecjax.studies.spine.commits import Commits, Written
from ecjax.tables.result_schemas import job_tables
from ecjax.tables.schemas import FLOAT, INTEGER, Column
from ecjax.tables.store import ResultStore
from ecjax.tables.verify import verify

TABLES = job_tables("bench", (), history=(Column("iteration", INTEGER, "", ""), Column("gap", FLOAT, "", "")))


def named(number):
    return f"{number:016x}"


def written(*numbers, is_small=True, rows=2):
    names = [named(number) for number in numbers]
    history = [pa.table({"run_id": [name] * rows, "iteration": range(rows)}) for name in names]
    runs = [{"run_id": name, "job": "bench", "status": "ok"} for name in names]
    return Written(runs, {"history": history}, is_small)


@pytest.fixture
def store(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as opened:
        yield opened


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_small_ones_share_files_and_nothing_is_lost(store, tmp_path):
    with Commits(store) as commits:
        for number in range(700):
            commits.add(written(number))
        commits.add(written(700, 701, is_small=False))
    names = [named(number) for number in range(702)]
    assert store.finished(names) == set(names)
    assert len(list((tmp_path / "runs").glob("*.parquet"))) < 100
    for dataset, each in (("runs", 1), ("history", 2)):
        assert pd.read_parquet(tmp_path / dataset).groupby("run_id").size().to_dict() == dict.fromkeys(
            names, each
        )
    assert verify(tmp_path).findings == []


def test_they_wait_for_a_moment_only(store):
    with Commits(store) as commits:
        commits.add(written(1))
        wait_for(lambda: store.finished([named(1)]))
        commits.add(written(2))
        wait_for(lambda: store.finished([named(2)]))


def test_what_waits_is_committed_whatever_ends_the_work(store):
    with pytest.raises(KeyboardInterrupt), Commits(store) as commits:
        commits.add(written(1))
        raise KeyboardInterrupt
    assert store.finished([named(1)])


def test_others_are_committed_at_once_after_what_is_to_be_kept(store):
    kept = []
    with Commits(store) as commits:
        commits.add(written(1, is_small=False), lambda: kept.append(store.finished([named(1)])))
        assert store.finished([named(1)]) and kept == [set()]


@pytest.mark.parametrize("later", [True, False])
def test_an_error_is_that_of_the_work(store, monkeypatch, later):
    def refuse(runs, datasets):
        raise UserError("out: cannot be written: No space left on device")

    monkeypatch.setattr(store, "commit", refuse)
    with pytest.raises(UserError, match="No space left"), Commits(store) as commits:
        commits.add(written(1))
        if later:
            wait_for(lambda: commits._error is not None)
            commits.add(written(2))
            pytest.fail("goes on")


def test_the_work_waits_where_the_store_is_slow(store, monkeypatch):
    """So that memory stays flat."""
    monkeypatch.setattr(module, "MOST_RUNS", 10)
    monkeypatch.setattr(module, "MOST_WAITING", 40)
    commit, waiting = store.commit, []

    def slow(runs, datasets):
        assert len(runs) <= 10
        time.sleep(0.01)
        commit(runs, datasets)

    monkeypatch.setattr(store, "commit", slow)
    with Commits(store) as commits:
        for number in range(200):
            commits.add(written(number))
            waiting.append(len(commits._waiting))
    assert max(waiting) <= 40
    assert len(store.finished([named(number) for number in range(200)])) == 200
