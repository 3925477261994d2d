"""Ctrl-C and SIGTERM end a command, whatever its threads are at."""

import signal
import subprocess
import sys

import pytest

from ecjax.interrupts import EXIT_INTERRUPTED, EXIT_TERMINATED, LINE

_START = """
import signal, sys, threading, time
# what starts the tests in the background may ignore Ctrl-C, and so would its children
signal.signal(signal.SIGINT, signal.default_int_handler)
from ecjax import cli, hydra_run
"""
_END = """
hydra_run.run_job = run
sys.exit(cli.command(["optimize"]))
"""
# a thread in compiled code, which nothing ends
THREAD = """
def run(job, words):
    threading.Thread(target=time.sleep, args=(600,)).start()
    print("at work", flush=True)
    time.sleep(600)
"""
# the main thread in compiled code: what signals raise gets nowhere
MAIN_THREAD = """
def run(job, words):
    while True:
        try:
            print("at work", flush=True)
            time.sleep(600)
        except KeyboardInterrupt:
            pass
"""
# work that ends in good order
CLEANING = """
def run(job, words):
    try:
        print("at work", flush=True)
        time.sleep(600)
    finally:
        print("cleared away", flush=True)
"""


@pytest.mark.parametrize(
    ("told", "code"), [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGTERM, EXIT_TERMINATED)]
)
@pytest.mark.parametrize("work", [THREAD, MAIN_THREAD, CLEANING], ids=["thread", "main thread", "cleaning"])
def test_signals_end_the_command(work, told, code):
    command = [sys.executable, "-c", _START + work + _END]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "at work\n"
        process.send_signal(told)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code
    assert err == LINE + "\n"
    assert ("cleared away" in out) == (work is CLEANING)


def test_a_command_that_ends_by_itself_is_not_disturbed():
    run = "def run(job, words):\n    return 1\n"
    done = subprocess.run([sys.executable, "-c", _START + run + _END], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ""
