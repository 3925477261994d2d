"""Options of ``ecjax bench``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecjax.errors import UserError
from ecjax.studies.bench.cases import CASES
from ecjax.studies.spine.option import option


@dataclass
class BenchOptions:
    """Everything that ``ecjax bench`` can be told."""

    out: str = option("results/bench", "folder of the result tables")
    cases: Any = option(None, "names of cases, one or a list; default: all")
    repeats: int = option(5, "timed runs of each variant, after one that is not timed")
    quick: bool = option(False, "small sizes, to see that everything runs; no targets")
    seed: int = option(0, "seed of the generated data")
    trace: str | None = option(None, "coflows_trace: a Coflow-Benchmark text; default: generated shuffles")


def checked(options: BenchOptions) -> list[str]:
    """Names of the cases to run.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    names = [options.cases] if isinstance(options.cases, str) else options.cases or list(CASES)
    for name in names:
        if name not in CASES:
            raise UserError(f"cases: found {name!r}; allowed: {', '.join(CASES)}")
    if options.repeats < 1:
        raise UserError(f"repeats: found {options.repeats}; allowed: 1 or more")
    if options.trace is not None and not Path(options.trace).exists():
        raise UserError(f"trace={options.trace}: no such file")
    if options.seed < 0:
        raise UserError(f"seed: found {options.seed}; allowed: 0 or more")
    return list(dict.fromkeys(names))
