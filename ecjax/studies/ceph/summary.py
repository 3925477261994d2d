"""What ``ecjax ceph`` prints at its end: a line per plan, its batches, and what is doubtful in the dumps."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from ecjax.console import say
from ecjax.studies.ceph.stored import rows_of
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.tables.folder import location
from ecjax.units import count_text, fitting_unit

_GB = 1e9


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the plans of a study, what of the dumps is missing or doubtful, and what made plans fail.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    planned = runs[runs["group_count"].notna()]
    if planned.empty:
        say(console, f"ceph: {count_text(len(runs), 'run')} in {out}")
    else:
        _show_plans(planned, console, out)
        for note in dict.fromkeys(line for text in planned["notes"].dropna() for line in text.splitlines()):
            say(console, f"note: {note}", "dim")
        _show_scenarios(planned, console, location(out))
    print_errors(runs, console)


def _show_plans(runs: pd.DataFrame, console: Console, out: str) -> None:
    """A line per plan."""
    times = ["estimated_mean_before_s", "estimated_mean_s", "estimated_p99_before_s", "estimated_p99_s"]
    timed = runs["estimated_mean_s"].notna().any()
    unit = fitting_unit(*(runs[name] for name in times)) if timed else None
    rows = []
    for run in runs.to_dict("records"):
        cells = [
            number(run["within"], "g"),
            f"{number(run['max_over_mean_before'], '.3f')} -> {number(run['max_over_mean'], '.3f')}",
            number(run["lower_bound"], ".3f"),
            number(run["changed_groups"], ".0f"),
            number(run["moved_chunks"], ".0f"),
            number(run["least_moved_chunks"], ".0f"),
            number(run["moved_bytes"] / _GB, ".4g"),
            number(run["batch_count"], ".0f"),
        ]
        if unit is not None:
            cells += [
                f"{unit.cell(run['estimated_mean_before_s'], 3)} -> {unit.cell(run['estimated_mean_s'], 3)}",
                f"{unit.cell(run['estimated_p99_before_s'], 3)} -> {unit.cell(run['estimated_p99_s'], 3)}",
            ]
        rows.append(cells)
    first = runs.iloc[0]
    print_table(
        console,
        f"ceph: {count_text(first['group_count'], 'group')} of {count_text(first['pool_count'], 'pool')} on "
        f"{count_text(first['osd_count'], 'OSD')}; results in "
        f"{out}",
        [
            *("within", "busiest OSD\n/ mean load", "least\npossible", "groups", "shards\ncopied"),
            *("least\npossible shards", "GB", "batches"),
            *([] if unit is None else [f"mean {unit.name}", f"p99 {unit.name}"]),
        ],
        rows,
        least=("GB", "least\npossible shards", "batches"),
        dataset="runs",
    )


def _show_scenarios(runs: pd.DataFrame, console: Console, out: Path) -> None:
    """The what-ifs of the first plan."""
    table = rows_of(out, "scenarios", runs["run_id"].iloc[0])
    if table.empty:
        return
    timed = table["estimated_mean_s"].notna().any()
    unit = fitting_unit(table["estimated_mean_s"], table["estimated_p99_s"]) if timed else None
    rows = [
        [
            row["scenario"],
            row["placement"],
            number(row["max_over_mean"], ".3f"),
            number(row["load_ratio"], ".3f"),
            *([] if unit is None else [unit.cell(row[f"estimated_{name}_s"], 3) for name in ("mean", "p99")]),
            number(row["unavailable_share"], ".2%"),
        ]
        for row in table.to_dict("records")
    ]
    print_table(
        console,
        "what if",
        [
            *("scenario", "placement", "busiest OSD\n/ mean load", "busiest OSD\n/ as it is"),
            *([] if unit is None else [f"mean {unit.name}", f"p99 {unit.name}"]),
            "not served",
        ],
        rows,
        words=("scenario", "placement"),
        groups=table["scenario"].tolist(),
        dataset="scenarios",
    )
    for note in table["note"].dropna().unique():
        say(console, f"note: {note}", "dim")
