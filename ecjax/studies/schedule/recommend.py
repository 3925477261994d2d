"""Which scheduler, and which rule for sources, to take."""

import pandas as pd

from ecjax.studies.schedule.summary import over_seeds
from ecjax.studies.schedule.words import BASELINE, POINT
from ecjax.studies.spine.sentences import with_interval
from ecjax.studies.spine.winners import (
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
    winner = widest(points)
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
    return Recommendation(sentence + alike(winner, "Over these seeds"), run, "the least mean completion time")
