"""Run a function in a fresh process: its own peak memory, compiled programs and caches.

The process is ``python -m ecjax.studies.bench.fresh``; arguments and result pass as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


class ProcessFailed(RuntimeError):
    """The function raised; the message is the last line of its error."""


def run_fresh(function: str, arguments: dict[str, Any]) -> Any:
    """Result of a function, run in a process of its own.

    Args:
        function: "module:name".
        arguments: keyword arguments; plain values.

    Returns:
        What it returns: plain values, dataclasses as dicts.

    Raises:
        ProcessFailed: it raised, or the process died.
    """
    with tempfile.TemporaryDirectory(prefix="ecjax-bench-") as folder:
        result = Path(folder) / "result.json"
        command = [
            sys.executable,
            "-m",
            "ecjax.studies.bench.fresh",
            function,
            json.dumps(arguments),
            str(result),
        ]
        # programs compiled by earlier runs of the user's would hide what compiling takes
        caches = {"ECJAX_CACHE": "cache", "NUMBA_CACHE_DIR": "numba"}
        environment = os.environ | {variable: str(Path(folder) / name) for variable, name in caches.items()}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        process = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if process.returncode or not result.exists():
            lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
            raise ProcessFailed(lines[-1])
        return json.loads(result.read_text())


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} does not pass between processes")


def main(words: list[str]) -> None:
    """Entry point of the process."""
    function, arguments, result = words
    module, _, name = function.partition(":")
    value = getattr(import_module(module), name)(**json.loads(arguments))
    Path(result).write_text(json.dumps(value, default=_plain))


if __name__ == "__main__":
    main(sys.argv[1:])
