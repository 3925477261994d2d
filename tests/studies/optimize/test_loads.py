"""Overload is found on the tables: nothing is prepared, planned, compiled or simulated for it."""

import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.problem import builtin
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import optimize_study
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study

MESSAGE = r"nodes: row \d+ \(node_id=.*\): load rho = 1\.[89]\d* at rate_scale=1 with reads spread as evenly as they go"
FILES = 3000


@pytest.fixture
def tables(tmp_path) -> dict[str, str]:
    """Files of three classes that load the nodes by 1.9 however they are spread."""
    nodes = builtin.nodes(ClusterOptions(hardware="tahoe"))
    mean = nodes["service_mean_s"].to_numpy()
    rate = 1.9 / (np.arange(FILES) % 3 + 1).sum() / 4 * (1 / mean).sum()
    files = {
        "file_id": np.arange(FILES),
        "bytes": np.full(FILES, 4 * nodes["reference_bytes"][0].as_py()),
        "k": np.full(FILES, 4),
        "n": np.full(FILES, 6),
        "rate_per_s": rate * (np.arange(FILES) % 3 + 1.0),
        "service_class": np.arange(FILES) % 3,
    }
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    return {"nodes": str(tmp_path / "nodes.parquet"), "files": str(tmp_path / "files.parquet")}


@pytest.fixture(autouse=True)
def nothing_is_prepared(monkeypatch):
    def prepared(*_, **__):
        pytest.fail("prepared in spite of overload")

    for place in (
        "ecjax.planning.prepare",
        "ecjax.studies.optimize.study.case_of",
        "ecjax.studies.replay.plans.planned",
    ):
        monkeypatch.setattr(place, prepared)


@pytest.mark.parametrize("queue", [["fcfs"], ["priority"], ["weighted"], ["fcfs", "weighted"]])
def test_plans(tmp_path, tables, queue):
    options = OptimizeOptions(**tables, out=str(tmp_path / "out"), queue=queue, theta=[1.0])
    with pytest.raises(UserError, match=MESSAGE):
        optimize_study(options, Console(file=io.StringIO()))


def test_sizes_rates_and_k_are_all_refused_or_none(tmp_path, tables):
    options = OptimizeOptions(
        **tables, out=str(tmp_path / "out"), theta=[1.0], size_scale=[1.0, 2.0], k=[3, 4]
    )
    with pytest.raises(UserError, match=MESSAGE):
        optimize_study(options, Console(file=io.StringIO()))
    with pytest.raises(pytest.fail.Exception, match="prepared"):
        optimize_study(replace(options, rate_scale=[0.1, 1.0]), Console(file=io.StringIO()))


@pytest.mark.parametrize("plan", [None, "none"])
@pytest.mark.parametrize("policy", ["uniform", "least_loaded"])
def test_replays(tmp_path, tables, plan, policy):
    planning = OptimizeOptions(**tables, theta=[1.0])
    options = ReplayOptions(plan=plan, planning=planning, policy=[policy], out=str(tmp_path / "out"))
    with pytest.raises(UserError, match=MESSAGE):
        replay_study(options, Console(file=io.StringIO()))


def test_replays_of_work_that_is_not_known_are_tried(tmp_path, tables):
    planning = OptimizeOptions(**tables, theta=[1.0])
    for options in ({"policy": ["fork_join"]}, {"rate_scale": [0.1]}):
        with pytest.raises(pytest.fail.Exception, match="prepared"):
            replay_study(
                ReplayOptions(planning=planning, out=str(tmp_path / "out"), **options),
                Console(file=io.StringIO()),
            )
