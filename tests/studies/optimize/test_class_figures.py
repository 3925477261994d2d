"""Figures by service class, of plans and of replays: what they show is what the tables hold."""

import json
from io import StringIO

import matplotlib.image
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from ecjax.plotting.class_values import class_names, in_a_line
from ecjax.plotting.runs import names
from ecjax.studies.optimize.figures import plans
from ecjax.studies.optimize.figures.classes import class_convergence, class_latency
from ecjax.studies.replay.figures import kinds as replay
from ecjax.studies.replay.figures.classes import class_sizes, class_sweep
from ecjax.tables.result_schemas import result_schema
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

CLASSES = ("gold", "silver")
IDS = {"file_id": pa.string(), "node_id": pa.string(), "service_class": pa.string()}
METHODS = {"priority": "jlop", "weighted": "jlwo"}


def importance(second: float) -> str:
    return json.dumps({"gold": 1.0, "silver": second})


def planned(name: str, queue: str = "priority", **own) -> dict:
    row = {"run_id": name, "job": "optimize", "status": "ok", "method": METHODS[queue], "queue": queue}
    row |= {"theta": 0.0, "rate_scale": 1.0, "size_scale": 1.0, "input_id": "i", "objective": 1.0}
    return row | {"cost_dollars_per_period": 1.0, "file_count": 2, "latency_s": 10.0, "importance": importance(1.0)} | own


def replayed(name: str, queue: str = "priority", **own) -> dict:
    row = planned(name, queue) | {"job": "replay", "policy": "probabilistic", "service": "gamma"}
    row |= {"mean_s": 10.0, "ci_s": 1.0, "max_load": 0.5, "plan_run": "p"}
    return row | {"queue": {"weighted": "partitioned"}.get(queue, queue)} | own


def class_plans(row: dict, latency: dict[str, float], deadline: dict[str, float] | None = None) -> pa.Table:
    told = [
        {"run_id": row["run_id"], "service_class": name, "latency_s": value}
        | {"deadline_s": (deadline or {}).get(name)}
        for name, value in latency.items()
    ]
    return pa.Table.from_pylist(told, schema=result_schema("class_plans", IDS))


def history(row: dict, steps: list[tuple[int, str | None, float, float, float]]) -> pa.Table:
    """Steps are (iteration, class in force, objective, latency of gold, latency of silver)."""
    told = [
        {"run_id": row["run_id"], "iteration": iteration, "step": "scheduling", "service_class": name}
        | {"objective": value, "class_latency_s": json.dumps({"gold": gold, "silver": silver})}
        for iteration, name, value, gold, silver in steps
    ]
    return pa.Table.from_pylist(told, schema=result_schema("history", IDS))


def stored(folder, rows, tables=None, files=None):
    files = files if files is not None else {"i": (1.0, 2.0)}
    with ResultStore(folder, IDS, None) as store:
        for name, rates in files.items():
            table = {"file_id": ["a", "b"], "bytes": [2e6, 4e6], "k": [2, 2], "rate_per_s": list(rates)}
            store.write_input("files", name, pa.table(table | {"service_class": list(CLASSES)}))
        for number, row in enumerate(rows):
            store.commit([row], {key: own[number] for key, own in (tables or {}).items()})
    return read_results(folder, "runs").set_index("run_id").loc[[row["run_id"] for row in rows]].reset_index()


def drawn(draw, out, runs, kinds) -> str:
    console = Console(file=StringIO(), width=300)
    draw(out, runs, kinds, console)
    return console.file.getvalue()


