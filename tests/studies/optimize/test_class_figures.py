"""Figures of plans by service class: what they show is what the tables hold."""

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
from ecjax.studies.optimize.figures import kinds
from ecjax.studies.optimize.figures.classes import class_convergence, class_latency
from ecjax.studies.optimize.figures.plans import classes
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.arrow_schemas import dataset_schema
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
    return (
        row
        | {"cost_dollars_per_period": 1.0, "file_count": 2, "latency_s": 10.0, "importance": importance(1.0)}
        | own
    )


def class_plans(row: dict, latency: dict[str, float], deadline: dict[str, float] | None = None) -> pa.Table:
    told = [
        {"run_id": row["run_id"], "service_class": name, "latency_s": value}
        | {"deadline_s": (deadline or {}).get(name)}
        for name, value in latency.items()
    ]
    return pa.Table.from_pylist(told, schema=dataset_schema(TABLES, "class_plans", IDS))


def history(row: dict, steps: list[tuple[int, str | None, float | None, float, float]]) -> pa.Table:
    """Steps are (iteration, class in force, objective, latency of gold, latency of silver)."""
    told = [
        {"run_id": row["run_id"], "iteration": iteration, "step": "scheduling", "service_class": name}
        | {"objective": value, "class_latency_s": json.dumps({"gold": gold, "silver": silver})}
        for iteration, name, value, gold, silver in steps
    ]
    return pa.Table.from_pylist(told, schema=dataset_schema(TABLES, "history", IDS))


def stored(folder, rows, tables=None, files=None):
    files = files if files is not None else {"i": (1.0, 2.0)}
    with ResultStore(folder, TABLES, IDS, None) as store:
        for name, rates in files.items():
            table = {"file_id": ["a", "b"], "bytes": [2e6, 4e6], "k": [2, 2], "rate_per_s": list(rates)}
            store.write_input("files", name, pa.table(table | {"service_class": list(CLASSES)}))
        for number, row in enumerate(rows):
            store.commit([row], {key: own[number] for key, own in (tables or {}).items()})
    return read_results(folder, "runs").set_index("run_id").loc[[row["run_id"] for row in rows]].reset_index()


def drawn(draw, out, runs, names) -> str:
    console = Console(file=StringIO(), width=300)
    draw(out, runs, names, console)
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


def test_a_search_for_deadlines_has_no_objective(tmp_path):
    row = planned("a")
    steps = [(0, None, 4.0, 30, 40), (1, None, None, 20, 30), (2, None, 3.0, 20, 30), (2, None, 2.0, 12, 25)]
    runs = stored(tmp_path, [row], {"history": [history(row, steps)]})
    left, right = class_convergence(tmp_path, runs).axes
    np.testing.assert_allclose(left.get_lines()[0].get_ydata(), [30, 20, 20, 12])
    (whole,) = right.get_lines()
    np.testing.assert_allclose(whole.get_ydata(), [2, np.nan, 1.5, 1])


def test_kinds_that_do_not_apply_are_left_out_without_a_word(sweep, tmp_path):
    out, runs = sweep
    text = drawn(kinds.draw, out, runs, ["tradeoff", "gap", "convergence", "scenarios", "class_latency"])
    assert "class_latency.png" in text and "needs" not in text and "tradeoff" not in text
    pixels = matplotlib.image.imread(out / "figures" / "class_latency.png")
    assert np.mean(pixels[..., :3].min(axis=-1) < 0.9) > 0.005
    plain = [planned("a") | {"method": "certified", "queue": "fcfs", "importance": None}]
    by_class = ["class_latency", "class_convergence"]
    assert drawn(kinds.draw, tmp_path, stored(tmp_path, plain), by_class) == ""
    missing = runs.assign(batch_id="another")
    assert "needs the dataset class_plans" in drawn(kinds.draw, out, missing, ["class_latency"])


def test_of_many_classes_the_first_have_a_line(tmp_path):
    row, names = planned("a"), [f"class-{number:02}" for number in range(30)]
    of_files = [
        {"run_id": "a", "file_id": name, "n": 4, "k": 2, "latency_s": 1.0 + place}
        for place, name in enumerate(names)
    ]
    files = {"file_id": names, "bytes": [1e6] * 30, "k": [2] * 30, "rate_per_s": [1.0] * 30}
    with ResultStore(tmp_path, TABLES, IDS, None) as store:
        store.write_input("files", "i", pa.table(files | {"service_class": names}))
        plans = pa.Table.from_pylist(of_files, schema=dataset_schema(TABLES, "file_plans", IDS))
        store.commit([row], {"file_plans": plans})
    figure = classes(tmp_path, read_results(tmp_path, "runs"))
    (axes,) = figure.axes
    assert [line.get_xdata(orig=False).tolist() for line in axes.get_lines()] == [
        [1.0 + n] for n in range(12)
    ]
    assert labels(figure) == [f"class {name}: (4, 2)" for name in names[:12]]
    assert axes.get_title() == "Latency by class, θ = 0 (12 of 30 classes)"


def test_words_for_what_is_told_by_class(tmp_path):
    assert in_a_line('{"1": 1.0, "2": 0.08695652}') == "1/0.087" and in_a_line(None) == ""
    assert class_names(pd.DataFrame({"service_class": [3, 1], "k": [4, 5]})).tolist() == ["3", "1"]
    assert class_names(pd.DataFrame({"k": [4, 5]})).tolist() == ["k=4", "k=5"]
    stored_without = pd.DataFrame({"service_class": [None, None], "k": [4, 5]})
    assert class_names(stored_without).tolist() == ["k=4", "k=5"]
    rows = [planned("a"), planned("b", "weighted", importance=importance(0.4))]
    runs = stored(tmp_path, rows)
    assert names(runs) == ["JLOP (priority), C = 1/1", "JLWO (weighted), C = 1/0.4"]
    assert names(runs, "importance") == ["JLOP (priority)", "JLWO (weighted)"]
