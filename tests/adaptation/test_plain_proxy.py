"""The plain simulator against proxies worked out by hand; the replay as well, with the delays that it can be given."""

from itertools import accumulate

import numpy as np
import pytest
from drawn_proxies import Case, greedy, make_tasks, static
from plain_proxy import level_of, simulate

from ecjax.adaptation.proxy import IDLE, IN_SYSTEM, WAITING, Strategy


def run(arrivals, delays, strategy, threads, background=(False,), class_of=None):
    """``delays[i][j]`` of task j of request i."""
    class_of = [0] * len(arrivals) if class_of is None else class_of
    return simulate(arrivals, class_of, lambda i, j, k: delays[i][j], strategy, threads, background)


def starts(result):
    return [(task.request.number, task.number, task.start_s, task.end_s) for task in result.tasks]


def test_the_slowest_task_is_cancelled():
    result = run([1.0], [[3.0, 1.0, 2.0]], static((3, 2)), 3)
    assert starts(result) == [(0, 0, 1.0, 3.0), (0, 1, 1.0, 2.0), (0, 2, 1.0, 3.0)]
    assert (result.latency_s, result.admitted_s, result.busy_s) == (2.0, 1.0, 5.0)


def test_tasks_wait_for_threads_and_the_next_request_for_tasks():
    # the second request leaves its queue at 3 only: at 1 and 2 tasks 2 and 3 of the first take the idle threads;
    # the third of four is complete at 3, task 3 (to 6) is cancelled then
    result = run([0.0, 0.5], [[1.0, 2.0, 2.0, 4.0], [1.0] * 4], static((4, 3)), 2)
    assert starts(result)[:4] == [(0, 0, 0, 1), (0, 1, 0, 2), (0, 2, 1, 3), (0, 3, 2, 3)]
    np.testing.assert_equal(result.admitted_s, [0.0, 3.0])
    # 3 and 4 at first, then both at 4: task 3 would start at 5, when three are complete
    np.testing.assert_equal(result.latency_s, [3.0, 4.5])
    assert starts(result)[4:] == [(1, 0, 3, 4), (1, 1, 3, 4), (1, 2, 4, 5), (1, 3, 4, 5)]


def test_what_waits_is_forgotten():
    result = run([0.0, 0.0], [[1.0] * 5, [1.0] * 5], static((5, 1)), 2)
    assert starts(result) == [(0, 0, 0, 1), (0, 1, 0, 1), (1, 0, 1, 2), (1, 1, 1, 2)]
    np.testing.assert_equal(result.latency_s, [1.0, 2.0])


def test_the_rest_finishes_in_the_background():
    result = run([0.0, 0.5], [[1.0, 3.0, 2.0], [1.0] * 3], static((3, 1)), 2, background=[True])
    # all of the first are started (the last at 1, to 3) before the second is admitted, at 3, with both threads
    assert starts(result)[:3] == [(0, 0, 0, 1), (0, 1, 0, 3), (0, 2, 1, 3)]
    assert starts(result)[3:] == [(1, 0, 3, 4), (1, 1, 3, 4), (1, 2, 4, 5)]
    np.testing.assert_equal(result.latency_s, [1.0, 3.5])
    assert result.busy_s == 9.0


def test_one_class_in_the_background():
    delays = [[1.0, 4.0], [1.0, 4.0], [1.0, 4.0]]
    result = run([0.0, 0.0, 0.0], delays, static((2, 1), (2, 1)), 2, [True, False], [1, 0, 1])
    # the last has one thread until 5: its first task is complete at 3, with the other never started
    assert starts(result) == [(0, 0, 0, 1), (0, 1, 0, 1), (1, 0, 1, 2), (1, 1, 1, 5), (2, 0, 2, 3)]


def ladder(signal, edges, memory=0.0):
    ones = np.ones((1, len(edges) + 1), np.int64)
    return Strategy("ladder", signal, memory, np.array([edges], float), ones, ones)


# two threads, tasks of 2 s: at 2 the first request ends, the third is admitted, another arrives
SIX = [0.0, 0.5, 1.0, 1.5, 2.0, 9.0]
each_signal = pytest.mark.parametrize(
    "signal,seen",
    [(WAITING, [0, 0, 0, 1, 1, 0]), (IN_SYSTEM, [0, 1, 2, 3, 3, 0]), (IDLE, [2, 1, 0, 0, 0, 2])],
)


@each_signal
def test_signals(signal, seen):
    result = run(SIX, [[2.0]] * 6, ladder(signal, [1, 2, 3]), 2)
    assert result.signal == seen
    np.testing.assert_equal(result.level, seen)
    np.testing.assert_equal(result.admitted_s, [0, 0.5, 2, 2.5, 4, 9])


