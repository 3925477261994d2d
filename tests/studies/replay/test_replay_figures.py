"""Figures of replays: every kind shows the numbers of its tables, whatever sources there are."""

import json
from io import StringIO

import matplotlib.image
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from ecjax.plotting.panels import limit, number
from ecjax.plotting.runs import names, swept
from ecjax.studies.replay.figures import kinds as replay
from ecjax.studies.replay.tables import TABLES
from ecjax.studies.replay.words import MOST_BARS, MOST_CURVES
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

CLASSES, NODES = ("gold", "silver"), ("n1", "n2", "n3")
QUANTILES = {"p50_s": 0.8, "p90_s": 2.0, "p99_s": 4.0, "p999_s": 6.0}  # over the mean


def run(name: str, mean: float = 10.0, **own) -> dict:
    row = {"run_id": name, "job": "replay", "status": "ok", "method": "certified", "theta": 10.0}
    row |= {
        "policy": "probabilistic",
        "queue": "fcfs",
        "service": "gamma",
        "rate_scale": 1.0,
        "size_scale": 1.0,
    }
    row |= {
        "max_load": 0.5,
        "plan_run": "p",
        "importance": None,
        "class_rate_scale": None,
        "input_id": "i",
        "mean_s": mean,
        "ci_s": 0.1 * mean,
        "p99_s": 4 * mean,
    }
    return row | own


def latencies(row: dict, sources=("replayed", "estimated", "bound")) -> pa.Table:
    """Rows of ``latencies``: factors tell sources, classes and nodes apart."""
    found = []
    for place, source in enumerate(sources):
        scale = row["mean_s"] * (1 + 0.1 * place)
        groups = [("all", {}, 1.0)]
        if source not in ("split_merge", "forks"):
            groups += [("class", {"class": name}, 1 + 0.5 * i) for i, name in enumerate(CLASSES)]
        if source != "bound":
            load = {"utilisation": 0.31 if source == "replayed" else 0.3}
            groups += [("node", {"node_id": name} | load, 0.5 + 0.1 * i) for i, name in enumerate(NODES)]
        for group, own, factor in groups:
            mean = scale * factor
            values = {"run_id": row["run_id"], "group": group, "source": source, "mean_s": mean} | own
            if source == "replayed":
                values |= {"ci_s": 0.1 * mean, "requests": 1000}
            if source in ("replayed", "estimated"):
                values |= {name: times * mean for name, times in QUANTILES.items()}
            found.append({key: None if value != value else value for key, value in values.items()})
    return pa.Table.from_pylist(found, schema=dataset_schema(TABLES, "latencies", {}))


def bins(row: dict) -> pa.Table:
    """Four reads of ``all``: one below the mean, two at up to twice, one at up to four times; classes likewise."""
    edges = row["mean_s"] * np.array([0.5, 1.0, 2.0, 4.0])
    found = [
        {"group": group, "class": name, "lower_s": low, "upper_s": high, "count": count}
        for group, name in (("all", None), *(("class", name) for name in CLASSES))
        for low, high, count in zip(edges, edges[1:], (1, 2, 1), strict=False)
    ]
    table = [own | {"run_id": row["run_id"], "source": "replayed"} for own in found]
    return pa.Table.from_pylist(table, schema=dataset_schema(TABLES, "latency_bins", {}))


def services(row: dict) -> pa.Table:
    """An exponential law of all chunks, a tenth of the mean latency long."""
    share = np.linspace(0.0, 0.99, 100)
    times = -0.1 * row["mean_s"] * np.log1p(-share)
    common = {"run_id": row["run_id"], "group": "all", "class": None}
    found = [common | {"probability": p, "service_s": time} for p, time in zip(share, times, strict=True)]
    return pa.Table.from_pylist(found, schema=dataset_schema(TABLES, "services", {}))


