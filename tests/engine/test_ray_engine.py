"""The engine on a cluster of three nodes: what comes back, whatever raises, dies or is taken away.

One file, so that one test process starts the cluster.
"""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import engine_work as work
import pytest

import ecjax
from ecjax.engine import Done, EngineOptions, Failed, Lost, Task, open_engine
from ecjax.errors import UserError
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.batches import Batch, run_batches
from ecjax.studies.spine.study import unfinished
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore
from ecjax.tables.writer import DatasetWriter

joining = pytest.importorskip("ecjax.engine.joining")  # sets what Ray reads when it is imported
ray = joining.ray
# workers have the library, but not these tests
ray.cloudpickle.register_pickle_by_value(work)


def opened(**options):
    return open_engine(EngineOptions("ray", **options))


@pytest.fixture(scope="module")
def engine(joined):
    """One engine for all that leaves it as it was."""
    with opened() as found:
        yield found


@pytest.fixture
def free(engine):
    """The cores of the cluster are free for an engine of the test's own."""
    engine.close()


def tasks(count, size=1, shared=None):
    """Tasks of items that are named in order and have their place in the task as value."""
    return [Task(shared, {str(task * size + item): item for item in range(size)}) for task in range(count)]


class Count(list):
    """What is reported as done."""

    def __call__(self, items):
        self.append(items)


def names(found: list[Done]):
    """Items in the answers; each must be there once."""
    listed = [name for done in found for name in done.task.items]
    assert len(listed) == len(set(listed))
    return set(listed)


def numbered(count):
    return set(map(str, range(count)))


def test_every_item_once_and_maps_share_the_workers(engine, tmp_path):
    assert engine.workers == 3
    meeting = [Task((str(tmp_path), 3), {name: 0}) for name in "abc"]
    processes = {done.value for done in engine.map(work.together, meeting, Count())}
    assert len(processes) == 3 and os.getpid() not in processes
    for _ in range(2):
        given, count = tasks(40, 5), Count()
        found = list(engine.map(work.total, given, count))
        assert names(found) == numbered(200) and sum(count) == pytest.approx(200)
        assert all(done.error is None and done.value[0] == 10 for done in found)
        # the very objects of the study come back
        assert all(done.task.shared is None and done.task in given for done in found)
        assert {done.value[1] for done in found} <= processes
    assert list(engine.map(work.total, [], Count())) == []


def test_workers_that_are_released_leave_their_cores(engine):
    assert names(list(engine.map(work.total, tasks(9), Count()))) == numbered(9)
    engine.release()
    with opened() as other:  # without a core it waits ten minutes
        assert names(list(other.map(work.total, tasks(9), Count()))) == numbered(9)
    assert names(list(engine.map(work.total, tasks(9), Count()))) == numbered(9)


def test_what_workers_are_given(engine):
    """Threads are limited to the cores that a worker has; what tasks share is sent to a worker once."""
    shared = {"large": bytes(1 << 20)}
    found = [done.value for done in engine.map(work.place, tasks(12, shared=shared), Count())]
    assert {(one["cores"], one["threads"], one["arrow"], one["numba"]) for one in found} == {(1, 1, 1, "1")}
    assert {one["platforms"] for one in found} == {"cpu"}
    by_process = {(one["process"], one["shared"]) for one in found}
    assert len(by_process) == len({process for process, _ in by_process})
    assert 0 < engine.memory_bytes < 1e15


def test_results_come_as_they_are_done(engine):
    found = list(engine.map(work.slow_last, tasks(6), Count()))
    assert names(found) == numbered(6)
    assert found[0].value != ["0"]


def test_parts_of_items_add_up(engine):
    count = Count()
    list(engine.map(work.parts, tasks(4, 3), count))
    assert sum(count) == pytest.approx(12)


def test_failures_and_mistakes_are_answers(engine):
    count = Count()
    found = list(engine.map(work.raises, tasks(3, 4, shared=frozenset({"5"})), count))
    assert names(found) == numbered(12) and sum(count) == pytest.approx(12)
    (failed,) = [done for done in found if done.error]
    assert failed.task.items == {"5": 1} and isinstance(failed.error, Failed)
    assert str(failed.error) == "ValueError: found 5"
    assert "engine_work.py" in failed.error.trace
    (mistaken,) = engine.map(work.mistaken, [Task(None, {"a": 1, "b": 2})], Count())
    assert type(mistaken.error) is UserError and str(mistaken.error) == "table nodes: b"


