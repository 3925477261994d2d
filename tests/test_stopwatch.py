"""Time without compilation: what compilers take is apart, whoever waits for them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ecjax import machine_code
from ecjax.stopwatch import Stopwatch, compiled, covered


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0.0),
        ([(1.0, 2.0)], 1.0),
        ([(1.0, 4.0), (2.0, 3.0), (3.5, 5.0)], 4.0),  # one within another, one that overlaps
        ([(-3.0, 1.0), (8.0, 12.0)], 3.0),  # cut to the time between the moments
        ([(11.0, 12.0), (-2.0, -1.0)], 0.0),
    ],
)
def test_time_that_is_covered(intervals, expected):
    assert covered(intervals, 0.0, 10.0) == pytest.approx(expected)


def test_compiling_is_apart_and_its_parts_do_not_count_twice():
    with Stopwatch() as stopwatch:
        time.sleep(0.05)
        compiled(0.02)
        compiled(0.04)
    assert stopwatch.compile_s == pytest.approx(0.04)
    assert stopwatch.own_s >= 0.01


def test_threads_that_joined_count_and_others_do_not():
    def work():
        time.sleep(0.02)
        compiled(0.02)

    with ThreadPoolExecutor(1) as pool:
        with Stopwatch() as stopwatch:
            pool.submit(stopwatch.joined(work)).result()
        assert stopwatch.compile_s == pytest.approx(0.02, rel=1e-3)
        with Stopwatch() as stopwatch, Stopwatch(of_process=True) as every:
            pool.submit(work).result()
    assert stopwatch.compile_s == 0
    assert every.compile_s == pytest.approx(0.02, rel=1e-3)


def test_numba_is_heard():
    function = machine_code.njit()(lambda x: x + 1.0)
    with Stopwatch() as first:
        function(1.0)
    with Stopwatch() as second:
        function(2.0)
    assert first.compile_s > 0
    assert second.compile_s == 0


def test_waiting_for_a_compiler_counts_as_compiling():
    """A thread that needs a function while another one has the compiler."""
    from numba.core.compiler_lock import global_compiler_lock

    function = machine_code.njit()(lambda x: x - 3.0)
    busy, done = threading.Event(), threading.Event()

    def compiler():
        with global_compiler_lock:
            busy.set()
            done.wait(60)

    other = threading.Thread(target=compiler)
    other.start()
    busy.wait(60)
    threading.Timer(0.3, done.set).start()
    with Stopwatch() as stopwatch:
        function(1.0)
    other.join()
    assert stopwatch.compile_s >= 0.25


def test_jax_is_heard():
    import jax

    function = jax.jit(lambda x: x * 1.5 + 11)
    with Stopwatch() as first:
        function(1.0)
    with Stopwatch() as second:
        function(2.0)
    assert first.compile_s > 0
    assert second.compile_s == 0