def test_smoothing():
    result = run([0.0, 0.5, 1.0, 1.5], [[4.0]] * 4, ladder(IN_SYSTEM, [0.25, 1.0], memory=0.75), 4)
    seen = [0.0, 0.25, 0.1875 + 0.5, 0.515625 + 0.75]
    assert result.signal == seen
    np.testing.assert_equal(result.level, [0, 1, 1, 2])


def test_levels():
    edges = [1.0, 1.0, 2.5, np.inf]
    assert [level_of(edges, value) for value in (0, 0.999, 1, 2.5, 1e9)] == [0, 0, 2, 3, 3]
    assert level_of([], 7) == 0


def test_completions_come_first():
    # at 1 the first request ends: the second, of that time, sees nothing, the third of that time sees the second
    result = run([0.0, 1.0, 1.0], [[1.0]] * 3, ladder(IN_SYSTEM, [1]), 1)
    assert result.signal == [0, 0, 1]
    # both tasks of the request end at 1 and it needs no third
    result = run([0.0], [[1.0] * 3], static((3, 2)), 2)
    assert len(result.tasks) == 2


def test_greedy():
    strategy = greedy([6], [2.0], 16)
    codes = {
        idle: (int(strategy.n[0, level]), int(strategy.k[0, level]))
        for idle in range(17)
        for level in [level_of(strategy.edges[0], idle)]
    }
    assert codes[16] == codes[12] == (12, 6)
    assert [codes[idle] for idle in (0, 1, 2, 5, 6, 7)] == [(1, 1), (1, 1), (2, 2), (5, 5), (6, 6), (7, 6)]


def by_hand(strategy, arrivals, threads, shift=(2.0, 1.0), background=False):
    """The replay where every delay is the shift of its dimension."""
    tasks = make_tasks([shift], 0.0, background=background)
    case = Case(np.array(arrivals), np.zeros(len(arrivals), int), tasks, strategy, threads, 0)
    return case.replay()


def test_replay_of_fixed_delays():
    # (3, 2) of 1 s on two threads: the third task is never started
    result = by_hand(static((3, 2)), [0.0, 0.5, 3.0], 2)
    np.testing.assert_equal(result.admitted_s, [0, 1, 3])
    np.testing.assert_equal(result.latency_s, [1, 1.5, 1])
    assert (result.busy_s, result.tasks) == (6.0, 6)
    # in the background it is, at 1, on one of both threads; of the second request (admitted at 1 on the other) one
    # task is complete at 2, the other two start then; of the third all run from 3 on, one from 4 on
    result = by_hand(static((3, 2)), [0.0, 0.5, 3.0], 2, background=True)
    np.testing.assert_equal(result.admitted_s, [0, 1, 3])
    np.testing.assert_equal(result.latency_s, [1, 2.5, 1])
    assert (result.busy_s, result.tasks) == (9.0, 9)
    # more tasks than threads, all of which are needed
    result = by_hand(static((2, 2)), [0.0, 0.0], 1)
    np.testing.assert_equal(result.admitted_s, [0, 2])
    np.testing.assert_equal(result.latency_s, [2, 4])
    # three idle threads: two requests of two tasks; the second's other task waits for the first's end
    result = by_hand(static((2, 2)), [0.0, 0.0], 3)
    np.testing.assert_equal(result.latency_s, [1, 2])
    assert (result.busy_s, result.tasks) == (4.0, 4)


@each_signal
def test_replay_sees_completions_first(signal, seen):
    strategy = ladder(signal, [1, 2, 3])
    np.testing.assert_equal(by_hand(strategy, SIX, 2).level, seen)


def test_replay_sees_what_ends_at_the_very_time_of_an_arrival():
    """Where a wait is longer than the time until now, arrival + latency is not always when a request was done."""
    early = np.sort(np.random.default_rng(8).uniform(0.01, 0.1, 20))
    done = np.array(list(accumulate([early[0]] + [0.3] * 20)))[1:]
    assert np.any(early + (done - early) > done)
    arrivals = np.concatenate([early, done])
    strategy = ladder(IN_SYSTEM, range(1, 30))
    case = Case(arrivals, np.zeros(40, int), make_tasks([[0.3]], 0.0), strategy, 1, 0)
    np.testing.assert_equal(case.replay().level, case.simulate().level)


def test_cancelling_frees_threads_for_several_requests_in_order():
    # the first request (3, 1) keeps three threads to 1, the others (1, 1) wait: two find the threads at 1, none before
    strategy = Strategy("two", IDLE, 0.0, np.array([[1.0]]), np.array([[1, 3]]), np.array([[1, 1]]))
    result = by_hand(strategy, [0.0, 0.25, 0.5, 0.75, 0.875, 1.25], 3, shift=(1.0,))
    np.testing.assert_equal(result.level, [1, 0, 0, 0, 0, 0])
    np.testing.assert_equal(result.admitted_s, [0, 1, 1, 1, 2, 2])
