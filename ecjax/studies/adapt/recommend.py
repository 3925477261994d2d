"""Which strategy of codes a proxy should take."""

import pandas as pd

from ecjax.studies.adapt.tables import BEST_STATIC
from ecjax.studies.adapt.words import POINT, basic, over_seeds
from ecjax.studies.spine.sentences import compared, listed, time_text, with_interval
from ecjax.studies.spine.winners import at_point, differing, tally, winners
from ecjax.tables.recommendation import Recommendation


def recommend(runs: pd.DataFrame) -> Recommendation | None:
    """The strategy with the least mean latency at most loads; None where none keeps up with the requests.

    Args:
        runs: rows of the ``runs`` dataset of one study.
    """
    table = over_seeds(runs)
    if table.empty or table["overloaded"].all():
        return None
    served = table[~table["overloaded"]]
    point = differing(served, POINT)
    every = winners(served, [*POINT], "name")
    name, times = tally(every, "name")
    # the highest load that it wins says most
    winner = [each for each in every if each.best["name"] == name][-1]
    best = winner.best
    run = runs[runs["strategy"] == best["strategy"]]["run_id"].iloc[0]
    where = at_point(best, [each for each in ("load", "rate_scale", "delays") if each in point])
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean, {time_text(best['p99_s'])} at p99"
    if not len(winner.others):
        return Recommendation(f"{name}{where}: {speed}.", run, "the only strategy")
    most = f", fastest at {times} of {len(every)} points" if len(every) > 1 else ""
    beside = winner.others[winner.others["strategy"].isin([BEST_STATIC]) | (winner.others["name"] == basic())]
    rows = list(dict.fromkeys([winner.others.index[0], *beside.index]))[:3]
    words = [
        f"{row['name']} is {compared(row['mean_s'], best['mean_s'], 'faster', 'slower')}"
        for row in winner.others.loc[rows].to_dict("records")
    ]
    sentence = f"Recommended: {name}{most}{where}: {speed}; {listed(words)}. It starts {best['tasks_per_request']:.3g} "
    sentence += "tasks per request"
    if pd.notna(best["capacity_share"]):
        sentence += f" and serves up to {best['capacity_share']:.0%} of what {basic()} serves"
    return Recommendation(sentence + ".", run, "the least mean latency")
