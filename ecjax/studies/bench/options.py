"""Options of ``ecjax bench``. Imports nothing heavy: the command line reads it before anything else."""

from dataclasses import dataclass, replace
from pathlib import Path

from ecjax.errors import UserError
from ecjax.options import Listed, Whole, Words, option
from ecjax.studies.bench.cases import CASES, SUITES


@dataclass(frozen=True)
class BenchOptions:
    """Everything that ``ecjax bench`` can be told."""

    out: str = option("results/bench", "folder of the result tables")
    cases: list[str] | None = option(
        None,
        "names of cases, one or a list; default: those of the suite, or all that belong to none",
        Listed(Words(*CASES), empty=True),
    )
    suite: str | None = option(
        None, "gpu: kernels on JAX's device, with their share of its measured limits", Words(*SUITES)
    )
    repeats: int = option(5, "timed runs of each variant, after one that is not timed", Whole(1))
    quick: bool = option(False, "small sizes, to see that everything runs; no targets")
    seed: int = option(0, "seed of the generated data", Whole(0, 2**62))
    trace: str | None = option(None, "coflows_trace: a Coflow-Benchmark text; default: generated shuffles")

    def completed(self) -> "BenchOptions":
        """These options with the cases that they mean where none is named.

        Raises:
            UserError: there is no such trace, or both cases and a suite are named.
        """
        if self.trace is not None and not Path(self.trace).exists():
            raise UserError(f"trace={self.trace}: no such file")
        in_suites = {name for names in SUITES.values() for name in names}
        meant = list(SUITES[self.suite]) if self.suite else [name for name in CASES if name not in in_suites]
        # options that were completed before have the cases of their suite
        if self.suite is not None and self.cases not in (None, meant):
            raise UserError(f"suite={self.suite}: cases are named too; allowed: one of the two")
        return replace(self, cases=self.cases or meant)
