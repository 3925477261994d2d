"""What figures of plans and of their replays share: rows of the result tables, names of runs, what a sweep varies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from ecjax.plotting.class_values import CLASS_COLUMNS, at_rates_of_tables, class_axis, in_a_line
from ecjax.plotting.method_names import METHOD_NAMES
from ecjax.tables.results import read_results, read_run


def rows(out: Path, dataset: str, runs: pd.DataFrame, group: str | None = None) -> pd.DataFrame:
    """Rows of a dataset of these runs, in their order; of one kind of group."""
    parts = []
    for name in runs["run_id"]:
        table = read_run(out, dataset, name)
        parts.append((table if group is None else table.filter(pc.equal(table["group"], group))).to_pandas())
    return pd.concat(parts, ignore_index=True)


def names(runs: pd.DataFrame, axis: str | None = None, alone: str = "replay") -> list[str]:
    """What tells each run from the others, in words.

    Args:
        runs: rows of ``runs``.
        axis: column that a figure shows as its axis, and no name repeats: one of ``class_axis``, rate_scale,
            size_scale, theta, or max_load, which depends on theta, on importance and on all scalings.
        alone: what runs are called where nothing does.
    """
    behind = {"theta", "rate_scale", "size_scale", *CLASS_COLUMNS}
    hidden = {"max_load": behind}.get(axis or "", {axis})
    hidden = hidden | {name for name, of in _FOLLOWS.items() if _follows(runs, name, of)}
    if "what_if" in runs:
        runs = runs.assign(what_if=runs["what_if"].fillna("as it is"))
    # runs served first come, first served have no classes to tell them apart
    varying = [
        name
        for name in _WORDS
        if name in runs
        and name not in hidden
        and runs[name].astype(object).nunique(dropna=name in CLASS_COLUMNS) > 1
    ]
    words = [
        ", ".join(_WORDS[name](getattr(run, name)) for name in varying if pd.notna(getattr(run, name)))
        for run in runs.itertuples()
    ]
    places = words if axis is None else list(zip(words, runs[axis], strict=True))
    if len(set(places)) < len(places):  # plans that differ in something else, as in their tables
        plan_runs = runs["plan_run"].fillna(runs["run_id"]) if "plan_run" in runs else runs["run_id"]
        plans = [f"plan {plan[:6]}" for plan in plan_runs.astype(str)]
        words = [f"{name}, {plan}" if name else plan for name, plan in zip(words, plans, strict=True)]
    return [name or alone for name in words]


def _follows(runs: pd.DataFrame, name: str, of: str) -> bool:
    """Whether a column differs, and only where another one does."""
    if not {name, of} <= set(runs) or runs[of].nunique(dropna=False) < 2:
        return False
    return bool(runs.groupby(of, dropna=False)[name].nunique(dropna=False).max() == 1)


def _slow(factors: str) -> str:
    """Slow nodes, the first few of them, and what multiplies their services, from JSON by node."""
    by_node = json.loads(factors)
    listed = [f"{node} x {factor:g}" for node, factor in by_node.items()]
    return f"services of {', '.join(listed[:_MOST_SLOW])}{', ...' if len(listed) > _MOST_SLOW else ''}"


_MOST_SLOW = 3  # nodes in a name


_FOLLOWS = {"queue": "method", "k": "code"}

_WORDS: dict[str, Callable[[Any], str]] = {
    "method": lambda value: METHOD_NAMES.get(value, value),
    "theta": lambda value: f"θ = {value:g}",
    "what_if": str,
    "code": str,
    "k": lambda value: f"k = {value:g}",
    "d": lambda value: f"d = {value:g}",
    "policy": lambda value: value.replace("_", " "),
    "queue": lambda value: value,
    "service": lambda value: value,
    "importance": lambda value: f"C = {in_a_line(value)}",
    "class_rate_scale": lambda value: f"class rates x {in_a_line(value)}",
    "rate_scale": lambda value: f"rates x {value:g}",
    "size_scale": lambda value: f"sizes x {value:g}",
    "slow": _slow,
}


def swept(out: Path, runs: pd.DataFrame) -> tuple[str, pd.Series, str] | None:
    """The column that a sweep varies, its values in units, by run, and their label; None where none varies.

    The load, which differs between methods and queues too, is none of them.
    """
    by_class = class_axis(out, runs)
    if by_class is not None:
        return by_class
    if runs["rate_scale"].nunique() > 1 and not at_rates_of_tables(runs):
        return "rate_scale", runs["rate_scale"], "rates multiplied by"
    for column, source, label in (
        ("rate_scale", "rate_per_s", "request rate of all files (1/s)"),
        ("size_scale", "bytes", "mean file size (MB)"),
    ):
        if runs[column].nunique() < 2:
            continue
        files = read_results(out, "inputs/files").groupby("input_id")[source]
        unscaled = files.sum() if column == "rate_scale" else files.mean() / 1e6
        return column, runs[column] * runs["input_id"].map(unscaled), label
    return None
