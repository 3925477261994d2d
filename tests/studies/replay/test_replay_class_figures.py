"""Figures of replays by service class: what they show is what the tables hold."""

import json
from io import StringIO

import numpy as np
import pyarrow as pa
from rich.console import Console

from ecjax.plotting.runs import names
from ecjax.studies.replay.figures import kinds
from ecjax.studies.replay.figures.classes import class_sizes, class_sweep, queue_sweep
from ecjax.studies.replay.tables import TABLES
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

CLASSES = ("gold", "silver")
IDS = {"file_id": pa.string(), "node_id": pa.string(), "service_class": pa.string()}
METHODS = {"priority": "jlop", "weighted": "jlwo"}


def importance(second: float) -> str:
    return json.dumps({"gold": 1.0, "silver": second})


def replayed(name: str, queue: str = "priority", **own) -> dict:
    row = {"run_id": name, "job": "replay", "status": "ok", "method": METHODS[queue]}
    row |= {
        "theta": 0.0,
        "rate_scale": 1.0,
        "size_scale": 1.0,
        "input_id": "i",
        "importance": importance(1.0),
    }
    row |= {"policy": "probabilistic", "service": "gamma"}
    row |= {"mean_s": 10.0, "ci_s": 1.0, "max_load": 0.5, "plan_run": "p"}
    return row | {"queue": {"weighted": "partitioned"}.get(queue, queue)} | own


def stored(folder, rows, tables=None, files=None):
    files = files if files is not None else {"i": (1.0, 2.0)}
    with ResultStore(folder, TABLES, IDS, None) as store:
        for name, rates in files.items():
            table = {"file_id": ["a", "b"], "bytes": [2e6, 4e6], "k": [2, 2], "rate_per_s": list(rates)}
            store.write_input("files", name, pa.table(table | {"service_class": list(CLASSES)}))
        for number, row in enumerate(rows):
            store.commit([row], {key: own[number] for key, own in (tables or {}).items()})
    return read_results(folder, "runs").set_index("run_id").loc[[row["run_id"] for row in rows]].reset_index()


def labels(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def latencies(row: dict, of_class: dict[str, tuple[float, float, float]], files=()) -> pa.Table:
    """Means (replayed, estimated, bound) by class; files are (file_id, replayed, own half width, reads, bound)."""
    told = []
    for name, means in of_class.items():
        for source, mean in zip(("replayed", "estimated", "bound"), means, strict=True):
            own = {"group": "class", "class": name, "source": source, "mean_s": mean}
            told.append(own | ({"ci_s": 0.1 * mean} if source == "replayed" else {}))
    for name, mean, half, reads, bound in files:
        own = {"group": "file", "file_id": name}
        deviation = half / 1.96 * np.sqrt(reads)
        told.append(own | {"source": "replayed", "mean_s": mean, "std_s": deviation, "requests": reads})
        told.append(own | {"source": "bound", "mean_s": bound})
    return pa.Table.from_pylist(
        [{"run_id": row["run_id"]} | own for own in told], schema=dataset_schema(TABLES, "latencies", IDS)
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
    assert labels(figure) == [
        "class gold",
        "class silver",
        "replayed",
        "estimated",
        "bound (Poisson arrivals)",
    ]
    lines = [
        line for line in right.get_lines() if len(line.get_xdata()) == 2 and line.get_linestyle() != "None"
    ]
    found = {tuple(line.get_ydata()) for line in lines}
    assert {(12, 13), (13, 14), (22, 23), (32, 33), (33, 34), (60, 60)} <= found
    bars = left.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in bars], [[9, 11], [9.9, 12.1]])


def test_a_sweep_of_queues_on_one_axis(tmp_path):
    rows = [
        replayed(f"{queue}{second}", queue, importance=importance(second))
        for queue in METHODS
        for second in (0.2, 0.6)
    ]
    means = [{"gold": (10 + n, 11 + n, 20 + n), "silver": (30 + n, 31 + n, 60)} for n in range(4)]
    tables = [latencies(row, told) for row, told in zip(rows, means, strict=True)]
    figure = queue_sweep(tmp_path, stored(tmp_path, rows, {"latencies": tables}))
    (axes,) = figure.axes
    assert labels(figure) == [
        "class gold, JLOP (priority)",
        "class silver, JLOP (priority)",
        "class gold, JLWO (weighted)",
        "class silver, JLWO (weighted)",
    ]
    lines = [
        line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_linestyle() != "None"
    ]
    assert {(tuple(line.get_ydata()), line.get_linestyle()) for line in lines} == {
        ((10, 11), "-"),
        ((30, 31), "-"),
        ((12, 13), "--"),
        ((32, 33), "--"),
    }


def test_without_a_sweep_there_is_no_figure(tmp_path):
    rows = [replayed("a"), replayed("b", "weighted")]
    tables = [latencies(row, {"gold": (1, 2, 3)}) for row in rows]
    runs = stored(tmp_path, rows, {"latencies": tables})
    console = Console(file=StringIO(), width=300)
    kinds.draw(tmp_path, runs, ["class_sweep", "queue_sweep", "class_sizes"], console)
    text = console.file.getvalue()
    assert "figure class_sweep: needs runs that differ in the importance" in text
    assert "figure queue_sweep: needs runs that differ in the importance" in text
    assert "figure class_sizes: needs files of several sizes" in text


def test_latency_by_size_weighs_files_by_reads(tmp_path):
    row = replayed("a", size_scale=2.0)
    files = [("a", 10.0, 1.0, 300, 20.0), ("b", 30.0, 3.0, 100, 50.0), ("c", 18.0, 2.0, 100, 40.0)]
    table = latencies(row, {"gold": (20, 21, 30)}, files)
    with ResultStore(tmp_path, TABLES, IDS, None) as store:
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


def test_without_classes_files_of_a_k_are_one(tmp_path):
    row = replayed("a") | {"method": "certified", "queue": "fcfs", "importance": None}
    files = [("a", 10.0, 1.0, 300, 20.0), ("b", 30.0, 3.0, 100, 50.0), ("c", 18.0, 2.0, 100, 40.0)]
    table = latencies(row, {"k=2": (20, 21, 30), "k=3": (18, 19, 40)}, files)
    with ResultStore(tmp_path, TABLES, IDS, None) as store:
        told = {"file_id": ["a", "b", "c"], "bytes": [1e6, 3e6, 1e6], "k": [2, 2, 3], "rate_per_s": [1.0] * 3}
        store.write_input("files", "i", pa.table(told))
        store.commit([row], {"latencies": table})
    figure = class_sizes(tmp_path, read_results(tmp_path, "runs"))
    assert labels(figure)[:2] == ["class k=2", "class k=3"]
    lines = [container.lines[0] for container in figure.axes[0].containers]
    drawn = {
        (tuple(line.get_xdata(orig=False).tolist()), tuple(line.get_ydata(orig=False).tolist()))
        for line in lines
    }
    assert drawn == {((1, 3), (10, 30)), ((1, 3), (20, 50)), ((1,), (18,)), ((1,), (40,))}


def test_runs_are_named_by_what_tells_them_apart(tmp_path):
    rows = [replayed("a"), replayed("b", "weighted", importance=importance(0.4))]
    runs = stored(tmp_path, rows)
    assert names(runs) == ["JLOP (priority), C = 1/1", "JLWO (weighted), C = 1/0.4"]
    assert names(runs, "importance") == ["JLOP (priority)", "JLWO (weighted)"]
