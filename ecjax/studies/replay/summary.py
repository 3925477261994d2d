"""What ``ecjax replay`` prints at its end: a line per replay, then what to know about them."""

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from ecjax.plotting.class_values import CLASS_COLUMNS, in_a_line
from ecjax.status import Status
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.spine.outcome import show_errors

_SWEPT = ("method", "theta", "policy", "queue", "service", *CLASS_COLUMNS, "rate_scale", "size_scale")


def show(runs: pd.DataFrame, console: Console, options: ReplayOptions) -> None:
    """Print the replays of a study and what there is to warn of."""
    swept = [name for name in _SWEPT if runs[name].nunique(dropna=name in CLASS_COLUMNS) > 1]
    table = Table(
        title=f"replay: {len(runs)} runs in {options.out}", box=box.SIMPLE_HEAD, title_justify="left"
    )
    known = [
        name
        for name in ("estimated_mean_s", "latency_s", "estimated_p99_s", "promised_p99_s")
        if runs[name].notna().any()
    ]
    headings = {
        "estimated_mean_s": "esti-\nmated",
        "latency_s": "bound",
        "estimated_p99_s": "esti-\nmated",
        "promised_p99_s": "bound",
    }
    first = [name for name in known if name in ("estimated_mean_s", "latency_s")]
    second = [name for name in known if name not in first]
    for name in [*swept, "load"]:
        number = name in ("theta", "rate_scale", "size_scale", "load")
        table.add_column(name.replace("_", "\n"), no_wrap=True, justify="right" if number else "left")
    for name in ("mean s", *first, "p99 s", *second, "reads"):
        table.add_column(headings.get(name, name), no_wrap=True, justify="right")
    failed = (runs["status"] != str(Status.OK)).any()
    if failed:
        table.add_column("status", no_wrap=True)
    for run in runs.itertuples():
        cells = [(in_a_line if name in CLASS_COLUMNS else _cell)(getattr(run, name)) for name in swept]
        load = run.max_utilisation if pd.isna(run.max_load) else run.max_load
        cells += [
            "" if pd.isna(load) else f"{load:.2f}",
            f"{run.mean_s:.4g} ± {run.ci_s:.2g}" if pd.notna(run.mean_s) else "",
        ]
        cells += [_cell(getattr(run, name)) for name in first]
        cells += [_cell(run.p99_s)]
        cells += [_cell(getattr(run, name)) for name in second]
        cells += ["" if pd.isna(run.requests) else f"{run.requests:.3g}"]
        table.add_row(*cells, *([run.status] if failed else []))
    console.print(table)
    show_errors(runs, console)
    if known:
        left_out = [words for words, given in _left_out(options) if given]
        if left_out:
            console.print(
                f"Estimate and bound are of Poisson arrivals at the mean rates and leave out: {', '.join(left_out)}.",
                highlight=False,
            )
    drifting = runs["status"] == str(Status.NOT_STATIONARY)
    if drifting.any():
        console.print(
            f"{drifting.sum()} of {len(runs)} replays are not stationary: their latencies still grow or change with "
            "time, so that means depend on the length of the run (more requests, or a lower rate_scale).",
            style="yellow",
            highlight=False,
        )


def _left_out(options: ReplayOptions) -> list[tuple[str, bool]]:
    return [
        ("the order of the trace's arrivals", options.arrivals == "trace"),
        ("bursts", options.arrivals == "bursts"),
        ("rates that vary", options.rates is not None),
        ("outages", options.outages is not None),
        ("decoding", options.decode_s_per_byte > 0),
        ("client links", options.client_bandwidth_bytes_per_s is not None),
    ]


def _cell(value) -> str:
    if value is None or pd.isna(value):
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"
