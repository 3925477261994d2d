"""Whole commands from a shell's point of view: the interpreter, imports, compilation and all."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner


def help_text(runner: Runner) -> Iterator[Row]:
    """``ecjax --help`` beside a bare interpreter and the import of JAX."""
    commands = {
        "ecjax --help": ["-m", "ecjax", "--help"],
        "python": ["-c", "pass"],
        "import jax": ["-c", "import jax"],
    }
    outcomes = runner.race({name: partial(_python, words) for name, words in commands.items()})
    for name, outcome in outcomes.items():
        yield Row(name, "whole process", *outcome.timing)


def optimize(runner: Runner, cache: str, small: bool) -> Iterator[Row]:
    """``ecjax optimize`` with a cache of compiled programs that starts empty; a run that warms up fills it.

    Args:
        runner: times it.
        cache: "empty" or "full", as the runner makes it.
        small: the cluster and few thetas, instead of the built-in cluster and nine thetas.
    """
    words = ["cluster.files=40", "theta=[3,100]"] if small else []
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        # a new folder of results each time: finished runs are not computed again
        folders = (f"out={Path(folder) / f'out{number}'}" for number in count())
        environment = {"ECJAX_CACHE": str(Path(folder) / "cache")}
        outcome = runner.time(
            lambda: _python(["-m", "ecjax", "optimize", next(folders), *words], environment)
        )
    size = "quick" if small else "built-in cluster, nine thetas"
    yield Row(f"ecjax optimize, {cache} cache", size, *outcome.timing)


def _python(words: list[str], variables: Mapping[str, str] | None = None) -> None:
    """Run ``python WORDS``.

    Raises:
        RuntimeError: it failed; with the last line of its error.
    """
    environment = os.environ | dict(variables or {})
    process = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        raise RuntimeError(f"{' '.join(words)}: {lines[-1]}")
