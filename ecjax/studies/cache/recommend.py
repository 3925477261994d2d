"""Which cache policy to take."""

import pandas as pd

from ecjax.studies.cache.tables import REFERENCE
from ecjax.studies.cache.words import POINT, POINT_WORDS, over_seeds
from ecjax.studies.spine.sentences import compared, listed, time_text, with_interval
from ecjax.studies.spine.winners import differing, tally, winners
from ecjax.tables.recommendation import Recommendation

_FAMILIAR = ("lru", "none")


def recommend(runs: pd.DataFrame) -> Recommendation | None:
    """The policy with the least mean latency at most points; None where no replay ended.

    The static optimum knows the reads before they come: it is what others are compared with, and never recommended.

    Args:
        runs: rows of the ``runs`` dataset of one study.
    """
    table = over_seeds(runs[runs["policy"].notna()])
    if table.empty:
        return None
    table = table[table["policy"] != REFERENCE] if (table["policy"] != REFERENCE).any() else table
    point = differing(table, POINT)
    every = winners(table, point, "name")
    name, times = tally(every, "name")
    winner = next(each for each in every if each.best["name"] == name)
    best = winner.best
    run = runs[runs["policy"] == best["policy"]]["run_id"].iloc[0]
    where = ", ".join(f"{POINT_WORDS[column]} {best[column]:g}" for column in point if column != "failed")
    where = f" ({where})" if where else ""
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean, {time_text(best['p99_s'])} at p99"
    if not len(winner.others):
        return Recommendation(f"{name}{where}: {speed}.", run, "the only policy")
    most = f", fastest at {times} of {len(every)} points" if len(every) > 1 else ""
    familiar = winner.others[winner.others["policy"].isin(_FAMILIAR)]
    rows = list(dict.fromkeys([winner.others.index[0], *familiar.index]))[:3]
    words = [
        f"{row['name']} is {compared(row['mean_s'], best['mean_s'], 'faster', 'slower')}"
        for row in winner.others.loc[rows].to_dict("records")
    ]
    hits = (
        f", {best['chunk_hit_ratio']:.0%} of the chunks from the cache"
        if pd.notna(best["chunk_hit_ratio"])
        else ""
    )
    sentence = f"Recommended: policy {name}{most}{where}: {speed}{hits}; {listed(words)}."
    if winner.equals:
        sentence += f" Within its interval {listed(winner.equals)} cannot be told from it."
    return Recommendation(sentence, run, "the least mean latency")