def test_a_result_that_cannot_be_sent_is_a_failure(engine):
    found = list(engine.map(work.not_returnable, tasks(2, 2), Count()))
    assert names(found) == numbered(4)
    assert all("cannot pickle 'generator'" in str(done.error) for done in found)


def test_memory_that_is_not_there_is_a_failure(engine):
    found = list(engine.map(work.exhausts, tasks(2, 2, shared="1"), Count()))
    assert names(found) == numbered(4)
    assert {name: str(done.error) for done in found if done.error for name in done.task.items}.keys() == {"1"}
    assert "MemoryError" in "".join(str(done.error) for done in found)


def test_a_map_that_is_given_up_leaves_nothing_behind(engine, tmp_path):
    mark = tmp_path / "process"
    given = [Task(None, {"quick": 1}), Task(str(mark), {"never": 0})]
    results = engine.map(work.forever_but_quick, given, Count())
    assert next(results).value == "quick"
    process = int(_wait_for(lambda: mark.exists() and mark.read_text()))
    results.close()
    assert names(list(engine.map(work.total, tasks(9), Count()))) == numbered(9)
    _wait_for(lambda: not _alive(process))


def test_a_worker_that_dies_in_mid_task(engine, tmp_path):
    """Its task is done again, whole, elsewhere; what was queued behind it too."""
    count = Count()
    given = [Task(str(tmp_path), task.items) for task in tasks(4, 3)]
    found = list(engine.map(work.killed_once, given, count))
    assert names(found) == numbered(12) and all(done.error is None for done in found)
    assert sum(count) == pytest.approx(12)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside(engine, tmp_path):
    mark = tmp_path / "process"

    def kill():
        os.kill(int(_wait_for(lambda: mark.exists() and mark.read_text())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = list(engine.map(work.ends_the_second_time, tasks(5, shared=str(mark)), Count()))
    killer.join()
    assert names(found) == numbered(5) and all(done.error is None for done in found)


def test_a_worker_that_died_between_two_maps(free):
    """Nothing was running on it: nothing has failed."""
    with opened(actors=1, retries=0) as engine:
        ((_, process),) = [done.value for done in engine.map(work.total, tasks(1), Count())]
        os.kill(process, signal.SIGKILL)
        _wait_for(lambda: not _alive(process))
        found = list(engine.map(work.total, tasks(3), Count()))
    assert names(found) == numbered(3) and all(done.error is None for done in found)


def test_an_item_that_kills_every_worker(free, tmp_path):
    """Its task is halved until it is alone; only it is given up."""
    count = Count()
    given = [Task((str(tmp_path), frozenset({"5"})), task.items) for task in tasks(2, 4)]
    with opened(retries=0) as engine:
        found = list(engine.map(work.killed_always, given, count))
    assert names(found) == numbered(8) and sum(count) == pytest.approx(8)
    (lost,) = [done for done in found if done.error]
    assert lost.task.items == {"5": 1} and isinstance(lost.error, Lost)
    assert str(lost.error).startswith("its worker was lost, 1 times: ") and "\n" not in str(lost.error)
    tries = {path.name: len(path.read_text()) for path in tmp_path.iterdir()}
    assert tries["5"] >= 3 and all(tries[name] <= 3 for name in "012367")


@pytest.mark.parametrize("reached", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_study_loses_and_doubles_no_row(free, tmp_path, monkeypatch, reached):
    """With a folder that workers see, and with one that they do not."""
    if not reached:
        state = DatasetWriter.__getstate__
        monkeypatch.setattr(DatasetWriter, "__getstate__", lambda self: state(self) | {"out": "/nowhere"})
    (tmp_path / "tries").mkdir()
    folder = str(tmp_path / "tries")
    runs = [f"{number:016x}" for number in range(8)]
    items = {name: work.Item(work.Named(name, int(name, 16))) for name in runs}
    batches = [Batch(folder, {name: items[name] for name in runs[first : first + 4]}) for first in (0, 4)]

    def study(deadly):
        with opened(retries=0) as engine, ResultStore(tmp_path / "out", TABLES, {}) as store:
            solve = partial(work.solve, deadly)
            left = unfinished(batches)(store.finished(runs))
            run_batches(left, solve, store, engine, "replaying", divisible=False)
        rows = read_results(tmp_path / "out", "runs").set_index("run_id")
        history = read_results(tmp_path / "out", "history").groupby("run_id").size()
        assert sorted(rows.index) == runs and list(rows.loc[runs, "seed"]) == list(range(8))
        assert history.to_dict() == {name: work.ROWS for name in runs if rows.loc[name, "status"] == "ok"}
        assert [path.name for path in (tmp_path / "out").rglob(".*")] == [".lock"]
        return rows

    rows = study(frozenset({runs[6]}))
    assert set(rows["status"].drop(runs[6])) == {"ok"}
    assert rows.loc[runs[6], "status"] == "failed"
    assert rows.loc[runs[6], "error"].startswith("its worker was lost, 1 times: ")
    # only what failed is done again
    for path in (tmp_path / "tries").iterdir():
        path.unlink()
    assert set(study(frozenset())["status"]) == {"ok"}
    assert [path.name for path in (tmp_path / "tries").iterdir()] == [runs[6]]


@pytest.mark.slow
def test_a_node_is_killed(joined, free, tmp_path):
    """What ran there is done elsewhere."""
    others = {node.node_id for node in joined.others}
    found = []
    with opened() as engine:
        for done in engine.map(work.on_nodes, tasks(12, shared=str(tmp_path)), Count()):
            found.append(done)
            seen = {path.suffix[1:] for path in tmp_path.iterdir()} & others
            if seen and len(joined.others) == 2:
                joined.kill(seen.pop())
    assert len(joined.others) == 1
    joined.replace()
    assert names(found) == numbered(12) and all(done.error is None for done in found)


@pytest.mark.slow
def test_nodes_leave_and_join(joined, free, tmp_path, monkeypatch):
    """A node that joins in the middle of the work gets its share of it."""
    monkeypatch.setattr("ecjax.engine.worker_pool._RECOUNT_S", 0.2)
    found = []

    def seen():
        return {path.suffix[1:] for path in tmp_path.iterdir()}

    joined.kill(joined.others[0].node_id)
    before = {node.node_id for node in joined.others}
    with opened() as engine:
        for done in engine.map(work.on_nodes, tasks(60, shared=str(tmp_path)), Count()):
            found.append(done)
            if len(found) == 3:
                joined.replace()
            elif len(found) == 30:
                joined.kill(next(iter(before)))
    new = {node.node_id for node in joined.others} - before
    assert new & seen()
    joined.replace()
    assert names(found) == numbered(60) and all(done.error is None for done in found)


@pytest.mark.slow
def test_workers_that_cannot_start(free, monkeypatch):
    monkeypatch.setattr(ecjax, "__version__", "0.0.0")
    monkeypatch.setattr("ecjax.engine.worker_pool._LONGEST_PAUSE_S", 0.1)
    for use in (
        lambda engine: list(engine.map(work.total, tasks(3), Count())),
        lambda engine: engine.memory_bytes,
    ):
        with opened(actors=1) as engine, pytest.raises(UserError) as error:
            use(engine)
        assert "workers cannot be started" in str(error.value) and "allowed: the same" in str(error.value)
        assert "\n" not in str(error.value)


def _alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for(condition):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return found


def test_what_was_beside_an_item_that_kills_is_not_given_up(free, tmp_path):
    """Short tasks wait at a worker that is busy; when it dies, each is done again alone."""
    given = [Task((str(tmp_path), frozenset({"30"})), task.items) for task in tasks(60)]
    with opened(retries=0) as engine:
        found = list(engine.map(work.killed_always, given, Count()))
    assert names(found) == numbered(60)
    assert {name for done in found if done.error for name in done.task.items} == {"30"}
