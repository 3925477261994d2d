"""Figures of plans, drawn from their result tables only."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ecjax.plotting.looks import COLOURS, line_look
from ecjax.plotting.method_names import MARKERS, METHOD_NAMES
from ecjax.plotting.panels import legend, number, panels
from ecjax.plotting.units import plain_numbers, time_axis, time_unit
from ecjax.tables.results import read_results, read_run
from ecjax.units import Unit

LATENCY = "mean latency, bound for Poisson arrivals"
COST = "storage cost per file ($ per period)"


def per_file(runs: pd.DataFrame) -> pd.Series:
    """Storage cost by file, dollars per period."""
    return runs["cost_dollars_per_period"] / runs["file_count"]


_DEMAND = {"rate_scale": "rates", "size_scale": "sizes"}


def demand_columns(runs: pd.DataFrame) -> list[str]:
    """What is asked of the cluster, as far as it varies: plans of one demand are on one line."""
    return [name for name in _DEMAND if runs[name].nunique() > 1]


def line_words(method: str, demand: list[float], runs: pd.DataFrame) -> str:
    """The method and the demand of a line, in words."""
    scaled = [
        f"{_DEMAND[name]} x {value:g}" for name, value in zip(demand_columns(runs), demand, strict=True)
    ]
    return ", ".join([METHOD_NAMES[method], *scaled])


def convergence(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Objective of the descent over its final value, by iteration."""
    published = runs[runs["method"] == "published"]
    if published.empty:
        return None
    figure, (axes,) = panels()
    for place, run in enumerate(published.sort_values("theta").itertuples()):
        values = read_run(out, "history", run.run_id).to_pandas()
        label = f"θ = {run.theta:g}" + _where(run, published)
        look = line_look(place, len(published)) | {"marker": ""}
        look["color"] = COLOURS[place % len(COLOURS)]
        axes.plot(
            values["iteration"], values["objective"] / values["objective"].iloc[-1], label=label, **look
        )
    axes.set(
        xlabel="iteration",
        ylabel="objective of the descent / its last value",
        title="Convergence of JLCM (latency + θ x log surrogate of the cost)",
    )
    legend(figure, axes.get_lines())
    return figure


def gap(out: Path, runs: pd.DataFrame) -> Figure | None:
    """How far each plan may be from the best, by theta: its gap to the lower bound."""
    rows = runs[runs["gap"].notna()]
    if rows.empty:
        return None
    figure, (axes,) = panels()
    groups = list(rows.groupby(["method", *demand_columns(rows)], sort=False))
    for place, ((method, *demand), group) in enumerate(groups):
        ordered = group.sort_values("theta")
        look = line_look(place, len(groups)) | {"marker": MARKERS[method]}
        look |= {"color": COLOURS[place % len(COLOURS)], "label": line_words(method, demand, rows)}
        axes.plot(ordered["theta"], 100 * ordered["gap"].clip(lower=1e-9), **look)
    axes.set(
        xscale="log" if (rows["theta"] > 0).all() else "linear",
        yscale="log",
        xlabel="θ (s/$)",
        ylabel="(objective - lower bound) / lower bound (%)",
        title="How much better another plan could be, at most",
    )
    plain_numbers(axes.yaxis)
    if axes.get_xscale() == "log":
        plain_numbers(axes.xaxis)
    legend(figure, axes.get_lines())
    return figure


def _where(run, runs: pd.DataFrame) -> str:
    """Label of the scalings that vary."""
    text = ""
    for name, word in (("rate_scale", "rates"), ("size_scale", "sizes")):
        if runs[name].nunique() > 1:
            text += f", {word} x {getattr(run, name):g}"
    return text


