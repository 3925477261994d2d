"""Figures of plans, drawn from their result tables only."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ecjax.plotting.method_names import BY_CLASS, MARKERS, METHOD_NAMES
from ecjax.plotting.panels import panels
from ecjax.tables.results import read_results, read_run

LATENCY = "mean latency bound (s)"
COST = "storage cost per file ($ per period)"


def _per_file(runs: pd.DataFrame) -> pd.Series:
    return runs["cost_dollars_per_period"] / runs["file_count"]


def tradeoff(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Latency against cost, a point per theta, a line per method; queues by class only where theta varies."""
    if runs["theta"].nunique() == 1:
        runs = runs[~runs["method"].isin(BY_CLASS)]
    if runs.empty:
        return None
    figure, (axes,) = panels()
    for method, group in runs.groupby("method", sort=False):
        ordered = group.sort_values("theta")
        axes.plot(
            _per_file(ordered),
            ordered["latency_s"],
            marker=MARKERS[method],
            label=METHOD_NAMES[method],
            alpha=0.9,
        )
        if method != runs["method"].iloc[0]:
            continue
        last = None
        for run in ordered.itertuples():
            point = (run.cost_dollars_per_period / run.file_count, run.latency_s)
            extent = np.array([np.ptp(_per_file(ordered)), np.ptp(ordered["latency_s"])]) + 1e-12
            # labels that would lie on each other are left out
            if last is None or np.abs(np.subtract(point, last) / extent).max() > 0.08:
                label = f"θ = {run.theta:g}"
                axes.annotate(
                    label, point, xytext=(-6, -10), textcoords="offset points", fontsize=8, ha="right"
                )
                last = point
    axes.set(xlabel=COST, ylabel=LATENCY, title="Latency against storage cost")
    axes.margins(0.15, 0.08)
    axes.legend(frameon=False)
    return figure


def convergence(out: Path, runs: pd.DataFrame) -> Figure | None:
    """Objective of the descent over its final value, by iteration."""
    published = runs[runs["method"] == "published"]
    if published.empty:
        return None
    figure, (axes,) = panels()
    for run in published.sort_values("theta").itertuples():
        values = read_run(out, "history", run.run_id).to_pandas()
        label = f"θ = {run.theta:g}" + _where(run, published)
        axes.plot(values["iteration"], values["objective"] / values["objective"].iloc[-1], label=label)
    axes.set(
        xlabel="iteration",
        ylabel="objective of the descent / its last value",
        title="Convergence of JLCM (latency + theta x log surrogate of the cost)",
    )
    axes.legend(frameon=False, fontsize=8, ncols=2)
    return figure


def gap(out: Path, runs: pd.DataFrame) -> Figure | None:
    """How far each plan may be from the best, by theta: its gap to the lower bound."""
    rows = runs[runs["gap"].notna()]
    if rows.empty:
        return None
    figure, (axes,) = panels()
    for method, group in rows.groupby("method", sort=False):
        ordered = group.sort_values("theta")
        label = METHOD_NAMES[method]
        axes.plot(
            ordered["theta"], 100 * ordered["gap"].clip(lower=1e-9), marker=MARKERS[method], label=label
        )
    axes.set(
        xscale="log" if (rows["theta"] > 0).all() else "linear",
        yscale="log",
        xlabel="theta (s/$)",
        ylabel="(objective - lower bound) / lower bound (%)",
        title="How much better another plan could be, at most",
    )
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend(frameon=False)
    return figure


def _where(run, runs: pd.DataFrame) -> str:
    """Label of the scalings that vary."""
    text = ""
    for name, word in (("rate_scale", "rates"), ("size_scale", "sizes")):
        if runs[name].nunique() > 1:
            text += f", {word} x {getattr(run, name):g}"
    return text


