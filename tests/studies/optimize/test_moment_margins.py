"""Intervals of moments become those of bound and estimates: the same plan, with the tables of either end."""

from dataclasses import replace

import numpy as np
import pandas as pd
import problems
import pytest

NAMES = ("service_mean{}_s", "service_second{}_s2", "service_third{}_s3")


def with_intervals(case, end):
    """The case with moments at one end of intervals that hold its own, mean known and first of all moments."""
    nodes = case.nodes.copy()
    for power, name in enumerate(NAMES):
        low, high = (nodes[name.format("")] * (1 + sign * 0.1 * power) for sign in (-1, 1))
        nodes[name.format("_low")], nodes[name.format("_high")] = low, high
    for name in NAMES:
        nodes[name.format("")] = nodes[name.format(f"_{end}")]
    return replace(case, nodes=nodes)


def at_end(case, end):
    nodes = case.nodes.assign(**{name.format(""): case.nodes[name.format(f"_{end}")] for name in NAMES})
    return replace(case, nodes=nodes)


# estimates of mixed sizes take a while
@pytest.mark.parametrize(
    ("planned", "estimate"), [("high", False), pytest.param("low", True, marks=pytest.mark.slow)]
)
def test_both_ends_are_the_bound_of_the_plan_with_those_moments(planned, estimate, tmp_path):
    out = tmp_path / "out"
    case = with_intervals(problems.mixed().at_load(0.5), planned)
    code, text = problems.study(out, case, estimate=estimate, method=["certified"])
    assert code == 0
    run = next(pd.read_parquet(out / "runs").itertuples())
    written, probabilities, stored = problems.written_plan(out, run)
    for end in ("low", "high"):
        expected = problems.outcome(at_end(written, end), probabilities, stored)
        assert getattr(run, f"latency_{end}_s") == pytest.approx(expected.latency_s, rel=1e-9)
    for name in ("latency", *(("estimated_mean", "estimated_p99") if estimate else ())):
        assert getattr(run, f"{name}_{planned}_s") == pytest.approx(getattr(run, f"{name}_s"), rel=1e-9)
        assert getattr(run, f"{name}_low_s") < getattr(run, f"{name}_high_s")
    assert "Moments of service are intervals: the bound is from" in text
    assert ("its expected mean is from" in text) == estimate


def test_an_end_that_overloads_a_node_is_null(tmp_path):
    case = problems.mixed().at_load(0.6)
    case = with_intervals(case, "low")
    nodes = case.nodes.copy()
    for power, name in enumerate(NAMES, start=1):
        nodes[name.format("_high")] = nodes[name.format("_high")] * 3.0**power
    out = tmp_path / "out"
    code, text = problems.study(out, replace(case, nodes=nodes), method=["certified"])
    assert code == 0
    run = next(pd.read_parquet(out / "runs").itertuples())
    assert run.latency_low_s == pytest.approx(run.latency_s) and np.isnan(run.latency_high_s)
    assert "without a largest (a node is overloaded)" in text


def test_without_intervals_there_are_no_ends(tmp_path):
    out = tmp_path / "out"
    code, text = problems.study(out, problems.mixed().at_load(0.5), method=["certified"])
    run = next(pd.read_parquet(out / "runs").itertuples())
    assert code == 0 and pd.isna(run.latency_low_s) and "are intervals" not in text
