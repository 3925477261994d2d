"""Options of ``ecjax bench``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass, replace
from pathlib import Path

from ecjax.errors import UserError
from ecjax.options import Listed, Whole, Words, option
from ecjax.studies.bench.cases import CASES


@dataclass(frozen=True)
class BenchOptions:
    """Everything that ``ecjax bench`` can be told."""

    out: str = option("results/bench", "folder of the result tables")
    cases: list[str] | None = option(
        None, "names of cases, one or a list; default: all", Listed(Words(*CASES), empty=True)
    )
    repeats: int = option(5, "timed runs of each variant, after one that is not timed", Whole(1))
    quick: bool = option(False, "small sizes, to see that everything runs; no targets")
    seed: int = option(0, "seed of the generated data", Whole(0, 2**62))
    trace: str | None = option(None, "coflows_trace: a Coflow-Benchmark text; default: generated shuffles")

    def completed(self) -> "BenchOptions":
        """These options with all cases where none is named.

        Raises:
            UserError: there is no such trace.
        """
        if self.trace is not None and not Path(self.trace).exists():
            raise UserError(f"trace={self.trace}: no such file")
        return replace(self, cases=self.cases or list(CASES))