def stored(folder, rows, sources=("replayed", "estimated", "bound"), write=None):
    files = pa.table({"file_id": ["a", "b"], "bytes": [2e6, 4e6], "k": [2, 2], "rate_per_s": [1.0, 2.0]})
    with ResultStore(folder, TABLES, {"file_id": pa.string(), "node_id": pa.string()}, write) as store:
        store.write_input("files", "i", files)
        for row in rows:
            tables = {"latencies": latencies(row, sources), "latency_bins": bins(row)}
            store.commit([row], tables | {"services": services(row)})
    return read_results(folder, "runs").set_index("run_id").loc[[row["run_id"] for row in rows]].reset_index()


def drawn(out, runs, kinds) -> str:
    console = Console(file=StringIO(), width=300)
    replay.draw(out, runs, kinds, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two policies at three rates."""
    out = tmp_path_factory.mktemp("figures") / "out"
    rows = [
        run(f"{policy}{scale}", mean=10 * scale * (2 if policy == "fork_join" else 1), policy=policy)
        | {"rate_scale": scale, "max_load": 0.5 * scale}
        for policy in ("probabilistic", "fork_join")
        for scale in (0.5, 1.0, 1.5)
    ]
    return out, stored(out, rows, ("replayed", "estimated", "bound", "split_merge", "forks"))


def test_every_kind_is_drawn(sweep):
    out, runs = sweep
    kinds = [kind for kind in replay.KINDS if kind != "class_sizes"]  # needs latencies by file
    text = drawn(out, runs, kinds)
    for kind in kinds:
        pixels = matplotlib.image.imread(out / "figures" / f"{kind}.png")
        assert pixels.shape[0] > 300 and pixels.shape[1] > 600
        assert np.mean(pixels[..., :3].min(axis=-1) < 0.9) > 0.005, "something other than white is on it"
        assert f"{kind}.png" in text


def test_sources_that_are_missing_break_no_figure(tmp_path):
    rows = [run("a", rate_scale=1.0), run("b", rate_scale=2.0, max_load=0.9)]
    runs = stored(tmp_path / "out", rows, ("replayed",))
    text = drawn(tmp_path / "out", runs, list(replay.KINDS))
    assert all(f"{kind}.png" in text for kind in replay.KINDS if kind != "class_sizes")
    alone = drawn(tmp_path / "out", runs.iloc[:1], list(replay.KINDS))
    assert (
        "figure sweep: needs runs that differ" in alone and "figure bounds: needs runs that differ" in alone
    )


def test_what_was_not_written_and_what_failed(tmp_path):
    out = tmp_path / "out"
    runs = stored(out, [run("a")], write=["latencies"])
    text = drawn(out, runs, ["cdf", "latency"])
    assert "figure cdf: needs the datasets latencies and latency_bins, which were not written" in text
    assert "latency.png" in text and not (out / "figures" / "cdf.png").exists()
    assert drawn(out, runs.assign(mean_s=np.nan), list(replay.KINDS)) == ""


def test_runs_that_were_not_written_are_said_to_be_missing(tmp_path):
    out = tmp_path / "out"
    stored(out, [run("a")], write=["latencies"])
    stored(out, [run("b", mean=20.0)], write=["latency_bins"])
    runs = stored(out, [run("c", mean=30.0), run("d", mean=40.0)])
    runs = read_results(out, "runs").set_index("run_id").loc[["a", "b", *runs["run_id"]]].reset_index()
    text = drawn(out, runs, ["cdf", "latency", "services"])
    assert "figure cdf: without 2 runs, whose datasets latencies and latency_bins were not written" in text
    assert "figure latency: without 1 run, whose dataset latencies was not written" in text
    assert "figures in" in text and "needs" not in text
    bars = replay.draw.figure(out, runs, "latency").axes[0].patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], [10, 30, 40, 11, 33, 44, 12, 36, 48])


def test_the_distribution_of_classes_of_one_run(tmp_path):
    runs = stored(tmp_path / "out", [run("a")])
    left, right = replay.cdf(tmp_path / "out", runs).axes
    lines = {line.get_label(): line for line in left.get_lines()}
    assert {"class gold", "class silver"} <= set(lines)
    gold = lines["class gold"]
    np.testing.assert_allclose(gold.get_xdata(), [5, 10, 20, 40])
    np.testing.assert_allclose(gold.get_ydata(), [0, 0.25, 0.75, 1])
    np.testing.assert_allclose(right.get_lines()[0].get_ydata(), 1 - gold.get_ydata())
    dots = [line for line in right.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(dots[0].get_xdata(), 11 * np.array(list(QUANTILES.values())))
    np.testing.assert_allclose(dots[0].get_ydata(), [0.5, 0.1, 0.01, 0.001], rtol=1e-9)
    bounds = [line.get_xdata()[0] for line in left.get_lines() if line.get_linestyle() == ":"]
    np.testing.assert_allclose(bounds, [12.0, 18.0])


def test_the_distribution_of_several_runs(sweep):
    out, runs = sweep
    left = replay.cdf(out, runs).axes[0]
    labels = [line.get_label() for line in left.get_lines() if not line.get_label().startswith("_")]
    assert labels == [
        f"{policy}, rates x {scale:g}" for policy in ("probabilistic", "fork join") for scale in (0.5, 1, 1.5)
    ]


def test_bars_of_runs_are_their_latencies(sweep):
    out, runs = sweep
    mean, tail = replay.latency(out, runs).axes
    widths = [bar.get_width() for bar in mean.patches]
    expected = runs["mean_s"].to_numpy()
    np.testing.assert_allclose(widths, np.concatenate([expected * f for f in (1, 1.1, 1.2)]))
    np.testing.assert_allclose(
        [bar.get_width() for bar in tail.patches], np.concatenate([4 * expected, 4.4 * expected])
    )
    assert [label.get_text() for label in mean.get_yticklabels()] == names(runs)


def test_estimates_under_arrivals_as_they_come_are_beside_those_of_mean_rates(tmp_path):
    row = run("a", mean=10.0) | {"params": json.dumps({"inputs": {"rates": "r.csv"}})}
    runs = stored(tmp_path / "out", [row], ("replayed", "estimated", "trace_estimated", "bound"))
    figure = replay.latency(tmp_path / "out", runs)
    words = [
        "replayed",
        "estimated, if Poisson",
        "estimated, arrivals as they come",
        "bound, void: rates vary",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == words
    lengths = [float(patch.get_width()) for patch in figure.axes[0].patches]
    np.testing.assert_allclose(lengths, [10.0, 11.0, 12.0, 13.0])
    marks = replay.cdf(tmp_path / "out", runs).legends[0].get_texts()
    assert "estimated quantiles, if Poisson" in [text.get_text() for text in marks]


def test_classes_side_by_side(sweep):
    out, runs = sweep
    figure = replay.classes(out, runs)
    assert len(figure.axes) == 6
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    np.testing.assert_allclose(heights, [10, 15, 11, 16.5, 12, 18])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list(CLASSES)


def test_nodes_with_their_load_and_sojourn(tmp_path):
    runs = stored(tmp_path / "out", [run("a")])
    upper, lower = replay.utilisation(tmp_path / "out", runs).axes
    np.testing.assert_allclose([bar.get_height() for bar in upper.patches], [0.31] * 3)
    np.testing.assert_allclose([bar.get_height() for bar in lower.patches], [5, 6, 7])
    marks = [line for line in upper.get_lines() if line.get_marker() == "_"]
    np.testing.assert_allclose(marks[0].get_ydata(), [0.3] * 3)
    assert [label.get_text() for label in lower.get_xticklabels()] == list(NODES)


def test_nodes_of_a_log_that_is_predicted(tmp_path):
    """How busy they were is not known: sojourns as replayed beside those observed, 1.1 times as long; the most read."""
    rows = [run("a", service="empirical", arrivals="trace"), run("b", mean=20.0, service="gamma")]
    out, count = tmp_path / "out", MOST_BARS + 20
    with ResultStore(out, TABLES, {"file_id": pa.string(), "node_id": pa.string()}, None) as store:
        for row in rows:
            common = {"run_id": row["run_id"], "group": "node"}
            table = [
                common | {"node_id": f"n{node}", "source": source, "mean_s": factor * row["mean_s"]}
                | {"requests": node, "ci_s": 1.0}
                for source, factor in (("replayed", 1.0), ("observed", 11.0 / row["mean_s"]), ("estimated", 0.9))
                for node in range(count)
            ]  # fmt: skip
            schema = dataset_schema(TABLES, "latencies", {})
            store.commit([row], {"latencies": pa.Table.from_pylist(table, schema=schema)})
    figure = replay.utilisation(out, read_results(out, "runs").sort_values("run_id"))
    (axes,) = figure.axes
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, np.repeat([11.0, 10.0, 20.0], MOST_BARS))
    marks = [line.get_ydata() for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(marks, np.repeat([[9.0], [18.0]], MOST_BARS, axis=1))
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert shown == [f"n{node}" for node in range(20, count)]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["observed", "empirical", "gamma", "estimated, if Poisson"]
    assert f"({MOST_BARS} of {count} nodes, the most read)" in figure.get_suptitle()


def test_a_sweep_over_rates_and_one_over_sizes(sweep, tmp_path):
    out, runs = sweep
    mean, tail = replay.sweep(out, runs).axes
    replayed = [
        line for line in mean.get_lines() if line.get_linestyle() == "-" and len(line.get_xdata()) == 3
    ]
    np.testing.assert_allclose(replayed[0].get_xdata(orig=False), [1.5, 3.0, 4.5])
    np.testing.assert_allclose(replayed[0].get_ydata(orig=False), [5, 10, 15])
    np.testing.assert_allclose(replayed[1].get_ydata(orig=False), [10, 20, 30])
    assert mean.get_xlabel() == "request rate of all files (1/s)" and tail.get_title() == "99 % quantile"
    sizes = stored(tmp_path / "out", [run("a", size_scale=2.0), run("b", size_scale=0.5, mean=4.0)])
    axes = replay.sweep(tmp_path / "out", sizes).axes[0]
    line = next(line for line in axes.get_lines() if line.get_linestyle() == "-")
    np.testing.assert_allclose(line.get_xdata(orig=False), [1.5, 6.0])
    np.testing.assert_allclose(line.get_ydata(orig=False), [4, 10])


def test_without_a_sweep_the_load_is_the_axis(tmp_path):
    rows = [run("a", theta=1.0, max_load=0.4), run("b", theta=5.0, max_load=0.6)]
    runs = stored(tmp_path / "out", rows)
    axes = replay.sweep(tmp_path / "out", runs).axes[0]
    assert axes.get_xlabel() == "load of the busiest node"
    assert [len(line.get_xdata()) for line in axes.get_lines() if line.get_linestyle() == "-"] == [2]


def test_bounds_against_load(sweep):
    out, runs = sweep
    axes = replay.bounds(out, runs).axes[0]
    handles, labels = axes.get_legend_handles_labels()
    assert labels == [
        *("probabilistic: replayed", "probabilistic: estimated", "probabilistic: bound (Poisson arrivals)"),
        *("split-merge bound", "forks bound"),
        *("fork join: replayed", "fork join: estimated", "fork join: bound (Poisson arrivals)"),
    ]
    line = dict(zip(labels, handles, strict=True))["forks bound"][0]
    np.testing.assert_allclose(line.get_xdata(orig=False), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(line.get_ydata(orig=False), [7, 14, 21])
    alone = replay.bounds(out, runs.iloc[:3]).axes[0].get_legend_handles_labels()[1]
    assert alone == ["replayed", "estimated", "bound (Poisson arrivals)", "split-merge bound", "forks bound"]


def test_the_load_of_policies_that_leave_it_open_is_their_utilisation(tmp_path):
    rows = [
        run(f"{policy}{load}", policy=policy, max_load=None if policy == "hedged" else load)
        | {"max_utilisation": load + 0.01, "rate_scale": 2 * load}
        for policy in ("probabilistic", "hedged")
        for load in (0.2, 0.4)
    ]
    runs = stored(tmp_path / "out", rows, ("replayed",))
    lines = replay.bounds(tmp_path / "out", runs).axes[0].get_legend_handles_labels()[0]
    np.testing.assert_allclose([line[0].get_xdata(orig=False) for line in lines], [[0.2, 0.4], [0.21, 0.41]])
    # a load each is no line
    assert replay.bounds(tmp_path / "out", runs.iloc[[0, 2]]) is None


def test_slow_nodes_are_lines_of_their_own(tmp_path):
    rows = [
        run(f"{node}{scale}", slow=json.dumps({node: 5.0}), rate_scale=scale, mean=mean * scale)
        for node, mean in (("n1", 10.0), ("n2", 30.0))
        for scale in (1.0, 2.0)
    ]
    figure = replay.sweep(tmp_path / "out", stored(tmp_path / "out", rows, ("replayed",)))
    lines = [line.get_ydata(orig=False) for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"]
    np.testing.assert_allclose(lines, [[10, 20], [30, 60]])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[:2] == ["services of n1 x 5", "services of n2 x 5"]


@pytest.mark.parametrize(
    "own",
    [{"arrivals": "trace"}, {"params": json.dumps({"inputs": {"rates": "print"}})}],
    ids=["log", "rates"],
)
def test_rates_that_are_not_those_of_a_table_are_no_axis(tmp_path, own):
    """Of a log, or as factors have them: what they were multiplied by is known."""
    rows = [run(str(scale), mean=scale, rate_scale=scale, max_load=0.2 * scale) | own for scale in (1.0, 2.0)]
    out, table = tmp_path / "out", stored(tmp_path / "out", rows)
    axes = replay.sweep(out, table).axes[0]
    assert axes.get_xlabel() == "rates multiplied by"
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(orig=False), [1, 2])
    # nor is there a time between reads
    assert not replay.bounds(out, table).axes[0].child_axes
    plain = stored(tmp_path / "plain", [row | {"arrivals": "poisson", "params": "{}"} for row in rows])
    assert replay.bounds(tmp_path / "plain", plain).axes[0].child_axes
    scales = [json.dumps({"gold": scale, "silver": 1.0}) for scale in (1.0, 3.0)]
    rows = [run(str(place), class_rate_scale=each) | own for place, each in enumerate(scales)]
    column, values, label = swept(tmp_path / "classes", stored(tmp_path / "classes", rows))
    assert (column, label) == ("class_rate_scale", "planned rates of class gold multiplied by")
    assert values.tolist() == [1.0, 3.0]


def test_bounds_of_more_lines_than_can_be_told_apart(tmp_path):
    rows = [
        run(f"{name}{load}", service=f"law {name}", max_load=load)
        for name in range(MOST_CURVES + 1)
        for load in (0.2, 0.4)
    ]
    axes = replay.bounds(tmp_path / "out", stored(tmp_path / "out", rows, ("replayed",))).axes[0]
    assert len(axes.get_legend_handles_labels()[1]) == MOST_CURVES
    assert f"({MOST_CURVES} of {MOST_CURVES + 1} lines)" in axes.get_title()


def test_names_tell_runs_apart():
    def of(*rows, axis=None):
        return names(pd.DataFrame(rows), axis)

    assert of(run("a")) == ["replay"]
    assert of(run("a", theta=None, method="none"), run("b")) == [
        "none",
        "certified, θ = 10",
    ]
    assert of(run("a", plan_run="abcdefgh"), run("b", plan_run="hgfedcba")) == ["plan abcdef", "plan hgfedc"]
    both = run("a", rate_scale=0.5, queue="fcfs"), run("b", queue="priority")
    assert of(*both) == ["fcfs, rates x 0.5", "priority, rates x 1"]
    assert of(*both, axis="rate_scale") == ["fcfs", "priority"]
    every = [run(name, slow=json.dumps({name: 5.0})) for name in "ab"]
    assert of(*every) == ["services of a x 5", "services of b x 5"]
    many = {f"n{node}": 2.0 for node in range(5)}
    assert of(run("a"), run("b", slow=json.dumps(many)))[1] == "services of n0 x 2, n1 x 2, n2 x 2, ..."


def test_axes_end_before_what_is_far_off():
    assert limit(pd.Series([1.0, 2.0, 3.0])) == 3.0
    assert limit(pd.Series([1.0, 2.0, 3.0, np.inf, np.nan, 900.0])) == 4 * 2.5
    assert number(1234.5) == "1,234" and number(0.01234) == "0.0123"
