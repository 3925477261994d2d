"""The engine of this process: order, what is reported as done, and how much waits in memory."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ecjax.cores import available_cores
from ecjax.engine import EngineOptions, Failed, Task, open_engine
from ecjax.errors import UserError


@pytest.fixture
def engine():
    with open_engine(EngineOptions()) as found:
        yield found


def tasks(count, size=1):
    return [Task(None, {f"{task}.{item}": item for item in range(size)}) for task in range(count)]


def ignore(items):
    pass


def test_results_come_in_the_order_of_the_tasks(engine):
    def function(shared, items, worker):
        (name,) = items
        time.sleep(0.01 if int(name[0]) % 2 else 0)
        return shared, name

    shared = object()
    given = [Task(shared, task.items) for task in tasks(8)]
    found = list(engine.map(function, given, ignore, at_once=4))
    assert [done.task for done in found] == given
    assert all(done.value == (shared, next(iter(done.task.items))) for done in found)
    assert engine.workers == 1 and 0 < engine.memory_bytes < 1e15


def test_nothing_to_do(engine):
    assert list(engine.map(None, [], ignore)) == []


def test_what_is_done_is_reported_once(engine):
    """Parts that the function reports, what it leaves out, and what a task had reported when it failed, add up."""
    reported = []

    def function(shared, items, worker):
        assert not worker.remote and worker.cores == (available_cores())
        if "0.0" in items:
            worker.advance(0.25)
            worker.advance(0.5)
        if "1.1" in items:
            worker.advance(2)
            raise ValueError("no")
        if "2.0" in items:
            worker.advance(len(items))

    found = list(engine.map(function, tasks(4, 3), reported.append))
    assert sum(len(done.task.items) for done in found) == 12
    assert sum(reported) == pytest.approx(12)
    assert [str(done.error) for done in found if done.error] == ["ValueError: no"]


def test_leaf_work_runs_beside_the_tasks(engine):
    """Every task waits for what it gave to the pool; more tasks than threads do not block it."""

    def function(shared, items, worker):
        return sum(worker.pool.map(len, ["ab", "c"]))

    assert [done.value for done in engine.map(function, tasks(50), ignore, at_once=20)] == [3] * 50


@pytest.mark.parametrize("at_once", [1, 3, None])
def test_as_many_at_once_as_allowed_and_no_more_kept(engine, at_once):
    allowed = at_once or available_cores()
    lock, running, most, begun = threading.Lock(), 0, 0, 0

    def function(shared, items, worker):
        nonlocal running, most, begun
        with lock:
            running, begun = running + 1, begun + 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1

    results = engine.map(function, tasks(40), ignore, at_once)
    for taken, _ in enumerate(results, 1):
        time.sleep(0.003)
        # those taken, those that wait to be taken, and those that run
        assert begun <= taken + allowed + 1
    assert most <= allowed and taken == 40


def test_a_map_that_is_given_up_starts_nothing_more(engine):
    begun = []

    def function(shared, items, worker):
        begun.append(next(iter(items)))
        time.sleep(0.005)

    results = engine.map(function, tasks(100), ignore, at_once=2)
    next(results)
    results.close()
    count = len(begun)
    assert count < 10
    time.sleep(0.02)
    assert len(begun) == count
    assert len(list(engine.map(function, tasks(3), ignore))) == 3


def test_failures_and_mistakes_are_answers(engine):
    def function(shared, items, worker):
        (name,) = items
        if name == "1.0":
            raise OSError("gone")
        if name == "2.0":
            raise UserError("k: found 0")
        return name

    found = [
        (done.value, type(done.error), str(done.error)) for done in engine.map(function, tasks(4), ignore)
    ]
    nothing = ("NoneType", "None")
    assert [(value, kind.__name__, text) for value, kind, text in found] == [
        ("0.0", *nothing),
        (None, Failed.__name__, "OSError: gone"),
        (None, UserError.__name__, "k: found 0"),
        ("3.0", *nothing),
    ]


def test_maps_within_maps(engine):
    """What a study prepares with, and what it replays with, may be the same engine."""

    def inner(shared, items, worker):
        return sum(items.values())

    with ThreadPoolExecutor(2) as pool:
        sums = pool.map(lambda _: [done.value for done in engine.map(inner, tasks(3, 4), ignore)], range(2))
        assert list(sums) == [[6] * 3] * 2
