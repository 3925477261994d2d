"""What rules judge by: the tables of the studies that were run."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from ecjax.tables.results import read_results


@dataclass(frozen=True)
class Made:
    """What a study made.

    Attributes:
        out: folder of its results.
        runs: its rows of ``runs``, in the order of the sweep.
    """

    out: str
    runs: pd.DataFrame

    def dataset(self, name: str) -> pd.DataFrame:
        """Rows of these runs in a dataset, in the order in which they were written.

        Raises:
            UserError: it was not written.
        """
        table = read_results(self.out, name)
        if name.startswith("inputs/"):
            return table[table["input_id"].isin(self.runs["input_id"])].reset_index(drop=True)
        return table[table["run_id"].isin(self.runs["run_id"])].reset_index(drop=True)

    def of_plans(self, name: str) -> pd.DataFrame:
        """Rows, in a dataset of ``optimize``, of the plans that these replays made for themselves.

        Raises:
            UserError: it was not written.
        """
        table = read_results(f"{self.out}/planning", name)
        return table[table["run_id"].isin(self.runs["plan_run"])].reset_index(drop=True)

    def joined(self, name: str) -> pd.DataFrame:
        """The dataset with the columns of ``runs`` beside it that it lacks, in the order of the sweep."""
        table = self.dataset(name)
        columns = ["run_id", *(item for item in self.runs.columns if item not in table.columns)]
        return self.runs[columns].merge(table, on="run_id", how="inner")


@dataclass(frozen=True)
class Evidence:
    """The studies of a paper.

    Attributes:
        size: small or full.
        made: what came of them, by name.
    """

    size: str
    made: Mapping[str, Made]

    def __getitem__(self, study: str) -> Made:
        """What a study made."""
        return self.made[study]