def methods(out: Path, runs: pd.DataFrame) -> Figure:
    """Latency and cost of every method, side by side (Fig. 9 of the JLCM paper); the largest theta of the sweep."""
    rows = runs[runs["theta"] == runs["theta"].max()].drop_duplicates("method")
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    for index, (values, label) in enumerate(
        ((rows["latency_s"], LATENCY), (_per_file(rows), COST), (rows["objective"], "objective (s)"))
    ):
        axes = figure.add_subplot(1, 3, index + 1)
        names = [METHOD_NAMES[method].replace(" ", "\n") for method in rows["method"]]
        bars = axes.bar(names, values, color=f"C{index}", width=0.65)
        axes.bar_label(
            bars, labels=[f"{value:.{0 if value >= 1000 else 1}f}" for value in values], fontsize=8
        )
        axes.set_ylabel(label)
        axes.tick_params(axis="x", labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"JLCM against oblivious schemes, θ = {rows['theta'].iloc[0]:g}")
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
    for name, group in plans.groupby(key):
        values = np.sort(group["latency_s"])
        codes = "/".join(sorted({f"({n}, {k})" for n, k in zip(group["n"], group["k"], strict=True)}))
        axes.step(
            values, np.arange(1, len(values) + 1) / len(values), where="post", label=f"{key} {name} {codes}"
        )
    axes.set(
        xlabel="latency bound of a file (s)",
        ylabel="share of files at or below",
        title=f"Latency bound by class, θ = {run['theta']:g}",
        ylim=(0, 1.02),
    )
    axes.legend(frameon=False, fontsize=8)
    return figure


def sizes(out: Path, runs: pd.DataFrame) -> Figure:
    """Latency bound against mean file size (Fig. 11 of the JLCM paper)."""
    files = read_results(out, "inputs/files")
    mean = files[files["input_id"] == runs["input_id"].iloc[0]]["bytes"].mean()
    figure, (axes,) = panels()
    for (method, theta), group in runs.groupby(["method", "theta"], sort=False):
        ordered = group.sort_values("size_scale")
        label = f"{METHOD_NAMES[method]}, θ = {theta:g}"
        axes.plot(
            ordered["size_scale"] * mean / 1e6, ordered["latency_s"], marker=MARKERS[method], label=label
        )
    axes.set(xlabel="mean file size (MB)", ylabel=LATENCY, title="Latency bound against file size")
    axes.legend(frameon=False)
    return figure


def rates(out: Path, runs: pd.DataFrame) -> Figure:
    """Latency bound as bars and cost as a line against the request rate (Fig. 12 of the JLCM paper)."""
    files = read_results(out, "inputs/files")
    total = files[files["input_id"] == runs["input_id"].iloc[0]]["rate_per_s"].sum()
    rows = runs[(runs["method"] == runs["method"].iloc[0]) & (runs["theta"] == runs["theta"].iloc[0])]
    ordered = rows.sort_values("rate_scale")
    figure, (axes,) = panels()
    names = [f"{scale * total:.3g}" for scale in ordered["rate_scale"]]
    axes.bar(names, ordered["latency_s"], width=0.6, color="C0", label=LATENCY)
    axes.set(
        xlabel="request rate of all files (1/s)",
        ylabel=LATENCY,
        title="Latency and cost against the request rate",
    )
    right = axes.twinx()
    right.plot(names, _per_file(ordered), color="C1", marker="o", label=COST)
    right.set_ylabel(COST)
    right.spines["top"].set_visible(False)
    right.set_ylim(0, 1.35 * _per_file(ordered).max())
    handles = [*axes.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    axes.legend(handles, [LATENCY, COST], frameon=False, loc="upper left")
    axes.set_ylim(0, 1.35 * ordered["latency_s"].max())
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
    for k, group in lengths.groupby("k"):
        mean = group.groupby("theta")["n_mean"].mean()
        axes.plot(mean.index, mean, marker="o", label=f"k = {k}")
    if runs["theta"].min() > 0:
        axes.set_xscale("log")
    axes.set(
        xlabel="θ (s/$)",
        ylabel="mean code length n",
        title="Code length against the price of storage",
    )
    axes.legend(frameon=False)
    return figure