def methods(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency and cost of every method, side by side (Fig. 9 of the JLCM paper); the largest theta of the sweep.

    Returns:
        None where there is one method only.
    """
    rows = runs[runs["theta"] == runs["theta"].max()].drop_duplicates("method")
    if len(rows) < 2:
        return None
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
        names = [METHOD_NAMES[method] for method in rows["method"]]
        bars = axes.bar(names, values, color=COLOURS[index], width=0.65)
        words = [of.text(value) if of else number(value) for value in values]
        axes.bar_label(bars, labels=words, fontsize=8, padding=2)
        if of:
            time_axis(axes.yaxis, label, of)
        else:
            axes.set_ylabel(label)
        axes.margins(y=0.08)
        axes.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Methods, θ = {rows['theta'].iloc[0]:g}")
    return figure


def classes(out: Path, runs: pd.DataFrame) -> Figure:
    """Distribution over files of the latency bound, a line per class (or per k where there are no classes)."""
    run = runs.iloc[0]
    plans = read_run(out, "file_plans", run["run_id"]).to_pandas()
    files = read_results(out, "inputs/files")
    files = files[files["input_id"] == run["input_id"]].set_index("file_id")
    plans = plans.assign(service_class=files["service_class"].reindex(plans["file_id"]).to_numpy())
    key = "service_class" if plans["service_class"].notna().all() else "k"
    figure, (axes,) = panels()
    groups = list(plans.groupby(key))
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
        ylabel="share of files at or below", title=f"Latency by class, θ = {run['theta']:g}", ylim=(0, 1.02)
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
    groups = list(runs.groupby(["method", "theta"], sort=False))
    for place, ((method, theta), group) in enumerate(groups):
        ordered = group.sort_values("size_scale")
        look = line_look(place, len(groups)) | {"marker": MARKERS[method]}
        look |= {"color": COLOURS[place % len(COLOURS)], "label": f"{METHOD_NAMES[method]}, θ = {theta:g}"}
        axes.plot(ordered["size_scale"] * mean / 1e6, ordered["latency_s"], **look)
    axes.set(xlabel="mean file size (MB)", title="Latency against file size")
    time_axis(axes.yaxis, LATENCY, time_unit(runs["latency_s"]))
    legend(figure, axes.get_lines())
    return figure


def rates(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency bound as bars and cost as a line against the request rate (Fig. 12 of the JLCM paper).

    Returns:
        None where all runs have the same rates.
    """
    if runs["rate_scale"].nunique() < 2:
        return None
    files = read_results(out, "inputs/files")
    total = files[files["input_id"] == runs["input_id"].iloc[0]]["rate_per_s"].sum()
    rows = runs[(runs["method"] == runs["method"].iloc[0]) & (runs["theta"] == runs["theta"].iloc[0])]
    ordered = rows.sort_values("rate_scale")
    figure, (axes,) = panels()
    names = [f"{scale * total:.3g}" for scale in ordered["rate_scale"]]
    axes.bar(names, ordered["latency_s"], width=0.6, color=COLOURS[4], label=LATENCY)
    axes.set(xlabel="request rate of all files (1/s)", title="Latency and cost against the request rate")
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
    """Mean code length of every k against theta (the labels of Fig. 13 of the JLCM paper)."""
    rows = runs[runs["method"] == runs["method"].iloc[0]]
    lengths = pd.concat(
        read_run(out, "file_plans", run.run_id)
        .group_by("k")
        .aggregate([("n", "mean")])
        .to_pandas()
        .assign(theta=run.theta)
        for run in rows.itertuples()
    )
    figure, (axes,) = panels()
    groups = list(lengths.groupby("k"))
    for place, (k, group) in enumerate(groups):
        mean = group.groupby("theta")["n_mean"].mean()
        look = line_look(place, len(groups)) | {"color": COLOURS[place % len(COLOURS)]}
        axes.plot(mean.index, mean, label=f"k = {k}", **look)
    if runs["theta"].min() > 0:
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
    axes.set(
        xlabel="θ (s/$)",
        ylabel="mean code length n",
        title="Code length against the price of storage",
    )
    legend(figure, axes.get_lines())
    return figure