def labels(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two queues at three values of C_2."""
    out = tmp_path_factory.mktemp("figures") / "out"
    rows = [
        planned(f"{queue}{second}", queue, importance=importance(second))
        for queue in METHODS
        for second in (0.8, 0.2, 0.5)
    ]
    latencies = [
        {"gold": 10 + second, "silver": 20 / second + number // 3}
        for number, second in enumerate([0.8, 0.2, 0.5] * 2)
    ]
    tables = [class_plans(row, told) for row, told in zip(rows, latencies, strict=True)]
    steps = [(0, None, 4.0, 30, 40), (1, None, 3.0, 20, 30), (1, None, 2.0, 12, 25)]
    descents = [history(row, steps) for row in rows]
    return out, stored(out, rows, {"class_plans": tables, "history": descents})


def test_latency_of_classes_over_what_is_swept(sweep):
    out, runs = sweep
    figure = class_latency(out, runs)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "importance of class silver"
    assert labels(figure) == ["class gold", "class silver", "JLOP (priority)", "JLWO (weighted)"]
    gold, silver, *_, last = axes.get_lines()
    np.testing.assert_allclose(gold.get_xdata(), [0.2, 0.5, 0.8])
    np.testing.assert_allclose(gold.get_ydata(), [10.2, 10.5, 10.8])
    np.testing.assert_allclose(silver.get_ydata(), [100, 40, 25])
    np.testing.assert_allclose(last.get_ydata(), [101, 41, 26])
    assert gold.get_color() != silver.get_color() and gold.get_linestyle() == silver.get_linestyle()
    assert axes.get_yscale() == "linear"  # 10 to 101 is less than 12 times


def test_latency_over_decades_has_a_logarithmic_axis(tmp_path):
    rows = [planned("a", rate_scale=0.5), planned("b", rate_scale=2.0)]
    tables = [class_plans(row, {"gold": 10, "silver": own}) for row, own in zip(rows, (20, 900), strict=True)]
    axes = class_latency(tmp_path, stored(tmp_path, rows, {"class_plans": tables})).axes[0]
    assert axes.get_yscale() == "log" and axes.get_xlabel() == "request rate of all files (1/s)"
    np.testing.assert_allclose(axes.get_lines()[1].get_xdata(), [1.5, 6.0])


def test_rates_of_a_class_are_those_of_its_files(tmp_path):
    scale = [json.dumps({"gold": own, "silver": 1.0}) for own in (1.0, 3.0)]
    rows = [
        planned(name, class_rate_scale=told, input_id=name, rate_scale=0.5)
        for name, told in zip("ab", scale, strict=True)
    ]
    tables = [class_plans(row, {"gold": 10, "silver": 20}) for row in rows]
    runs = stored(tmp_path, rows, {"class_plans": tables}, {"a": (1.0, 2.0), "b": (3.0, 2.0)})
    axes = class_latency(tmp_path, runs).axes[0]
    assert axes.get_xlabel() == "read rate of class gold (1/s)"
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [0.5, 1.5])


def test_one_point_is_drawn_as_bars_with_deadlines(tmp_path):
    rows = [planned("a"), planned("b", "weighted")]
    tables = [
        class_plans(rows[0], {"gold": 10, "silver": 20}, {"silver": 15.0}),
        class_plans(rows[1], {"gold": 12, "silver": 14}),
    ]
    figure = class_latency(tmp_path, stored(tmp_path, rows, {"class_plans": tables}))
    axes = figure.axes[0]
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], [10, 20, 12, 14])
    assert [label.get_text() for label in axes.get_xticklabels()] == list(CLASSES)
    assert labels(figure) == ["JLOP (priority)", "JLWO (weighted)", "deadline"]
    marks = np.array([part for lines in axes.collections for part in lines.get_segments() if len(part)])
    np.testing.assert_allclose(marks[..., 1], [[15, 15]])
    bar = axes.patches[1]
    np.testing.assert_allclose(marks[0, :, 0].mean(), bar.get_x() + bar.get_width() / 2)


def test_steps_stand_within_their_outer_iterations(sweep):
    out, runs = sweep
    left, right = class_convergence(out, runs.iloc[:1]).axes
    gold, silver = left.get_lines()
    np.testing.assert_allclose(gold.get_xdata(), [0, 0.5, 1])
    np.testing.assert_allclose(gold.get_ydata(), [30, 20, 12])
    np.testing.assert_allclose(silver.get_ydata(), [40, 30, 25])
    (whole,) = right.get_lines()
    np.testing.assert_allclose(whole.get_ydata(), [2, 1.5, 1])


def test_classes_planned_in_turn_have_an_objective_each(tmp_path):
    row = planned("a")
    steps = [(0, None, 9.0, 30, 40), (1, "gold", 8.0, 20, 50), (1, "silver", 6.0, 20, 30)]
    steps += [(2, "gold", 4.0, 10, 35), (2, "silver", 3.0, 10, 25)]
    runs = stored(tmp_path, [row], {"history": [history(row, steps)]})
    figure = class_convergence(tmp_path, runs)
    gold, silver = figure.axes[1].get_lines()
    np.testing.assert_allclose(gold.get_xdata(), [0.5, 1.5])
    np.testing.assert_allclose(gold.get_ydata(), [2, 1])
    np.testing.assert_allclose(silver.get_ydata(), [2, 1])
    assert labels(figure) == ["class gold", "class silver"]


def test_kinds_that_do_not_apply_are_left_out_without_a_word(sweep, tmp_path):
    out, runs = sweep
    text = drawn(plans.draw, out, runs, ["tradeoff", "gap", "convergence", "scenarios", "class_latency"])
    assert "class_latency.png" in text and "needs" not in text and "tradeoff" not in text
    pixels = matplotlib.image.imread(out / "figures" / "class_latency.png")
    assert np.mean(pixels[..., :3].min(axis=-1) < 0.9) > 0.005
    plain = [planned("a") | {"method": "certified", "queue": "fcfs", "importance": None}]
    kinds = ["class_latency", "class_convergence"]
    assert drawn(plans.draw, tmp_path, stored(tmp_path, plain), kinds) == ""
    missing = runs.assign(batch_id="another")
    assert "needs the dataset class_plans" in drawn(plans.draw, out, missing, ["class_latency"])


def latencies(row: dict, of_class: dict[str, tuple[float, float, float]], files=()) -> pa.Table:
    """Means (replayed, estimated, bound) by class; files are (file_id, replayed, half width, reads, bound)."""
    told = []
    for name, means in of_class.items():
        for source, mean in zip(("replayed", "estimated", "bound"), means, strict=True):
            own = {"group": "class", "class": name, "source": source, "mean_s": mean}
            told.append(own | ({"ci_s": 0.1 * mean} if source == "replayed" else {}))
    for name, mean, half, reads, bound in files:
        own = {"group": "file", "file_id": name}
        told.append(own | {"source": "replayed", "mean_s": mean, "ci_s": half, "requests": reads})
        told.append(own | {"source": "bound", "mean_s": bound})
    return pa.Table.from_pylist(
        [{"run_id": row["run_id"]} | own for own in told], schema=result_schema("latencies", IDS)
    )


def test_a_sweep_of_replays_has_a_panel_per_queue(tmp_path):
    rows = [
        replayed(f"{queue}{second}", queue, importance=importance(second))
        for queue in METHODS
        for second in (0.2, 0.6)
    ]
    means = [{"gold": (10 + n, 11 + n, 20 + n), "silver": (30 + n, 31 + n, 60)} for n in range(4)]
    tables = [latencies(row, told) for row, told in zip(rows, means, strict=True)]
    figure = class_sweep(tmp_path, stored(tmp_path, rows, {"latencies": tables}))
    left, right = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["JLOP (priority)", "JLWO (weighted)"]
    assert left.get_ylim() == right.get_ylim() and left.get_xlabel() == "importance of class silver"
    assert labels(figure) == ["class gold", "class silver", "replayed", "estimated", "bound"]
    lines = [
        line for line in right.get_lines() if len(line.get_xdata()) == 2 and line.get_linestyle() != "None"
    ]
    found = {tuple(line.get_ydata()) for line in lines}
    assert {(12, 13), (13, 14), (22, 23), (32, 33), (33, 34), (60, 60)} <= found
    bars = left.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in bars], [[9, 11], [9.9, 12.1]])


def test_without_a_sweep_there_is_no_figure(tmp_path):
    rows = [replayed("a"), replayed("b", "weighted")]
    tables = [latencies(row, {"gold": (1, 2, 3)}) for row in rows]
    runs = stored(tmp_path, rows, {"latencies": tables})
    text = drawn(replay.draw, tmp_path, runs, ["class_sweep", "class_sizes"])
    assert "figure class_sweep: needs runs that differ in the importance" in text
    assert "figure class_sizes: needs files of several sizes" in text


def test_latency_by_size_weighs_files_by_reads(tmp_path):
    row = replayed("a", size_scale=2.0)
    files = [("a", 10.0, 1.0, 300, 20.0), ("b", 30.0, 3.0, 100, 50.0), ("c", 18.0, 2.0, 100, 40.0)]
    table = latencies(row, {"gold": (20, 21, 30)}, files)
    with ResultStore(tmp_path, IDS, None) as store:
        told = {"file_id": ["a", "b", "c"], "bytes": [1e6, 3e6, 1e6], "k": [2] * 3}
        told |= {"rate_per_s": [1.0, 1.0, 3.0], "service_class": ["gold"] * 3}
        store.write_input("files", "i", pa.table(told))
        store.commit([row], {"latencies": table})
    axes = class_sizes(tmp_path, read_results(tmp_path, "runs")).axes[0]
    assert axes.get_xlabel() == "file size (MB)"
    replay_line, bound_line = (container.lines[0] for container in axes.containers)
    np.testing.assert_allclose(replay_line.get_xdata(orig=False), [2, 6])
    np.testing.assert_allclose(replay_line.get_ydata(orig=False), [12, 30])  # (300 * 10 + 100 * 18) / 400
    np.testing.assert_allclose(bound_line.get_ydata(orig=False), [35, 50])  # (20 + 3 * 40) / 4
    # own errors 3/4 * 1 and 1/4 * 2; that of the class is 10 % of the mean
    half = np.sqrt(0.75**2 + 0.5**2 + 1.2**2), np.sqrt(3.0**2 + 3.0**2)
    bars = axes.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(
        [segment[:, 1] for segment in bars], [[12 - half[0], 12 + half[0]], [30 - half[1], 30 + half[1]]]
    )


def test_words_for_what_is_told_by_class(tmp_path):
    assert in_a_line('{"1": 1.0, "2": 0.08695652}') == "1/0.087" and in_a_line(None) == ""
    assert class_names(pd.DataFrame({"service_class": [3, 1], "k": [4, 5]})).tolist() == ["3", "1"]
    assert class_names(pd.DataFrame({"k": [4, 5]})).tolist() == ["k=4", "k=5"]
    rows = [replayed("a"), replayed("b", "weighted", importance=importance(0.4))]
    runs = stored(tmp_path, rows)
    assert names(runs) == ["JLOP (priority), C = 1/1", "JLWO (weighted), C = 1/0.4"]
    assert names(runs, "importance") == ["JLOP (priority)", "JLWO (weighted)"]
