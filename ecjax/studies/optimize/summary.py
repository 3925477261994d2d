"""What ``ecjax optimize`` prints at its end: one line per run, then warnings."""

import json
from collections import Counter
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.plotting.class_values import CLASS_COLUMNS, in_a_line
from ecjax.plotting.panels import number
from ecjax.status import Status
from ecjax.studies.optimize.options import OptimizeOptions

_SWEPT = ("k", "d", *CLASS_COLUMNS, "rate_scale", "size_scale")
MOST_CLASSES = 6  # more would not fit in a line of the printed table


def show(runs: pd.DataFrame, console: Console, options: OptimizeOptions) -> None:
    """Print the runs of a study and what there is to warn of."""
    _print(runs, console, options)
    _warn(runs, console, options)


def _print(runs: pd.DataFrame, console: Console, options: OptimizeOptions) -> None:
    runs = runs.fillna({"mean_n_by_class": "{}"})
    several, failed = runs["method"].nunique() > 1, (runs["status"] != str(Status.OK)).any()
    swept = [name for name in _SWEPT if runs[name].nunique() > 1]
    certified = runs["gap"].notna().any()
    classes = list(json.loads(max(runs["mean_n_by_class"], key=len)))
    table = Table(
        title=f"optimize: {len(runs)} runs in {options.out}", box=box.SIMPLE_HEAD, title_justify="left"
    )
    lengths = f"mean n of\n{'/'.join(classes)}" if len(classes) <= MOST_CLASSES else "mean n"
    by_class = classes if runs["class_latency_s"].notna().any() and len(classes) <= MOST_CLASSES else []
    theta = not by_class or (runs["theta"] > 0).any()
    headings = [
        *(["theta\ns/$"] if theta else []),
        "latency\nbound s",
        *([f"by class\n{'/'.join(by_class)}"] if by_class else []),
        "cost\n$/file",
        "objective\ns",
        *(["gap"] if certified else []),
        lengths,
        "iterations",
        "seconds",
    ]
    words = [name.replace("_", "\n") for name in swept]
    for heading in [*(["method"] if several else []), *words, *headings, *(["status"] if failed else [])]:
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    for run in runs.itertuples():
        lengths_of = json.loads(run.mean_n_by_class).values()
        cells = [
            *([f"{run.theta:g}"] if theta else []),
            f"{run.latency_s:.4g}",
            *([_latencies(run.class_latency_s)] if by_class else []),
            f"{run.cost / run.files:.4g}",
            f"{run.objective:.5g}",
            *([_gap(run.gap)] if certified else []),
        ]
        cells.append(
            "/".join(f"{n:.3g}" for n in lengths_of) if len(classes) <= MOST_CLASSES else f"{run.mean_n:.3g}"
        )
        cells += ["" if pd.isna(run.iterations) else f"{run.iterations:.0f}", f"{run.solve_s:.2g}"]
        table.add_row(
            *([run.method] if several else []),
            *(_cell(name, getattr(run, name)) for name in swept),
            *cells,
            *([run.status] if failed else []),
        )
    console.print(table)


def _latencies(values: str | None) -> str:
    """Seconds of each class; empty for a queue that knows none."""
    return "" if pd.isna(values) else "/".join(number(value) for value in json.loads(str(values)).values())


def _gap(gap: float) -> str:
    return "" if pd.isna(gap) else f"{gap:.1e}" if gap < 0.01 else f"{gap:.1%}"


def _cell(name: str, value: Any) -> str:
    return in_a_line(value) if name in CLASS_COLUMNS else f"{value:g}"


def _warn(runs: pd.DataFrame, console: Console, options: OptimizeOptions) -> None:
    words = {str(Status.UNSTABLE): "without a stable plan", str(Status.INFEASIBLE): "that break a constraint"}
    failed = runs[runs["error"].notna()]
    for (status, message), count in Counter(zip(failed["status"], failed["error"], strict=True)).items():
        console.print(f"{count} runs {words.get(status, status)}: {message}", style="red", highlight=False)
    certified = (runs["method"] == "certified") & runs["error"].isna()
    open_ = runs[certified & (runs["gap"] > options.gap)]
    if len(open_):
        console.print(
            f"{len(open_)} of {certified.sum()} certified plans are not proven to be within gap={options.gap:g} of the "
            "best: the gap says how much better another plan could be (it stays open where chunk sizes differ, files "
            "are few, or nodes are nearly full).",
            highlight=False,
        )
    bare = runs[runs["files_without_redundancy"] > 0]
    if len(bare):
        console.print(
            f"warning: {len(bare)} of {len(runs)} plans keep some files without redundancy (n = k): "
            "the loss of any node loses them. min_extra_chunks=2 sets a durability floor.",
            style="yellow",
            highlight=False,
        )
