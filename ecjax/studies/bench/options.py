"""Options of ``ecjax bench``. Light on purpose: the command line reads it before anything heavy loads."""

from dataclasses import dataclass
from typing import Any

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
