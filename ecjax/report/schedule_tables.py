"""What the figures of ``ecjax schedule`` share: rows of the result tables, names and colours, means over seeds."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ecjax.report.replay_tables import COLOURS
from ecjax.tables.datasets import read_file

matplotlib.use("Agg")

BASELINE = "fair"
POINT = ("n", "k", "share_at_zero", "rate_scale", "size_scale")
POINT_WORDS = {
    "n": "chunks kept, n",
    "k": "chunks needed, k",
    "share_at_zero": "share of reads at t = 0",
    "rate_scale": "arrivals faster by",
    "size_scale": "sizes larger by",
}
MOST_PANELS = 6
_NAMES = {
    "dtarget": "D-Target",
    "varys": "Varys",
    "sincronia": "Sincronia",
    "aalo": "Aalo",
    "baraat": "Baraat",
    "pfabric": "pFabric",
    "fair": "max-min fair",
    "fifo": "FIFO",
    "equal_share": "equal share",
    "dtarget_remaining": "D-Target, remaining",
    "local_search": "local search",
}
SOURCES = {
    "random": "random sources",
    "smallest_load": "smallest load first",
    "least_bottleneck": "least bottleneck",
    "least_work_ahead": "least work ahead",
    "given": "given sources",
}


def scheduler_name(name: str) -> str:
    """What figures call a scheduler."""
    return _NAMES.get(name, name.replace("_", " "))


def sources_name(name: str) -> str:
    """What figures call a rule of source selection."""
    return SOURCES.get(name, name.replace("_", " "))


def colours(names: list[str], known: Iterable[str] = _NAMES) -> dict[str, Any]:
    """A colour per name: those that are known have the same in every figure, others the next ones."""
    order = dict.fromkeys([*known, *names])
    every = dict(zip(order, itertools.cycle(COLOURS), strict=False))
    return {name: every[name] for name in names}


def rows(out: Path, dataset: str, runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows of a dataset of these runs, with the columns of ``runs`` that tell points and seeds apart."""
    known = runs[["run_id", "method", "sources", "seed", *POINT]]
    return own_rows(out, dataset, runs, columns).merge(known, on="run_id")


def own_rows(out: Path, dataset: str, runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows of a dataset of these runs, every file read once: ``run_id`` and the columns."""
    wanted = pa.array(runs["run_id"].tolist(), pa.string())
    tables = []
    for batch in dict.fromkeys(runs["batch_id"]):
        table = read_file(out / dataset / f"{batch}.parquet", ["run_id", *columns])
        tables.append(table.filter(pc.is_in(table["run_id"], value_set=wanted)))
    return pa.concat_tables(tables).to_pandas()


def groups(runs: pd.DataFrame, keys: tuple[str, ...]) -> list[tuple[str, pd.DataFrame]]:
    """The runs divided by some columns, with what tells each part from the others."""
    varying = [name for name in keys if runs[name].nunique(dropna=False) > 1]
    if not varying:
        return [("", runs)]
    found = []
    for values, own in runs.groupby(varying, sort=False, dropna=False):
        words = [
            sources_name(value) if name == "sources" else f"{POINT_WORDS[name]} = {value:g}"
            for name, value in zip(varying, values, strict=True)
            if pd.notna(value)
        ]
        found.append((", ".join(words), own))
    return found


def spread(values: pd.Series) -> tuple[float, np.ndarray]:
    """Mean over seeds, and how far down and up from it the least and the largest lie, (2, 1)."""
    mean = float(values.mean())
    return mean, np.array([[mean - values.min()], [values.max() - mean]])


def grid(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Panels, three in a row."""
    columns = min(3, count)
    lines = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * lines + 0.7), layout="constrained")
    axes = [figure.add_subplot(lines, columns, place + 1) for place in range(count)]
    for each in axes:
        each.grid(alpha=0.3)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
