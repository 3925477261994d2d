"""Bounds of classes with queues of their own: one class is first come first served, and replays stay below."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ecjax import optimize
from ecjax.model import Files, Nodes
from ecjax.studies.class_bounds import class_bounds
from ecjax.studies.options_optimize import OptimizeOptions
from ecjax.studies.options_replay import ReplayOptions
from ecjax.studies.replay import replay_study
from ecjax.tables.results import read_results


def problem(write_rate=0.02):
    service = np.zeros((3, 4, 5))
    service[0, 1], service[1, 2], service[2, 3] = 0.5, 0.4, 0.5
    nodes = Nodes(
        service=jnp.asarray(service * np.linspace(1, 1.6, 5)),
        connect_mean=jnp.full(5, 0.1),
        connect_variance=jnp.full(5, 0.02),
        background=jnp.zeros((3, 5)).at[:, 0].set(jnp.array([0.1, 0.2, 0.8])),
        cost_per_chunk=jnp.zeros(5),
        cost_per_byte=jnp.zeros(5),
    )
    sizes = [1.0, 1.0, 2.0, 2.0]
    columns = (sizes, sizes, [2.0] * 4, [0.0] * 4, [0.1, 0.05, 0.1, 0.02], [write_rate, 0.0, 0.0, 0.0])
    return optimize.prepare(nodes, Files(*map(jnp.asarray, columns)))


PI = np.array([[0.4] * 5, [1.0, 1.0, 0, 0, 0], [0, 0.5, 0.5, 0.5, 0.5], [0.2, 0.3, 0.5, 0.4, 0.6]])


@pytest.mark.parametrize("queue", ["priority", "partitioned", "shared"])
def test_one_class_is_first_come_first_served(queue):
    own = problem()
    plain = optimize.evaluate(own, jnp.asarray(PI), jnp.asarray(PI > 0), jnp.zeros(()))
    found = class_bounds(own, PI, PI > 0, np.zeros(4, int), queue, (1.0,))
    assert found == pytest.approx(np.asarray(plain.file_latency), rel=1e-10)


def test_priority_moves_latency_to_the_last_class():
    own, of_file = problem(), np.array([0, 1, 0, 1])
    plain = class_bounds(own, PI, PI > 0, np.zeros(4, int), "priority", (1.0,))
    found = class_bounds(own, PI, PI > 0, of_file, "priority", (0.5, 0.5))
    assert np.all(found[of_file == 0] < plain[of_file == 0])
    assert np.all(found[of_file == 1] > plain[of_file == 1])


def test_a_class_whose_part_is_too_small_has_no_bound():
    found = class_bounds(problem(), PI, PI > 0, np.array([0, 0, 0, 1]), "partitioned", (0.99, 0.01))
    assert np.isfinite(found[:3]).all() and np.isinf(found[3])


@pytest.mark.parametrize("queue", ["priority", "partitioned", "shared"])
def test_replays_stay_below(tmp_path, queue):
    nodes = {"node_id": list("abcd"), "delta_s": [0.1] * 4, "delta_s_per_byte": [0.2] * 4}
    nodes |= {"psi_s": [0.1] * 4, "psi_s_per_byte": [0.2] * 4}
    files = {"file_id": [0, 1, 2], "bytes": [2.0, 2.0, 4.0], "k": [2, 2, 2], "rate_per_s": [0.4, 0.3, 0.2]}
    files |= {"service_class": [1, 2, 2], "write_rate_per_s": [0.0, 0.02, 0.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    planning = OptimizeOptions(nodes=str(tmp_path / "nodes.parquet"), files=str(tmp_path / "files.parquet"))
    given = ReplayOptions(plan="none", planning=planning, queue=queue, out=str(tmp_path / "out"), figures=[])
    given.requests, given.replications = 40_000, 2
    assert replay_study(given, Console(quiet=True)) == 0
    table = (
        read_results(tmp_path / "out", "latencies")
        .sort_values(["group", "source"])
        .set_index(["group", "source"])
    )
    for group in ("all", "class", "file"):
        told, bound = table.loc[[(group, "replayed")]], table.loc[[(group, "bound")]]
        assert len(told) == len(bound)
        assert np.all(told["mean_s"].to_numpy() - told["ci_s"].to_numpy() < bound["mean_s"].to_numpy())
