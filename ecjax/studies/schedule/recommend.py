"""Which scheduler, and which rule for sources, to take."""

import math

import pandas as pd

from ecjax.intervals import half_width
from ecjax.studies.schedule.summary import over_seeds
from ecjax.studies.schedule.words import BASELINE, POINT, same_transfers
from ecjax.studies.spine.sentences import with_interval
from ecjax.studies.spine.winners import (
    Winner,
    alike,
    at_most,
    at_point,
    beside,
    differing,
    run_of,
    tally,
    widest,
    winners,
)
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

_ROUNDING = 1e-9


def recommend(runs: pd.DataFrame) -> Recommendation | None:
    """The scheduler with the least mean completion time; None where no replay ended.

    Args:
        runs: rows of the ``runs`` dataset of one study.
    """
    table = over_seeds(runs)
    table = table[table["mean_s"].notna()]
    if table.empty:
        return None
    chosen_sources = table["sources"].nunique() > 1
    names = table["scheduler"] + (" with " + table["sources"] if chosen_sources else "")
    table = table.assign(way=names)
    point = differing(table, POINT)
    every = winners(table, point, "way")
    points, most = tally(every, "way")
    winner = _by_pairs(runs, widest(points))
    best, way = winner.best, winner.best["way"]
    run = run_of(runs, best, [*POINT, "sources", "scheduler"])
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean completion time, {time_text(best['p95_s'])} at p95"
    where = at_point(best, point)
    if not len(winner.others):
        return Recommendation(f"{way}{where}: {speed}.", run, "the only scheduler")
    fair = winner.others[winner.others["scheduler"] == BASELINE]
    words = beside(winner, [winner.others.index[0], *fair.index[:1]], "way")
    sentence = (
        f"Recommended: {way}{at_most(most, where)}: {speed}; {words}. It moves no more bytes than they do."
    )
    by = "In these transfers" if best["seeds"] == 1 or same_transfers(best) else "Over these seeds"
    return Recommendation(sentence + alike(winner, by), run, "the least mean completion time")


def _by_pairs(runs: pd.DataFrame, winner: Winner) -> Winner:
    """With those as equals that seeds do not tell apart one by one: all schedulers have the same transfers."""
    replays = runs[runs["mean_s"].notna()]

    def by_seed(row: pd.Series) -> pd.Series:
        names = [*POINT, "sources", "scheduler"]
        like = (replays[names].eq(row[names]) | (replays[names].isna() & row[names].isna())).all(axis=1)
        return replays[like].set_index("seed")["mean_s"].astype(float)

    fastest, equals = by_seed(winner.best), []
    for _, other in winner.others.iterrows():
        apart = (by_seed(other) - fastest).dropna()
        reach = half_width(apart.to_numpy())
        if apart.mean() <= (0.0 if math.isnan(reach) else reach) + _ROUNDING * winner.best["mean_s"]:
            equals.append(str(other["way"]))
    return winner._replace(equals=equals)
