"""The figure of a plan under failures shows what its table holds."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ecjax.studies.optimize.figures import scenarios as report

RUNS = pd.DataFrame([{"run_id": "r", "latency_s": 2.0, "worst_scenario": "n2"}])
ROWS = pd.DataFrame(
    {
        "scenario": ["n1", "n2", "n3", "n4", "east"],
        "kind": ["node"] * 4 + ["site"],
        "latency_s": [2.5, np.inf, 3.5, np.nan, 3.0],
        "max_load": [0.5, 1.25, 0.7, 0.6, 0.6],
        "busiest_node": ["n2", "n3", "n1", "n1", "n1"],
        "unavailable_share": [0.0, 0.0, 0.0, 1.0, 0.256],
    }
)


@pytest.fixture
def figure(monkeypatch, tmp_path):
    def draw(rows: pd.DataFrame):
        table = pa.Table.from_pandas(rows, preserve_index=False)
        monkeypatch.setattr(report, "read_run", lambda *_: table)
        return report.scenarios(tmp_path, RUNS)

    return draw


def test_slowest_first_with_what_is_lost(figure, tmp_path):
    drawn = figure(ROWS)
    axes = drawn.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "node n4",
        "node n2",
        "node n3",
        "site east",
        "node n1",
    ]
    assert [bar.get_width() for bar in axes.patches] == [3.5, 3.5, 3.0, 2.5]
    assert axes.patches[0].get_hatch() and not axes.patches[1].get_hatch()
    assert [text.get_text() for text in axes.texts] == [
        "no read is served",
        "node n3 overloaded (load 1.25)",
        "26 % of reads lost",
    ]
    assert axes.get_lines()[0].get_xdata() == [2.0, 2.0]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        "node down",
        "site down",
        "no failure",
    ]
    drawn.savefig(tmp_path / "scenarios.png")
    assert (tmp_path / "scenarios.png").stat().st_size > 5000


def test_only_the_slowest_fit_on_a_page(figure):
    many = pd.concat([ROWS.iloc[[0]].assign(latency_s=float(i), scenario=str(i)) for i in range(50)])
    axes = figure(many).axes[0]
    assert "40 slowest of 50" in axes.get_title()
    assert [bar.get_width() for bar in axes.patches] == [float(i) for i in range(49, 9, -1)]


def test_without_scenarios_nothing_is_drawn(figure):
    assert figure(ROWS.iloc[:0]) is None


def test_when_every_scenario_is_overloaded_the_undisturbed_latency_gives_the_scale(figure):
    axes = figure(ROWS.iloc[[1]]).axes[0]
    assert axes.patches[0].get_width() == 2.0
