"""Compilers are watched: what they compile is counted, and what is loaded from a cache is not."""

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


def test_only_what_takes_long_is_announced(monkeypatch):
    monkeypatch.setattr(compiling, "_PATIENCE_S", 0.05)
    said = []
    quick = Compilation(said.append)
    quick.begun()
    quick.ended()
    time.sleep(0.1)
    assert not said
    slow = Compilation(said.append)
    slow.begun()
    until = time.monotonic() + 60
    while not said and time.monotonic() < until:
        time.sleep(0.01)
    slow.ended()
    assert said == ["compiling, once per installation"]


def test_many_short_programs_are_not_announced(monkeypatch):
    # as long as nothing compiles when the patience ends, however busy the machine is
    monkeypatch.setattr(compiling, "_PATIENCE_S", 3600)
    said = []
    many = Compilation(said.append)
    for _ in range(30):
        many.begun()
        many._announce()
        many.ended()
        many._announce()
    assert not said and many.programs == 30
