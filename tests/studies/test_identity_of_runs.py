"""Runs whose results differ have other ids, and what comes to one run is computed once."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import ecjax
from ecjax.tables.results import read_results

NODES = {
    "node_id": ["a", "b", "c", "d"],
    "site": ["east", "west", "north", "north"],
    "service_mean_s": [0.01] * 4,
    "service_second_s2": [0.0002] * 4,
    "service_third_s3": [0.000006] * 4,
    "reference_bytes": [1e6] * 4,
}
FILES = {"file_id": ["x", "y"], "bytes": [2e6, 2e6], "k": [2, 2], "rate_per_s": [2.0, 1.0]}


@pytest.fixture
def tables(tmp_path):
    """Paths of the nodes and the files table."""
    for name, columns in (("nodes", NODES), ("files", FILES)):
        pa.csv.write_csv(pa.table(columns), tmp_path / f"{name}.csv")
    return {name: str(tmp_path / f"{name}.csv") for name in ("nodes", "files")}


def test_how_a_log_is_read_is_part_of_its_replay(tmp_path, tables):
    count = 400
    log = {"ts": np.arange(count) * 100, "key": ["x", "y"] * (count // 2), "size": np.full(count, 2e6)}
    pa.csv.write_csv(pa.table(log), tmp_path / "log.csv")
    columns = {"arrival_s": "ts", "file_id": "key", "bytes": "size"}
    common = {"plan": "none", "trace": str(tmp_path / "log.csv"), "replications": 1, "estimate": False}
    common |= {"out": str(tmp_path / "out"), "service": "exponential"}
    common |= {f"planning.{name}": path for name, path in tables.items()}
    slow = ecjax.replay(**common, columns=columns).runs
    fast = ecjax.replay(**common, columns=columns | {"arrival_s_scale": 0.001}).runs
    assert slow["run_id"][0] != fast["run_id"][0]
    loads = [runs["max_utilisation"][0] for runs in (slow, fast)]
    assert loads[1] > 100 * loads[0]


def test_how_service_grows_is_part_of_a_replay_without_plan(tmp_path, tables):
    common = {"plan": "none", "replications": 1, "requests": 2000, "estimate": False, "size_scale": 2.0}
    common |= {"out": str(tmp_path / "out"), "service": "exponential"}
    common |= {f"planning.{name}": path for name, path in tables.items()}
    loads = [
        ecjax.replay(**common, **{"planning.size_scaling": scaling}).runs["max_load"][0]
        for scaling in ("proportional", "none")
    ]
    assert loads[0] == pytest.approx(2 * loads[1])


def test_two_points_of_a_sweep_may_be_one_run(tmp_path):
    common = {"requests": 2000, "strategy": "greedy", "capacity": False, "out": str(tmp_path / "out")}
    runs = ecjax.adapt(rate=[10.0, 20.0], rate_scale=[1.0, 2.0], **common).runs
    assert sorted(runs["rate_per_s"]) == [10.0, 20.0, 40.0]


def test_scenarios_that_come_to_the_same_tables_are_all_answered(tmp_path, tables):
    out = str(tmp_path / "out")
    scenarios = ["site:every", "node:every", "traffic:1", "traffic:2"]
    runs = ecjax.optimize(**tables, theta=1.0, what_if=scenarios, estimate=False, out=out).runs
    assert len(runs) == 1 + 3 + 4 + 2 and runs["run_id"].is_unique
    assert runs["what_if"].isna().sum() == 1
    answers = read_results(out, "what_if")
    assert set(answers["scenario"]) >= {"site:east", "node:a", "traffic:1", "traffic:2"}


def test_plans_without_estimates_do_not_stand_for_those_with(tmp_path, tables):
    common = tables | {"theta": 1.0, "out": str(tmp_path / "out")}
    assert ecjax.optimize(**common, estimate=False).runs["estimated_mean_s"].isna().all()
    assert ecjax.optimize(**common).runs["estimated_mean_s"].notna().all()


def test_methods_beside_certified_are_part_of_its_run(tmp_path, tables):
    """Beside ``published`` it takes that plan where it is better, however small the gap."""
    common = {"out": str(tmp_path / "out"), "theta": 1.0, "estimate": False} | tables
    alone = ecjax.optimize(method="certified", **common).runs
    beside = ecjax.optimize(method=["certified", "published"], **common).runs
    certified = beside[beside["method"] == "certified"]
    assert alone["run_id"][0] not in set(beside["run_id"])
    published = beside[beside["method"] == "published"]
    assert certified["objective"].iloc[0] <= published["objective"].iloc[0] * (1 + 1e-12)


def test_where_plans_for_a_log_start_is_part_of_their_runs(tmp_path, tables):
    rows = {"ts": np.arange(400) * 0.1, "key": ["x", "y"] * 200, "size": np.full(400, 2e6)}
    pa.csv.write_csv(pa.table(rows), tmp_path / "log.csv")
    common = {"out": str(tmp_path / "out"), "objective": "trace", "trace": str(tmp_path / "log.csv")}
    common |= {"columns": {"arrival_s": "ts", "file_id": "key", "bytes": "size"}, "estimate": False}
    common |= {"nodes": pa.table(NODES | {"cost_per_chunk_dollars": [1.0] * 4}), "files": tables["files"]}
    swept = ecjax.optimize(theta=[1.0, 2.0], **common).runs.set_index("theta")["run_id"]
    alone = {theta: ecjax.optimize(theta=theta, **common).runs["run_id"][0] for theta in (1.0, 2.0)}
    assert swept[1.0] == alone[1.0] and swept[2.0] != alone[2.0]


def test_what_is_prepared_does_not_depend_on_the_first_seed(tmp_path):
    """Runs of one seed have one id, whichever seeds are replayed beside them."""
    common = {"requests": 2000, "strategy": "greedy", "load": 0.5}
    both = ecjax.adapt(seeds=2, out=str(tmp_path / "both"), **common).runs.set_index("seed")
    second = ecjax.adapt(seed=1, out=str(tmp_path / "second"), **common).runs.set_index("seed")
    assert both["run_id"][1] == second["run_id"][1]
    assert both["capacity_per_s"][1] == second["capacity_per_s"][1]
    assert both["mean_s"][1] == second["mean_s"][1]
