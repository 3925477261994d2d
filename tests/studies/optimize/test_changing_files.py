"""A plan that starts from an earlier one: files gone, new and changed."""

import numpy as np
import pandas as pd
import problems
import pytest

from ecjax.tables.results import read_results


def of(out, run):
    placed = read_results(out, "placements")
    return {(row.file_id, row.node_id) for row in placed[placed["run_id"] == run.run_id].itertuples()}


def test_unchanged_files_stay_and_moves_are_counted(tmp_path):
    case = problems.alike()
    problems.study(tmp_path / "old", case, method="certified")
    before = read_results(tmp_path / "old", "runs").iloc[0]
    files = case.files.copy()
    files.loc[0, "rate_per_s"] *= 1.1
    new = files.iloc[[1]].assign(file_id=files["file_id"].max() + 1)
    changed = problems.Case(
        case.nodes, pd.concat([files.iloc[:-1], new], ignore_index=True), case.size_scaling
    )
    options = {"method": "certified", "plan": str(tmp_path / "old"), "compare_cold_start": True}
    code, _ = problems.study(tmp_path / "new", changed, **options)
    assert code == 0
    run = read_results(tmp_path / "new", "runs").iloc[0]
    old, now = of(tmp_path / "old", before), of(tmp_path / "new", run)
    known = set(case.files["file_id"]) & set(changed.files["file_id"])
    assert run.moved_chunks == sum(pair not in old for pair in now if pair[0] in known)
    assert {file for file, _ in now} == set(changed.files["file_id"])
    assert run.lower_bound <= min(run.objective, run.cold_start_objective) * (1 + 1e-12)
    np.testing.assert_allclose(run.objective, run.cold_start_objective, rtol=0.05)


def test_a_plan_from_nothing_is_changed_for_failures_too(tmp_path):
    """Its objective is that of the same run without an earlier plan."""
    case = problems.alike()
    problems.study(tmp_path / "old", case, method="max_ec")
    options = {"method": "max_ec", "scenarios": ["node"], "robust": "mean", "robust_trials": 5}
    problems.study(tmp_path / "cold", case, **options)
    problems.study(tmp_path / "new", case, plan=str(tmp_path / "old"), compare_cold_start=True, **options)
    old, cold, new = (read_results(tmp_path / name, "runs").iloc[0] for name in ("old", "cold", "new"))
    assert old.objective != cold.objective
    assert new.cold_start_objective == pytest.approx(cold.objective, rel=1e-9)


def test_the_same_files_keep_their_plan(tmp_path):
    case = problems.alike()
    problems.study(tmp_path / "old", case, method="certified")
    before = read_results(tmp_path / "old", "runs").iloc[0]
    problems.study(tmp_path / "new", case, method="certified", plan=str(tmp_path / "old"))
    run = read_results(tmp_path / "new", "runs").iloc[0]
    assert run.objective <= before.objective * (1 + 1e-3)
    assert run.moved_chunks <= 0.25 * len(of(tmp_path / "old", before))
