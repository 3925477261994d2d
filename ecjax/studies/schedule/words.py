"""What the figures of ``ecjax schedule`` share: rows of the result tables, names and colours, means over seeds."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from ecjax.plotting.grid import own_rows
from ecjax.plotting.looks import COLOURS
from ecjax.studies.spine.settings import differing_settings

BASELINE = "fair"
POINT = ("n", "k", "share_at_zero", "rate_scale", "size_scale")
# in ``params``: what has columns, and what is said of inputs and results
_NO_SETTINGS = {*POINT, "sources", "scheduler", "input", "lower_bound_kind"}
POINT_WORDS = {
    "n": "chunks kept, n",
    "k": "chunks needed, k",
    "share_at_zero": "share of reads at t = 0",
    "rate_scale": "arrivals faster by",
    "size_scale": "sizes larger by",
}
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


def colours(names: list[str], first: Iterable[str] = _NAMES) -> dict[str, Any]:
    """A colour per name: the ``first`` ones have the same in every figure, others the next ones."""
    order = dict.fromkeys([*first, *names])
    every = dict(zip(order, itertools.cycle(COLOURS), strict=False))
    return {name: every[name] for name in names}


def by_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with their ``setting``, as words: what tells those of one point and folder apart beside their seeds."""
    return runs.assign(setting=differing_settings(runs, [*POINT, "sources", "scheduler"], _NO_SETTINGS))


def same_transfers(run: pd.Series) -> bool:
    """Whether runs like this one have the same transfers with every seed, those of a log or trace."""
    return bool(pd.isna(run["share_at_zero"]))


def rows(out: Path, dataset: str, runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows of a dataset of these runs, with the columns of ``runs`` that tell points and seeds apart."""
    points = runs[["run_id", "scheduler", "sources", "seed", *POINT]]
    return own_rows(out, dataset, runs, columns).merge(points, on="run_id")


def groups(runs: pd.DataFrame, keys: tuple[str, ...]) -> list[tuple[str, pd.DataFrame]]:
    """The runs divided by some columns, or their setting, with what tells each part from the others."""
    varying = [name for name in keys if runs[name].nunique(dropna=False) > 1]
    if not varying:
        return [("", runs)]
    parts = []
    for values, part in runs.groupby(varying, sort=False, dropna=False):
        words = [
            _part_words(name, value) for name, value in zip(varying, values, strict=True) if pd.notna(value)
        ]
        parts.append((", ".join(filter(None, words)), part))
    return parts


def _part_words(name: str, value: Any) -> str:
    """What a column says of a part, in words."""
    if name == "setting":
        return str(value)
    return sources_name(value) if name == "sources" else f"{POINT_WORDS[name]} = {value:g}"
