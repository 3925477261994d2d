"""``ecjax replay`` through an engine: the same tables from each, what replays share is sent once."""

from contextlib import nullcontext
from io import StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import PickledEngine, same_tables
from rich.console import Console

from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay import log as replay_log
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.studies.spine import study

QUIET = Console(quiet=True)


def on(engine, monkeypatch) -> None:
    monkeypatch.setattr(study, "open_engine", lambda *_: nullcontext(engine))


def options(out, **values) -> ReplayOptions:
    cluster = ClusterOptions(hardware="tahoe", files=24, load=0.6, nodes_per_site=3)
    planning = OptimizeOptions(theta=[10.0, 100.0], figures=[], cluster=cluster)
    given = {"requests": 2000, "replications": 2, "figures": [], "estimate": False, "planning": planning}
    return ReplayOptions(**(given | {"out": str(out)} | values))


@pytest.mark.slow
def test_plans_and_replays_are_the_same(tmp_path, monkeypatch):
    given = {"policy": ["probabilistic", "least_loaded"], "rate_scale": [1.0, 2.0]}
    assert replay_study(options(tmp_path / "serial", **given), QUIET) == 1
    engine = PickledEngine()
    on(engine, monkeypatch)
    assert replay_study(options(tmp_path / "other", **given), QUIET) == 1
    same_tables(tmp_path / "serial", tmp_path / "other")
    assert len(engine.sent) == 1 + 2, "the study once, and each of two plans"


@pytest.mark.slow
def test_validations_on_a_log_are_the_same(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    arrival, node = np.sort(random.uniform(0, 3000, 600)), random.integers(0, 3, 600)
    start, finish, free = np.empty(600), np.empty(600), np.zeros(3)
    for access, service in enumerate(random.exponential(4.0, 600)):
        start[access] = max(arrival[access], free[node[access]])
        finish[access] = free[node[access]] = start[access] + service
    log = {"request_id": np.arange(600), "arrival_s": arrival, "file_id": np.arange(600) % 7, "node_id": node}
    log |= {"op": ["read"] * 600, "bytes": [4.0] * 600, "start_s": start, "finish_s": finish}
    pq.write_table(pa.table(log), tmp_path / "log.parquet")
    given = {"trace": str(tmp_path / "log.parquet"), "service": ["empirical", "exponential"]}
    assert replay_study(options(tmp_path / "serial", **given), QUIET) == 0
    engine = PickledEngine()
    on(engine, monkeypatch)
    assert replay_study(options(tmp_path / "other", **given), QUIET) == 0
    same_tables(tmp_path / "serial", tmp_path / "other")
    assert len(engine.sent) == 1
    monkeypatch.setattr(replay_log, "validate", lambda *_: 1 / 0)
    failed = Console(record=True, file=StringIO(), width=200)
    assert replay_study(options(tmp_path / "failed", **given), failed) == 1
    assert failed.export_text().count("ZeroDivisionError") == 2
