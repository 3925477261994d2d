"""What ``ecjax optimize`` says about what would be otherwise: a row per scenario beside the tables as they are."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.status import Status
from ecjax.studies.optimize.what_if_rows import AS_IT_IS
from ecjax.studies.spine.printed import number, print_table
from ecjax.units import fitting_unit, time_text

_POINT = (
    *(
        "method",
        "queue",
        "importance",
        "class_rate_scale",
        "code",
        "k",
        "d",
        "theta",
        "rate_scale",
        "size_scale",
    ),
)
_COST, _MOVED = "cost_dollars_per_period", "moved_chunks"


def answers(runs: pd.DataFrame, chosen: str | None) -> pd.DataFrame:
    """The plans of one point of the sweep, that as it is first, the scenarios in their order.

    Args:
        runs: rows of ``runs`` of a study.
        chosen: run id of the plan as it is; None, where none is stable: that of its first point.

    Returns:
        Rows of ``runs`` with ``mean``, the expected mean latency or, where any has none, its bound, s; and
        ``times``, that over the one as it is. Both are null where no plan is stable.
    """
    base = runs[runs["what_if"].isna()].iloc[0] if chosen is None else runs.set_index("run_id").loc[chosen]
    same = pd.Series(True, runs.index)
    for name in _POINT:
        value = base[name]
        same &= runs[name].isna() if pd.isna(value) else runs[name] == value
    rows = runs[same].copy()
    solved = rows["latency_s"].notna()
    name = "estimated_mean_s" if rows.loc[solved, "estimated_mean_s"].notna().all() else "latency_s"
    rows["mean"] = rows[name].astype(float)
    rows["times"] = rows["mean"] / float(base[name])
    rows["scenario"] = rows["what_if"].fillna(AS_IT_IS)
    return rows.sort_values("what_if", key=lambda column: column.notna(), kind="stable")


def say_answers(runs: pd.DataFrame, chosen: str | None, console: Console) -> None:
    """Print what becomes of latency, cost and load in every scenario, planned for it.

    Args:
        runs: rows of ``runs`` of a study.
        chosen: run id of the plan that is recommended as it is; None: there is none.
        console: where.
    """
    rows = answers(runs, chosen)
    unit = fitting_unit(rows["mean"], rows["estimated_p99_s"])
    columns = {
        "what if": rows["scenario"].tolist(),
        f"mean\n{unit.name}": list(map(unit.cell, rows["mean"])),
        "times": [number(value, ".3g") for value in rows["times"]],
    }
    if rows["estimated_p99_s"].notna().any():
        columns[f"p99\n{unit.name}"] = list(map(unit.cell, rows["estimated_p99_s"]))
    columns["largest\nload"] = [number(value, ".3f") for value in rows["max_load"]]
    columns["cost\n$/period"] = [number(value, ".5g") for value in rows[_COST]]
    if rows[_MOVED].notna().any():
        columns["moved\nchunks"] = [number(value, ".0f") for value in rows[_MOVED]]
    columns["status"] = rows["status"].tolist()
    cells = list(zip(*columns.values(), strict=True))
    print_table(
        console, "what if, each planned anew", list(columns), cells, words=("status",), dataset="what_if"
    )
    say(console, _sentence(rows))


def _sentence(rows: pd.DataFrame) -> str:
    """The scenarios that help most and hurt most."""
    base, others = rows.iloc[0], rows.iloc[1:]
    solved = others[others["mean"].notna()]
    if pd.isna(base["mean"]):
        parts = ["As it is, no plan is stable."]
        if len(solved):
            best = solved.loc[solved["mean"].idxmin()]
            parts.append(f"The best with a stable plan is {best['scenario']} ({time_text(best['mean'])}).")
        return " ".join([*parts, *_without_plans(others)])
    parts = [f"As it is, reads take {time_text(base['mean'])} on average.", *_without_plans(others)]
    if len(solved):
        best, worst = solved.loc[solved["mean"].idxmin()], solved.loc[solved["mean"].idxmax()]
        if best["times"] < 1:
            parts.append(f"Most is gained by {_answer(best)}.")
        if worst["times"] > 1:
            parts.append(f"Of those with a stable plan {_answer(worst)} is slowest.")
    return " ".join(parts)


def _without_plans(others: pd.DataFrame) -> list[str]:
    """Sentences that name the scenarios without a stable plan, apart those in which no placement is allowed."""
    none = others[others["mean"].isna()]
    impossible = none["status"] == str(Status.INFEASIBLE)
    sentences = []
    if not impossible.all():
        sentences.append(f"No plan is stable with {', '.join(none.loc[~impossible, 'scenario'])}.")
    if impossible.any():
        first = none[impossible].iloc[0]
        names = ", ".join(none.loc[impossible, "scenario"])
        sentences.append(f"No placement is allowed with {names} ({first['scenario']}: {first['error']}).")
    return sentences


def _answer(row: pd.Series) -> str:
    return f"{row['scenario']} ({time_text(row['mean'])}, {row['times']:.3g} times)"
