"""The fastest of several ways at every point of a sweep, and how they compare."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd


class Winner(NamedTuple):
    """The fastest way at a point.

    Attributes:
        best: its row.
        others: rows of the other ways, the fastest first.
        equals: names of others whose means differ by no more than both intervals.
    """

    best: pd.Series
    others: pd.DataFrame
    equals: list[str]


def winners(table: pd.DataFrame, point: Sequence[str], way: str, value: str = "mean_s") -> list[Winner]:
    """The fastest way at every point, points in their order.

    Args:
        table: a row per point and way, with ``value`` and ``ci_s``, the half width of its 95 % interval or nan.
        point: columns of a point.
        way: column with the name of the way.
        value: column that is compared, least is best; rows without it do not count.
    """
    finite = table[table[value].notna()]
    groups = finite.groupby(list(point), sort=False, dropna=False) if point else [((), finite)]
    every = []
    for _, rows in groups:
        ranked = rows.sort_values(value, kind="stable")
        best, others = ranked.iloc[0], ranked.iloc[1:]
        apart = others[value] - best[value]
        reach = others["ci_s"].fillna(0.0).astype(float) + float(
            0.0 if pd.isna(best["ci_s"]) else best["ci_s"]
        )
        every.append(Winner(best, others, others.loc[apart <= reach, way].astype(str).tolist()))
    return every


def at_point(best: pd.Series, point: Sequence[str]) -> str:
    """Words for a point: `` at load=0.5, k=4``; empty where nothing tells points apart."""
    parts = [
        f"{name}={best[name]:g}" if isinstance(best[name], float) else f"{name}={best[name]}"
        for name in point
    ]
    return f" at {', '.join(parts)}" if parts else ""


def differing(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Those of the columns that have more than one value."""
    return [name for name in names if table[name].nunique(dropna=False) > 1]


def tally(every: Sequence[Winner], way: str) -> tuple[str, int]:
    """The way that is fastest at most points, and at how many."""
    names = pd.Series([winner.best[way] for winner in every]).value_counts()
    return str(names.index[0]), int(names.iloc[0])
