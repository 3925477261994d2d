"""What ``ecjax optimize`` says about what would be otherwise: a row per scenario beside the tables as they are."""

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.studies.spine.printed import number, print_table
from ecjax.units import fitting_unit, time_text

AS_IT_IS = "as it is"
_POINT = ("method", "queue", "importance", "class_rate_scale", "k", "d", "theta", "rate_scale", "size_scale")
_COST = "cost_dollars_per_period"


def answers(runs: pd.DataFrame, chosen: str) -> pd.DataFrame:
    """The plans of one point of the sweep, that as it is first, the scenarios in their order.

    Args:
        runs: rows of ``runs`` of a study.
        chosen: run id of the plan as it is.

    Returns:
        Rows of ``runs`` with ``mean``, the expected mean latency or, where any has none, its bound, s; and
        ``times``, that over the one as it is. Both are null where no plan is stable.
    """
    base = runs.set_index("run_id").loc[chosen]
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
    if chosen is None:
        return
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
    columns["status"] = rows["status"].tolist()
    cells = list(zip(*columns.values(), strict=True))
    print_table(
        console, "what if, each planned anew", list(columns), cells, words=("status",), dataset="runs"
    )
    say(console, _sentence(rows))


def _sentence(rows: pd.DataFrame) -> str:
    """The scenarios that help most and hurt most."""
    base, others = rows.iloc[0], rows.iloc[1:]
    solved = others[others["mean"].notna()]
    parts = [f"As it is, reads take {time_text(base['mean'])} on average."]
    unstable = others.loc[others["mean"].isna(), "scenario"].tolist()
    if unstable:
        parts.append(f"No plan is stable with {', '.join(unstable)}.")
    if len(solved):
        best, worst = solved.loc[solved["mean"].idxmin()], solved.loc[solved["mean"].idxmax()]
        if best["times"] < 1:
            parts.append(f"Most is gained by {_answer(best)}.")
        if worst["times"] > 1:
            parts.append(f"Of those with a stable plan {_answer(worst)} costs most.")
    return " ".join(parts)


def _answer(row: pd.Series) -> str:
    return f"{row['scenario']} ({time_text(row['mean'])}, {row['times']:.3g} times)"
