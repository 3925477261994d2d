"""Figures of ``ecjax analyze``, drawn from its result tables only."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.natural_order import natural
from ecjax.plotting.looks import COLOURS, MARKS, line_look
from ecjax.plotting.panels import few, legend, panels
from ecjax.plotting.saving import save
from ecjax.plotting.texts import entry
from ecjax.plotting.units import plain_numbers, time_axis, time_unit
from ecjax.studies.analyze.burst_figures import burstiness, class_rates
from ecjax.tables.cumulative import cumulative
from ecjax.tables.folder import location

Tables: TypeAlias = dict[str, pd.DataFrame]

_NODES_DRAWN = 12
_BARS = 40
_INTERVALS = 200
_BUSIEST_S = 60.0


def draw(out: str, tables: Tables, console: Console) -> None:
    """Draw the figures that the tables support into out/figures.

    Args:
        out: folder of the results, or its address.
        tables: rows of one run by dataset: traces, files, arrivals, nodes, delays, delay_bins, as far as there are.
        console: where to say what was drawn.
    """
    save(location(out), ((name, figure_of(tables)) for name, figure_of in FIGURES.items()), console)


def _read_delays(tables: Tables) -> tuple[str, pd.DataFrame, pd.DataFrame] | None:
    """The quantity shown (service times where there are any) with its delays and histograms, of reads."""
    if not {"delays", "delay_bins"} <= set(tables):
        return None
    delays, bins = (tables[name][tables[name]["op"] == "read"] for name in ("delays", "delay_bins"))
    if delays.empty:
        return None
    quantity = "service" if (delays["quantity"] == "service").any() else "sojourn"
    return quantity, delays[delays["quantity"] == quantity], bins[bins["quantity"] == quantity]


def service_cdf(tables: Tables) -> Figure | None:
    """Distribution of the delays of reads, an exponential of the same mean, and the affine laws fitted."""
    reads = _read_delays(tables)
    if reads is None:
        return None
    quantity, delays, bins = reads
    edges, shares = cumulative(bins["lower_s"], bins["upper_s"], bins["count"])
    last = float(edges[np.searchsorted(shares, 0.995)])
    times = np.linspace(0, last, 600)
    mean = float((delays["count"] * delays["mean_s"]).sum() / delays["count"].sum())
    figure, (axes,) = panels()
    axes.plot(edges, shares, color=COLOURS[0], lw=4, label="measured")
    axes.plot(times, 1 - np.exp(-times / mean), "--", color=COLOURS[5], label="exponential, same mean")
    fitted = delays[delays["fit_mean_s"].notna()]
    if len(fitted):
        weights = fitted["count"].to_numpy() / fitted["count"].sum()
        psi = np.maximum(fitted["fit_std_s"].to_numpy(), 1e-12 * mean)
        delta = fitted["fit_mean_s"].to_numpy() - psi
        late = np.maximum(times[:, None] - delta, 0) / psi
        axes.plot(
            times,
            -np.expm1(-late) @ weights,
            "-.",
            color="black",
            lw=1.2,
            label="shifted exponential, fitted by node and size",
        )
    axes.set(
        ylabel="share of reads at or below",
        xlim=(0, last),
        ylim=(0, 1.02),
        title=f"Distribution of the {quantity} time, all nodes",
    )
    time_axis(axes.xaxis, f"{quantity} time of a chunk read", time_unit(last))
    axes.legend(frameon=False, loc="lower right")
    return figure


def node_ccdf(tables: Tables) -> Figure | None:
    """Share of reads above a delay, a line per node."""
    reads = _read_delays(tables)
    if reads is None or reads[2]["node_id"].isna().all():
        return None
    quantity, _, bins = reads
    figure, (axes,) = panels()
    colour_of_node, note = _chosen_nodes(bins["node_id"].unique())
    for place, (node, colour) in enumerate(colour_of_node.items()):
        part = bins[bins["node_id"] == node]
        edges, shares = cumulative(part["lower_s"], part["upper_s"], part["count"])
        above = 1 - shares
        look = line_look(place, len(colour_of_node)) | {"marker": ""}
        axes.plot(edges[above > 1e-12], above[above > 1e-12], color=colour, label=entry(node), **look)
    axes.set(
        yscale="log",
        ylabel="share of reads above",
        title=f"Tail of the {quantity} time by node{note}",
    )
    axes.set_xlim(left=0)
    time_axis(axes.xaxis, f"{quantity} time of a chunk read", time_unit(bins["upper_s"]))
    _node_legend(axes)
    return figure


def _chosen_nodes(nodes: np.ndarray) -> tuple[dict[Any, str], str]:
    """Nodes to draw, with a colour each, and what to add to the title where some are left out."""
    ordered = natural(nodes)
    places = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), _NODES_DRAWN)).round().astype(int))
    colour_of_node = {ordered[place]: COLOURS[number] for number, place in enumerate(places)}
    return colour_of_node, few(len(colour_of_node), len(ordered), "nodes")


def _node_legend(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title="node")


def delay_vs_size(tables: Tables) -> Figure | None:
    """Mean and standard deviation of the delay against chunk size, with the affine laws."""
    reads = _read_delays(tables)
    if reads is None:
        return None
    quantity, delays, _ = reads
    delays = delays[delays["count"] > 1]
    if delays["chunk_bytes"].nunique() < 2:
        return None
    figure, axes = panels(2, width=10.5)
    named = delays["node_id"].notna().all()
    colour_of_node, note = _chosen_nodes(delays["node_id"].unique()) if named else ({None: COLOURS[0]}, "")
    for place, (node, colour) in enumerate(colour_of_node.items()):
        rows = (delays[delays["node_id"] == node] if named else delays).sort_values("chunk_bytes")
        size = rows["chunk_bytes"] / 1e6
        for panel, name in zip(axes, ("mean", "std"), strict=True):
            look: dict[str, Any] = {"color": colour, "marker": MARKS[place % len(MARKS)], "markersize": 4.5}
            label = entry(node) if named else "all"
            panel.plot(size, rows[f"{name}_s"], linestyle="", label=label, **look)
            panel.plot(size, rows[f"fit_{name}_s"], "-", color=colour, lw=1)
    for panel, text in zip(axes, ("mean", "standard deviation"), strict=True):
        panel.set_xlabel("chunk size (MB)")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        time_axis(panel.yaxis, f"{text} of the {quantity} time", time_unit(panel.get_ylim()[1]))
    figure.suptitle(
        f"{quantity.capitalize()} time of reads by chunk size: measured (points), affine law (lines){note}"
    )
    if named:
        _node_legend(axes[1])
    return figure


def popularity(tables: Tables) -> Figure | None:
    """Reads of each file by rank, with Zipf's law."""
    if not {"files", "traces"} <= set(tables):
        return None
    counts = np.sort(tables["files"]["reads"].to_numpy())[::-1]
    counts = counts[counts > 0]
    if counts.size < 2:
        return None
    ranks = np.arange(1, counts.size + 1)
    shown = np.unique(np.geomspace(1, counts.size, 2000).round().astype(int)) - 1
    figure, (axes,) = panels()
    axes.loglog(ranks[shown], counts[shown], ".", ms=4, color=COLOURS[0], label="files")
    trace = tables["traces"].iloc[0]
    if pd.notna(trace["zipf_exponent"]):
        law = ranks ** -float(trace["zipf_exponent"])
        label = f"Zipf, exponent {trace['zipf_exponent']:.3f} ± {trace['zipf_error']:.2g}"
        axes.loglog(
            ranks[shown], (law * counts.sum() / law.sum())[shown], "--", color=COLOURS[5], label=label
        )
    axes.set(xlabel="rank of the file", ylabel="reads", title="Popularity of files")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    axes.legend(frameon=False)
    return figure


