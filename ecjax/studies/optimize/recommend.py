"""Which of the plans to take: the knee of cost and latency, or the one that keeps what options ask for."""

from dataclasses import replace

import pandas as pd

from ecjax.status import Status
from ecjax.studies.optimize.moment_words import misses_the_log
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.sentences import compared, dollars_text, word
from ecjax.studies.spine.winners import differing
from ecjax.tables.recommendation import Recommendation
from ecjax.units import count_text, time_text

_BUSY = 0.9
_COST = "cost_dollars_per_period"
_LIMITS = ("max_latency_s", "max_p99_s", "budget")
_CHOICES = ("method", "queue", "importance", "code", "k", "d", "theta")  # columns that a user chooses by
_DEMAND = (
    "rate_scale",
    "size_scale",
    "class_rate_scale",
)  # what is asked of the cluster; plans of one are compared


def recommend(runs: pd.DataFrame, options: OptimizeOptions) -> Recommendation | None:
    """The plan to take, in words; None where no plan is finished.

    Among the plans that keep ``max_latency_s``, ``max_p99_s`` and ``budget``: the cheapest where a latency is asked
    for, the fastest where only a budget is. Without any of these the knee: of the plans that no other beats in both,
    the one of least cost times latency. There a per cent of latency costs a per cent of dollars; cheaper plans are
    slower by more than they save.

    Args:
        runs: rows of the ``runs`` dataset of one study.
        options: of the study.
    """
    if "what_if" in runs:
        runs = runs[runs["what_if"].isna()]
    plans = runs[runs["status"].map(lambda status: Status(status).finished) & runs["latency_s"].notna()]
    if plans.empty:
        return None
    plans, demand = _of_one_demand(plans)
    plans = plans.assign(mean=_latency(plans))
    keeping = plans[_keeps(plans, options)]
    limits = _limits(options)
    if keeping.empty:
        unknown = options.max_p99_s is not None and plans[_p99_column(plans)].isna().all()
        if unknown:
            return Recommendation(
                f"No plan of {len(plans)} has an expected p99{demand}, so that none is known to keep {limits}."
            )
        return Recommendation(f"No plan of {len(plans)} keeps {limits}{demand}: {_nearest(plans, options)}")
    front = _front(plans)
    by_cost = options.max_latency_s is not None or options.max_p99_s is not None
    if by_cost:
        chosen, among = keeping.sort_values([_COST, "mean"]).iloc[0], f"the cheapest that keeps {limits}"
    elif options.budget is not None:
        chosen, among = keeping.sort_values(["mean", _COST]).iloc[0], f"the fastest that keeps {limits}"
    else:
        chosen, among = _knee(front), "the knee"
    count = len(plans.drop_duplicates([_COST, "mean"]))
    several = f", {among} of {count} plans" if count > 1 else ""
    sentence = f"Recommended{demand}: {_name(chosen, plans)}{several}: {_speed(chosen)}; {_cost(chosen)}."
    if options.migration_dollars_per_byte > 0:
        sentence += " Dollars include those of moving chunks, which are paid once."
    sentence += _durable(chosen) + _beside(chosen, front) + _busy(chosen)
    dataset = "placement_masks" if options.stream else "placements"
    if options.write is None or dataset in options.write:
        sentence += f" Where every chunk goes: {options.out}/{dataset}."
        if not options.stream:
            sentence += f" Next: ecjax replay plan={word(options.out)}"
    return Recommendation(sentence, chosen["run_id"], among)


