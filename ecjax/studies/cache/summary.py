"""What ``ecjax cache`` prints at its end: a line per point and policy, or per plan of the study of sampling."""

from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import remark, say
from ecjax.studies.cache.tables import ALL, REFERENCE
from ecjax.studies.cache.words import POINT, POINT_WORDS, SCHEMES, SHORT, over_seeds, planned, varying
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.studies.spine.sentences import ROUNDING, percent_text
from ecjax.units import Unit, count_text, fitting_unit

_MOST_FAILED = 3  # of more, what is down in turn is one line
_MOST_LINES = 120
_TIMES = ("mean_s", "p50_s", "p99_s")
_DECISIONS = ("decision_mean_s", "decision_p9999_s")


def show(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the replays of a study and what went wrong.

    Args:
        runs: rows of the ``runs`` dataset.
        console: where to.
        out: folder of the results.
    """
    means = over_seeds(_together(runs))
    seeds = f", {means['seeds'].max()} seeds" if not means.empty and means["seeds"].max() > 1 else ""
    title = f"cache: {count_text(len(runs), 'run')}{seeds} in {out}"
    if means.empty:
        say(console, title, "table.title")
    else:
        _print_means(means.head(_MOST_LINES), console, title)
    if len(means) > _MOST_LINES:
        say(console, f"{count_text(len(means) - _MOST_LINES, 'more line')}: dataset runs.")
    _say_left_out(runs, console)
    lost, none = (int((runs["failed_reads"] >= least).sum()) for least in (1, runs["requests"]))
    if lost:
        rest = "latencies are those of the others" if lost > none else "none has latencies"
        some = f", all of them in {none}" if lost > none > 0 else ", all of them" if none else ""
        remark(
            console,
            f"In {lost} of {count_text(len(runs), 'run')} reads failed{some}, as too few chunks were up: column "
            "failed_reads; "
            f"{rest}.",
            "yellow",
        )
    print_errors(runs, console)


def _say_left_out(runs: pd.DataFrame, console: Console) -> None:
    """Say so where reads of a log are not replayed, which no cache could know before they came."""
    # runs of earlier versions do not say
    left = runs["left_out_share"].astype(float) if "left_out_share" in runs else pd.Series(dtype=float)
    some = runs.loc[left[left > 0].index]
    if some.empty:
        return
    most = some.loc[left[some.index].idxmax()]
    several = f" with items={most['items']:.0f}" if runs["items"].nunique() > 1 else ""
    remark(
        console,
        f"{percent_text(most['left_out_share'])} of the log's reads are left out{several}: those of all but the "
        f"{most['items']:,.0f} items that turn out to be read most. Scans and items of a single read are among them: "
        "with them caches hit less, and policies that scans push aside do worse. A larger items takes them in.",
        "yellow",
    )


def _together(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with what is down in turn called the same, where it is much."""
    count = runs["failed"].nunique()
    down = runs["failed"].notna() if count > _MOST_FAILED else pd.Series(False, runs.index)
    # the reads are the same whatever is down: their intervals do not add up
    return runs.assign(failed=runs["failed"].mask(down, f"{count} in turn"), ci_s=runs["ci_s"].mask(down))


def _print_means(means: pd.DataFrame, console: Console, title: str) -> None:
    swept = varying(means)
    same = [name for name in POINT if name not in swept and pd.notna(means[name].iloc[0])]
    words = ", ".join(f"{POINT_WORDS[name]} = {_coordinate(means[name].iloc[0])}" for name in same)
    unit = fitting_unit(*(means[name] for name in _TIMES))
    deciding = fitting_unit(*(means[name] for name in _DECISIONS))
    times = [f"{name} {unit.name}" for name in ("mean", "p50", "p99")]
    hits, decides = ["chunk\nhits", "full\nhits"], [f"decides\n{deciding.name}", f"p99.99\n{deciding.name}"]
    print_table(
        console,
        f"{title}; {words}" if words else title,
        [
            *(SHORT[name] for name in swept),
            "policy",
            *times,
            *hits,
            "above\noptimum",
            *decides,
            "1000\nreads/s",
        ],
        [_cells(row, swept, unit, deciding) for row in means.to_dict("records")],
        words=("setting", "policy"),
        groups=[tuple(map(str, point)) for point in means[swept].to_numpy()],
        padding=(0, 1, 0, 0),
        least=("1000\nreads/s", decides[1], times[1], hits[1], decides[0], hits[0], times[2]),
        dataset="runs",
    )


def _cells(row: dict[Any, Any], swept: list[str], unit: Unit, deciding: Unit) -> list[str]:
    half_width = row["ci_s"] if row["ci_s"] > ROUNDING * row["mean_s"] else None
    return [
        *(_coordinate(row[name]) for name in swept),
        row["name"],
        unit.interval(row["mean_s"], half_width),
        unit.cell(row["p50_s"]),
        unit.cell(row["p99_s"]),
        number(row["chunk_hit_ratio"], ".3f"),
        number(row["full_hit_ratio"], ".3f"),
        "" if row["policy"] == REFERENCE else number(row["above_optimum"], "+z.2%"),
        *(deciding.cell(row[name], 3) for name in _DECISIONS),
        number(row["requests_per_s"] / 1000, ",.4g"),
    ]


def show_plans(runs: pd.DataFrame, console: Console, out: str) -> None:
    """Print the mean latency of every way to plan, how far it is above the best, and how long it takes (Table III).

    Args:
        runs: rows of the ``runs`` dataset, of the study of sampling.
        console: where to.
        out: folder of the results.
    """
    runs = planned(runs)
    swept = varying(runs)
    means = runs.groupby([*swept, "scheme", "samples"], sort=False, dropna=False)
    rows = means[["mean_s", "above_optimum", "solve_s"]].mean().reset_index()
    unit, solving = fitting_unit(rows["mean_s"]), fitting_unit(rows["solve_s"])
    headings = ["plan", "partitions", f"mean {unit.name}", "above best", f"solved\nin {solving.name}"]
    print_table(
        console,
        f"cache: {count_text(len(runs), 'run')} in {out}",
        [*(SHORT[name] for name in swept), *headings],
        [
            [
                *(_coordinate(row[name]) for name in swept),
                SCHEMES[row["scheme"]],
                number(row["samples"], ".0f"),
                unit.cell(row["mean_s"]),
                "" if row["scheme"] == ALL else number(row["above_optimum"], "+z.2%"),
                solving.cell(row["solve_s"], 3),
            ]
            for row in rows.to_dict("records")
        ],
        words=("setting", "plan"),
        groups=[tuple(map(str, point)) for point in rows[swept].to_numpy()],
        least=(headings[-1],),
        dataset="runs",
    )
    print_errors(runs, console)


def _coordinate(value: Any) -> str:
    """A coordinate of a point, or the setting, as a cell."""
    return value if isinstance(value, str) else number(value, "g")