def arrivals(tables: Tables) -> Figure | None:
    """Rate of reads and writes over time."""
    if "arrivals" not in tables or len(tables["arrivals"]) < 2:
        return None
    rows = tables["arrivals"]
    together = -(-len(rows) // _INTERVALS)
    group = np.arange(len(rows)) // together
    summed = rows.groupby(group)[["reads", "writes", "duration_s"]].sum()
    start = rows["start_s"].to_numpy()[::together]
    end = float(rows["start_s"].iloc[-1] + rows["duration_s"].iloc[-1])
    unit, length = next(
        ((name, s) for name, s in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)) if end >= 3 * s),
        ("s", 1.0),
    )
    figure, (axes,) = panels()
    for name, colour in (("reads", COLOURS[0]), ("writes", COLOURS[5])):
        if summed[name].any():
            rate = summed[name] / summed["duration_s"]
            axes.stairs(rate, np.append(start, end) / length, color=colour, lw=1.3, label=name)
    axes.set(
        xlabel=f"time since the first request ({unit})",
        ylabel="requests per second",
        title=f"Arrivals, in intervals of {summed['duration_s'].iloc[0]:.3g} s",
    )
    axes.set_xlim(0, end / length)
    axes.set_ylim(bottom=0)
    _mark_busiest(axes, tables, length)
    legend(figure, axes.get_legend_handles_labels()[0])
    return figure


