"""Rows of the benchmarks of the certified method: what they judge, and that their figures are those of the plans."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_cases import rows_of
from scipy.optimize import linprog

from ecjax.planning import evaluate
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, Settings
from ecjax.studies.bench.setups import certified
from ecjax.studies.bench.setups.random_problem import changed, random_problem
from ecjax.studies.bench.setups.streamed import write_tables

QUICK = Settings(repeats=1, quick=True, seed=0)


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """The user's cache folder is left alone."""
    monkeypatch.setattr(certified.programs, "use_compilation_cache", lambda: None)


def test_a_gap_is_judged():
    def row(gap, **targets):
        return Row("ecjax", "", 1.0, 1.0, 1, gap=gap, **targets)

    assert row(1e-3).met is None
    assert row(1e-3, target_gap=1e-3).met is True
    assert row(2e-3, target_gap=1e-3).met is False
    assert row(2e-3, target_gap=1e-3, target_s=2.0).met is False
    assert row(1e-3, target_gap=1e-3, target_s=0.5).met is False
    assert row(None, target_gap=1e-3).met is False  # not known is not met


def test_gaps_and_lanes():
    problem = random_problem(1000, 12, 0.6, False, seed=1)
    outcome = Runner().once().time(lambda: certified._solve(problem, (0.005, 0.05), 1e-3))
    plans, row = outcome.value, certified._row("ecjax", "two", problem, outcome)
    plan = plans.by_method["certified"]
    gaps = np.asarray(plan.evaluation.objective) / plans.lower_bound - 1
    assert row.lanes == 2 and row.objective is None and row.lower_bound is None
    assert row.gap == pytest.approx(gaps.max())
    assert 0 <= gaps.min() and gaps.max() <= 1e-3
    assert row.note is None  # gaps are closed: nothing to compare with


def test_what_the_published_method_adds_is_said():
    problem = random_problem(1000, 12, 0.6, False, seed=1)
    outcome = Runner().once().time(lambda: certified._solve(problem, (certified.THETA,), 1e-4))
    outcome = replace(outcome, value=replace(outcome.value, compared=True))
    assert "published" in certified._row("ecjax", "one", problem, outcome).note


def test_warm_rows():
    full, again = rows_of("certified_warm", QUICK)
    assert (full.variant, again.variant) == (
        "ecjax certified, full solve",
        "ecjax certified, from the old plan",
    )
    problem = changed(random_problem(1000, 12, 0.6, False, 0), 0.01, 2.0, 1)
    plans, _ = certified._solve(problem, (certified.THETA,), 1e-4)
    plan = plans.by_method["certified"]
    true = evaluate(problem, plan.probabilities[0], plan.stored[0], np.float64(certified.THETA))
    assert full.objective == pytest.approx(float(true.objective), rel=1e-12)
    # both bounds hold for both plans
    for row in (full, again):
        assert row.gap == pytest.approx((row.objective - row.lower_bound) / row.lower_bound)
        assert max(full.lower_bound, again.lower_bound) <= row.objective
        assert "chunks moved" in row.note and row.compile_s >= 0 and row.met is None


def test_streamed_files_are_planned_within_the_gap():
    without, written = rows_of("certified_streamed", Settings(1, True, 0), files=3000)
    assert without.rows == written.rows == 3000 and without.objective == written.objective
    for row in (without, written):
        assert row.lower_bound <= row.objective <= row.lower_bound * (1 + 1e-3)


def test_tables_of_streamed_files_have_the_stated_load(tmp_path):
    """By SciPy's linear programme over all ways to spread the reads."""
    paths = {name: tmp_path / f"{name}.parquet" for name in ("nodes", "files")}
    write_tables(paths, 40, 9, 1)
    nodes, files = (pd.read_parquet(paths[name]) for name in ("nodes", "files"))
    count, m = len(files), len(nodes)
    np.testing.assert_allclose(files["bytes"] / files["k"], nodes["reference_bytes"].iloc[0])
    work = np.outer(files["rate_per_s"], nodes["service_mean_s"])
    # variables: probabilities file by file, then the largest load
    above = np.hstack([np.zeros((m, count * m)), -np.ones((m, 1))])
    each = np.zeros((count, count * m + 1))
    for file in range(count):
        each[file, file * m : (file + 1) * m] = 1
        above[np.arange(m), file * m + np.arange(m)] = work[file]
    bounds = [(0, 1)] * (count * m) + [(0, None)]
    least = linprog(np.append(np.zeros(count * m), 1.0), above, np.zeros(m), each, files["k"], bounds)
    assert least.fun == pytest.approx(0.6, rel=1e-9)


def test_targets_of_the_million():
    first, *_, last = rows_of("certified_million", Settings(1, False, 0), files=1000)
    assert first.met is None and first.target_s is None
    assert (last.target_s, last.target_bytes, last.target_gap) == (1.5, 4_000_000_000, 5e-5)
    assert last.met is not None and last.peak_rss_bytes >= first.peak_rss_bytes
    assert "µs per file and node" in last.note
