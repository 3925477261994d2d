"""The one runner: a case in this process, its set-ups at their sizes, their variants timed in turns.

A set-up builds its problem, hands what is to be timed to its ``Runner``, and gives rows. Sizes, targets, repeats and
warm-up are those of the table of cases: a set-up does not know whether it runs quickly.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from ecjax.studies.bench.cases import PARTS
from ecjax.studies.bench.cases.case import Part, Target
from ecjax.studies.bench.fresh import run_fresh
from ecjax.studies.bench.machine import device, peak_rss_bytes
from ecjax.studies.bench.rows import Row


@dataclass(frozen=True)
class Settings:
    """How cases run.

    Attributes:
        repeats: timed runs of each variant.
        quick: small sizes without targets.
        seed: of generated data.
        trace: path of a Coflow-Benchmark text, for the case that replays one.
    """

    repeats: int = 5
    quick: bool = False
    seed: int = 0
    trace: str | None = None


class Timing(NamedTuple):
    """Wall times of the repeats of one variant, s; in the order of ``Row``."""

    median_s: float
    min_s: float
    repeats: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Timing":
        """Of the times of all repeats, s."""
        return cls(statistics.median(seconds), min(seconds), len(seconds))


class Clocked(NamedTuple):
    """The result of one run and its wall time. A call that returns one is timed by its own clock."""

    value: Any
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """What the runs of one variant took and gave.

    Attributes:
        timing: of the runs that count.
        first: the first run, whether it counts or warms up.
        value: result of the last run.
        peak_rss_bytes: of the process, if the variant had one of its own.
    """

    timing: Timing
    first: Clocked
    value: Any
    peak_rss_bytes: int | None = None


def clocked(call: Callable[[], Any]) -> Clocked:
    """The result of a call, and its wall time until its arrays are there."""
    began = time.perf_counter()
    value = call()
    if isinstance(value, Clocked):
        return value
    if "jax" in sys.modules:  # cases that do not compute with JAX do not load it
        sys.modules["jax"].block_until_ready(value)
    return Clocked(value, time.perf_counter() - began)


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[[], Any], float]:
    """A call of the function compiled for these arguments, and the seconds that compiling took."""
    import jax

    began = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return partial(program, *arguments), time.perf_counter() - began


@dataclass(frozen=True)
class Runner:
    """Times the variants of a set-up.

    Attributes:
        seed: of generated data.
        trace: see ``Settings``.
        repeats: runs of each variant that count.
        warm_up: whether a run that does not count goes before.
    """

    seed: int = 0
    trace: str | None = None
    repeats: int = 1
    warm_up: bool = True

    def race(self, variants: Mapping[str, Callable[[], Any]]) -> dict[str, Outcome]:
        """Time variants in turns, so that what else the machine does falls on all of them alike."""
        first = {name: clocked(run) for name, run in variants.items()} if self.warm_up else {}
        last = dict(first)
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(self.repeats):
            for name, run in variants.items():
                last[name] = clocked(run)
                first.setdefault(name, last[name])
                seconds[name].append(last[name].seconds)
        return {name: Outcome(Timing.of(seconds[name]), first[name], last[name].value) for name in variants}

    def time(self, run: Callable[[], Any]) -> Outcome:
        """Time a variant that nothing is beside."""
        return self.race({"": run})[""]

    def once(self) -> "Runner":
        """For what takes too long to be repeated: its only run counts."""
        return replace(self, repeats=1, warm_up=False)

    def alone(self, job: str, small: dict[str, Any], large: dict[str, Any]) -> Outcome:
        """Time a job in a fresh process, of which it gives the peak memory.

        Args:
            job: "module:name" under ``setups``, of a function without a result or with a ``Clocked`` one.
            small: plain arguments of the first run, which compiles and does not count.
            large: of the runs that count.
        """
        arguments = {"job": job, "small": small, "large": large, "repeats": self.repeats}
        result = run_fresh(f"{__name__}:in_this_process", arguments)
        return Outcome(
            Timing.of(result["seconds"]),
            Clocked(None, result["first_s"]),
            None,
            result["peak_rss_bytes"],
        )


def in_this_process(job: str, small: dict[str, Any], large: dict[str, Any], repeats: int) -> dict[str, Any]:
    """The other side of ``Runner.alone``."""
    function = _setup(job)
    first = clocked(partial(function, **small))
    seconds = [clocked(partial(function, **large)).seconds for _ in range(repeats)]
    return {"seconds": seconds, "first_s": first.seconds, "peak_rss_bytes": peak_rss_bytes()}


def run_case(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run a case in this process: its rows, and what it ran on."""
    parts = [part for part in PARTS if part.case == name]
    if not parts:
        raise KeyError(name)
    return {"rows": rows_of(parts, Settings(**settings)), "device": device()}


def rows_of(parts: Iterable[Part], settings: Settings) -> list[Row]:
    """Rows of some parts, one part after the other."""
    return [row for part in parts if part.quick or not settings.quick for row in _part_rows(part, settings)]


def _part_rows(part: Part, settings: Settings) -> Iterator[Row]:
    repeats = settings.repeats if part.runs == "repeated" else 1
    runner = Runner(settings.seed, settings.trace, repeats, warm_up=part.runs != "once")
    for row in _setup(part.setup)(runner, **part.sized(settings.quick)):
        if part.memory:
            row = replace(row, peak_rss_bytes=peak_rss_bytes())
        if row.gap is None and row.objective is not None and row.lower_bound is not None:
            row = replace(row, gap=(row.objective - row.lower_bound) / abs(row.lower_bound))
        yield _without_targets(row) if settings.quick else _with_targets(row, part.targets)


def _setup(name: str) -> Callable[..., Any]:
    """The function "module:name" under ``setups``, loaded when its case runs."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"{__package__}.setups.{module}"), function)


def _with_targets(row: Row, targets: Mapping[str, Target]) -> Row:
    """The row with the targets of the first pattern that its variant fits."""
    target = next((target for pattern, target in targets.items() if fnmatchcase(row.variant, pattern)), None)
    if target is None:
        return row
    seconds = row.rows / target.rows_per_s if target.rows_per_s and row.rows else target.seconds
    return replace(row, target_s=seconds, target_bytes=target.bytes, target_gap=target.gap)


def _without_targets(row: Row) -> Row:
    return replace(row, target_s=None, target_bytes=None, target_gap=None)
