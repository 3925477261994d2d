"""Which cache policy to take."""

import pandas as pd

from ecjax.studies.cache.tables import REFERENCE
from ecjax.studies.cache.words import POINT, POINT_WORDS, over_seeds, replayed
from ecjax.studies.spine.sentences import listed, with_interval
from ecjax.studies.spine.winners import beside, differing, run_of, tally, winners
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

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
    points, most = tally(every, "name")
    winner = points[0]
    best, name = winner.best, winner.best["name"]
    run = run_of(replayed(runs), best, [*POINT, "neighbour_s", "name"])
    where = ", ".join(f"{POINT_WORDS[column]} {best[column]:g}" for column in point if column != "failed")
    where = f" ({where})" if where else ""
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean, {time_text(best['p99_s'])} at p99"
    if not len(winner.others):
        return Recommendation(f"{name}{where}: {speed}.", run, "the only policy")
    familiar = winner.others[winner.others["policy"].isin(_FAMILIAR)]
    words = beside(winner, [winner.others.index[0], *familiar.index[:2]], "name")
    hits = (
        f", {best['chunk_hit_ratio']:.0%} of the chunks from the cache"
        if pd.notna(best["chunk_hit_ratio"])
        else ""
    )
    sentence = f"Recommended: policy {name}{most}{where}: {speed}{hits}; {words}."
    if winner.equals:
        sentence += f" Within its interval {listed(winner.equals)} cannot be told from it."
    return Recommendation(sentence, run, "the least mean latency")
