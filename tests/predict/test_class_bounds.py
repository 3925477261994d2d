"""Bounds of classes with queues of their own: one class is first come first served, and replays stay below."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy.optimize import minimize_scalar

from ecjax import planning
from ecjax.model import Files, Nodes
from ecjax.predict.class_bounds import class_bounds
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
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
    return planning.prepare(nodes, Files(*map(jnp.asarray, columns)))


PI = np.array([[0.4] * 5, [1.0, 1.0, 0, 0, 0], [0, 0.5, 0.5, 0.5, 0.5], [0.2, 0.3, 0.5, 0.4, 0.6]])


@pytest.mark.parametrize("queue", ["priority", "partitioned", "shared"])
def test_one_class_is_first_come_first_served(queue):
    own = problem()
    plain = planning.evaluate(own, jnp.asarray(PI), jnp.asarray(PI > 0), jnp.zeros(()))
    found = class_bounds(own, PI, PI > 0, np.zeros(4, int), queue, (1.0,))
    assert found == pytest.approx(np.asarray(plain.file_latency), rel=1e-10)


def test_priority_moves_latency_to_the_last_class():
    own, of_file = problem(), np.array([0, 1, 0, 1])
    plain = class_bounds(own, PI, PI > 0, np.zeros(4, int), "priority", (1.0,))
    found = class_bounds(own, PI, PI > 0, of_file, "priority", (0.5, 0.5))
    assert np.all(found[of_file == 0] < plain[of_file == 0])
    assert np.all(found[of_file == 1] > plain[of_file == 1])


def partition_by_hand(own, pi, of_file, weights):
    """Bounds of the files, written out: M/G/1 of service X / w by class and node, and the least over z by search."""
    service, background = np.asarray(own.nodes.service), np.asarray(own.nodes.background)
    size, rate = np.asarray(own.files.chunk_bytes), np.asarray(own.files.rate)
    writes = np.asarray(own.files.write_rate)
    found = []
    for file, number in enumerate(of_file):
        delays = []
        for node in np.flatnonzero(pi[file]):
            w = weights[number, node]
            load = np.zeros(3)  # rate, times the raw moments of the slowed service
            for other in np.flatnonzero(of_file == number):
                moments = [np.polyval(service[n, ::-1, node], size[other]) for n in range(3)]
                load += (rate[other] * pi[other, node] + writes[other] * (pi[other, node] > 0)) * np.array(
                    moments
                )
            if number == len(weights) - 1:
                load += background[:, node]
            load /= w ** np.arange(1, 4)
            first, second = (np.polyval(service[n, ::-1, node], size[file]) / w ** (n + 1) for n in (0, 1))
            wait = load[1] / (2 * (1 - load[0]))
            mean = first + wait + float(own.nodes.connect_mean[node])
            variance = second - first**2 + load[2] / (3 * (1 - load[0])) + wait**2
            delays.append((pi[file, node], mean, variance + float(own.nodes.connect_variance[node])))
        p, mean, variance = np.array(delays).T

        def at(z, p=p, mean=mean, variance=variance):
            return z + np.sum(p / 2 * (mean - z + np.sqrt((mean - z) ** 2 + variance)))

        found.append(minimize_scalar(at, (0, mean.max()), options={"xtol": 1e-12}).fun)
    return found


def test_shares_by_class_and_node():
    own, of_file = problem(), np.array([0, 1, 2, 1])
    weights = np.random.default_rng(1).uniform(1, 2, (3, 5))
    weights[2, 0] += 1  # background work is there
    weights /= weights.sum(axis=0)
    found = class_bounds(own, PI, PI > 0, of_file, "partitioned", weights)
    assert found == pytest.approx(partition_by_hand(own, PI, of_file, weights), rel=1e-9)
    np.testing.assert_array_equal(class_bounds(own, PI, PI > 0, of_file, "shared", weights), found)
    alike = class_bounds(own, PI, PI > 0, of_file, "partitioned", (0.3, 0.3, 0.4))
    tiled = np.tile([[0.3], [0.3], [0.4]], 5)
    np.testing.assert_array_equal(class_bounds(own, PI, PI > 0, of_file, "partitioned", tiled), alike)


def test_a_class_whose_part_is_too_small_has_no_bound():
    found = class_bounds(problem(), PI, PI > 0, np.array([0, 0, 0, 1]), "partitioned", (0.99, 0.01))
    assert np.isfinite(found[:3]).all() and np.isinf(found[3])


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "partitioned", "shared"])
def test_replays_stay_below(tmp_path, queue):
    nodes = {"node_id": list("abcd"), "delta_s": [0.1] * 4, "delta_s_per_byte": [0.2] * 4}
    nodes |= {"psi_s": [0.1] * 4, "psi_s_per_byte": [0.2] * 4}
    files = {"file_id": [0, 1, 2], "bytes": [2.0, 2.0, 4.0], "k": [2, 2, 2], "rate_per_s": [0.4, 0.3, 0.2]}
    files |= {"service_class": [1, 2, 2], "write_rate_per_s": [0.0, 0.02, 0.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    planning = OptimizeOptions(nodes=str(tmp_path / "nodes.parquet"), files=str(tmp_path / "files.parquet"))
    few = {"requests": 40_000, "replications": 3, "estimate": False, "figures": []}
    options = ReplayOptions(plan="none", planning=planning, queue=queue, out=str(tmp_path / "out"), **few)
    assert replay_study(options, Console(quiet=True)) == 0
    table = (
        read_results(tmp_path / "out", "latencies")
        .sort_values(["group", "source"])
        .set_index(["group", "source"])
    )
    for group in ("all", "class", "file"):
        told, bound = table.loc[[(group, "replayed")]], table.loc[[(group, "bound")]]
        assert len(told) == len(bound)
        assert np.all(told["mean_s"].to_numpy() - told["ci_s"].to_numpy() < bound["mean_s"].to_numpy())
