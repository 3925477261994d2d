"""Branches over the sets of rows that nodes keep, against the brute-force optimum and against plans of NumPy."""

import numpy as np
import problems
import pytest
from planning.brute_force import optimum
from planning.certified.untuned import passes_of, tiny

from ecjax.planning.certified import Settings, certify, plan_lanes
from ecjax.planning.certified.node_sets import Between, states_of
from ecjax.planning.certified.set_program import SetProgram
from ecjax.planning.certified.waits import slopes
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.tables.results import read_results

NODES = 4
ONE = np.ones(1)


@pytest.mark.parametrize("kind", ["mixed", "mixed_writes", "sites", "capacity", "charges"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 4, 5, 7))])
def test_plans_are_the_best_and_bounds_near_them(seed, kind):
    _, problem, theta = tiny(seed, kind, 2, NODES)
    best = optimum(problem, theta)
    if best is None:
        pytest.skip("no placement is stable and keeps the constraints")
    plans, bound, _ = plan_lanes(problem, np.array([theta]), ONE, ONE, Settings())
    objective = float(plans.evaluation.objective[0])
    assert bound[0] <= best.objective * (1 + 1e-7) and best.objective <= objective * (1 + 1e-7)
    assert objective <= 1.002 * best.objective
    # a node's latency is not convex in the loads of two sizes: mixtures of loads stay below it
    assert bound[0] >= (0.97 if kind.startswith("mixed") else 0.99) * best.objective


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_no_plan_at_any_z_of_an_interval_is_below_its_bound(seed):
    """Random placements and reads, valued in plain NumPy."""
    random = np.random.default_rng(seed)
    _, problem, theta = tiny(seed + 10, "mixed", 2, NODES)
    passes = passes_of(problem, theta)
    service, rows = passes.service, passes.rows
    states = states_of(service, rows, lambda number, part: [part(0, number)])
    even = np.repeat(rows.hot, np.diff(rows.start)) * rows.read / NODES
    middle = float(service.mean.mean())
    ends = middle * np.array([1 - 0.4 * random.random(), 1 + 0.4 * random.random()])
    program = SetProgram(states, rows, Between(float(ends.mean()), ends), 1e-6, middle + states.storage)
    loads = np.tile(np.bincount(rows.grid, even, len(service.size)), (NODES, 1))
    reads = np.stack([slopes(service, loads, z).read[:, rows.grid].max(axis=0) for z in ends])
    program.learn(program.alike(reads, np.zeros((2, rows.number))))
    bound = program.least(np.inf, 1e-4 * middle, 60).bound
    assert bound > 0
    tried = 0
    for _ in range(4000):
        z = random.uniform(*ends)
        stored = np.zeros((2, NODES), bool)
        probabilities = np.zeros((2, NODES))
        for i, (k, length) in enumerate(zip(rows.hot, rows.length, strict=True)):
            kept = random.permutation(NODES)[: random.integers(max(k, length), NODES + 1)]
            stored[i, kept] = True
            probabilities[i, kept] = _spread(random.random(len(kept)), k)
        value = _value(service, rows, stored, probabilities, z)
        if value is not None:
            tried += 1
            assert value >= bound * (1 - 1e-9)
    assert tried > 100


def _spread(weights, k):
    """Probabilities up to 1 with sum k, in proportion to weights as far as that goes."""
    low, high = 0.0, k / weights.min()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(1, middle * weights).sum() < k else (low, middle)
    return np.minimum(1, high * weights)


def _value(service, rows, stored, probabilities, z):
    """Objective at one z; None where a node is overloaded."""
    total = z
    total += rows.per_dollar * (
        (stored * np.outer(rows.chunks, rows.chunk_price)).sum()
        + (stored * np.outer(rows.bytes, rows.byte_price)).sum()
    )
    row = np.repeat(np.arange(rows.number), np.diff(rows.start))
    for j in range(stored.shape[1]):
        reads = rows.read * probabilities[row, j]
        work = service.background[j] + service.moments[:, j, rows.grid] @ reads
        if work[0] >= 1:
            return None
        wait, spread = work[1] / (2 * (1 - work[0])), work[2] / (3 * (1 - work[0]))
        d = wait + service.mean[j, rows.grid] - z
        root = np.sqrt(d * d + spread + wait * wait + service.variance[j, rows.grid])
        total += float(reads @ (d + root)) / 2 / service.rate
    return total


def test_groups_on_nodes_of_few_kinds_leave_a_thousandth_open(tmp_path):
    """Three groups on three kinds of four nodes: mixtures of placements cost two percent less than any plan does."""
    cluster = ClusterOptions(
        hardware="tahoe",
        bytes=200e6,
        k=[6, 7, 4],
        rates=[354, 236, 354],
        load=0.8,
        grouped=True,
        dollars_per_tb=[40e3, 40e3, 40e3],
    )
    problems.study(tmp_path, theta=[50], method=["certified"], min_extra_chunks=0, cluster=cluster, gap=1e-4)
    assert read_results(tmp_path, "runs")["gap"].max() <= 2e-3


def test_groups_on_nodes_that_all_differ_are_proved_by_prices(tmp_path):
    """Branches over the 192 sets of rows would take minutes; prices leave less than a percent open."""
    cluster = ClusterOptions(
        bytes=200e6,
        k=[6, 5, 4, 3],
        rates=[3, 2, 4, 1],
        grouped=True,
        nodes_per_site=1,
        slowdown=np.linspace(0.5, 2, 12).tolist(),
        dollars_per_tb=np.linspace(30, 10, 12).tolist(),
        connect_mean_s=np.linspace(5e-4, 2e-3, 12).tolist(),
    )
    problems.study(tmp_path, theta=[50], method=["certified"], min_extra_chunks=0, cluster=cluster, gap=1e-4)
    assert read_results(tmp_path, "runs")["gap"].max() <= 1e-2


def test_reads_of_one_chunk_on_nodes_that_all_differ_have_a_bound():
    """Their z is 0: tolerances are parts of what they cost at least."""
    _, problem, _ = tiny(3, "alone", 3, 12)
    certificate = certify(passes_of(problem, 0.0), Settings(gap=1e-3))
    assert 0 < certificate.lower_bound < np.inf
