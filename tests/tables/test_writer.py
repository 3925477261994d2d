"""Datasets written by workers, runs committed by the one driver: whoever is killed, no row is lost or doubled."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables import store as store_module
from ecjax.tables.datasets import batch_id
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore
from ecjax.tables.writer import DatasetWriter

RUNS = ("a", "b", "c", "d")


def row(run: str, status: str = "ok") -> dict:
    return {"run_id": run, "job": "optimize", "status": status}


def history(*runs: str, count: int = 3) -> pa.Table:
    rows = [(run, i, ord(run) + i / 8) for run in runs for i in range(count)]
    return pa.table(
        dict(zip(("run_id", "iteration", "objective"), map(list, zip(*rows, strict=True)), strict=True))
    )


def elsewhere(store: ResultStore) -> DatasetWriter:
    """The store's writer as another process has it."""
    return pickle.loads(pickle.dumps(store.writer))


def kill(store: ResultStore) -> None:
    """What the system does for a driver that was killed: only the lock goes."""
    store._lock.release()


def seen(out: Path) -> dict[str, int]:
    return read_results(out, "history").groupby("run_id").size().to_dict()


def on_disk(out: Path) -> dict[str, int]:
    return pd.read_parquet(out / "history").groupby("run_id").size().to_dict()


