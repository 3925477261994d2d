"""Figures of plans, drawn from their result tables only."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ecjax.plotting.looks import COLOURS, line_look
from ecjax.plotting.method_names import MARKERS, METHOD_NAMES
from ecjax.plotting.panels import few, legend, number, panels
from ecjax.plotting.runs import names
from ecjax.plotting.units import plain_numbers, time_axis, time_unit
from ecjax.tables.results import read_results, read_run
from ecjax.units import Unit

LATENCY = "mean latency, bound for Poisson arrivals"
COST = "storage cost per file ($ per period)"
MOST_LINES = 12  # that can be told apart
_MOST_BARS = 16


def per_file(runs: pd.DataFrame) -> pd.Series:
    """Storage cost by file, dollars per period."""
    return runs["cost_dollars_per_period"] / runs["file_count"]


def line_names(runs: pd.DataFrame, axis: str) -> pd.Series:
    """By run what its line is called: the method, and what else differs that the axis does not show.

    Args:
        runs: rows of ``runs``.
        axis: column along which a line goes.
    """
    if len(runs) == 0 or runs["method"].nunique() > 1:
        return pd.Series(names(runs, axis), runs.index, dtype=object)
    method = METHOD_NAMES[runs["method"].iloc[0]]
    others = names(runs, axis, alone="")
    return pd.Series([f"{method}, {name}" if name else method for name in others], runs.index)


def longest_line(runs: pd.DataFrame, axis: str) -> tuple[pd.DataFrame, str]:
    """The runs of the line with most points, of equal ones the first, and what tells it from the others; else ""."""
    lines = line_names(runs, axis)
    counts = lines.value_counts(sort=False)
    name = next(line for line in lines if counts[line] == counts.max())
    return runs[lines == name], name if len(counts) > 1 else ""


def convergence(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Objective of the descent over its final value, by iteration."""
    published = runs[runs["method"] == "published"]
    if published.empty:
        return None
    figure, (axes,) = panels()
    published = published.sort_values("theta")
    every = list(zip(published["run_id"], _with_theta(published), strict=True))
    shown = every[:MOST_LINES]
    for place, (run_id, label) in enumerate(shown):
        values = read_run(out, "history", run_id).to_pandas()
        look = line_look(place, len(shown)) | {"marker": ""}
        look["color"] = COLOURS[place % len(COLOURS)]
        axes.plot(
            values["iteration"], values["objective"] / values["objective"].iloc[-1], label=label, **look
        )
    axes.set(
        xlabel="iteration",
        ylabel="objective of the descent / its last value",
        title="Convergence of JLCM (latency + θ x log surrogate of the cost)"
        f"{few(len(shown), len(every), 'runs')}",
    )
    legend(figure, axes.get_lines())
    return figure


def _with_theta(runs: pd.DataFrame) -> list[str]:
    """What tells each run from the others, with its theta where all have one."""
    described = names(runs, alone="")
    if runs["theta"].nunique() > 1:
        return described
    return [", ".join(filter(None, (f"θ = {runs['theta'].iloc[0]:g}", name))) for name in described]


def gap(out: Path, runs: pd.DataFrame) -> Figure | None:
    """How far each plan may be from the best, by theta: its gap to the lower bound."""
    rows = runs[runs["gap"].notna()]
    if rows.empty:
        return None
    figure, (axes,) = panels()
    every = list(rows.groupby(line_names(rows, "theta"), sort=False))
    groups = every[:MOST_LINES]
    for place, (name, group) in enumerate(groups):
        ordered = group.sort_values("theta")
        look = line_look(place, len(groups)) | {"marker": MARKERS[group["method"].iloc[0]]}
        look |= {"color": COLOURS[place % len(COLOURS)], "label": name}
        axes.plot(ordered["theta"], 100 * ordered["gap"].clip(lower=1e-9), **look)
    axes.set(
        xscale="log" if (rows["theta"] > 0).all() else "linear",
        yscale="log",
        xlabel="θ (s/$)",
        ylabel="(objective - lower bound) / lower bound (%)",
        title=f"How much better another plan could be, at most{few(len(groups), len(every), 'lines')}",
    )
    plain_numbers(axes.yaxis)
    if axes.get_xscale() == "log":
        plain_numbers(axes.xaxis)
    legend(figure, axes.get_lines())
    return figure


