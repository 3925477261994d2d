"""Compilers are watched: what they compile is counted, and what is loaded from a cache is not."""

import logging
import time

import numba
import pytest

from ecjax import compiling
from ecjax.compiling import Compilation, announced


def test_numba_functions_are_counted_once():
    function = numba.njit(lambda x: x + 1)
    with announced() as compilation:
        function(1)
        first = compilation.programs
        function(1)
    assert first >= 1 and compilation.programs == first and compilation.seconds > 0
    numba.njit(lambda x: x - 1)(1)
    assert compilation.programs == first  # not watched any more


def test_jax_programs_are_counted():
    jax = pytest.importorskip("jax")
    function = jax.jit(lambda x: x * 2.5 + 7)
    with announced() as compilation:
        function(1.0)
        first = compilation.programs
        function(2.0)
    assert first >= 1 and compilation.programs == first


def test_overlapping_compilers_count_as_one_time():
    compilation = Compilation()
    compilation.begun()
    compilation.begun()
    time.sleep(0.02)
    compilation.ended()
    assert compilation.seconds == 0
    compilation.ended()
    assert 0.02 <= compilation.seconds < 1


def test_only_what_takes_long_is_announced(caplog, monkeypatch):
    monkeypatch.setattr(compiling, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(compiling.log, "propagate", True)
    with caplog.at_level(logging.INFO, "ecjax"):
        quick = Compilation()
        quick.begun()
        quick.ended()
        time.sleep(0.1)
        assert not caplog.messages
        slow = Compilation()
        slow.begun()
        time.sleep(0.1)
        slow.ended()
    assert caplog.messages == ["compiling, once per installation"]


def test_many_short_programs_are_not_announced(caplog, monkeypatch):
    monkeypatch.setattr(compiling, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(compiling.log, "propagate", True)
    with caplog.at_level(logging.INFO, "ecjax"):
        many = Compilation()
        for _ in range(30):
            many.begun()
            time.sleep(0.01)
            many.ended()
        assert not caplog.messages and many.programs == 30
