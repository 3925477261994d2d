"""How far long work is: a bar on a terminal, log lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from ecjax.console import MESSAGES, OutputMode, log, output_mode
from ecjax.display import displayed
from ecjax.units import time_text

_LEAST_SHARE, _LEAST_S = 0.05, 2.0  # of the work, and of time, from which on the pace is known
_FEW = 20  # of so few items parts are shown
_DETAIL_EVERY_S = 10.0  # between log lines that say what an item is at
_POLLED_EVERY_S = 0.5


@contextmanager
def progress(what: str, total: int | None, console: Console = MESSAGES) -> Iterator[Callable[[float], None]]:
    """Show how far long work is, items/s and the time left: a bar on a terminal, a log line per tenth elsewhere.

    Nothing is shown where there is nothing to do. No time left is shown before the pace is known, which begins with
    the first item, or part of one, that is done: what is compiled before is not part of it.

    Args:
        what: a few words, in the present participle.
        total: items in all, or None where that is not known.
        console: where the bar goes.

    Yields:
        A function to call with the number of items just done, or parts of them; from any thread.
    """
    if output_mode() is OutputMode.QUIET or total == 0:
        yield lambda items: None
        return
    pace = Pace(total)
    if _whole:
        part = _Part(what, pace, _whole[-1])
        with _shown(part):
            yield part.advance
        return
    if not console.is_terminal:
        lines = _Lines(what, pace)
        with _shown(lines):
            yield lines.advance
        return
    columns = (
        *(TextColumn("{task.description}", markup=False), BarColumn(), _Paced(pace), TimeElapsedColumn()),
        TextColumn("{task.fields[detail]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        task = bar.add_task(displayed(what), total=total, detail="")

        def advance(items: float) -> None:
            pace.advance(items)
            bar.advance(task, items)

        with _shown(_Bar(lambda text: bar.update(task, detail=text))):
            yield advance


@contextmanager
def overall(what: str, total: int) -> Iterator[Callable[[float], None]]:
    """Show how far work is that has progress of its own: what that would show is a detail of this one.

    Args:
        what: a few words.
        total: items in all.

    Yields:
        A function to call with the number of items just done.
    """
    before = len(_active)
    with progress(what, total) as advance:
        shown = _active[before:]
        _whole.extend(shown)
        try:
            yield advance
        finally:
            del _whole[len(_whole) - len(shown) :]


def detail(text: str) -> None:
    """Say what the work has come to within an item, ``pass 12``; shown while this process shows progress.

    Args:
        text: a few words.
    """
    for shown in _active[-1:]:
        shown.detail(text)


@contextmanager
def polled(advance: Callable[[float], object]) -> Iterator[Callable[[Callable[[], float]], None]]:
    """Advance by an item in parts, while compiled code works at it that cannot tell how far it is.

    Args:
        advance: called with parts of the item, from another thread; with what is left at the end.

    Yields:
        A function to call with one that tells the share of the item that is done.
    """
    over, reported = Event(), 0.0

    def poll(share: Callable[[], float]) -> None:
        nonlocal reported
        while not over.wait(_POLLED_EVERY_S):
            done = min(1.0, share())
            advance(done - reported)
            reported = done

    threads: list[Thread] = []

    def begin(share: Callable[[], float]) -> None:
        threads.append(Thread(target=poll, args=(share,), daemon=True))
        threads[-1].start()

    try:
        yield begin
    finally:
        over.set()
        for thread in threads:
            thread.join()
    advance(1.0 - reported)


class _Shows(Protocol):
    def detail(self, text: str) -> None:
        """Show it."""


_active: list[_Shows] = []  # of the innermost work last
_whole: list[_Shows] = []  # work that has progress of its own


@contextmanager
def _shown(shows: _Shows) -> Iterator[None]:
    _active.append(shows)
    try:
        yield
    finally:
        _active.remove(shows)


class Pace:
    """How many items are done, and how fast.

    Args:
        total: items in all, or None where that is not known.
        clock: s.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.count = total, 0.0
        self._clock, self._lock = clock, Lock()
        self._first: tuple[float, float] | None = None  # when the first items were done, and how many

    def advance(self, items: float) -> None:
        """So many items are done."""
        with self._lock:
            self.count += items
            if self._first is None and items > 0:
                self._first = self._clock(), self.count

    def per_s(self) -> float | None:
        """Items/s since the first ones; None while that is not known."""
        if self._first is None:
            return None
        began, before = self._first
        seconds, items = self._clock() - began, self.count - before
        if seconds < _LEAST_S or items <= 0 or (self.total and items < _LEAST_SHARE * self.total):
            return None
        return items / seconds

    def left_s(self) -> float | None:
        """Time left; None while that is not known, and at the end."""
        speed = self.per_s()
        if speed is None or self.total is None or self.count >= self.total:
            return None
        return (self.total - self.count) / speed

    def __str__(self) -> str:
        if self.total is None and not self.count:
            return ""  # how much there is to do is not known, nor is any of it done
        count = f"{self.count:,.0f}"
        if self.total is not None:
            # of few items, also what is done of those that are not done
            parts = self.total <= _FEW and abs(self.count - round(self.count)) > 1e-6
            count = (f"{self.count:.2f}" if parts else count) + f" of {self.total:,}"
        speed, left = self.per_s(), self.left_s()
        words = [count, *([] if speed is None else [f"{_rounded(speed)}/s"])]
        return ", ".join(words + ([] if left is None else [f"{_rough(left)} left"]))


class _Paced(ProgressColumn):
    """How many items are done, how fast, and the time left."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, task: Task) -> Text:
        return Text(str(self._pace), style="progress.data.speed")


class _Bar:
    """Shows details beside a bar."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def detail(self, text: str) -> None:
        """Show it."""
        self._show(displayed(text))


class _Part:
    """Shows progress as a detail of the work that it is a part of."""

    def __init__(self, what: str, pace: Pace, whole: _Shows) -> None:
        self._what, self._pace, self._whole = what, pace, whole

    def advance(self, items: float) -> None:
        """So many items are done."""
        self._pace.advance(items)
        self._whole.detail(f"{self._what}: {self._pace}")

    def detail(self, text: str) -> None:
        """Show it."""
        self._whole.detail(f"{self._what}: {self._pace}; {text}")


class _Lines:
    """A log line per tenth of the items, and of details now and then."""

    def __init__(self, what: str, pace: Pace) -> None:
        self._what, self._pace, self._lock = what, pace, Lock()
        self._shown, self._last = 0.0, time.monotonic()

    def advance(self, items: float) -> None:
        """So many items are done."""
        pace = self._pace
        pace.advance(items)
        with self._lock:
            # where the end is not known a line comes with every doubling
            step = self._shown if pace.total is None else pace.total / 10
            if pace.count < self._shown + step or pace.count <= self._shown:
                return
            self._shown, self._last = pace.count, time.monotonic()
        log.info("%s: %s", self._what, pace)

    def detail(self, text: str) -> None:
        """Show it, if nothing was for some time."""
        with self._lock:
            if time.monotonic() - self._last < _DETAIL_EVERY_S:
                return
            self._last = time.monotonic()
        log.info("%s: %s; %s", self._what, self._pace, text)


def _rounded(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def _rough(seconds: float) -> str:
    """A length of time that is only guessed: no parts of seconds, nor of minutes from two on."""
    return time_text(60.0 * round(seconds / 60) if seconds >= 120 else float(round(seconds)))
