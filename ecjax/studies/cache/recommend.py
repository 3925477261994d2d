"""Which cache policy to take."""

import pandas as pd

from ecjax.studies.cache.tables import BEST, BOUND, REFERENCE
from ecjax.studies.cache.words import POINT, SCHEMES, over_seeds, point_words, replayed, varying
from ecjax.studies.spine.sentences import ROUNDING, percent_text, with_interval
from ecjax.studies.spine.winners import (
    Winner,
    alike,
    at_most,
    beside,
    by_intervals,
    differing,
    run_of,
    tally,
    widest,
    winners,
)
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

_FAMILIAR = ("lru", "none")


def recommend(runs: pd.DataFrame) -> Recommendation | None:
    """The policy with the least mean latency at most points; None where no replay ended.

    The static optimum, Belady's algorithm and static SampleX know the reads, or how popular items will be, before they
    come: what others are compared with, and never recommended.

    Args:
        runs: rows of the ``runs`` dataset of one study.
    """
    table = over_seeds(runs[runs["policy"].notna()])
    if table.empty:
        return None
    possible = ~table["policy"].isin((REFERENCE, BOUND, "samplex_static"))
    table = table[possible] if possible.any() else table
    point = differing(table, POINT)
    every = winners(table, point, "name")
    points, most = tally(every, "name")
    # all is up most of the time; numbers of another state name it
    winner = widest([each for each in points if pd.isna(each.best["failed"])] or points)
    best, name = winner.best, winner.best["name"]
    run = run_of(replayed(runs), best, [*POINT, "neighbour_s", "name"])
    where = ", ".join(point_words(column, best[column]) for column in point if column != "failed")
    where = f" at {where}" if where else ""
    if "failed" in point or pd.notna(best["failed"]):
        where += f" with {point_words('failed', best['failed'])}"
    speed = f"{with_interval(best['mean_s'], best['ci_s'])} mean, {time_text(best['p99_s'])} at p99"
    if not len(winner.others):
        return Recommendation(f"{name}{where}: {speed}.", run, "the only policy")
    familiar = winner.others[winner.others["policy"].isin(_FAMILIAR)]
    words = beside(winner, [winner.others.index[0], *familiar.index[:2]], "name")
    hits = (
        f", {percent_text(best['chunk_hit_ratio'])} of the chunks from the cache"
        if pd.notna(best["chunk_hit_ratio"])
        else ""
    )
    sentence = f"Recommended: policy {name}{at_most(most, where)}: {speed}{hits}; {words}."
    sentence += alike(winner, by_intervals(winner)) + _failing(winner)
    return Recommendation(sentence, run, "the least mean latency")


def _failing(winner: Winner) -> str:
    """A sentence where policies fail different numbers of reads, which their means leave out; else empty."""
    failed, others = winner.best["failed_reads"], winner.others["failed_reads"]
    least, most = others.min(), others.max()
    if least == most == failed:
        return ""
    with_others = f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
    return (
        f" Means are of reads that did not fail: {failed:,.0f} failed with it, {with_others} with the others."
    )


def _above(ratio: float) -> str:
    return f"{percent_text(ratio)} above" if ratio > ROUNDING else "as good as"


def recommend_sampling(runs: pd.DataFrame) -> Recommendation | None:
    """The way to sample partitions that comes closest to the best plan at most points, in the mean over seeds.

    Numbers are those of the point where it is farthest from the best, with what exactness costs. None without a way.

    Args:
        runs: rows of the ``runs`` dataset of a study of sampling.
    """
    sampled = runs[runs["samples"].notna() & runs["above_optimum"].notna()]
    if sampled.empty:
        return None
    seeds = sampled.groupby([*POINT, "scheme", "samples"], sort=False, dropna=False)
    means = seeds.agg({"above_optimum": "mean", "solve_s": "mean", "run_id": "first"}).reset_index()
    points = means.groupby(list(POINT), dropna=False)
    least = points["above_optimum"].transform("min")
    ways = means[means["above_optimum"] <= least + ROUNDING].groupby(["scheme", "samples"], sort=False)
    count = ways.size()
    # of ways that are closest at equally many points the one that is least above the best at all of them
    everywhere = means.groupby(["scheme", "samples"], sort=False)["above_optimum"].mean()
    scheme, samples = everywhere[count.index[count == count.max()]].idxmin()
    closest = ways.get_group((scheme, samples))
    best = closest.loc[closest["above_optimum"].idxmax()]  # where it is farthest from the best plan
    most = f", closest at {len(closest)} of {points.ngroups} points" if points.ngroups > 1 else ""
    where = ", ".join(point_words(name, best[name]) for name in varying(runs))
    where = f" at {where}" if where else ""
    sentence = (
        f"Recommended: {SCHEMES[scheme]} of {samples:.0f} partitions{at_most(most, where)}: "
        f"{_above(best['above_optimum'])} the best plan, found in {time_text(best['solve_s'])}"
    )
    place = runs.groupby(list(POINT), dropna=False).ngroup()
    here = place == place[runs["run_id"] == best["run_id"]].iloc[0]
    exact = runs[here & (runs["scheme"] == BEST)]
    if len(exact):
        sentence += f"; exact finds the best in {time_text(exact['solve_s'].mean())}"
    return Recommendation(sentence + ".", str(best["run_id"]), "the closest to the best plan")