def methods(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency and cost of every method, side by side (Fig. 9 of the JLCM paper); the largest theta of the sweep.

    Where plans of a method differ in something else, as in rates, each has its bars.

    Returns:
        None where there is one method only.
    """
    every = runs[runs["theta"] == runs["theta"].max()]
    if every["method"].nunique() < 2:
        return None
    every = every.iloc[np.argsort(every.groupby("method").cumcount().to_numpy(), kind="stable")]
    bar_names = line_names(every, "theta").to_list()[:_MOST_BARS]
    rows = every.iloc[:_MOST_BARS]
    unit = time_unit(rows["latency_s"])
    objective = time_unit(rows["objective"])
    figure = Figure(figsize=(max(8.5, 1.5 + 2.1 * len(rows)), 4.4), layout="constrained")
    columns: list[tuple[pd.Series, Unit | None, str]] = [
        (rows["latency_s"], unit, LATENCY),
        (per_file(rows), None, COST),
        (rows["objective"], objective, "objective"),
    ]
    for index, (values, of, label) in enumerate(columns):
        axes = figure.add_subplot(1, 3, index + 1)
        bars = axes.bar(range(len(rows)), values, color=COLOURS[index], width=0.65)
        words = [of.text(value) if of else number(value) for value in values]
        axes.bar_label(bars, labels=words, fontsize=8, padding=2)
        if of:
            time_axis(axes.yaxis, label, of)
        else:
            axes.set_ylabel(label)
        axes.margins(y=0.08)
        axes.set_xticks(
            range(len(rows)), bar_names, rotation=35, ha="right", rotation_mode="anchor", fontsize=8
        )
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Methods, θ = {rows['theta'].iloc[0]:g}{few(len(rows), len(every), 'plans')}")
    return figure


def classes(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution over files of the latency bound of the first run, by class (or by k where there are no classes)."""
    run = runs.iloc[0]
    plans = read_run(out, "file_plans", run["run_id"]).to_pandas()
    files = read_results(out, "inputs/files")
    files = files[files["input_id"] == run["input_id"]].set_index("file_id")
    plans = plans.assign(service_class=files["service_class"].reindex(plans["file_id"]).to_numpy())
    key = "service_class" if plans["service_class"].notna().all() else "k"
    figure, (axes,) = panels()
    every = list(plans.groupby(key))
    groups = every[:MOST_LINES]
    for place, (name, group) in enumerate(groups):
        values = np.sort(group["latency_s"])
        codes = "/".join(
            dict.fromkeys(f"({n}, {k})" for n, k in sorted(zip(group["n"], group["k"], strict=True)))
        )
        look = line_look(place, len(groups)) | {"marker": "", "color": COLOURS[place % len(COLOURS)]}
        words = f"k = {name}" if key == "k" else f"class {name}"
        share = np.arange(1, len(values) + 1) / len(values)
        axes.step(values, share, where="post", label=f"{words}: {codes}", **look)
    axes.set(
        ylabel="share of files at or below",
        title=f"Latency by class, {_with_theta(runs)[0]}{few(1, len(runs), 'plans')}"
        f"{few(len(groups), len(every), 'classes')}",
        ylim=(0, 1.02),
    )
    time_axis(axes.xaxis, "mean latency of a file, bound for Poisson arrivals", time_unit(plans["latency_s"]))
    legend(figure, axes.get_lines())
    return figure


def sizes(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency bound against mean file size (Fig. 11 of the JLCM paper).

    Returns:
        None where all runs have files of the same sizes.
    """
    if runs["size_scale"].nunique() < 2:
        return None
    files = read_results(out, "inputs/files")
    mean = files[files["input_id"] == runs["input_id"].iloc[0]]["bytes"].mean()
    figure, (axes,) = panels()
    every = list(runs.groupby(line_names(runs, "size_scale"), sort=False))
    groups = every[:MOST_LINES]
    for place, (name, group) in enumerate(groups):
        ordered = group.sort_values("size_scale")
        look = line_look(place, len(groups)) | {"marker": MARKERS[group["method"].iloc[0]]}
        look |= {"color": COLOURS[place % len(COLOURS)], "label": name}
        axes.plot(ordered["size_scale"] * mean / 1e6, ordered["latency_s"], **look)
    title = f"Latency against file size{few(len(groups), len(every), 'lines')}"
    axes.set(xlabel="mean file size (MB)", title=title)
    time_axis(axes.yaxis, LATENCY, time_unit(runs["latency_s"]))
    legend(figure, axes.get_lines())
    return figure


def rates(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency bound as bars and cost as a line against the request rate (Fig. 12 of the JLCM paper).

    Of one method and theta, and of whatever else differs: of those with most rates, the first.

    Returns:
        None where all runs have the same rates.
    """
    if runs["rate_scale"].nunique() < 2:
        return None
    rows, which = longest_line(runs, "rate_scale")
    ordered = rows.sort_values("rate_scale")
    files = read_results(out, "inputs/files")
    total = files[files["input_id"] == ordered["input_id"].iloc[0]]["rate_per_s"].sum()
    figure, (axes,) = panels()
    names = [f"{scale * total:.3g}" for scale in ordered["rate_scale"]]
    axes.bar(names, ordered["latency_s"], width=0.6, color=COLOURS[4], label=LATENCY)
    title = "Latency and cost against the request rate"
    axes.set(xlabel="request rate of all files (1/s)", title=f"{title}\n{which}" if which else title)
    time_axis(axes.yaxis, LATENCY, time_unit(ordered["latency_s"]))
    right = axes.twinx()
    right.plot(names, per_file(ordered), color=COLOURS[5], marker="o", label=COST)
    right.set_ylabel(COST)
    right.spines["top"].set_visible(False)
    right.set_ylim(0, 1.1 * per_file(ordered).max())
    handles = [*axes.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    legend(figure, handles)
    axes.set_ylim(0, 1.1 * ordered["latency_s"].max())
    return figure


def code_lengths(out: Path, runs: pd.DataFrame) -> Figure:
    """Mean code length of every k against theta (the labels of Fig. 13 of the JLCM paper), by method and demand."""
    lines = line_names(runs, "theta")
    lengths = pd.concat(
        read_run(out, "file_plans", run_id)
        .group_by("k")
        .aggregate([("n", "mean")])
        .to_pandas()
        .assign(theta=theta, line=line)
        for run_id, theta, line in zip(runs["run_id"], runs["theta"], lines, strict=True)
    )
    figure, (axes,) = panels()
    every = list(lengths.groupby(["line", "k"], sort=False))
    groups = every[:MOST_LINES]
    for place, ((line, k), group) in enumerate(groups):
        ordered = group.sort_values("theta")
        look = line_look(place, len(groups)) | {"color": COLOURS[place % len(COLOURS)]}
        label = f"k = {k}"
        if lines.nunique() > 1 and label not in line.split(", "):
            label = f"{line}, {label}"
        elif lines.nunique() > 1:
            label = line
        axes.plot(ordered["theta"], ordered["n_mean"], label=label, **look)
    if runs["theta"].min() > 0:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
    axes.set(
        xlabel="θ (s/$)",
        ylabel="mean code length n",
        title=f"Code length against the price of storage{few(len(groups), len(every), 'lines')}",
    )
    legend(figure, axes.get_lines())
    return figure
