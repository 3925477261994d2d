import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from ecjax.studies.analyze import figures


def tables(nodes=3, sizes=(1e5, 1e6), quantity="service", seed=0):
    """Result tables in the shape that the analysis writes, from made-up numbers."""
    random = np.random.default_rng(seed)
    names = [f"n{i:02d}" for i in range(nodes)]
    rows = [(n, s, 0.01 + 1e-8 * s, 0.02) for n in names for s in sizes]
    delays = pd.DataFrame(rows, columns=["node_id", "chunk_bytes", "mean_s", "std_s"]).assign(
        quantity=quantity, op="read", count=100
    )
    delays["fit_mean_s"], delays["fit_std_s"] = delays["mean_s"] + 0.02, 0.02
    edges = np.geomspace(0.01, 0.2, 21)
    bins = pd.DataFrame(
        [
            (n, a, b, int(random.integers(1, 50)))
            for n in names
            for a, b in zip(edges[:-1], edges[1:], strict=True)
        ],
        columns=["node_id", "lower_s", "upper_s", "count"],
    ).assign(quantity=quantity, op="read")
    return {
        "traces": pd.DataFrame({"zipf_exponent": [0.9], "zipf_error": [0.01]}),
        "files": pd.DataFrame({"reads": random.integers(0, 100, 50)}),
        "arrivals": pd.DataFrame(
            {"start_s": np.arange(900.0), "duration_s": 1.0, "reads": random.poisson(5, 900), "writes": 0}
        ),
        "nodes": pd.DataFrame(
            {"node_id": names, "load": random.random(nodes), "concurrency": random.random(nodes)}
        ),
        "burstiness": pd.DataFrame(
            [
                (
                    op,
                    name,
                    scale,
                    1 + scale / 8,
                    0.01 * scale,
                    500 / scale,
                    "burstier" if scale > 2 else "cannot tell",
                )
                for op, name in (("read", None), ("write", None), ("read", "gold"))
                for scale in (1.0, 2.0, 4.0, 8.0)
            ],
            columns=["op", "service_class", "scale_s", "dispersion", "standard_error", "pairs", "verdict"],
        ),
        "busiest": pd.DataFrame(
            [("read", None, 60.0, 300.0, 3.5)],
            columns=["op", "service_class", "window_s", "start_s", "mean_ratio"],
        ),
        "class_rates": pd.DataFrame(
            [(name, 10.0 * i, 10.0, 1.5 - i, 30 - 20 * i) for name in ("gold", "silver") for i in (0, 1)],
            columns=["service_class", "start_s", "duration_s", "factor", "reads"],
        ),
        "delays": delays,
        "delay_bins": bins,
    }


