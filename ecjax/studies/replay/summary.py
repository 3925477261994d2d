"""What ``ecjax replay`` prints at its end: a line per replay, then what to know about them."""

from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import remark, say
from ecjax.plotting.class_values import CLASS_COLUMNS, in_a_line
from ecjax.status import Status
from ecjax.studies.replay.assumptions import ASSUMED, beside_arrivals, broken
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.spine.printed import number, print_errors, print_table
from ecjax.units import Unit, count_text, fitting_unit

_SWEPT = ("method", "theta", "policy", "queue", "service", *CLASS_COLUMNS, "rate_scale", "size_scale", "slow")
_NUMBERS = ("theta", "rate_scale", "size_scale")
# columns that predict the mean, and the 99 % quantile, with their headings
_OF_MEAN = {
    "trace_estimated_mean_s": "expected\nmean",
    "estimated_mean_s": "expected\nmean",
    "latency_s": "mean\nbound",
}
_OF_P99 = {
    "trace_estimated_p99_s": "expected\np99",
    "estimated_p99_s": "expected\np99",
    "promised_p99_s": "p99\nbound",
}
# of what is said of the means of rates, beside what is said of the arrivals themselves
_POISSON = {"estimated_mean_s": "mean if\nPoisson", "estimated_p99_s": "p99 if\nPoisson"}
_LOAD = "max\nload"  # of a node


def show(runs: pd.DataFrame, console: Console, options: ReplayOptions) -> None:
    """Print the replays of a study and what there is to warn of."""
    swept = [name for name in _SWEPT if name in runs and runs[name].nunique(dropna=name in CLASS_COLUMNS) > 1]
    # runs of earlier versions have no estimates under a log's own arrivals
    of_mean, of_p99 = (
        {name: word for name, word in names.items() if name in runs and runs[name].notna().any()}
        for names in (_OF_MEAN, _OF_P99)
    )
    if "trace_estimated_mean_s" in of_mean:
        of_mean, of_p99 = (
            {name: _POISSON.get(name, word) for name, word in names.items()} for names in (of_mean, of_p99)
        )
    failed = bool((runs["status"] != str(Status.OK)).any())
    headings = {name: name.replace("_", "\n") for name in swept}
    unit = fitting_unit(*(runs[name] for name in ("mean_s", "p99_s", *of_mean, *of_p99)))
    print_table(
        console,
        f"replay: {count_text(len(runs), 'run')} in {options.out}",
        [
            *(*headings.values(), _LOAD, f"mean {unit.name}", *of_mean.values()),
            *(
                f"p99 {unit.name}",
                *of_p99.values(),
                "reads",
                *(["status"] if failed else []),
            ),
        ],
        [_cells(run, swept, (list(of_mean), list(of_p99)), failed, unit) for run in runs.to_dict("records")],
        words=[headings[name] for name in swept if name not in (*_NUMBERS, *CLASS_COLUMNS)] + ["status"],
        least=("reads", *reversed(of_p99.values()), _LOAD, *reversed(of_mean.values())),
        dataset="runs",
    )
    print_errors(runs, console)
    void = broken(runs)
    under_trace = "trace_estimated_mean_s" in of_mean
    if under_trace:
        _say_of_trace(runs, console, unit)
    if "trace_remarks" in runs:
        for text in runs["trace_remarks"].dropna().unique():
            say(console, text, "yellow")
    if void and (of_mean or of_p99):
        means = "estimates of the mean rates" if under_trace else "estimates"
        remark(
            console,
            f"The bound promises nothing here, and {means} may be off: {', '.join(void)}. Both assume {ASSUMED}.",
            "yellow",
        )
    drifting = runs["status"] == str(Status.NOT_STATIONARY)
    overfull = drifting & ~(runs["max_load"] < 1) & (runs["max_utilisation"] > 1)
    if overfull.any():
        most = runs.loc[overfull, "max_utilisation"].max()
        remark(
            console,
            f"{overfull.sum()} of {len(runs)} replays overload a node, which is given up to {most:.3g} times the work "
            "that it can do in their time: its queue grows throughout, though reads may end without it.",
            "yellow",
        )
        drifting &= ~overfull
    if drifting.any():
        remark(
            console,
            f"{drifting.sum()} of {count_text(len(runs), 'replay')} {'is' if drifting.sum() == 1 else 'are'} not "
            "stationary: latencies still grow or change "
            "with time, so that means depend on the length of the run (more requests, or a lower rate_scale).",
            "yellow",
        )


def _say_of_trace(runs: pd.DataFrame, console: Console, unit: Unit) -> None:
    """What the estimate under the log's own arrivals is, with its interval, and what it is without."""
    estimated = runs[runs["trace_estimated_mean_s"].notna()]
    run = estimated.iloc[0]
    if run["arrivals"] != "trace":
        remark(console, "Expected is under the rates as they vary with time.")
    elif pd.isna(run["trace_estimated_mean_low_s"]):
        remark(console, "Expected is under the log's own arrivals.")
    else:
        within = ", ".join(
            f"its {name} within {unit.cell(run[f'{column}_low_s'], 3)} to {unit.cell(run[f'{column}_high_s'], 3)} "
            + unit.name
            for name, column in (("mean", "trace_estimated_mean"), ("p99", "trace_estimated_p99"))
            if pd.notna(run[f"{column}_low_s"])
        )
        several = " (first run)" if len(runs) > 1 else ""
        remark(
            console,
            f"Expected is under the log's own arrivals. Another log of this kind would have {within} (95 %, from "
            f"leaving out tenths of the log){several}.",
        )
    others = beside_arrivals(estimated)
    if others:
        remark(console, f"Expected takes no account of this: {', '.join(others)}.", "yellow")


def _cells(
    run: dict[Any, Any], swept: list[str], predicted: tuple[list[str], list[str]], failed: bool, unit: Unit
) -> list[str]:
    of_mean, of_p99 = predicted
    load = run["max_utilisation"] if pd.isna(run["max_load"]) else run["max_load"]
    interval = unit.cell(run["ci_s"], 2) or "-"  # too few requests for one
    mean = f"{unit.cell(run['mean_s'])} ± {interval}" if pd.notna(run["mean_s"]) else ""
    cells = [_cell(name, run[name]) for name in swept] + [number(load, ".2f"), mean]
    cells += [unit.cell(run[name]) for name in (*of_mean, "p99_s", *of_p99)]
    return cells + [number(run["requests"], ".3g")] + ([run["status"]] if failed else [])


def _cell(name: str, value: Any) -> str:
    if name in CLASS_COLUMNS:
        return in_a_line(value)
    return number(value) if name in _NUMBERS else "" if pd.isna(value) else value
