"""``ecjax optimize objective=...``: the estimate falls, the plan stays a plan."""

import numpy as np
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.planning.estimated import Mix
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.optimize.objective import mix_of
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)


@pytest.mark.parametrize(
    ("objective", "mix"),
    [
        ("bound", None),
        ("mean", Mix(1.0, ())),
        ("p99", Mix(0.0, ((0.99, 1.0),))),
        ("p999", Mix(0.0, ((0.999, 1.0),))),
        ({"mean": 0.5, "p50": 0.25, "p90": 0.1}, Mix(0.5, ((0.5, 0.25), (0.9, 0.1)))),
    ],
)
def test_what_is_asked_for(objective, mix):
    assert mix_of(objective) == mix


@pytest.mark.parametrize(
    "objective", ["fast", "p9", "p", {}, {"mean": -1.0}, {"mean": 0.0}, {"p99": "much"}, 99, []]
)
def test_other_objectives_are_mistakes(objective):
    with pytest.raises(UserError, match="objective: found"):
        checked(OptimizeOptions(objective=objective))


def test_chunks_served_together_have_no_estimate(tmp_path):
    with pytest.raises(UserError, match="max_chunks_per_node=2"):
        optimize_study(OptimizeOptions(objective="p99", max_chunks_per_node=2, out=str(tmp_path)), QUIET)


@pytest.mark.slow  # compiles the estimate and its derivatives
def test_the_quantile_falls_and_the_plan_stays_a_plan(tmp_path):
    cluster = ClusterOptions(hardware="tahoe", files=8, k=[3], rates=[1.0], load=0.8, nodes_per_site=2)
    common = {"theta": [5.0], "cluster": cluster, "figures": [], "min_extra_chunks": 1}
    given = OptimizeOptions(objective="p99", out=str(tmp_path), **common)
    assert optimize_study(given, QUIET) == 0
    run = read_results(tmp_path, "runs").iloc[0]
    files = read_results(tmp_path, "inputs/files")
    assert run["objective"] == pytest.approx(
        run["estimated_p99_s"] + 5.0 * run["cost_dollars_per_period"] / len(files), rel=1e-6
    )
    assert np.isnan(run["gap"]) and np.isnan(run["lower_bound"])
    placed = read_results(tmp_path, "placements")
    assert placed.groupby("file_id")["probability"].sum().to_numpy() == pytest.approx(np.full(8, 3.0))
    assert placed["probability"].between(0, 1 + 1e-12).all()
    assert (placed.groupby("file_id").size() >= 4).all()
    # the plan for the bound, by its estimate
    other = OptimizeOptions(out=str(tmp_path / "bound"), **common)
    replayed = ReplayOptions(
        planning=other, out=str(tmp_path / "bound"), requests=200, replications=1, figures=[]
    )
    assert replay_study(replayed, QUIET) == 0
    of_replay = read_results(tmp_path / "bound", "runs").iloc[0]
    of_plan = read_results(tmp_path / "bound" / "planning", "runs").iloc[0]
    before = of_replay["estimated_p99_s"] + 5.0 * of_plan["cost_dollars_per_period"] / len(files)
    assert run["objective"] <= before * (1 + 1e-9)


@pytest.mark.slow  # compiles the estimate and its derivatives
def test_what_is_told_is_of_the_plan_changed_for_failures_and_of_one_from_nothing(tmp_path):
    cluster = ClusterOptions(hardware="tahoe", files=8, k=[3], rates=[1.0], load=0.8, nodes_per_site=2)
    common = {"theta": [5.0], "cluster": cluster, "figures": [], "min_extra_chunks": 1}
    robust = {"objective": "p99", "scenarios": ["node"], "robust": "worst", "robust_trials": 10}
    changes = {"bound": {}, "p99": {"objective": "p99"}, "cold": robust}
    changes["warm"] = {**robust, "plan": str(tmp_path / "bound"), "compare_cold_start": True}
    runs = {}
    for name, given in changes.items():
        out = tmp_path / name
        assert optimize_study(OptimizeOptions(out=str(out), **common, **given), QUIET) == 0
        runs[name] = read_results(out, "runs").iloc[0]
    assert runs["cold"]["latency_shared_z_s"] != runs["p99"]["latency_shared_z_s"]
    replayed = ReplayOptions(
        plan=str(tmp_path / "cold"), out=str(tmp_path / "replay"), requests=200, replications=1, figures=[]
    )
    assert replay_study(replayed, QUIET) == 0
    # from the placements that were written
    again = read_results(tmp_path / "replay", "runs").iloc[0]
    assert runs["cold"]["estimated_p99_s"] == pytest.approx(again["estimated_p99_s"], rel=1e-6)
    assert runs["cold"]["objective"] == pytest.approx(
        again["estimated_p99_s"] + 5.0 * runs["cold"]["cost_dollars_per_period"] / 8, rel=1e-6
    )
    assert runs["warm"]["cold_start_objective"] == pytest.approx(runs["cold"]["objective"], rel=1e-9)
