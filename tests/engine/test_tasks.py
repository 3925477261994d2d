"""Tasks that fail are halved until what fails is alone; what the user did wrong is told at once."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.engine import Done, EngineOptions, Failed, Task, Worker, open_engine
from ecjax.engine.options import NAMES
from ecjax.engine.tasks import attempt, halves
from ecjax.errors import UserError
from ecjax.options import checked

WORKER = Worker(ThreadPoolExecutor(1), 1, lambda items: None)
NUMBERS = st.dictionaries(st.text("abcdef", max_size=4), st.integers(), max_size=12)


@given(NUMBERS.filter(lambda items: len(items) > 1))
def test_halves_are_the_task_in_order(items):
    shared = object()
    first, second = halves(Task(shared, items))
    assert first.shared is second.shared is shared
    assert list((first.items | second.items).items()) == list(items.items())
    assert 0 <= len(second.items) - len(first.items) <= 1


@given(NUMBERS.filter(bool), st.sets(st.integers(0, 11)))
def test_only_what_fails_alone_has_failed(items, places):
    """The function refuses every task with a wrong item, as a batch that is one program would."""
    wrong = {name for place, name in enumerate(items) if place in places}
    calls = []

    def function(shared, some, worker):
        calls.append(set(some))
        if set(some) & wrong:
            raise RuntimeError(f"found {min(set(some) & wrong)}")
        return {name: shared + value for name, value in some.items()}

    found = attempt(function, Task(1, items), WORKER)
    assert [name for done in found for name in done.task.items] == list(items)
    for done in found:
        if done.error is None:
            assert done.value == {name: items[name] + 1 for name in done.task.items}
        else:
            (name,) = done.task.items
            assert isinstance(done.error, Failed) and str(done.error) == f"RuntimeError: found {name}"
            assert done.value is None
    assert {name for done in found if done.error for name in done.task.items} == wrong
    # what succeeded is not done again
    finished = [names for names in calls if not names & wrong]
    assert sum(map(len, finished)) == len(set().union(*finished)) == len(items) - len(wrong)


def test_a_mistake_of_the_user_is_not_tried_again():
    calls = []

    def function(shared, items, worker):
        calls.append(list(items))
        raise UserError("theta: found -1")

    task = Task(None, {"a": 1, "b": 2})
    (done,) = attempt(function, task, WORKER)
    assert done.task is task and isinstance(done.error, UserError) and calls == [["a", "b"]]


def test_a_mistake_of_the_user_that_only_a_part_shows():
    def function(shared, items, worker):
        if len(items) > 1:
            raise MemoryError("no room")
        if "b" in items:
            raise UserError("b: found 2")
        return list(items)

    found = attempt(function, Task(None, {"a": 1, "b": 2}), WORKER)
    assert [done.value for done in found] == [["a"], None]
    assert str(found[1].error) == "b: found 2"


def test_an_interruption_is_no_failure():
    def function(shared, items, worker):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(function, Task(None, {"a": 1}), WORKER)


def test_what_failed_tells_where():
    def function(shared, items, worker):
        return 1 / items["a"]

    (done,) = attempt(function, Task(None, {"a": 0}), WORKER)
    assert str(done.error) == "ZeroDivisionError: division by zero"
    assert 'return 1 / items["a"]' in done.error.trace


def test_what_comes_of_a_task_can_be_sent():
    done = Done(Task(None, {"a": 1}), error=Failed("ValueError: no", "line 3"))
    sent = pickle.loads(pickle.dumps(done))
    assert sent.task == done.task and str(sent.error) == "ValueError: no" and sent.error.trace == "line 3"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "dask"}, f"engine.name: found 'dask'; allowed: {', '.join(NAMES)}"),
        ({"name": "ray", "actors": 0}, "engine.actors: found 0; allowed: a whole number of at least 1"),
        ({"name": "ray", "actors": 1.5}, "engine.actors: found 1.5"),
        ({"name": "ray", "cpus_per_actor": 0}, "engine.cpus_per_actor: found 0"),
        ({"name": "ray", "retries": -1}, "engine.retries: found -1; allowed: a whole number of at least 0"),
        ({"name": "ray", "retries": True}, "engine.retries: found true"),
        ({"name": "ray", "gpus_per_actor": 1.5}, "engine.gpus_per_actor: found 1.5; allowed: 0, a part of 1"),
        ({"name": "ray", "gpus_per_actor": -1}, "engine.gpus_per_actor: found -1"),
        ({"address": "head:6379"}, "engine.address: found 'head:6379'; allowed: nothing with engine=serial"),
        ({"name": "ray", "address": "head"}, "engine.address: found 'head'; allowed: host:port, or auto"),
        (
            {"name": "ray", "address": "ray://head:1"},
            "engine.address: found 'ray://head:1'; allowed: host:port",
        ),
        ({"name": "ray", "address": 6379}, "engine.address: found 6379; allowed: host:port, or auto"),
        ({"name": "ray", "address": "head:port"}, "engine.address: found 'head:port'; allowed: host:port"),
        ({"actors": 2}, "engine.actors: found 2; allowed: nothing with engine=serial"),
    ],
)
def test_mistakes_name_the_option(given, words):
    options = EngineOptions(**given)
    with pytest.raises(UserError) as error:
        checked(options, "engine.")
    assert str(error.value).startswith(words) and "\n" not in str(error.value)
    with pytest.raises(UserError), open_engine(options):
        pass


@pytest.mark.parametrize("address", ["auto", "head:6379", "10.0.0.1:6379", "[::1]:6379", None])
def test_addresses_of_clusters(address):
    assert checked(EngineOptions("ray", address=address)).address == address


@pytest.mark.parametrize("gpus", [None, 0, 0.5, 1, 2.0])
def test_allowed(gpus):
    checked(EngineOptions("ray", actors=3, gpus_per_actor=gpus, retries=0))
    checked(EngineOptions())
