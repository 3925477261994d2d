"""The figure of latency against cost: expected means beside their bounds, the recommended plan, names of thetas."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose

from ecjax.studies.optimize.figures.plans import rates, sizes
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


def test_what_does_not_vary_is_no_axis(tmp_path):
    assert sizes(tmp_path, plans()) is None and rates(tmp_path, plans()) is None
