"""What ``ecjax optimize`` prints at its end: one line per run, then warnings."""

import json
from collections import Counter
from typing import Any

import pandas as pd
from rich.console import Console

from ecjax.console import remark, say
from ecjax.plotting.class_values import CLASS_COLUMNS, in_a_line
from ecjax.status import Status
from ecjax.studies.optimize.floor_words import say_floors
from ecjax.studies.optimize.kind_words import say_small_reads
from ecjax.studies.optimize.moment_words import say_misfit, say_moment_margins
from ecjax.studies.optimize.objective_rules import TRACE
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.rate_words import say_rate_errors
from ecjax.studies.optimize.trace_words import say_bursts, say_margins
from ecjax.studies.spine.printed import number, print_table
from ecjax.units import Unit, count_text, fitting_unit, plain

_SWEPT = ("what_if", "code", "k", "d", *CLASS_COLUMNS, "rate_scale", "size_scale")
MOST_CLASSES = 6  # more would not fit in a line of the printed table


def show(runs: pd.DataFrame, console: Console, options: OptimizeOptions) -> None:
    """Print the runs of a study and what there is to warn of."""
    columns = _columns(runs.fillna({"mean_n_by_class": "{}"}))
    print_table(
        console,
        f"optimize: {count_text(len(runs), 'run')} in {options.out}",
        list(columns),
        list(zip(*columns.values(), strict=True)),
        words=("method", "status"),
        least=_least(columns),
        dataset="runs",
    )
    _warn(runs, console, options)
    if options.judges_durability:
        say_floors(options, runs, console)
    if _any(runs, "trace_estimated_mean_s"):
        say_margins(runs, console)
    if _any(runs, "latency_rate_error_s"):
        say_rate_errors(runs, console)
    if _any(runs, "latency_low_s"):
        say_moment_margins(runs, console)
    if _any(runs, "service_second_ratio"):
        say_misfit(runs, console)
    if _any(runs, "small_degraded_share"):
        say_small_reads(runs, console)
    if options.objective == TRACE:
        say_bursts(runs, console)


def _columns(runs: pd.DataFrame) -> dict[str, list[str]]:
    """Cells by heading."""
    classes = list(json.loads(max(runs["mean_n_by_class"], key=len)))
    few, by_class = len(classes) <= MOST_CLASSES, runs["class_latency_s"].notna().any()
    columns: dict[str, list[str]] = {}
    if runs["method"].nunique() > 1:
        columns["method"] = runs["method"].tolist()
    for name in _SWEPT:
        if name == "k" and "code" in columns:
            continue
        if runs[name].nunique(dropna=name != "what_if") > 1:
            columns[name.replace("_", "\n")] = [_swept(name, value) for value in runs[name]]
    if not (few and by_class) or (runs["theta"] > 0).any():
        columns["theta\ns/$"] = [f"{theta:g}" for theta in runs["theta"]]
    latencies = _latency_columns(runs)
    unit = fitting_unit(*(runs[name] for name in latencies))
    for name, heading in latencies.items():
        columns[f"{heading} {unit.name}"] = list(map(unit.cell, runs[name]))
    if few and by_class:
        columns[f"by class\n{'/'.join(classes)}"] = [
            _latencies(each, unit) for each in runs["class_latency_s"]
        ]
    columns["cost\n$/file"] = _numbers(runs["cost_dollars_per_period"] / runs["file_count"], ".4g")
    unit = fitting_unit(runs["objective"])
    columns[f"objective\n{unit.name}"] = [unit.cell(each, 5) for each in runs["objective"]]
    if runs["gap"].notna().any():
        columns["gap"] = list(map(_gap, runs["gap"]))
    if few:
        lengths = [json.loads(text).values() for text in runs["mean_n_by_class"]]
        columns[f"n by class\n{'/'.join(classes)}"] = ["/".join(f"{n:.3g}" for n in each) for each in lengths]
    else:
        columns["mean n"] = _numbers(runs["mean_n"], ".3g")
    columns["iterations"] = _numbers(runs["iterations"], ".0f")
    unit = fitting_unit(runs["solve_s"])
    columns[f"solved\nin {unit.name}"] = [unit.cell(each, 2) for each in runs["solve_s"]]
    if (runs["status"] != str(Status.OK)).any():
        columns["status"] = runs["status"].tolist()
    return columns


