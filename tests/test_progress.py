"""How far long work is: nothing of no work, no promise before the pace is known, details of what is at work."""

import logging
from io import StringIO
from threading import Event

import pytest
from rich.console import Console

from ecjax.progress import Pace, detail, polled, progress


class Clock:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


def test_the_time_left_is_told_once_the_pace_is_known():
    clock = Clock()
    pace = Pace(100, clock)
    clock.now_s = 60.0  # of compiling
    pace.advance(1)
    assert pace.per_s() is None and str(pace) == "1 of 100"
    clock.now_s = 61.0
    pace.advance(9)
    assert pace.left_s() is None  # a second is too short
    clock.now_s = 70.0
    pace.advance(11)
    assert pace.per_s() == pytest.approx(2.0) and pace.left_s() == pytest.approx(39.5)
    assert str(pace) == "21 of 100, 2/s, 40 s left"
    pace.advance(79)
    assert pace.left_s() is None


def test_parts_of_few_items_are_shown():
    pace = Pace(3)
    pace.advance(0.25)
    assert str(pace) == "0.25 of 3"
    pace.advance(0.75)
    assert str(pace) == "1 of 3"
    assert str(Pace(None)) == ""


def test_nothing_to_do_is_not_shown(caplog):
    caplog.set_level(logging.INFO)
    console = Console(file=StringIO(), force_terminal=True)
    for where in (console, Console(file=StringIO())):
        with progress("planning", 0, where) as advance:
            advance(0)
            detail("pass 1")
    assert console.file.getvalue() == "" and not caplog.records


def test_details_stand_beside_the_bar():
    console = Console(file=StringIO(), force_terminal=True, width=120)
    detail("nobody listens")
    with progress("planning", 1, console) as advance:
        detail("pass 12")
        advance(0.5)
    text = console.file.getvalue()
    assert "pass 12" in text and "0/" not in text and "nobody" not in text


def test_what_cannot_tell_how_far_it_is_is_asked():
    parts, polled_once = [], Event()

    def share():
        polled_once.set()
        return 0.25

    with polled(parts.append) as poll:
        poll(share)
        assert polled_once.wait(60.0)
    assert sum(parts) == pytest.approx(1.0) and parts[0] == 0.25
