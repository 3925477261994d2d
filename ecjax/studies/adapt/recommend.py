"""Which strategy of codes a proxy should take."""

import pandas as pd

from ecjax.studies.adapt.tables import BEST_STATIC, STATIC
from ecjax.studies.adapt.words import POINT, basic, over_seeds
from ecjax.studies.spine.sentences import listed, percent_text, with_interval
from ecjax.studies.spine.winners import (
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

_SHOWN = ("load", "rate_scale", "delays")


def recommend(runs: pd.DataFrame) -> Recommendation | None:
    """The strategy with the least mean latency at most loads; None where none keeps up with the requests.

    The run and the numbers are those of the highest load at which it has, in whatever order loads come.

    Args:
        runs: rows of the ``runs`` dataset of one study.
    """
    table = over_seeds(runs)
    if table.empty or table["overloaded"].all():
        return None
    served = table[~table["overloaded"]]
    point = differing(served, POINT)
    every = winners(served, [*POINT], "name")
    points, most = tally(every, "name")
    highest = max(winner.best["load"] for winner in points)
    # the highest load that it wins says most
    winner = widest([winner for winner in points if winner.best["load"] == highest])
    best, name = winner.best, winner.best["name"]
    run = run_of(runs, best, [*POINT, "strategy", *(("n", "k") if best["strategy"] == STATIC else ())])
    where = at_point(best, [each for each in _SHOWN if each in point])
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean, {time_text(best['p99_s'])} at p99"
    if not len(winner.others):
        return Recommendation(f"{name}{where}: {speed}.", run, "the only strategy")
    peers = winner.others[winner.others["strategy"].isin([BEST_STATIC]) | (winner.others["name"] == basic())]
    words = beside(winner, [winner.others.index[0], *peers.index[:2]], "name")
    tasks = f"{best['tasks_per_request']:.3g}"
    sentence = (
        f"Recommended: {name}{at_most(most, where)}: {speed}; {words}. It starts "
        f"{tasks} {'task' if tasks == '1' else 'tasks'} per request"
    )
    if pd.notna(best["capacity_share"]):
        sentence += f" and serves up to {percent_text(best['capacity_share'])} of what {basic()} serves"
    return Recommendation(f"{sentence}.{_overloads(table, name)}", run, "the least mean latency")


def _overloads(table: pd.DataFrame, name: str) -> str:
    """A sentence, after a space, on points of the sweep at which the strategy does not keep up; none without them."""
    late = table[(table["name"] == name) & table["overloaded"]]
    if late.empty:
        return ""
    shown = [each for each in differing(table, POINT) if each in _SHOWN]
    where = listed(at_point(row, shown).removeprefix(" ") for _, row in late.iterrows())
    return f" It does not keep up with the requests {where}."