def _of_one_demand(plans: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The plans for the demand that is nearest to what the tables say, and words for it where there are several."""
    keys = differing(plans, _DEMAND)
    if not keys:
        return plans, ""
    groups = [group for _, group in plans.groupby(keys, sort=False, dropna=False)]

    def away(group: pd.DataFrame) -> float:
        return sum(abs(group[name].iloc[0] - 1.0) for name in keys if name != "class_rate_scale")

    nearest = min(groups, key=away)
    words = ", ".join(f"{name}={_short(nearest[name].iloc[0])}" for name in keys)
    return nearest, f" at {words}"


def _latency(plans: pd.DataFrame) -> pd.Series:
    """Expected mean latencies where all plans have them, otherwise what they were planned by, s: waits or bounds."""
    for name in ("trace_estimated_mean_s", "estimated_mean_s", "trace_wait_s"):
        if name in plans and plans[name].notna().all():
            return plans[name]
    return plans["latency_s"]


def _keeps(plans: pd.DataFrame, options: OptimizeOptions) -> pd.Series:
    keeps = pd.Series(True, plans.index)
    bounds = (
        ("mean", options.max_latency_s),
        (_p99_column(plans), options.max_p99_s),
        (_COST, options.budget),
    )
    for name, limit in bounds:
        if limit is not None:
            keeps &= plans[name].astype(float) <= limit
    return keeps


def _p99_column(plans: pd.DataFrame) -> str:
    name = "trace_estimated_p99_s"
    return name if name in plans and plans[name].notna().all() else "estimated_p99_s"


def _limits(options: OptimizeOptions) -> str:
    return " and ".join(
        f"{name}={getattr(options, name):g}" for name in _LIMITS if getattr(options, name) is not None
    )


def _nearest(plans: pd.DataFrame, options: OptimizeOptions) -> str:
    """The plan that comes nearest to limits that none keeps, and what would help.

    Where no plan is fast enough, the fastest; where some are but none of these keeps the budget, the cheapest of them.
    """
    by_latency = replace(options, budget=None)
    fast = plans[_keeps(plans, by_latency)]
    if fast.empty:
        speed = "mean" if options.max_latency_s is not None else _p99_column(plans)
        nearest, name = plans.loc[plans[speed].astype(float).idxmin()], "the fastest"
        helps = ["more or faster nodes", "a lower rate"]
        affordable = options.budget is None or nearest[_COST] <= options.budget
        if affordable and nearest[_COST] > 0 and 0 < nearest["theta"] == plans["theta"].min():
            helps.insert(0, f"a smaller theta than {nearest['theta']:g}")
    else:
        limits = _limits(by_latency)
        nearest = fast.sort_values([_COST, "mean"]).iloc[0]
        name = f"the cheapest that keeps {limits}" if limits else "the cheapest"
        helps = ["a larger budget", "cheaper nodes"]
        if nearest["theta"] == plans["theta"].max():
            helps.insert(0, f"a larger theta than {nearest['theta']:g}")
    *others, last = helps
    return f"{name} has {_speed(nearest)}; {_cost(nearest)}. Next: {', '.join(others)}, or {last}."


def _front(plans: pd.DataFrame) -> pd.DataFrame:
    """The plans that no other beats in cost and latency, the cheapest first; equal ones once."""
    rising = plans.sort_values([_COST, "mean"], kind="stable")
    best = rising["mean"].cummin().shift(fill_value=float("inf"))
    return rising[rising["mean"] < best * (1 - 1e-9)]


def _knee(front: pd.DataFrame) -> pd.Series:
    return front.loc[(front[_COST] * front["mean"]).idxmin()] if front[_COST].min() > 0 else front.iloc[-1]


def _name(chosen: pd.Series, plans: pd.DataFrame) -> str:
    """The columns that tell the plan from the others."""
    names = differing(plans, _CHOICES) or ["theta"]
    if "code" in names and "k" in names:
        names.remove("k")  # a code has it
    return ", ".join(f"{name}={_short(chosen[name])}" for name in names)


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _speed(plan: pd.Series) -> str:
    """What the plan delivers, and under which assumption."""
    if pd.notna(plan.get("trace_estimated_mean_s")) or pd.notna(plan.get("trace_wait_s")):
        return _speed_by_log(plan)
    bound = f"mean at most {time_text(plan['latency_s'])}"
    missed = " by laws that miss the services measured" if misses_the_log(plan) else ""
    if pd.isna(plan["estimated_mean_s"]):
        return f"{bound}{missed}, Poisson arrivals"
    bound = f"{bound}{missed}" if missed else f"proven: {bound}"
    return f"{_expected(plan, 'estimated')} ({bound}), Poisson arrivals"


def _speed_by_log(plan: pd.Series) -> str:
    """The same under the arrivals of a log."""
    parts = []
    if pd.notna(plan.get("trace_estimated_mean_s")):
        parts.append(f"{_expected(plan, 'trace_estimated')} under the log's own arrivals")
        if pd.notna(plan["estimated_mean_s"]):
            parts.append(
                f"{time_text(plan['estimated_mean_s'])} if they were Poisson at the rates of the plan"
            )
    if pd.notna(plan.get("trace_wait_s")):
        parts.append(f"chunks wait {time_text(plan['trace_wait_s'])} on average under the log's own arrivals")
    return ", ".join(parts)


def _expected(plan: pd.Series, kind: str) -> str:
    """Mean and 99 % quantile by the columns of one kind."""
    mean, p99 = plan[f"{kind}_mean_s"], plan[f"{kind}_p99_s"]
    return f"expected mean {time_text(mean)}" + ("" if pd.isna(p99) else f", p99 {time_text(p99)}")


def _cost(plan: pd.Series) -> str:
    price = f"{dollars_text(plan[_COST])} per period"
    if not plan[_COST] > 0:
        price += " (nothing that it uses has a price)"
    bare = (
        f", {count_text(plan['files_without_redundancy'], 'file')} without redundancy"
        if plan["files_without_redundancy"]
        else ""
    )
    return f"{price}, {plan['mean_n']:.3g} chunks per file{bare}"


def _durable(chosen: pd.Series) -> str:
    """The nines that the plan's floors keep, where some are asked for."""
    nines = chosen.get("floor_nines")
    return "" if nines is None or pd.isna(nines) else f" Every file has {nines:.1f} nines a year, or more."


def _beside(chosen: pd.Series, front: pd.DataFrame) -> str:
    """The cheapest and the fastest plan beside the chosen one."""
    parts = []
    for name, other in (("cheapest", front.iloc[0]), ("fastest", front.iloc[-1])):
        if other["run_id"] != chosen["run_id"] and chosen[_COST] > 0:
            cost = compared(other[_COST], chosen[_COST], "cheaper", "dearer")
            speed = compared(other["mean"], chosen["mean"], "faster", "slower")
            parts.append(f"the {name} is {speed} and {cost}")
    return f" {'; '.join(parts).capitalize()}." if parts else ""


def _busy(chosen: pd.Series) -> str:
    load = chosen["max_load"]
    if not load > _BUSY:
        return ""
    return f" Its busiest node is at load {load:.2f}: there, small errors in rates are large ones in latency."
