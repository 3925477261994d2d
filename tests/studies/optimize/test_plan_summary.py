"""What optimize prints: latencies of classes and what was swept by class, beside what every queue has."""

import json
from io import StringIO

import pandas as pd
from rich.console import Console

from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.summary import show
from ecjax.studies.optimize.tables import TABLES


def printed(*rows: dict) -> str:
    empty = dict.fromkeys(column.name for column in TABLES.datasets["runs"])
    common = {
        "status": "ok",
        "theta": 0.0,
        "latency_s": 50.0,
        "objective": 50.0,
        "cost_dollars_per_period": 20.0,
        "file_count": 10,
    }
    common |= {"iterations": 3, "solve_s": 1.0, "rate_scale": 1.0, "size_scale": 1.0, "mean_n": 6.0}
    common |= {"files_without_redundancy": 0, "mean_n_by_class": '{"1": 5.0, "2": 7.0}'}
    runs = pd.DataFrame([empty | common | row for row in rows])
    console = Console(file=StringIO(), width=200)
    show(runs.astype({"gap": float}), console, OptimizeOptions())
    return console.file.getvalue()


def by_class(queue: str, first: float, second: float, **own) -> dict:
    latency = json.dumps({"1": first, "2": second})
    return {"method": {"priority": "jlop", "weighted": "jlwo"}[queue], "class_latency_s": latency} | own


def cells(text: str, word: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if word in line)


def test_classes_have_their_latencies_and_what_was_swept():
    importance = [json.dumps({"1": 1.0, "2": c}) for c in (0.4, 1.0)]
    rows = [by_class("weighted", 41.62, 1234.5, importance=importance[0])]
    text = printed(*rows, by_class("weighted", 45.0, 60.0, importance=importance[1]))
    assert cells(text, "1/0.4")[:4] == ["1/0.4", "50.00", "41.6/1,234", "2"]
    assert cells(text, "1/1")[2] == "45/60"
    assert "theta" not in text and "importance" in text


def test_queues_side_by_side():
    plain = {"method": "certified", "theta": 10.0, "gap": 0.2}
    text = printed(plain, by_class("priority", 30.0, 70.0, theta=10.0))
    assert cells(text, "certified")[:3] == ["certified", "10", "50.00"] and "20.0%" in cells(
        text, "certified"
    )
    assert cells(text, "jlop")[:4] == ["jlop", "10", "50.00", "30/70"] and "nan" not in text
    assert "1 of 1 certified plans are not proven" in text


def test_many_classes_have_no_place_in_a_line():
    values = json.dumps({str(i): 10.0 + i for i in range(9)})
    text = printed(by_class("priority", 1.0, 2.0, class_latency_s=values, mean_n_by_class=values))
    assert "by class" not in text
