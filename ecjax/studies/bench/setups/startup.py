"""Whole commands from a shell's point of view: the interpreter, imports, compilation and all."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

import pandas as pd

from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner
from ecjax.tables.results import read_results


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


def optimize(runner: Runner, cache: str, small: bool = False) -> Iterator[Row]:
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


def codes(runner: Runner, candidates: str, files: int, nodes_per_site: int, load: float) -> Iterator[Row]:
    """``ecjax codes`` with plans and latencies of every candidate; what the first run compiles the others load.

    Args:
        runner: times it.
        candidates: what ``codes`` takes.
        files: of the built-in cluster.
        nodes_per_site: of its three sites.
        load: of its nodes, where full reads are of its own k.
    """
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        folders = (Path(folder) / f"out{number}" for number in count())
        words = [f"cluster.files={files}", f"cluster.nodes_per_site={nodes_per_site}", f"cluster.load={load}"]
        environment = {"ECJAX_CACHE": str(Path(folder) / "cache")}

        def run() -> pd.DataFrame:
            out = next(folders)
            command = ["-m", "ecjax", "codes", f"codes={candidates}", "latency=true", f"out={out}"]
            _python([*command, "figures=[]", *words], environment)
            return read_results(out, "codes")

        outcome = runner.time(run)
    rows: pd.DataFrame = outcome.value
    planned = rows[rows["gap"].notna()]
    yield Row(
        "ecjax codes",
        f"{len(rows)} codes, {files:,} files x {3 * nodes_per_site}, load {load:g}",
        *outcome.timing,
        rows=len(rows),
        node_count=3 * nodes_per_site,
        gap=float(planned["gap"].max()),
        compile_s=outcome.first.seconds - outcome.timing.median_s,
        note=f"{len(planned)} codes with a plan and latencies; the first run {outcome.first.seconds:.3g} s",
    )


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