def _mark_busiest(axes: Axes, tables: Tables, length: float) -> None:
    """The mean rate of reads, and their busiest minute where the log is longer than two."""
    rows = tables["arrivals"]
    if not rows["reads"].any():
        return
    mean = rows["reads"].sum() / rows["duration_s"].sum()
    axes.axhline(mean, color=COLOURS[0], lw=1, ls="--", label="mean of reads")
    if "busiest" not in tables:
        return
    peaks = tables["busiest"]
    peaks = peaks[(peaks["op"] == "read") & peaks["service_class"].isna() & (peaks["window_s"] == _BUSIEST_S)]
    for _, peak in peaks.iterrows():
        begin, ratio = float(peak["start_s"]), float(peak["mean_ratio"])
        label = f"busiest minute of reads: {ratio:.3g} times the mean"
        times = (begin / length, (begin + _BUSIEST_S) / length)
        whole = axes.get_xaxis_transform()
        axes.fill_between(times, 0, 1, transform=whole, color=COLOURS[1], alpha=0.35, lw=0, label=label)


def node_load(tables: Tables) -> Figure | None:
    """Load and mean concurrency of each node."""
    if "nodes" not in tables or tables["nodes"]["load"].isna().all():
        return None
    nodes = tables["nodes"]
    few_enough = len(nodes) <= _BARS
    nodes = (
        nodes.sort_values("node_id", key=_ordered)
        if few_enough
        else nodes.sort_values("load", ascending=False)
    )
    figure, axes = panels(2, width=10.5)
    labels = (
        ("load", "load rho (busy time / span)"),
        ("concurrency", "mean accesses at the node (waiting and in service)"),
    )
    for panel, (name, text) in zip(axes, labels, strict=True):
        if few_enough:
            panel.barh(nodes["node_id"].astype(str), nodes[name], color=COLOURS[0], height=0.7)
            panel.invert_yaxis()
            panel.tick_params(axis="y", labelsize=8)
            panel.grid(axis="y", visible=False)
            panel.set_xlabel(text)
        else:
            panel.plot(np.arange(1, len(nodes) + 1), nodes[name], ".", color=COLOURS[0])
            panel.set(xlabel="nodes by load", ylabel=text)
    if few_enough:
        axes[0].axvline(1.0, color=COLOURS[5], ls="--", lw=1)
    else:
        axes[0].axhline(1.0, color=COLOURS[5], ls="--", lw=1)
    figure.suptitle("Load and concurrency of the nodes (stable below a load of 1)")
    return figure


def _ordered(ids: pd.Series) -> pd.Series:
    """The place of each id in their natural order."""
    return ids.map({name: place for place, name in enumerate(natural(ids.unique()))})


FIGURES: dict[str, Callable[[Tables], Figure | None]] = {
    "service_cdf": service_cdf,
    "node_ccdf": node_ccdf,
    "delay_vs_size": delay_vs_size,
    "popularity": popularity,
    "arrivals": arrivals,
    "class_rates": class_rates,
    "burstiness": burstiness,
    "node_load": node_load,
}
