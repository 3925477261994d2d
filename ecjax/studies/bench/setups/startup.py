"""Whole commands from a shell's point of view: the interpreter, imports, compilation and all."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, side_by_side

TARGET_HELP_S = 1.0
TARGET_COLD_S, TARGET_WARM_S = 15.0, 10.0


def rows(settings: Settings) -> list[Row]:
    """``ecjax --help`` beside a bare interpreter and the import of JAX; ``ecjax optimize`` without and with a cache."""
    help_calls = {
        "ecjax --help": _command(["-m", "ecjax", "--help"]),
        "python": _command(["-c", "pass"]),
        "import jax": _command(["-c", "import jax"]),
    }
    times = side_by_side(help_calls, settings.repeats)
    found = [
        _row(name, timing, TARGET_HELP_S if name.startswith("ecjax") else None)
        for name, timing in times.items()
    ]
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        words = ["cluster.files=40", "theta=[3,100]"] if settings.quick else []
        cold, warm = _optimize(Path(folder), words, settings.repeats)
    what = "quick" if settings.quick else "built-in cluster, nine thetas"
    found.append(_row("ecjax optimize, empty cache", cold, TARGET_COLD_S, what))
    found.append(_row("ecjax optimize, full cache", warm, TARGET_WARM_S, what))
    return [_without_target(row) for row in found] if settings.quick else found


def _optimize(folder: Path, words: list[str], repeats: int) -> tuple[Timing, Timing]:
    times = []
    for number in range(repeats + 1):
        # a new folder of results each time: finished runs are not computed again
        command = ["-m", "ecjax", "optimize", f"out={folder / f'out{number}'}", *words]
        times.append(_command(command, {"ECJAX_CACHE": str(folder / "cache")})())
    rest = sorted(times[1:])
    return Timing(times[0], times[0], 1), Timing(rest[len(rest) // 2], rest[0], len(rest))


def _command(words: list[str], variables: dict[str, str] | None = None) -> Callable[[], float]:
    """Wall time of ``python WORDS``."""

    def run() -> float:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *words],
            env=os.environ | (variables or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise RuntimeError(f"{' '.join(words)}: {lines[-1]}")
        return seconds

    return run


def _row(variant: str, timing: Timing, target_s: float | None, size: str = "whole process") -> Row:
    return Row(variant=variant, size=size, **timing._asdict(), target_s=target_s)


def _without_target(row: Row) -> Row:
    return Row(row.variant, row.size, row.median_s, row.min_s, row.repeats)