def test_written_by_a_worker_and_committed_by_the_driver(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        writer = elsewhere(store)
        assert writer.reaches()
        written = writer.write(["a", "b"], {"history": [history("a"), history("b")]})
        assert not list(tmp_path.rglob("*.parquet"))
        store.commit([row("a"), row("b")], written)
    assert seen(tmp_path) == on_disk(tmp_path) == {"a": 3, "b": 3}
    assert read_results(tmp_path, "runs")["batch_id"].tolist() == [batch_id(["a", "b"])] * 2
    assert [path.name for path in tmp_path.rglob(".*")] == [".lock"]


def test_what_is_sent_back_is_what_would_be_written(tmp_path):
    def never():
        raise AssertionError("a dataset that is left out is not computed")
        yield

    for place in ("sent", "written"):
        with ResultStore(tmp_path / place, TABLES, {}, write=["history"]) as store:
            writer = elsewhere(store)
            datasets = {"history": map(history, "ab"), "placements": never()}
            if place == "sent":
                sent = pickle.loads(pickle.dumps(writer.conformed(datasets)))
                assert list(sent) == ["history"]
                store.commit([row("a"), row("b")], sent)
            else:
                store.commit([row("a"), row("b")], writer.write(["a", "b"], datasets))
    sent, written = (read_results(tmp_path / place, "history") for place in ("sent", "written"))
    pd.testing.assert_frame_equal(sent, written)
    assert not (tmp_path / "sent" / "placements").exists()


def test_a_folder_of_the_same_name_is_not_the_drivers(tmp_path):
    with ResultStore(tmp_path / "out", TABLES, {}) as store:
        writer = elsewhere(store)
        (tmp_path / "out").rename(tmp_path / "mounted-elsewhere")
        assert not writer.reaches()
        (tmp_path / "out").mkdir()
        assert not elsewhere(store).reaches()
        (tmp_path / "out").rmdir()
        (tmp_path / "mounted-elsewhere").rename(tmp_path / "out")


def test_out_is_found_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ResultStore("out", TABLES, {}) as store:
        writer = elsewhere(store)
        (tmp_path / "deeper").mkdir()
        monkeypatch.chdir(tmp_path / "deeper")
        assert writer.reaches()
        written = writer.write(["a"], {"history": history("a")})
        monkeypatch.chdir(tmp_path)
        store.commit([row("a")], written)
    assert seen(tmp_path / "out") == {"a": 3}


def test_mistakes_leave_nothing(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        writer = elsewhere(store)
        with pytest.raises(ValueError, match="runs that are not in the batch"):
            writer.write(["a"], {"history": [history("a"), history("b")]})
        (tmp_path / "history").rmdir()
        (tmp_path / "history").touch()
        with pytest.raises(UserError, match=f"out={tmp_path}: cannot be written: File exists"):
            writer.write(["a"], {"history": history("a")})
        (tmp_path / "history").unlink()
    assert list(tmp_path.rglob("*.parquet*")) == []


# Interleavings


def test_two_workers_write_one_batch_at_a_time(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        lost, retried = elsewhere(store), elsewhere(store)

        def interrupted():
            yield history("a")
            written = retried.write(["a", "b"], {"history": history("a", "b")})
            store.commit([row("a"), row("b")], written)
            yield history("b")

        lost.write(["a", "b"], {"history": interrupted()})
        assert seen(tmp_path) == {"a": 3, "b": 3}
    assert seen(tmp_path) == on_disk(tmp_path) == {"a": 3, "b": 3}


def test_a_worker_outlives_its_driver(tmp_path):
    killed = ResultStore(tmp_path, TABLES, {})
    killed.__enter__()
    killed.commit([row("a")], {"history": history("a")})
    orphan = elsewhere(killed)
    orphan.write(["b"], {"history": history("b")})
    assert on_disk(tmp_path) == {"a": 3}
    kill(killed)
    with ResultStore(tmp_path, TABLES, {}) as store:
        assert len(list((tmp_path / "history").iterdir())) == 1
        store.commit([row("b")], {"history": history("b")})
        for runs in ("b", "ab", "c"):
            with pytest.raises(UserError, match="the job that this is written for has ended"):
                orphan.write(runs, {"history": history(*runs, count=9)})
        assert store.finished(RUNS) == {"a", "b"}
    assert seen(tmp_path) == on_disk(tmp_path) == {"a": 3, "b": 3}
    with pytest.raises(UserError, match="has ended"):
        orphan.write("c", {"history": history("c")})


def test_a_driver_starts_while_a_worker_of_a_killed_one_writes(tmp_path):
    killed = ResultStore(tmp_path, TABLES, {})
    killed.__enter__()
    orphan = elsewhere(killed)

    def interrupted():
        yield history("a", count=9)
        kill(killed)
        with ResultStore(tmp_path, TABLES, {}) as store:
            store.commit([row("a")], {"history": history("a")})
        yield history("a", count=9)

    with pytest.raises(UserError):
        orphan.write(["a"], {"history": interrupted()})
    assert seen(tmp_path) == on_disk(tmp_path) == {"a": 3}
    assert [path.name for path in tmp_path.rglob(".*")] == [".lock"]


def test_a_batch_that_was_split_after_it_was_written(tmp_path):
    with ResultStore(tmp_path, TABLES, {}) as store:
        writer = elsewhere(store)
        writer.write("ab", {"history": history("a", "b")})
        for run in "ab":
            store.commit([row(run)], writer.write(run, {"history": history(run)}))
        assert seen(tmp_path) == {"a": 3, "b": 3}
    assert seen(tmp_path) == on_disk(tmp_path) == {"a": 3, "b": 3}


def test_datasets_of_an_earlier_commit_of_the_batch_go(tmp_path):
    scenarios = pa.table({"run_id": ["a"], "latency_s": [1.0]})
    with ResultStore(tmp_path, TABLES, {}) as store:
        store.commit([row("a", "failed")], {"history": history("a"), "scenarios": scenarios})
    with ResultStore(tmp_path, TABLES, {}) as store:
        store.commit([row("a")], elsewhere(store).write("a", {"history": history("a", count=1)}))
    assert seen(tmp_path) == {"a": 1}
    assert list((tmp_path / "scenarios").iterdir()) == []


BATCHES = ("ab", "cd", "abc", *RUNS)
EVENTS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 3), st.sampled_from(BATCHES)),
    st.tuples(st.just("commit"), st.integers(0, 3), st.sampled_from(BATCHES)),
    st.tuples(st.just("kill"), st.just(0), st.just("a")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(events=st.lists(EVENTS, max_size=12))
def test_any_order_of_writes_commits_and_kills(tmp_path_factory, events):
    """Writers of all drivers so far write when they like; a driver commits what was written for it."""
    out = tmp_path_factory.mktemp("events")
    stores, writers, written, committed = [], [], {}, set()

    def start():
        if stores:
            kill(stores[-1])
        stores.append(ResultStore(out, TABLES, {}))
        stores[-1].__enter__()
        writers.append(elsewhere(stores[-1]))

    start()
    for what, who, batch in events:
        datasets = {"history": history(*batch)}
        if what == "kill":
            start()
            written = {}
        elif what == "write":
            with contextlib.suppress(UserError):
                written[batch] = writers[who % len(writers)].write(batch, datasets)
        else:
            mine = batch in written and who
            stores[-1].commit([row(run) for run in batch], written[batch] if mine else datasets)
            committed.update(batch)
            written = {other: files for other, files in written.items() if not set(other) & set(batch)}
        if committed:
            assert seen(out) == dict.fromkeys(sorted(committed), 3)
            assert set(read_results(out, "runs")["run_id"]) == committed
    start()
    stores[-1].__exit__(None, None, None)
    if committed:
        assert seen(out) == on_disk(out) == dict.fromkeys(sorted(committed), 3)


# Killed processes

DRIVER = """
import pickle, subprocess, sys, time
from pathlib import Path
import pyarrow as pa
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.seals import Contents
from ecjax.tables.store import ResultStore

with ResultStore(sys.argv[1], TABLES, {}) as store:
    Path(sys.argv[2]).write_bytes(pickle.dumps(store.writer))
    worker = subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[2]], stdout=subprocess.PIPE, text=True)
    for line in worker.stdout:
        run, rows, size, sha256 = line.split()
        written = {"history": Contents(int(rows), int(size), sha256)}
        store.commit([{"run_id": run, "job": "optimize", "status": "ok"}], written)
        print(worker.pid, run, flush=True)
"""

WORKER = """
import itertools, pickle, sys, time
from pathlib import Path
import pyarrow as pa
from ecjax.errors import UserError

writer = pickle.loads(Path(sys.argv[1]).read_bytes())
assert writer.reaches()
for number in itertools.count():
    run = f"{number:016x}"
    parts = (pa.table({"run_id": [run], "iteration": [i], "objective": [i / 8]}) for i in range(3))
    try:
        written = writer.write([run], {"history": parts})
    except UserError as error:
        Path(sys.argv[1] + ".ended").write_text(str(error))
        sys.exit()
    try:
        print(run, *written["history"], flush=True)
    except BrokenPipeError:
        sys.stdout = open("/dev/null", "w")
"""


def test_the_driver_is_killed_and_its_worker_is_not(tmp_path):
    out, pickled = tmp_path / "out", tmp_path / "writer"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(out), str(pickled), WORKER], stdout=subprocess.PIPE, text=True
    )
    worker = 0
    try:
        for _ in range(5):
            line = driver.stdout.readline()
            worker = int(line.split()[0])
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
        before = set(read_results(out, "runs")["run_id"])
        assert len(before) >= 5
        with ResultStore(out, TABLES, {}) as store:
            assert store.finished(before) == before
            worker = _ended(pickled, worker)
            mine = f"{99_999:016x}"
            store.commit(
                [{**row("a"), "run_id": mine}],
                {"history": history("a").set_column(0, "run_id", [[mine] * 3])},
            )
        expected = dict.fromkeys(sorted(before | {mine}), 3)
        assert seen(out) == on_disk(out) == expected
        assert [path.name for path in out.rglob(".*")] == [".lock"]
    finally:
        driver.kill()
        driver.wait()
        if worker:
            os.kill(worker, signal.SIGKILL)


