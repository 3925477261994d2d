"""The fastest of several ways at every point of a sweep, and how they compare."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ecjax.studies.spine.sentences import compared, listed

_MOST_ALIKE = 3  # that are named
_TIE = 1e-9  # relative difference of means that are equal
_MISSING = 1e6  # as many times as slow as the fastest a way counts that is not there


class Winner(NamedTuple):
    """The fastest way at a point.

    Attributes:
        best: its row.
        others: rows of the other ways, the fastest first.
        equals: names of others whose means differ by no more than both intervals, or have none.
    """

    best: pd.Series
    others: pd.DataFrame
    equals: list[str]

    @property
    def known(self) -> bool:
        """Whether the intervals of all the means are."""
        return bool(pd.notna(self.best["ci_s"]) and self.others["ci_s"].notna().all())


def winners(table: pd.DataFrame, point: Sequence[str], way: str, value: str = "mean_s") -> list[Winner]:
    """The fastest way at every point, points in their order; of ways that tie the one that is fastest at most points.

    Args:
        table: a row per point and way, with ``value`` and ``ci_s``, the half width of its 95 % interval or nan.
        point: columns of a point.
        way: column with the name of the way.
        value: column that is compared, least is best; rows without it do not count.
    """
    finite = table[table[value].notna()]
    groups = finite.groupby(list(point), sort=False, dropna=False) if point else [((), finite)]
    every = []
    ranking = [rows.sort_values(value, kind="stable") for _, rows in groups]
    order = _leaders(ranking, way, value)
    for ranked in ranking:
        tied = [order.index(name) for name in ranked.loc[_tied(ranked, value), way]]
        place = tied.index(min(tied))
        best, others = ranked.iloc[place], ranked.drop(ranked.index[place])
        apart = others[value] - best[value]
        # what is not known may be of any width
        reach = others["ci_s"].fillna(np.inf).astype(float) + float(
            np.inf if pd.isna(best["ci_s"]) else best["ci_s"]
        )
        every.append(Winner(best, others, others.loc[apart <= reach, way].astype(str).tolist()))
    return every


def _tied(ranked: pd.DataFrame, value: str) -> pd.Series:
    """Rows that are as good as the first, (n,) bool."""
    least: pd.Series = ranked[value] <= ranked[value].iloc[0] * (1 + _TIE)
    return least


def _leaders(ranking: Sequence[pd.DataFrame], way: str, value: str) -> list[str]:
    """Ways in the order of how often they are first, or tie for it; of several that which is least slower elsewhere."""
    first: dict[str, int] = {}
    behind: dict[str, float] = {}
    for ranked in ranking:
        ratio = (ranked[value] / ranked[value].iloc[0]).fillna(1.0)
        for name, tied, times in zip(ranked[way], _tied(ranked, value), ratio, strict=True):
            first[name] = first.get(name, 0) + bool(tied)
            # a way that is missing at a point does not serve there
            behind[name] = behind.get(name, _MISSING * len(ranking)) + float(times) - _MISSING
    return sorted(first, key=lambda name: (-first[name], behind[name]))


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


def tally(every: Sequence[Winner], way: str) -> tuple[list[Winner], str]:
    """The points at which the way is fastest that is so at most of them, and words for how many these are."""
    names = Counter(winner.best[way] for winner in every)
    # of ways that are so at equally many points the one that the others are furthest behind
    ahead = {name: max(_ahead(winner) for winner in every if winner.best[way] == name) for name in names}
    first = max(names, key=lambda name: (names[name], ahead[name]))
    points = [winner for winner in every if winner.best[way] == first]
    return points, f", fastest at {len(points)} of {len(every)} points" if len(every) > 1 else ""


def at_most(most: str, where: str) -> str:
    """Both after the name of a way: at how many points it is fastest, and which of them the numbers are of."""
    return f"{most};{where}" if most and where else most + where


def widest(points: Sequence[Winner]) -> Winner:
    """The point at which the fastest is farthest ahead of the slowest: where it does not matter all are alike."""
    return max(points, key=_ahead)


def _ahead(winner: Winner) -> float:
    """How many times as slow as the fastest the slowest is."""
    times = float((winner.others["mean_s"] / winner.best["mean_s"]).max()) if len(winner.others) else 0.0
    return times if np.isfinite(times) else 0.0


def alike(winner: Winner, by: str) -> str:
    """A sentence on those that cannot be told from the fastest; empty where all can.

    Args:
        winner: of a point.
        by: what would tell them apart: ``Over these seeds``.
    """
    if not winner.equals:
        return ""
    if len(winner.equals) == len(winner.others) > 1:
        return f" {by} none of the others can be told from it."
    more = len(winner.equals) - _MOST_ALIKE
    named = [*winner.equals[:_MOST_ALIKE], *([f"{more} more"] if more > 0 else [])]
    return f" {by} {listed(named)} cannot be told from it."


def by_intervals(winner: Winner) -> str:
    """What ways are told apart by, for ``alike``."""
    return "Within their intervals" if winner.known else "Without intervals, of too few reads,"


def beside(winner: Winner, rows: Iterable[Hashable], way: str) -> str:
    """Words for how much slower the ways of some rows of ``winner.others`` are, each named once."""
    mean = winner.best["mean_s"]
    return listed(
        f"{row[way]} is {compared(row['mean_s'], mean, 'faster', 'slower')}"
        for row in winner.others.loc[list(dict.fromkeys(rows))].to_dict("records")
    )


def run_of(runs: pd.DataFrame, row: pd.Series, names: Iterable[str]) -> str:
    """Id of the first run with a latency that is like the row in some columns.

    Args:
        runs: rows of the ``runs`` dataset.
        row: means over some of them.
        names: of columns of both.
    """
    like = runs["mean_s"].notna()
    for name in names:
        like &= runs[name].isna() if pd.isna(row[name]) else runs[name] == row[name]
    return str(runs.loc[like, "run_id"].iloc[0])
