"""Two plans, or two replays, beside each other: what they cost, how fast they are, and what it takes to change over."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from ecjax.errors import UserError
from ecjax.studies.spine import sentences
from ecjax.tables.datasets import written_by
from ecjax.tables.folder import location
from ecjax.tables.recommendation import read_recommendation
from ecjax.tables.results import find_run, read_run
from ecjax.units import fitting_unit, plain

_COST = "cost_dollars_per_period"
_DOLLARS = "dollars per period"


class Quantity(NamedTuple):
    """What two runs are compared by.

    Attributes:
        name: in words.
        column: of ``runs``.
        margin: column with the half width of its 95 % interval.
    """

    name: str
    column: str
    margin: str = ""


QUANTITIES = {
    "optimize": (
        Quantity(_DOLLARS, _COST),
        Quantity("mean latency, bound (s)", "latency_s"),
        Quantity("mean latency, estimate (s)", "estimated_mean_s"),
        Quantity("p99 latency, estimate (s)", "estimated_p99_s"),
        Quantity("mean latency, the log's arrivals (s)", "trace_estimated_mean_s"),
        Quantity("p99 latency, the log's arrivals (s)", "trace_estimated_p99_s"),
        Quantity("worst failure, bound (s)", "worst_scenario_latency_s"),
        Quantity("largest load", "max_load"),
        Quantity("mean code length", "mean_n"),
        Quantity("files without redundancy", "files_without_redundancy"),
    ),
    "replay": (
        Quantity(_DOLLARS, _COST),
        Quantity("mean latency, replayed (s)", "mean_s", "ci_s"),
        Quantity("mean latency, estimate (s)", "estimated_mean_s"),
        Quantity("mean latency, bound (s)", "latency_s"),
        Quantity("p50 latency, replayed (s)", "p50_s"),
        Quantity("p99 latency, replayed (s)", "p99_s"),
        Quantity("p99 latency, estimate (s)", "estimated_p99_s"),
        Quantity("p99 latency, bound (s)", "promised_p99_s"),
        Quantity("largest load", "max_load"),
        Quantity("largest utilisation", "max_utilisation"),
    ),
}
# of the sentence, with its name there
_LATENCY = {
    "optimize": (QUANTITIES["optimize"][1], "mean latency bound"),
    "replay": (QUANTITIES["replay"][1], "replayed mean latency"),
}


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Attributes:
        out: folder of its results.
        job: that made it.
        run: its row of ``runs``.
    """

    out: str
    job: str
    run: dict[str, Any]

    def value(self, column: str) -> float:
        """A number of its row, of dollars per period those that are not paid once; nan where it has none."""
        value = self.run.get(column)
        if value is None:
            return math.nan
        return float(value) - (self.moving_dollars if column == _COST else 0.0)

    @property
    def moving_dollars(self) -> float:
        """What its plan pays once, for chunks that move."""
        value = self.run.get("moving_dollars")
        return 0.0 if value is None or math.isnan(value) else float(value)

    @property
    def latency_by_class(self) -> dict[str, float]:
        """Bound on the mean latency of each service class, of a plan for queues by class; else empty."""
        text = self.run.get("class_latency_s")
        return dict(json.loads(text)) if text else {}

    def chunks(self) -> pd.Series | None:
        """Chunks by file or group, and node, of all files of a group; None where its results hold no placement."""
        run = self.run["run_id"] if self.job == "optimize" else self.run["plan_run"]
        folder = location(self.out) if self.job == "optimize" else location(self.out) / "planning"
        if run is None or not folder.is_dir():
            return None
        try:
            table = read_run(folder, "placements", run).to_pandas()
            if table["group"].notna().any():
                groups = read_run(folder, "group_plans", run).to_pandas().set_index("group")["file_count"]
                table["chunks"] *= table["group"].map(groups).fillna(1).astype(int)
        except UserError:
            return None
        keys = [table[name].astype("string").fillna("") for name in ("file_id", "group", "node_id")]
        return table["chunks"].groupby(keys).sum()


