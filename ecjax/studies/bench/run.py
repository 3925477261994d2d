"""Timing side by side, and memory of the process."""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil

_PROCESS_STATUS = Path("/proc/self/status")


class Timing(NamedTuple):
    """Wall times of the repeats of one variant, s."""

    median_s: float
    min_s: float
    repeats: int


def side_by_side(variants: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Timing]:
    """Time variants in turns, so that what else the machine does falls on all of them alike.

    Args:
        variants: each call runs once and returns its wall time in s; the first call is not counted.
        repeats: counted calls of each.
    """
    for run in variants.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, run in variants.items():
            times[name].append(run())
    return {name: Timing(statistics.median(t), min(t), len(t)) for name, t in times.items()}


def timed(call: Callable[..., Any], *arguments: Any) -> Callable[[], float]:
    """A variant for ``side_by_side``: wall time of the call until its arrays are there."""

    def run() -> float:
        import jax  # cases that do not compute with JAX do not load it

        began = time.perf_counter()
        jax.block_until_ready(call(*arguments))
        return time.perf_counter() - began

    return run


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], float]:
    """The function compiled for these arguments, and the seconds that took."""
    import jax

    began = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return program, time.perf_counter() - began


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far, B.

    Linux counts it per program image; getrusage would count the parent's memory at the fork too.
    """
    if _PROCESS_STATUS.exists():
        for line in _PROCESS_STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on every platform

    unit = 1 if psutil.MACOS else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
