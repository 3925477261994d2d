"""What a job called from Python returns."""

import io
import shutil
import weakref
from importlib import import_module
from pathlib import Path
from types import TracebackType

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.errors import UserError
from ecjax.tables.datasets import written_datasets
from ecjax.tables.folder import location
from ecjax.tables.recommendation import Recommendation
from ecjax.tables.results import read_results

_INPUTS = "inputs/"


class Results:
    """Runs of a job with everything that they wrote.

    Every dataset is an attribute of its name, a pandas data frame of the rows of these runs: ``plan.placements``,
    ``plan.node_loads``; so are ``nodes`` and ``files``, the input tables. Where no folder was named, the results
    are in a temporary one, which is removed with the object.

    Args:
        job: its name.
        out: folder of the results.
        runs: rows of ``runs`` in the order of the sweep.
        recommendation: what they recommend.
        temporary: folder to remove with the object.

    Attributes:
        job: name of the job.
        out: folder of the results.
        runs: data frame, a row per run in the order of the sweep.
        run_ids: of these runs.
        recommended_run: id of the run that the job recommends; None where it recommends none.
        sentence: what the job recommends, in a sentence; empty where it recommends nothing.
    """

    def __init__(
        self,
        job: str,
        out: str,
        runs: pd.DataFrame,
        recommendation: Recommendation | None,
        temporary: Path,
    ) -> None:
        self.job, self.out, self.runs = job, out, runs
        self.run_ids: list[str] = runs["run_id"].tolist()
        self.sentence = "" if recommendation is None else recommendation.sentence
        self.recommended_run = None if recommendation is None else recommendation.run_id
        self._close = weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)

    @property
    def recommended(self) -> pd.Series | None:
        """The row of ``runs`` that the job recommends; None where it recommends none."""
        rows = self.runs[self.runs["run_id"] == self.recommended_run]
        return rows.iloc[0] if len(rows) else None

    @property
    def datasets(self) -> list[str]:
        """Names of the data frames that there are."""
        return [name.removeprefix(_INPUTS) for name in written_datasets(location(self.out))]

    def dataset(self, name: str) -> pd.DataFrame:
        """Rows of these runs in a dataset, as the attribute of its name.

        Raises:
            UserError: there is none of that name, or a file is damaged.
        """
        if name == "runs":
            return self.runs
        written = written_datasets(location(self.out))
        if name not in written and _INPUTS + name in written:
            table = read_results(self.out, _INPUTS + name)
            return table[table["input_id"].isin(self.runs["input_id"])].drop(columns="input_id")
        table = read_results(self.out, name)
        return table[table["run_id"].isin(self.run_ids)].reset_index(drop=True)

    def figure(self, name: str) -> Figure:
        """A figure of these runs, one of those that the option ``figures`` of the job names.

        Raises:
            UserError: there is none of that name, or the runs lack what it shows.
        """
        if self.job == "analyze":
            return self._figure_of_log(name)
        sampling = self.job == "cache" and self.runs["scheme"].notna().any()
        kinds = import_module(f"ecjax.studies.{self.job}.figures.{'sampling' if sampling else 'kinds'}")
        figure: Figure = kinds.draw.figure(self.out, self.runs, name)
        return figure

    def _figure_of_log(self, name: str) -> Figure:
        from ecjax.studies.analyze.figures import FIGURES

        if name not in FIGURES:
            raise UserError(f"figure: found {name!r}; allowed: {', '.join(FIGURES)}")
        tables = {each: self.dataset(each) for each in self.datasets}
        figure = FIGURES[name]({each: table for each, table in tables.items() if len(table)})
        if figure is None:
            raise UserError(f"figure {name}: needs what the log does not tell")
        return figure

    @property
    def summary(self) -> str:
        """What the command prints at its end."""
        from ecjax.summaries import print_summary  # its own summaries import all that draws and computes

        console = Console(file=io.StringIO(), width=120)
        print_summary(self.out, self.job, self.runs, console)
        return console.file.getvalue()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Remove the temporary folder now; data frames that were read stay."""
        self._close()

    def __enter__(self) -> "Results":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name.startswith("_") or "out" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self.dataset(name)
        except UserError as error:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: {error}") from error

    def __dir__(self) -> list[str]:
        try:
            return sorted({*super().__dir__(), *self.datasets})
        except UserError:
            return sorted(super().__dir__())

    def __repr__(self) -> str:
        several = "run" if len(self.runs) == 1 else "runs"
        text = f"<ecjax.{self.job}: {len(self.runs)} {several} in {self.out}>"
        return f"{text}\n{self.sentence}" if self.sentence else text

    def _repr_html_(self) -> str:
        return str(self.runs.to_html(max_rows=20))
