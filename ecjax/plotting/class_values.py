"""What result tables tell by service class: values as JSON, and sweeps over them."""

import json
from pathlib import Path

import pandas as pd

from ecjax.tables.results import read_results

CLASS_COLUMNS = ("importance", "class_rate_scale")  # of ``runs``, JSON by class


def in_a_line(values: str | None) -> str:
    """JSON by class as numbers in class order; empty where there are none."""
    return "" if pd.isna(values) else "/".join(f"{value:.3g}" for value in json.loads(str(values)).values())


def by_class(values: pd.Series) -> pd.DataFrame:
    """JSON by class as a column per class; missing where a run has none."""
    values_by_class = values.map(lambda text: {} if pd.isna(text) else json.loads(text))
    return pd.DataFrame(values_by_class.tolist(), index=values.index, dtype=float)


def at_rates_of_tables(runs: pd.DataFrame) -> bool:
    """Whether requests of all runs come at the rates of their files' tables, not as a log has them or factors of time.

    Plans are: they are made for those rates.
    """
    if "arrivals" not in runs:
        return True
    inputs = [json.loads(params).get("inputs") or {} for params in runs["params"] if isinstance(params, str)]
    return not (runs["arrivals"].eq("trace").any() or any("rates" in tables for tables in inputs))


def class_axis(out: Path, runs: pd.DataFrame) -> tuple[str, pd.Series, str] | None:
    """The column by class in which one class alone varies, that class's values by run, and their label.

    Returns:
        None where none varies, or several classes do.
    """
    for column in CLASS_COLUMNS:
        values = by_class(runs[column])
        varying = [name for name in values if values[name].nunique() > 1]
        if len(varying) != 1:
            continue
        name = varying[0]
        if column == "importance":
            return column, values[name], f"importance of class {name}"
        if not at_rates_of_tables(runs):
            return column, values[name], f"planned rates of class {name} multiplied by"
        files = read_results(out, "inputs/files")
        members = files[class_names(files) == name]
        rate = members.groupby("input_id")["rate_per_s"].sum()
        return column, runs["rate_scale"] * runs["input_id"].map(rate), f"read rate of class {name} (1/s)"
    return None


def class_names(files: pd.DataFrame) -> pd.Series:
    """Classes of files (rows of ``inputs/files``) as result tables name them: where there are none, by k."""
    if "service_class" in files and files["service_class"].notna().any():  # stored inputs have all columns
        return files["service_class"].astype(str)
    return "k=" + files["k"].astype(str)
