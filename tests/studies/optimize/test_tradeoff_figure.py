"""The figure of latency against cost: expected means beside their bounds, the recommended plan, names of thetas."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose

from ecjax.studies.optimize.figures import plans as of_plans
from ecjax.studies.optimize.figures.plans import gap, methods, rates, sizes
from ecjax.studies.optimize.figures.tradeoff import tradeoff

THETAS = (3.0, 30.0, 300.0)


def plans(method="certified", **columns):
    """Three plans of 10 files that cost 5, 3 and 2 dollars each; the bound is twice what is expected."""
    rows = pd.DataFrame({"theta": THETAS, "cost_dollars_per_period": [50.0, 30.0, 20.0]})
    expected = pd.Series([0.1, 0.2, 0.4])
    rows = rows.assign(estimated_mean_s=expected, latency_s=2 * expected, method=method, file_count=10)
    return rows.assign(rate_scale=1.0, size_scale=1.0, **columns)


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_expected_means_are_solid_and_bounds_dashed(tmp_path):
    figure = tradeoff(tmp_path, plans().sample(frac=1, random_state=0))
    (axes,) = figure.axes
    solid, dashed = axes.get_lines()
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert_allclose(solid.get_xydata(), [[5, 0.1], [3, 0.2], [2, 0.4]])
    assert_allclose(dashed.get_ydata(), [0.2, 0.4, 0.8])
    assert labels(figure) == ["expected", "bound, Poisson arrivals"]
    assert axes.get_ylabel() == "mean latency of a read (ms)"
    assert [text.get_text() for text in axes.texts] == ["θ = 3", "θ = 30", "θ = 300"]


def test_the_recommended_plan_has_a_ring(tmp_path):
    figure = tradeoff(tmp_path, plans(recommended=[False, True, False]))
    ring = figure.axes[0].get_lines()[-1]
    assert_allclose(ring.get_xydata(), [[3, 0.2]])
    assert labels(figure)[-1] == "recommended"


@pytest.mark.parametrize("recommended", [None, [False] * 3])
def test_without_a_recommendation_there_is_no_ring(tmp_path, recommended):
    runs = plans() if recommended is None else plans(recommended=recommended)
    assert "recommended" not in labels(tradeoff(tmp_path, runs))


def test_methods_have_colours_and_plans_without_estimates_only_bounds(tmp_path):
    both = pd.concat([plans(), plans("published").assign(estimated_mean_s=float("nan"))], ignore_index=True)
    figure = tradeoff(tmp_path, both)
    assert len(figure.axes[0].get_lines()) == 3
    assert labels(figure) == ["certified", "JLCM", "expected", "bound, Poisson arrivals"]


def test_plans_that_do_not_differ_bear_their_thetas_together(tmp_path):
    runs = plans()
    runs.loc[1, ["cost_dollars_per_period", "estimated_mean_s", "latency_s"]] = [50.0, 0.1, 0.2]
    axes = tradeoff(tmp_path, runs).axes[0]
    assert [text.get_text() for text in axes.texts] == ["θ = 3, 30", "θ = 300"]


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("k", [4, 6], ["k = 4", "k = 6"]),
        ("d", [5, 6], ["d = 5", "d = 6"]),
        ("code", ["rs,4,2", "rs,6,3"], ["rs,4,2", "rs,6,3"]),
        ("what_if", [None, "node:a"], ["as it is", "node:a"]),
        ("rate_scale", [1.0, 2.0], ["rates x 1", "rates x 2"]),
        ("importance", ['{"a": 1.0, "b": 2.0}', '{"a": 2.0, "b": 1.0}'], ["C = 1/2", "C = 2/1"]),
    ],
)
def test_plans_of_what_else_differs_are_lines_of_their_own(tmp_path, column, values, words):
    both = pd.concat([plans(gap=1e-4).assign(**{column: value}) for value in values], ignore_index=True)
    names = [f"certified, {word}" for word in words]
    figure = tradeoff(tmp_path, both)
    assert labels(figure)[:2] == names
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [3] * 4
    figure = gap(tmp_path, both)
    assert labels(figure) == names and [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [
        3,
        3,
    ]


def test_a_code_names_its_k(tmp_path):
    codes = {"rs,4,2": 4, "rs,6,3": 6}
    both = pd.concat([plans(code=code, k=k) for code, k in codes.items()], ignore_index=True)
    assert labels(tradeoff(tmp_path, both))[:2] == [f"certified, {code}" for code in codes]


def test_many_lines_are_cut_with_a_word(tmp_path):
    many = pd.concat([plans(k=k) for k in range(20)], ignore_index=True)
    figure = tradeoff(tmp_path, many)
    assert figure.axes[0].get_title() == f"Latency against storage cost ({of_plans.MOST_LINES} of 20 lines)"


def test_rates_are_of_one_line_that_the_title_names(tmp_path, monkeypatch):
    files = pd.DataFrame({"input_id": ["i"], "rate_per_s": [3.0], "bytes": [1.0]})
    monkeypatch.setattr(of_plans, "read_results", lambda out, dataset: files)
    part = plans(input_id="i", objective=1.0).iloc[:1]
    scaled = [
        part.assign(rate_scale=scale, k=k) for k, scales in ((4, (1.0,)), (6, (1.0, 2.0))) for scale in scales
    ]
    figure = rates(tmp_path, pd.concat(scaled, ignore_index=True))
    bars = figure.axes[0].patches
    assert len(bars) == 2 and figure.axes[0].get_title().endswith("\ncertified, k = 6")
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["3", "6"]
    alone = rates(tmp_path, pd.concat(scaled[1:], ignore_index=True))
    assert "\n" not in alone.axes[0].get_title()


def test_methods_have_bars_for_all_that_differs(tmp_path):
    both = pd.concat(
        [plans(method, k=k, objective=1.0) for method in ("certified", "published") for k in (4, 6)],
        ignore_index=True,
    )
    figure = methods(tmp_path, both)
    names = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert names == ["certified, k = 4", "JLCM, k = 4", "certified, k = 6", "JLCM, k = 6"]
    assert methods(tmp_path, both[both["method"] == "certified"]) is None


def test_what_does_not_vary_is_no_axis(tmp_path):
    assert sizes(tmp_path, plans()) is None and rates(tmp_path, plans()) is None
