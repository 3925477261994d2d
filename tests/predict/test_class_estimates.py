"""Estimates by class beside their replays: tables in, latencies out; deadlines' helper; a wide grid, slow."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy import stats

from ecjax import planning
from ecjax.model import Files, Nodes
from ecjax.predict.class_estimates import class_estimates, class_mean_estimates
from ecjax.problem.classes import Classes
from ecjax.simulation import laws, tally
from ecjax.simulation.run import Policy, Queue, replay
from ecjax.simulation.summary import summarise
from ecjax.simulation.system import System, whole_units
from ecjax.streams import arrivals
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.study import replay_study
from ecjax.tables.results import read_results

# compilation of its programs takes minutes in all
pytestmark = pytest.mark.slow

REPLICATIONS = 5
MEAN, P99 = 0.03, 0.05  # errors beyond the replay's own that are allowed


@pytest.fixture
def tables(tmp_path):
    nodes = {"node_id": list("abcd"), "delta_s": [0.1] * 4, "delta_s_per_byte": [0.2, 0.25, 0.2, 0.25]}
    nodes |= {"psi_s": [0.1] * 4, "psi_s_per_byte": [0.2] * 4}
    files = {"file_id": [0, 1, 2], "bytes": [2.0, 2.0, 4.0], "k": [2, 2, 2], "rate_per_s": [0.4, 0.4, 0.4]}
    files |= {"service_class": [1, 2, 2], "write_rate_per_s": [0.0, 0.05, 0.0]}
    pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    pq.write_table(pa.table(files), tmp_path / "files.parquet")
    return OptimizeOptions(nodes=str(tmp_path / "nodes.parquet"), files=str(tmp_path / "files.parquet"))


def replay_tables(planning, folder, **values):
    options = ReplayOptions(plan="none", planning=planning, out=str(folder / "out"), figures=[], **values)
    return replay_study(options, Console(quiet=True))


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "partitioned"])
def test_replays_agree(tables, tmp_path, queue):
    assert (
        replay_tables(tables, tmp_path, queue=queue, requests=100_000, replications=3, weights=[0.4, 0.6])
        == 0
    )
    found = read_results(tmp_path / "out", "latencies").set_index(["group", "source"]).sort_index()
    for group in ("all", "class", "file"):
        told, known = found.loc[[(group, "replayed")]], found.loc[[(group, "estimated")]]
        assert len(told) == len(known) == {"all": 1, "class": 2, "file": 3}[group]
        own = told["ci_s"].to_numpy()
        error = np.abs(known["mean_s"].to_numpy() - told["mean_s"].to_numpy())
        assert np.all(error < MEAN * told["mean_s"].to_numpy() + own)
        error = np.abs(known["p99_s"].to_numpy() / told["p99_s"].to_numpy() - 1)
        assert np.all(error < P99 + own / told["mean_s"].to_numpy())


def test_shared_queues_have_no_estimate(tables, tmp_path):
    assert replay_tables(tables, tmp_path, queue="shared", requests=2000, replications=1) == 0
    assert "estimated" not in set(read_results(tmp_path / "out", "latencies")["source"])


def problem(rates, writes=0.0, background=0.0):
    service = np.zeros((3, 4, 4))
    service[0, 1], service[1, 2], service[2, 3] = 0.5, 0.5, 0.75
    nodes = Nodes(
        service=jnp.asarray(service),
        connect_mean=jnp.zeros(4),
        connect_variance=jnp.zeros(4),
        background=background * jnp.outer(jnp.array([1.0, 1.0, 1.5]), jnp.ones(4)),
        cost_per_chunk=jnp.zeros(4),
        cost_per_byte=jnp.zeros(4),
    )
    size = [1.0, 1.0, 2.0]
    columns = (size, size, [2.0] * 3, [0.0] * 3, rates, [writes, 0.0, 0.0])
    return planning.prepare(nodes, Files(*map(jnp.asarray, columns)))


# exponential service of 0.5 s per byte
LAWS = laws.Laws(np.tile([0.0, 0.0, 0.0, 0.5, 0.0, 0.0, laws.EXPONENTIAL, 0.0, 0.0], (4, 1)), np.zeros(1))
PI, OF_FILE = np.full((3, 4), 0.5), np.array([0, 1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "partitioned"])
def test_means_of_classes(queue):
    weights, ranks = np.full((2, 4), 0.5), Classes(["a", "b"], OF_FILE)
    arguments = LAWS, PI, PI > 0
    own = problem([0.3, 0.2, 0.1], writes=0.02, background=0.05)
    found = class_mean_estimates(own, *arguments, OF_FILE, queue, weights)
    told = class_estimates(own, *arguments, ranks, queue, weights)
    assert found == pytest.approx(told["class"].mean, rel=1e-12)
    assert told["class"].quantiles.shape == (2, 4) and told["class"].source == "estimated"
    assert told["file"].mean[0] == pytest.approx(found[0], rel=1e-9)
    # the second class overloads its nodes, or its part of them; nobody reads the first
    found = class_mean_estimates(problem([0.3, 2.0, 1.0], 0.02), *arguments, OF_FILE, queue, weights)
    assert np.isfinite(found[0]) and np.isinf(found[1])
    found = class_mean_estimates(problem([0.0, 0.2, 0.1], 0.02), *arguments, OF_FILE, queue, weights)
    assert found[0] == 0 and np.isfinite(found[1])
    with pytest.raises(ValueError, match="must be one of priority, partitioned"):
        class_mean_estimates(own, *arguments, OF_FILE, "shared", weights)


NODES = 12
HOUSE = (
    2.93269765 / 13.9,
    12.32373209 / 13.9,
    2.75655188,
    laws.WEIBULL,
)  # three moments of the built-in cluster
FAMILIES = {"exponential": (0.0, 1.0, 0.0, laws.EXPONENTIAL), "shifted": (0.5, 0.5, 0.0, laws.EXPONENTIAL)}
FAMILIES |= {"built-in": HOUSE}
LOADS, LENGTHS = [0.3, 0.6, 0.9], [2, 4, 7]
SHARES = [(1, 22), (1, 3), (1, 1), (3, 1), (1, 1, 1), (1, 3, 9)]


def replayed(law, rates, k, queue, requests):
    """Classes of one file each on all of twelve alike nodes; chunks take 1 s per byte, on average.

    Returns:
        The laws; of every class the mean with the half width of its 95 % interval, and the 99 % quantile with its own.
    """
    count, offset, scale, shape, kind = len(rates), *FAMILIES[law]
    table = np.tile([0.0, offset, 0.0, scale, shape, 0.0, kind, 0.0, 0.0], (NODES, 1))
    start, need = NODES * np.arange(count + 1), np.full(count, k)
    everywhere, nothing = np.tile(np.arange(NODES), count), np.zeros(count)
    system = System(
        laws=laws.Laws(table, np.zeros(1)),
        connect=np.zeros((2, NODES)),
        need=need,
        chunk_bytes=np.ones(count),
        extra_s=nothing,
        link_s=nothing,
        group=np.arange(count),
        queue=np.arange(count),
        row=np.arange(count),
        start=start,
        node=everywhere,
        law=everywhere,
        units=whole_units(np.full(NODES * count, k / NODES), start, need),
        chunks=np.ones(NODES * count, np.int64),
    )
    runs = []
    for seed in range(1, REPLICATIONS + 1):
        counts = tally.empty(requests, count, NODES)
        done = replay(system, arrivals.poisson(rates, requests, seed), counts, seed, Policy(), queue)
        one = summarise([done.tally], [done.span])
        runs.append((one.mean[:count], one.quantiles[:count, 2]))
    means, tails = (np.array(values) for values in zip(*runs, strict=True))
    reach = stats.t.ppf(0.975, REPLICATIONS - 1) / np.sqrt(REPLICATIONS)
    return (
        system.laws,
        *(
            part
            for values in (means, tails)
            for part in (values.mean(axis=0), reach * values.std(axis=0, ddof=1))
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["priority", "partitioned"])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("k", LENGTHS)
def test_wide_grid(k, load, queue):
    """The errors that ``class_estimates`` states; printed with ``-s``.

    Of the shares each law meets one half here, and the other at the next load or number of chunks.
    """
    turn = LOADS.index(load) + LENGTHS.index(k)
    for place, law in enumerate(FAMILIES):
        for shares in SHARES[(turn + place) % 2 :: 2]:
            part = np.array(shares) / sum(shares)
            rates, weights = part * load * NODES / k, np.tile(part[:, None], NODES)
            served = Queue("partitioned", weights) if queue == "partitioned" else Queue("priority")
            requests = 160_000 if load < 0.8 else 800_000
            own, mean, half, quantile, quantile_half = replayed(law, rates, k, served, requests)
            count = len(shares)
            service = np.zeros((3, 4, NODES))
            found = class_estimates(
                planning.prepare(
                    Nodes(
                        jnp.asarray(service),
                        *jnp.zeros((2, NODES)),
                        jnp.zeros((3, NODES)),
                        *jnp.zeros((2, NODES)),
                    ),
                    Files(
                        *jnp.asarray(
                            [[1.0] * count] * 2 + [[float(k)] * count, [0.0] * count, rates, [0.0] * count]
                        )
                    ),
                ),
                own,
                np.full((count, NODES), k / NODES),
                np.ones((count, NODES), bool),
                Classes([str(c) for c in range(count)], np.arange(count)),
                queue,
                weights,
            )["class"]
            error, tail = found.mean / mean - 1, found.quantiles[:, 2] / quantile - 1
            print(queue, law, shares, k, load, *(np.round(100 * e, 1) for e in (error, half / mean, tail)))
            assert np.all(np.abs(error) < MEAN + half / mean), (law, shares)
            assert np.all(np.abs(tail) < P99 + quantile_half / quantile), (law, shares)
