"""Bound and estimate where nodes serve several requests at once, against exact laws and a plain simulator."""

import heapq

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
from scipy import special

from ecjax import planning
from ecjax.errors import UserError
from ecjax.planning.problem import EVALUATE
from ecjax.predict.workload import ESTIMATE
from ecjax.problem.arrays import check_together, files_arrays, nodes_arrays
from ecjax.queueing import ServiceLaw, UnitLaw, Workload
from ecjax.queueing.channels import delay_over_channels
from ecjax.queueing.mg1 import waiting

NODES, K = 6, 3


def waiting_of(load, c):
    """Erlang's C by the sum over states."""
    a = load * c
    full = a**c / special.factorial(c) / (1 - load)
    return full / (sum(a**n / special.factorial(n) for n in range(c)) + full)


def nodes_table(count, channels, **more):
    columns = {
        "node_id": list(range(count)),
        "service_mean_s": np.full(count, 1.0),
        "service_second_s2": np.full(count, 2.0),
        "service_third_s3": np.full(count, 6.0),
        "reference_bytes": np.full(count, 1.0),
        "channels": np.full(count, channels),
    }
    return pa.table(columns | more)


def problem_of(nodes, k, rate):
    files = pa.table({"file_id": [0], "bytes": [float(k)], "k": [k], "rate_per_s": [rate]})
    return planning.prepare(nodes_arrays(nodes), files_arrays(files))


@pytest.mark.parametrize(("c", "load"), [(2, 0.3), (4, 0.8), (16, 0.9)])
def test_one_node_of_exponential_services_is_exact(c, load):
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=1.0, nodes=NODES)
    # nothing comes to the other nodes, which make the shape that of the next test
    workload = Workload.of(load * c, 1.0, K, service, channels=np.full(NODES, float(c)))
    found = ESTIMATE(jnp.asarray(np.eye(1, NODES)), workload)
    p, rate = waiting_of(load, c), c * (1 - load)
    assert float(found.mean) == pytest.approx(1 + p / rate, rel=2e-3)
    assert float(found.load[0]) == pytest.approx(load, rel=1e-4)
    t = float(found.quantiles[2])
    both = (rate * np.exp(-t) - np.exp(-rate * t)) / (rate - 1)  # Pr(service + exponential wait > t)
    assert (1 - p) * np.exp(-t) + p * both == pytest.approx(0.01, rel=0.03)
    # mean and variance of the wait itself
    power = np.arange(1, 4)
    sums = load * c * special.factorial(power) / float(c) ** power
    wait = delay_over_channels(waiting(*sums), jnp.asarray(load), jnp.asarray(float(c)))
    assert float(wait.mean) == pytest.approx(p / rate, rel=1e-9)
    assert float(wait.variance) == pytest.approx(2 * p / rate**2 - (p / rate) ** 2, rel=1e-9)


def simulated(rng, service, c, rate, reads):
    """Latencies of reads that go to K of the nodes at random, each with c servers."""
    free = [[0.0] * c for _ in range(NODES)]
    latencies = []
    arrivals = np.cumsum(rng.exponential(1 / rate, reads)).tolist()
    taken = rng.random((reads, NODES)).argsort(axis=1)[:, :K].tolist()
    services = service(rng, (reads, K)).tolist()
    for now, nodes, times in zip(arrivals, taken, services, strict=True):
        last = 0.0
        for node, time in zip(nodes, times, strict=True):
            begin = max(now, free[node][0])
            end = begin + time
            heapq.heapreplace(free[node], end)
            last = max(last, end - now)
        latencies.append(last)
    return np.array(latencies[reads // 20 :])


LAWS = {
    "exponential": (
        UnitLaw.named("exponential"),
        {"scale": 1.0},
        lambda rng, shape: rng.exponential(size=shape),
    ),
    "gamma": (
        UnitLaw.named("gamma", shape=4.0),
        {"scale": 0.25},
        lambda rng, shape: rng.gamma(4.0, 0.25, shape),
    ),
    "lognormal": (
        UnitLaw.named("lognormal", sigma=1.0),
        {"scale": np.exp(-0.5)},
        lambda rng, shape: rng.lognormal(-0.5, 1.0, shape),
    ),
}


@pytest.mark.parametrize(
    ("law", "c", "load", "error", "reads"),
    [
        ("exponential", 3, 0.7, 0.03, 60_000),
        ("gamma", 2, 0.6, 0.03, 60_000),
        # with many channels and services that vary much the approximation errs to longer waits, by most of what it
        # may: the simulation must be better known
        ("lognormal", 4, 0.7, 0.06, 300_000),
    ],
)
def test_reads_of_several_nodes_are_near_a_simulation(law, c, load, error, reads):
    unit, scale, draw = LAWS[law]
    rate = load * c * NODES / K
    seen = simulated(np.random.default_rng(1), draw, c, rate, reads)
    service = ServiceLaw.of_nodes(unit, nodes=NODES, **scale)
    workload = Workload.of(rate, 1.0, K, service, channels=np.full(NODES, float(c)))
    plan = jnp.asarray(np.full((1, NODES), K / NODES))
    found = ESTIMATE(plan, workload)
    assert float(found.mean) == pytest.approx(seen.mean(), rel=error)
    assert float(found.quantiles[2]) == pytest.approx(np.quantile(seen, 0.99), rel=0.1)
    # the bound holds, and is below that of one channel of the same speed
    table = nodes_table(
        NODES,
        c,
        service_second_s2=np.full(
            NODES, 1.0 + {"exponential": 1.0, "gamma": 0.25, "lognormal": np.e - 1}[law]
        ),
        service_third_s3=np.full(NODES, {"exponential": 6.0, "gamma": 1.875, "lognormal": np.exp(3)}[law]),
    )
    several = EVALUATE(problem_of(table, K, rate), plan, plan > 0, jnp.zeros(()))
    assert float(several.latency) > seen.mean()
    np.testing.assert_allclose(several.load, load)
    single = EVALUATE(problem_of(nodes_table(NODES, 1), K, rate), plan, plan > 0, jnp.zeros(()))
    assert not np.isfinite(float(single.latency))


def test_other_work_is_spread_over_the_channels():
    table = nodes_table(
        2, 4, background_load=[2.0, 0.0], background_second=[4.0, 0.0], background_third=[12.0, 0.0]
    )
    problem = problem_of(table, 1, 1.0)
    work = planning.node_work(problem, jnp.zeros((1, 2)), jnp.zeros((1, 2)))
    np.testing.assert_allclose(work[:, 0], [2 / 4, 4 / 16, 12 / 64])
    files = pa.table({"file_id": [0], "bytes": [1.0], "k": [1], "rate_per_s": [1.0]})
    check_together(table, files)
    full = table.set_column(
        table.column_names.index("background_load"), "background_load", pa.array([4.0, 0.0])
    )
    with pytest.raises(UserError, match=r"background_load, row 0 \(node_id=0\).*overloaded"):
        check_together(full, files)
    with pytest.raises(UserError, match="max_chunks_per_node=2: nodes have channels above 1"):
        check_together(table, files.set_column(2, "k", pa.array([2])), 2)
