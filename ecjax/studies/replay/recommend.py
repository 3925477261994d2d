"""Which policy of reads to take, by what the replays delivered."""

import pandas as pd

from ecjax.status import Status
from ecjax.studies.replay.assumptions import beside_arrivals, broken
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.spine.logs import options_in_command
from ecjax.studies.spine.sentences import compared, dollars_text, listed, percent_text, with_interval, word
from ecjax.studies.spine.winners import (
    Winner,
    alike,
    at_most,
    at_point,
    by_intervals,
    differing,
    tally,
    winners,
)
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

_ALIKE = 0.03  # 99 % quantiles of replays that differ by less say nothing
_PLANNED = "probabilistic"  # reads as the plan says
_DEMAND = ("service", "arrivals", "rate_scale", "size_scale", "slow")
_POINT = ("plan_run", "method", "theta", "importance", "class_rate_scale", "queue", *_DEMAND)
_SHOWN = ("method", "theta", "queue", "service", "rate_scale", "size_scale", "slow")


def recommend(runs: pd.DataFrame, options: ReplayOptions) -> Recommendation | None:
    """The policy that read fastest, or how well a log was predicted; None where no replay ended.

    Args:
        runs: rows of the ``runs`` dataset of one study.
        options: of the study.
    """
    ended = runs[runs["mean_s"].notna() & (runs["status"] == str(Status.OK))]
    if ended.empty:
        return None
    if options.predicts_log:
        return _prediction(ended, options)
    point = differing(ended, [name for name in _POINT if name in ended])
    every = winners(ended, point, "policy")
    shown = [name for name in point if name in _SHOWN]
    points, most = tally(every, "policy")
    winner = points[0]
    best, policy = winner.best, winner.best["policy"]
    planned = next((row for _, row in winner.others.iterrows() if row["policy"] == _PLANNED), best)
    if _PLANNED in winner.equals and planned["p99_s"] <= best["p99_s"] * (1 + _ALIKE):
        where = at_point(planned, shown)
        sentence = f"Recommended: policy={_PLANNED}, the plan's own reads{where}: {_speed(planned)}{_storage(planned)}."
        beyond = "beyond the intervals" if winner.known else "as far as too few reads for intervals tell"
        sentence += f" No other policy is faster {beyond}."
        return Recommendation(sentence, planned["run_id"], "the plan's own reads")
    where = at_point(best, shown)
    speed = _speed(best)
    if not len(winner.others):
        sentence = f"Reads by {policy}{where} take {speed}{_storage(best)}.{_bound(best)}"
        return Recommendation(sentence, best["run_id"], "the only policy")
    sentence = (
        f"Recommended: policy={policy}{at_most(most, where)}: {speed}{_beside(winner)}{_storage(best)}."
    )
    sentence += alike(winner, by_intervals(winner))
    return Recommendation(sentence + _bound(best), best["run_id"], "the fastest policy")


def _prediction(ended: pd.DataFrame, options: ReplayOptions) -> Recommendation:
    """The service law that came closest to what was observed, and what to do with it."""
    off = (_predicted_mean(ended) / ended["observed_mean_s"] - 1).abs().sort_values(kind="stable")
    best = ended.loc[off.index[0]]
    others = [
        f"service={ended['service'][place]} is off by {percent_text(off[place])}" for place in off.index[1:]
    ]
    closest = f" That is the closest; {listed(others)} in the mean." if others else ""
    sentence = (
        f"The second half of the log, by service={best['service']} of its first half: {best['prediction']}.{closest} "
        f"Next, for plans by such laws: ecjax analyze {word(options.trace)}{options_in_command(options)}"
    )
    return Recommendation(
        sentence, best["run_id"], "the closest prediction" if others else "the only prediction"
    )


def _predicted_mean(runs: pd.DataFrame) -> pd.Series:
    """Means, s, that the predictions in words begin with: by the first half's arrivals, else by the replay; (n,)."""
    replayed = runs["mean_s"].astype(float)
    if "trace_estimated_mean_s" not in runs:
        return replayed
    return runs["trace_estimated_mean_s"].astype(float).fillna(replayed)


def _speed(run: pd.Series) -> str:
    return f"{with_interval(run['mean_s'], run['ci_s'])} mean, {time_text(run['p99_s'])} at p99"


def _beside(winner: Winner) -> str:
    """The policy of the plan, else the next one, beside the best."""
    others = winner.others
    planned = others[others["policy"] == _PLANNED]
    other = (planned if len(planned) else others).iloc[0]
    name = f"{other['policy']} (the plan's own)" if other["policy"] == _PLANNED else other["policy"]
    text = f"; {name} is {compared(other['mean_s'], winner.best['mean_s'], 'faster', 'slower')} in the mean"
    text += f" and {compared(other['p99_s'], winner.best['p99_s'], 'faster', 'slower')} at p99"
    busy, usual = winner.best["max_utilisation"], other["max_utilisation"]
    if pd.notna(busy) and pd.notna(usual) and abs(busy - usual) > 0.02 * usual:
        text += f", its busiest node {compared(usual, busy, 'less busy', 'busier')}"
    return text


def _storage(best: pd.Series) -> str:
    """What the plan costs, in words: per period, and once for chunks that move."""
    cost, moving = best["cost_dollars_per_period"], best.get("moving_dollars")
    if pd.isna(cost) or cost <= 0:
        return ""
    if pd.isna(moving) or moving <= 0:
        return f"; the plan costs {dollars_text(cost)} per period"
    return f"; the plan costs {dollars_text(cost - moving)} per period, and {dollars_text(moving)} once to move chunks"


def _bound(best: pd.Series) -> str:
    """Whether the bound held, where it is one of these arrivals."""
    bound = best["latency_s"]
    if pd.isna(bound):
        return ""
    run = best.to_frame().T
    words, others = broken(run), beside_arrivals(run)
    if words and pd.notna(best.get("trace_estimated_mean_s")):
        # the estimate under the arrivals as they come holds, but for what is not about arrivals
        without = f" The other estimate is without this, too: {', '.join(others)}." if others else ""
        return f" Bound and estimate of the mean rates are void: {', '.join(words)}.{without}"
    if words:
        return f" Bound and estimate are void: {', '.join(words)}."
    return f" The bound on its mean is {time_text(bound)}."
