"""Rows of the datasets of one plan."""

from pathlib import Path

import pandas as pd

from ecjax.errors import UserError
from ecjax.tables.results import read_results


def rows_of(out: Path, dataset: str, run_id: str) -> pd.DataFrame:
    """Rows of a dataset of a run; none where it has none, or the dataset was not written.

    Args:
        out: folder of the results.
        dataset: its name.
        run_id: of the run.
    """
    try:
        table = read_results(out, dataset)
    except UserError:
        return pd.DataFrame()
    return table[table["run_id"] == run_id].reset_index(drop=True)