def side_of(text: str, where: str | None) -> Side:
    """The run that a word of the command names.

    Args:
        text: ``OUT``, ``OUT:RUN_ID`` or ``OUT:column=value,...``.
        where: ``column=value,...`` that holds too.

    Raises:
        UserError: there is no such folder, or no or several of its runs fit.
    """
    out, run_id, conditions = text, None, where
    if not location(text).is_dir():
        out, _, selector = text.rpartition(":")
        if not out or not location(out).is_dir():
            raise UserError(f"compare: {text}: no such folder; allowed: OUT, OUT:RUN_ID or OUT:column=value")
        if "=" in selector:
            conditions = ",".join(filter(None, (selector, where)))
        else:
            run_id = selector
    job = written_by(location(out))
    if job not in QUANTITIES:
        raise UserError(
            f"compare: {out} holds results of {job or 'no job'}; allowed: {', '.join(QUANTITIES)}"
        )
    if run_id is None and conditions is None:
        recommended = read_recommendation(location(out))
        run_id = None if recommended is None else recommended.run_id
    try:
        return Side(out, job, find_run(out, run_id, conditions, job))
    except UserError as error:
        message = str(error).replace(f"plan={out}:", f"compare: {out}:")
        message = message.replace("plan_run=RUN_ID", f"{out}:RUN_ID").replace(
            "plan_where;", f"{out}:column=value;"
        )
        raise UserError(message.replace("plan_run=", "run_id=").replace("plan_where", "where")) from None


def compared(one: Side, other: Side) -> list[tuple[str, float, float]]:
    """What both have a number for: name, number of one, number of the other.

    Raises:
        UserError: they are runs of different jobs.
    """
    if one.job != other.job:
        raise UserError(
            f"compare: found {one.out} of ecjax {one.job} and {other.out} of ecjax {other.job}; allowed: two of one job"
        )
    rows = [
        (quantity.name, one.value(quantity.column), other.value(quantity.column))
        for quantity in QUANTITIES[one.job]
    ]
    classes, others = one.latency_by_class, other.latency_by_class
    rows += [
        (f"mean latency of {name}, bound (s)", classes[name], others[name])
        for name in classes
        if name in others
    ]
    return [row for row in rows if not any(map(math.isnan, row[1:]))]


def moved_chunks(one: Side, other: Side) -> tuple[int, int] | None:
    """Chunks that the other keeps where the one has none, of files that both place, and all of those.

    Returns:
        None where a placement is not known, or there are no such files.
    """
    before, after = one.chunks(), other.chunks()
    if before is None or after is None:
        return None
    levels = [0, 1]
    placed = before.groupby(level=levels).sum().index.intersection(after.groupby(level=levels).sum().index)
    both = after[after.index.droplevel(2).isin(placed)]
    if not both.sum():
        return None
    moved = (both - before.reindex(both.index, fill_value=0)).clip(lower=0)
    return int(moved.sum()), int(both.sum())


def sentence(one: Side, other: Side) -> str:
    """How the other differs from one, in a sentence."""
    parts = []
    dollars = one.value(_COST), other.value(_COST)
    if not any(map(math.isnan, dollars)):
        once = f", and ${other.moving_dollars:.4g} once to move chunks" if other.moving_dollars else ""
        parts.append(f"costs {_change(*dollars, 'less', 'more', '$')}{once}")
    quantity, name = _LATENCY[one.job]
    latency = one.value(quantity.column), other.value(quantity.column)
    if not any(map(math.isnan, latency)):
        text = f"has a {name} that is {_change(*latency, 'shorter', 'longer', 's')}"
        margins = [side.value(quantity.margin) for side in (one, other)] if quantity.margin else []
        if margins and abs(latency[1] - latency[0]) <= math.hypot(*margins):
            text += ", within what chance explains"
        parts.append(text)
    moved = moved_chunks(one, other)
    if moved is not None:
        place = (
            f"{moved[0]} of {moved[1]} chunks where A has none" if moved[0] else "all chunks where A has them"
        )
        parts.append(f"keeps {place}")
    text = f"B {_joined(parts)}." if parts else "A and B have no number in common."
    if one.run["input_id"] != other.run["input_id"]:
        text = text[:-1] + "; they are for different nodes or files."
    return text


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _change(before: float, after: float, less: str, more: str, unit: str) -> str:
    """A change in words: ``12 % less ($3.1 instead of $3.5)``."""
    if unit == "$":
        shown = [f"${value:.4g}" for value in (before, after)]
    else:
        fitting = fitting_unit((before, after))
        shown = [f"{plain(value / fitting.seconds)} {fitting.name}" for value in (before, after)]
    if shown[0] == shown[1]:
        return f"the same ({shown[0]})"
    word = less if after < before else more
    share = (
        f"{sentences.compared(after, before, less, more)} "
        if before and math.isfinite(before)
        else f"{word} "
    )
    return f"{share}({shown[1]} instead of {shown[0]})"