def drawn(folder, tables):
    """The names of the figures that were written, as they are said; their files are images."""
    console = Console(file=io.StringIO(), width=1000)
    figures.draw(str(folder), tables, console)
    text = console.file.getvalue()
    names = [name.strip().removesuffix(".png") for name in text.partition(": ")[2].split(",") if text]
    assert all((folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    return names


@pytest.mark.parametrize("nodes", [1, 60])
def test_every_figure_is_drawn(tmp_path, nodes):
    assert drawn(tmp_path, tables(nodes)) == list(figures.FIGURES)


def test_only_what_the_trace_supports_is_drawn(tmp_path):
    full = tables()
    rates_only = {name: full[name] for name in ("traces", "files", "arrivals")}
    assert drawn(tmp_path / "a", rates_only) == ["popularity", "arrivals"]
    one_size = tables(sizes=(1e5,))
    assert figures.delay_vs_size(one_size) is None and figures.service_cdf(one_size) is not None
    assert drawn(tmp_path / "b", {}) == [] and not (tmp_path / "b").exists()


def test_figures_without_node_names():
    found = tables(nodes=1, quantity="sojourn")
    for name in ("delays", "delay_bins"):
        found[name]["node_id"] = None
    assert figures.node_ccdf(found) is None
    assert isinstance(figures.delay_vs_size(found), Figure)
    (axes,) = figures.service_cdf(found).axes
    assert axes.get_xlabel() == "sojourn time of a chunk read (ms)"


def lines(figure):
    return {line.get_label(): line.get_xydata() for axes in figure.axes for line in axes.get_lines()}


def test_distribution_is_that_of_the_bins_beside_an_exponential_of_the_same_mean():
    found = tables()
    curves = lines(figures.service_cdf(found))
    bins = found["delay_bins"].groupby("upper_s")["count"].sum()
    measured = curves["measured"]
    assert measured[0, 1] == 0 and measured[-1, 1] == pytest.approx(1)
    np.testing.assert_allclose(measured[1:, 1], bins.cumsum() / bins.sum())
    times, shares = curves["exponential, same mean"].T
    np.testing.assert_allclose(shares, 1 - np.exp(-times / found["delays"]["mean_s"].mean()))


def test_fitted_law_is_the_mixture_over_nodes_and_sizes():
    found = tables()
    times, shares = lines(figures.service_cdf(found))["shifted exponential, fitted by node and size"].T
    delta = found["delays"]["fit_mean_s"].to_numpy() - 0.02
    expected = np.mean([np.where(times > d, 1 - np.exp(-(times - d) / 0.02), 0) for d in delta], axis=0)
    np.testing.assert_allclose(shares, expected, atol=1e-12)


def test_arrivals_are_rates():
    found = tables()
    (axes,) = figures.arrivals(found).axes
    (steps,) = axes.patches
    values, edges = steps.get_data().values, steps.get_data().edges
    assert values.sum() * 5 == found["arrivals"]["reads"].sum()
    assert edges[-1] == pytest.approx(15) and axes.get_xlabel().endswith("(min)")


def test_the_busiest_minute_and_the_mean_are_marked():
    found = tables()
    (axes,) = figures.arrivals(found).axes
    assert lines(axes.figure)["mean of reads"][0, 1] == pytest.approx(found["arrivals"]["reads"].mean())
    (band,) = axes.collections
    assert band.get_label() == "busiest minute of reads: 3.5 times the mean"
    np.testing.assert_allclose(band.get_paths()[0].get_extents().intervalx, [5, 6])


def test_dispersion_is_drawn_by_series_and_hollow_where_it_cannot_tell():
    (axes,) = figures.burstiness(tables()).axes
    labels = [line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert labels == ["reads", "writes", "reads of gold"]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    curve = lines(axes.figure)["reads"]
    np.testing.assert_allclose(curve, [[1, 1.125], [2, 1.25], [4, 1.5], [8, 2]])
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [len(line.get_xdata()) for line in hollow] == [2, 2, 2]


def test_a_dispersion_of_zero_is_drawn_on_its_logarithmic_axis():
    found = tables()
    found["burstiness"] = found["burstiness"].assign(dispersion=0.0, verdict="more regular")
    (axes,) = figures.burstiness(found).axes
    assert lines(axes.figure)["reads"][:, 1].min() > axes.get_ylim()[0] > 0


def test_rates_are_drawn_for_classes_alone():
    found = tables()
    (axes,) = figures.class_rates(found).axes
    assert [patch.get_label() for patch in axes.patches] == ["gold", "silver"]
    del found["class_rates"]
    assert figures.class_rates(found) is None


def test_nodes_are_in_the_order_of_their_numbers():
    many = tables(nodes=3)
    many["nodes"]["node_id"] = ["node-10", "node-2", "node-1"]
    axes = figures.node_load(many).axes
    names = ["node-1", "node-2", "node-10"]
    assert all([label.get_text() for label in each.get_yticklabels()] == names for each in axes)
    loads = many["nodes"].set_index("node_id")["load"]
    np.testing.assert_allclose([bar.get_width() for bar in axes[0].patches], loads[names])