def _latency_columns(runs: pd.DataFrame) -> dict[str, str]:
    """Headings of the columns with latencies: under the arrivals of a log, where one is named, before the others."""
    headings = {
        "estimated_mean_s": "expected\nmean",
        "estimated_p99_s": "expected\np99",
        "latency_s": "latency\nbound",
    }
    if _any(runs, "trace_estimated_mean_s"):
        headings = {
            "trace_estimated_mean_s": "expected\nmean",
            "trace_estimated_p99_s": "expected\np99",
            "estimated_mean_s": "mean if\nPoisson",
            "estimated_p99_s": "p99 if\nPoisson",
        }
    if _any(runs, "trace_wait_s"):
        headings["trace_wait_s"] = "chunk\nwait"
        headings.pop("latency_s", None)
    return {name: heading for name, heading in headings.items() if _any(runs, name) or name == "latency_s"}


def _any(runs: pd.DataFrame, name: str) -> bool:
    return name in runs and bool(runs[name].notna().any())


def _numbers(values: pd.Series, form: str) -> list[str]:
    return [number(value, form) for value in values]


def _least(columns: dict[str, list[str]]) -> list[str]:
    """Headings of the columns that go where it is narrow, the least important first."""
    order = ("solved", "iterations", "objective", "mean n", "n by class", "gap", "p99 if", "mean if")
    return [heading for word in order for heading in columns if heading.startswith(word)]


def _latencies(values: str | None, unit: Unit) -> str:
    """Latency of each class; empty for a queue that knows none."""
    if pd.isna(values):
        return ""
    return "/".join(plain(value / unit.seconds, 3) for value in json.loads(str(values)).values())


def _gap(gap: float) -> str:
    return number(gap, ".1e" if gap < 0.01 else ".1%")


def _swept(name: str, value: Any) -> str:
    if name in ("what_if", "code"):
        return "" if pd.isna(value) else str(value)
    return in_a_line(value) if name in CLASS_COLUMNS else number(value, "g")


def _nearby(plans: pd.DataFrame) -> str:
    """What plans near those with a gap could gain, where that is known."""
    known = plans["gap_nearby"].dropna() if "gap_nearby" in plans else pd.Series(dtype=float)
    if known.empty:
        return ""
    return (
        f" Plans whose nodes keep their mean waits and mixes of chunk sizes within 10 % are at most "
        f"{number(known.max(), '.1%')} better: only another division of the work among the nodes could gain more."
    )


def _warn(runs: pd.DataFrame, console: Console, options: OptimizeOptions) -> None:
    words = {str(Status.UNSTABLE): "without a stable plan", str(Status.INFEASIBLE): "that break a constraint"}
    failed = runs[runs["error"].notna()]
    for (status, message), count in Counter(zip(failed["status"], failed["error"], strict=True)).items():
        say(console, f"{count_text(count, 'run')} {words.get(status, status)}: {message}", "red")
    certified = (runs["method"] == "certified") & runs["error"].isna()
    open_ = runs[certified & (runs["gap"] > options.gap)]
    if len(open_):
        remark(
            console,
            f"{len(open_)} of {certified.sum()} certified plans are not proven to be within gap={options.gap:g} of the "
            "best: the gap says how much better another plan could be (it stays open where chunk sizes differ, files "
            f"are few, or nodes are nearly full).{_nearby(open_)}",
        )
    bare = runs[runs["files_without_redundancy"] > 0]
    if len(bare):
        remark(
            console,
            f"warning: {len(bare)} of {count_text(len(runs), 'plan')} {'keeps' if len(bare) == 1 else 'keep'} some "
            "files without redundancy (n = k): "
            "the loss of any node loses them. min_extra_chunks=2 sets a durability floor.",
            "yellow",
        )
