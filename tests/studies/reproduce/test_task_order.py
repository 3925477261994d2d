"""Tasks in their order, some at a time."""

from concurrent.futures import Future, ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.studies.reproduce.order import Task, carry_out


def _done() -> Future:
    future: Future = Future()
    future.set_result(None)
    return future


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
def test_every_task_once_after_those_it_waits_for(seed, count, at_once):
    random = np.random.default_rng(seed)
    running: set[str] = set()
    begun: list[str] = []
    ended: list[str] = []

    def task(number: int) -> Task:
        name = str(number)
        after = frozenset(str(other) for other in range(number) if random.random() < 0.3)
        alone = bool(random.random() < 0.2)

        def begin() -> Future:
            assert after <= set(ended)
            assert not (alone and running)
            running.add(name)
            begun.append(name)
            assert len(running) <= at_once
            return _done()

        def end(future: Future) -> None:
            running.remove(name)
            ended.append(name)

        return Task(name, begin, end, after, alone)

    tasks = [task(number) for number in range(count)]
    carry_out([tasks[number] for number in random.permutation(count)], at_once)
    assert sorted(begun) == sorted(ended) == sorted(task.name for task in tasks)


def test_what_is_timed_runs_alone_and_last():
    spans: dict[str, list[int]] = {}
    clock = iter(range(100))
    with ThreadPoolExecutor(3) as executor:

        def task(name: str, alone: bool, *after: str) -> Task:
            def begin() -> Future:
                spans[name] = [next(clock)]
                return executor.submit(sleep, 0.01)

            return Task(name, begin, lambda _: spans[name].append(next(clock)), frozenset(after), alone)

        carry_out(
            [task("timed", True), task("a", False), task("of timed", False, "timed"), task("b", False, "a")],
            3,
        )
    assert max(spans["a"][1], spans["b"][1]) < spans["timed"][0]
    assert spans["timed"][1] < spans["of timed"][0]


def test_tasks_that_wait_for_each_other():
    def task(name: str, after: str) -> Task:
        return Task(name, _done, lambda future: None, frozenset({after}), False)

    with pytest.raises(ValueError, match="a, b"):
        carry_out([task("a", "b"), task("b", "a")], 2)
