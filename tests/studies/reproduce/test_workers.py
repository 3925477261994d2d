"""Processes that run functions side by side."""

import operator
import os
import threading
import time
from math import sqrt

import psutil
import pytest

from ecjax.studies.reproduce.workers import Here, WorkerEnded, Workers, processes


def test_functions_run_in_other_processes():
    with processes(2) as workers:
        first, second = workers.submit(os.getpid), workers.submit(os.getpid)
        ids = {first.result(), second.result()}
        assert os.getpid() not in ids
        assert [workers.submit(pow, 3, number).result() for number in range(4)] == [1, 3, 9, 27]
        # whatever was at work before is used again
        assert workers.submit(os.getpid).result() in ids


def test_what_goes_wrong_in_a_process():
    with Workers(1) as workers:
        with pytest.raises(ValueError, match="math domain error"):
            workers.submit(sqrt, -1.0).result()
        with pytest.raises(TypeError, match="lock"):  # a result that cannot be sent
            workers.submit(threading.Lock).result()
        with pytest.raises(WorkerEnded, match="its process was ended by signal 9"):
            workers.submit(os.kill, workers.submit(os.getpid).result(), 9).result()
        assert workers.submit(operator.add, 1, 2).result() == 3


def test_processes_end_with_their_pool_whatever_they_are_at():
    began = time.monotonic()
    with Workers(1) as workers:
        process = psutil.Process(workers.submit(os.getpid).result())
        future = workers.submit(time.sleep, 600)
    assert time.monotonic() - began < 300
    assert not process.is_running()
    with pytest.raises(WorkerEnded):
        future.result()


def test_one_process_is_this_one():
    with processes(1) as executor:
        assert isinstance(executor, Here)
        assert executor.submit(os.getpid).result() == os.getpid()
        with pytest.raises(ValueError, match="math domain error"):
            executor.submit(sqrt, -1.0).result()
