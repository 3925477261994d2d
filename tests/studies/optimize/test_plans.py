"""Figures of plans: every kind, from what the result tables hold."""

from io import StringIO

import matplotlib.image
import numpy as np
import pandas as pd
import problems
import pytest
from rich.console import Console

from ecjax.plotting.method_names import METHOD_NAMES
from ecjax.studies.optimize.figures import kinds, plans
from ecjax.studies.optimize.figures.tradeoff import tradeoff
from ecjax.tables.results import read_results

BOUND = ": bound, Poisson arrivals"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Every method and thetas; scalings and scenarios of one method."""
    folder = tmp_path_factory.mktemp("figures") / "out"
    for point in (
        {"theta": [0.0, 50.0]},
        {"theta": 0.0, "rate_scale": 1.1, "method": "published", "scenarios": ["node"]},
        {"theta": 0.0, "size_scale": 0.8, "method": "published"},
    ):
        assert problems.study(folder, problems.mixed(), **point)[0] == 0
    return folder


def drawn(out, runs, names) -> str:
    console = Console(file=StringIO(), width=200)
    kinds.draw(out, runs, names, console)
    return console.file.getvalue()


def test_every_kind_is_drawn(out):
    names = [kind for kind in kinds.KINDS if not kind.startswith("class_")]  # those are of queues by class
    text = drawn(out, read_results(out, "runs"), names)
    for kind in names:
        pixels = matplotlib.image.imread(out / "figures" / f"{kind}.png")
        assert pixels.shape[0] > 300 and pixels.shape[1] > 600
        assert np.mean(pixels[..., :3].min(axis=-1) < 0.9) > 0.005, "something other than white is on it"
        assert f"{kind}.png" in text


def test_figures_show_the_numbers_of_the_tables(out):
    runs = read_results(out, "runs")
    one = runs[(runs["rate_scale"] == 1.0) & (runs["size_scale"] == 1.0)]
    lines = {line.get_label(): line for line in tradeoff(out, one).axes[0].get_lines()}
    bounds = {name.removesuffix(BOUND) for name in lines if name.endswith(BOUND)}
    assert bounds == {METHOD_NAMES[method] for method in one["method"]}
    jlcm = one[one["method"] == "published"].sort_values("theta")
    np.testing.assert_array_equal(lines["JLCM" + BOUND].get_ydata(), jlcm["latency_s"])
    np.testing.assert_array_equal(
        lines["JLCM" + BOUND].get_xdata(), jlcm["cost_dollars_per_period"] / jlcm["file_count"]
    )

    history = read_results(out, "history").set_index("run_id")
    curves = plans.convergence(out, one).axes[0].get_lines()
    assert len(curves) == 2
    for curve, run in zip(curves, jlcm["run_id"], strict=True):
        np.testing.assert_allclose(
            curve.get_ydata() * history.loc[run, "objective"].iloc[-1], history.loc[run, "objective"]
        )

    published = one[one["method"] == "published"]
    lengths = plans.code_lengths(out, published).axes[0].get_lines()
    file_plans = read_results(out, "file_plans").merge(one[["run_id", "theta", "method"]], on="run_id")
    expected = file_plans[file_plans["method"] == "published"].groupby(["k", "theta"])["n"].mean()
    assert [line.get_label() for line in lengths] == ["k = 2", "k = 3", "k = 4"]
    for line, k in zip(lengths, (2, 3, 4), strict=True):
        np.testing.assert_allclose(line.get_ydata(), expected.loc[k])


def test_classes_have_a_line_each_where_there_are_classes(tmp_path):
    case = problems.affine()
    files = case.files.assign(service_class=np.resize(["gold", "bronze"], problems.FILES))
    problems.study(tmp_path / "out", problems.Case(case.nodes, files))
    labels = plans.classes(tmp_path / "out", read_results(tmp_path / "out", "runs")).legends[0].get_texts()
    assert sorted(text.get_text().split()[1].rstrip(":") for text in labels) == ["bronze", "gold"]


def test_what_was_not_written_is_said_and_left_out(out, tmp_path):
    bare = tmp_path / "out"
    problems.study(bare, problems.mixed(), write=["runs"])
    text = drawn(bare, read_results(bare, "runs"), ["tradeoff", "convergence", "classes", "code_lengths"])
    for kind, dataset in (
        ("convergence", "history"),
        ("classes", "file_plans"),
        ("code_lengths", "file_plans"),
    ):
        assert f"figure {kind}: needs the dataset {dataset}, which was not written" in text
        assert not (bare / "figures" / f"{kind}.png").exists()
    assert (bare / "figures" / "tradeoff.png").stat().st_size > 5000
    # later runs that wrote them do not stand in for the earlier ones
    problems.study(bare, problems.mixed(), theta=50.0)
    runs = read_results(bare, "runs")
    text = drawn(bare, runs[runs["theta"] == 5.0], ["convergence", "classes", "code_lengths"])
    assert text.count("which was not written") == 3
    text = drawn(bare, runs, ["convergence", "classes", "code_lengths"])
    assert "which was not written" not in text and "code_lengths.png" in text


def test_runs_without_a_plan_are_left_out(out):
    runs = read_results(out, "runs")
    failed = runs.iloc[:3].assign(
        objective=np.nan, latency_s=np.nan, cost_dollars_per_period=np.nan, status="unstable"
    )
    assert drawn(out, failed, ["tradeoff"]) == ""
    both = pd.concat([failed.assign(run_id="0" * 16), runs.iloc[3:]])
    assert "tradeoff.png, methods.png" in drawn(out, both, ["tradeoff", "methods"])


def test_convergence_needs_a_run_that_descends(out):
    runs = read_results(out, "runs")
    assert "convergence" not in drawn(out, runs[runs["method"] == "max_ec"], ["convergence"])
