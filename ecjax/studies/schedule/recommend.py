"""Which scheduler, and which rule for sources, to take."""

import pandas as pd

from ecjax.studies.schedule.summary import over_seeds
from ecjax.studies.schedule.words import BASELINE, POINT
from ecjax.studies.spine.sentences import compared, listed, time_text, with_interval
from ecjax.studies.spine.winners import at_point, differing, tally, winners
from ecjax.tables.recommendation import Recommendation


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
    way, times = tally(every, "way")
    winner = next(each for each in every if each.best["way"] == way)
    best = winner.best
    run = runs[(runs["scheduler"] == best["scheduler"]) & (runs["sources"] == best["sources"])][
        "run_id"
    ].iloc[0]
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean completion time, {time_text(best['p95_s'])} at p95"
    where = at_point(best, point)
    if not len(winner.others):
        return Recommendation(f"{way}{where}: {speed}.", run, "the only scheduler")
    most = f", fastest at {times} of {len(every)} points" if len(every) > 1 else ""
    sentence = f"Recommended: {way}{most}{where}: {speed}"
    beside = [winner.others.iloc[0]]
    fair = winner.others[winner.others["scheduler"] == BASELINE]
    beside += [fair.iloc[0]] if len(fair) and fair.iloc[0]["way"] != beside[0]["way"] else []
    words = [
        f"{row['way']} is {compared(row['mean_s'], best['mean_s'], 'faster', 'slower')}" for row in beside
    ]
    sentence += f"; {listed(words)}. It moves no more bytes than they do."
    if winner.equals:
        sentence += f" Over these seeds {listed(winner.equals)} cannot be told from it."
    return Recommendation(sentence, run, "the least mean completion time")
