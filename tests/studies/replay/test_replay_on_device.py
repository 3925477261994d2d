"""Replays by JAX's device: the same tables as by processors, and what it cannot replay stays with those."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.problem.cluster_options import ClusterOptions
from ecjax.programs import keep_traces
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

QUIET = Console(quiet=True)
RESULTS = [
    *("run_id", "status", "requests", "warm_up_share", "mean_s", "ci_s", "p50_s", "p99_s", "p99_ci_s"),
    *("max_utilisation", "latency_s", "device"),
]
DATASETS = ("latencies", "latency_bins", "node_loads", "services")


def written(folder):
    """Four nodes with random connection delays and other work, and files that are written, too."""
    nodes = {
        "node_id": [f"n{i}" for i in range(4)],
        "delta_s": [0.2] * 4,
        "delta_s_per_byte": [0.0] * 4,
        "psi_s": [0.3] * 4,
        "psi_s_per_byte": [0.0] * 4,
        "background_load": [0.1, 0.0, 0.0, 0.2],
        "background_second": [0.2, 0.0, 0.0, 0.2],
        "background_third": [0.6, 0.0, 0.0, 0.3],
        "connect_mean_s": [0.05] * 4,
        "connect_var_s2": [0.0004] * 4,
    }
    files = {"file_id": [1, 2, 3], "bytes": [4.0, 8.0, 4.0], "k": [2, 2, 1], "rate_per_s": [0.2, 0.1, 0.2]}
    files |= {"write_rate_per_s": [0.05, 0.0, 0.02]}
    for name, columns in (("nodes", nodes), ("files", files)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return {"nodes": str(folder / "nodes.parquet"), "files": str(folder / "files.parquet")}


def planning(**values):
    cluster = ClusterOptions(hardware="tahoe", files=24, load=0.6, nodes_per_site=3)
    # any plan does, which then needs no other one beside it
    usual = {"theta": [10.0], "gap": 0.2, "figures": [], "estimate": False, "cluster": cluster}
    return OptimizeOptions(**(usual | values))


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """The plan that most tests replay, made once."""
    out = str(tmp_path_factory.mktemp("plan") / "out")
    assert optimize_study(replace(planning(), out=out), QUIET) == 0
    return out


def replayed(out, device, **values):
    usual = {"requests": 3000, "replications": 3, "figures": [], "estimate": False}
    assert replay_study(ReplayOptions(out=str(out), device=device, **(usual | values)), QUIET) == 0
    return read_results(out, "runs")


def compare(mine: pd.DataFrame, theirs: pd.DataFrame) -> None:
    assert list(mine.columns) == list(theirs.columns) and len(mine) == len(theirs)
    for name in mine.columns:
        if pd.api.types.is_float_dtype(mine[name]):
            np.testing.assert_allclose(
                mine[name].to_numpy(float, na_value=np.nan),
                theirs[name].to_numpy(float, na_value=np.nan),
                rtol=1e-9,
                err_msg=name,
            )
        else:
            pd.testing.assert_series_equal(mine[name], theirs[name])


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"service": ["gamma"], "policy": ["uniform"], "arrivals": "bursts"},
        {"client_bandwidth_bytes_per_s": 5e7, "decode_s_per_byte": 1e-9},
    ],
    ids=["as planned", "gamma laws in bursts", "client links"],
)
def test_both_give_the_same_tables(plan, tmp_path, values):
    by_host = replayed(tmp_path / "host", "host", plan=plan, **values)
    by_device = replayed(tmp_path / "jax", "jax", plan=plan, **values)
    compare(by_device[RESULTS], by_host[RESULTS])
    for name in DATASETS:
        compare(read_results(tmp_path / "jax", name), read_results(tmp_path / "host", name))


def test_writes_and_background_work_arrive_there_too(tmp_path):
    # any plan does
    made_now = planning(**written(tmp_path), cluster=ClusterOptions(), method=["max_ec"])
    by_host = replayed(tmp_path / "host", "host", planning=made_now)
    by_device = replayed(tmp_path / "jax", "jax", plan=str(tmp_path / "host" / "planning"))
    compare(by_device[RESULTS], by_host[RESULTS])
    for name in DATASETS:
        compare(read_results(tmp_path / "jax", name), read_results(tmp_path / "host", name))


def test_fewer_replications_at_a_time_are_the_same(plan, tmp_path, monkeypatch):
    whole = replayed(tmp_path / "whole", "jax", plan=plan)
    monkeypatch.setattr("ecjax.studies.replay.simulation.usable_bytes", lambda: 1.0)
    keep_traces(True)  # it is a part of no program
    none = replayed(tmp_path / "none", "jax", plan=plan)
    assert none["mean_s"][0] == pytest.approx(whole["mean_s"][0], rel=1e-9)
    monkeypatch.setattr("ecjax.studies.replay.simulation.Simulation.lanes_on_device", lambda *_: 2)
    keep_traces(True)  # it is a part of no program
    two = replayed(tmp_path / "two", "jax", plan=plan)
    assert two["mean_s"][0] == pytest.approx(whole["mean_s"][0], rel=1e-9)


def test_policies_that_look_at_queues_are_replayed_by_processors(plan, tmp_path):
    values = {"plan": plan, "policy": ["least_loaded", "fork_join"], "queue": ["fcfs"]}
    by_device = replayed(tmp_path / "jax", "jax", **values)
    assert set(by_device["device"]) == {"cpu"}
    np.testing.assert_array_equal(
        by_device["mean_s"], replayed(tmp_path / "host", "host", **values)["mean_s"]
    )


def test_on_processors_alone_nothing_is_given_to_jax(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("replayed by JAX")

    name = "ecjax.studies.replay.simulation.Simulation.replications_on_device"
    monkeypatch.setattr(name, refuse)
    assert list(replayed(tmp_path, "auto", planning=planning())["status"]) == ["ok"]