def _ended(pickled: Path, worker: int) -> int:
    """Wait for the worker to find that its driver is gone; 0 once it has."""
    for _ in range(200):
        if Path(f"{pickled}.ended").exists():
            return 0
        time.sleep(0.05)
    raise AssertionError(f"worker {worker} goes on")


def test_a_large_batch_fails_as_a_whole_or_run_by_run(tmp_path, monkeypatch):
    """Rows of ``runs`` are written several at a time: those that were written stay, with their datasets."""
    runs = [f"{number:016x}" for number in range(40)]
    monkeypatch.setattr(store_module, "SHARED_RUNS", 41)
    with ResultStore(tmp_path, TABLES, {}) as store:
        write = store._write_run_file

        def some(part):
            if int(part[0], 16) % 7 == 3:
                raise OSError(28, "x")
            write(part)

        monkeypatch.setattr(store, "_write_run_file", some)
        table = pa.table({"run_id": runs, "iteration": [0] * 40})
        with pytest.raises(UserError, match="No space left"):
            store.commit([row("a") | {"run_id": run} for run in runs], {"history": table})
        kept = store.finished(runs)
        assert 0 < len(kept) < 40
    assert set(read_results(tmp_path, "runs")["run_id"]) == kept
    assert seen(tmp_path) == on_disk(tmp_path) == dict.fromkeys(sorted(kept), 1)
