"""Options of ``ecjax bench``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass, field
from typing import Any


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class BenchOptions:
    """Everything that ``ecjax bench`` can be told."""

    out: str = _option("results/bench", "folder of the result tables")
    cases: Any = _option(None, "names of cases, one or a list; default: all")
    repeats: int = _option(5, "timed runs of each variant, after one that is not timed")
    quick: bool = _option(False, "small sizes, to see that everything runs; no targets")
    seed: int = _option(0, "seed of the generated data")
