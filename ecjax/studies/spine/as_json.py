"""A study as one JSON object on standard output, for programs that run ecjax."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from ecjax.pipes import write_out
from ecjax.tables.recommendation import Recommendation
from ecjax.tables.result_schemas import RUNS, JobTables
from ecjax.tables.schemas import INTEGER


def print_json(
    tables: JobTables,
    out: str,
    runs: pd.DataFrame,
    recommendation: Recommendation | None,
    exit_code: int,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print what came of a study.

    Args:
        tables: datasets of the job.
        out: folder of the results.
        runs: rows of ``runs``; what is no finite number is null.
        recommendation: what the study recommends.
        exit_code: of the command.
        more: members that the command has besides.
    """
    print_object(
        {
            "job": tables.job,
            "out": out,
            "runs": _rows(tables, runs),
            "recommendation": None if recommendation is None else asdict(recommendation),
            **(more or {}),
            "exit_code": exit_code,
        }
    )


def print_object(values: Mapping[str, Any]) -> None:
    """Print a JSON object as a line."""
    write_out(sys.stdout, json.dumps(values, allow_nan=False) + "\n")


def _rows(tables: JobTables, runs: pd.DataFrame) -> list[dict[str, Any]]:
    whole = {column.name for column in tables.datasets[RUNS] if column.kind == INTEGER}
    return [
        {str(name): _plain(value, name in whole) for name, value in run.items()}
        for run in runs.to_dict("records")
    ]


def _plain(value: Any, whole: bool) -> Any:
    """A cell as JSON has it; whole numbers as such, also of a column that pandas made float as it has empty cells."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if whole else value
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each, whole) for each in value]
    return None if pd.isna(value) else str(value)
