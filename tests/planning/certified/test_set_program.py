"""Branches over the sets of rows that nodes keep, against the brute-force optimum and against plans of NumPy."""

import numpy as np
import problems
import pytest
from planning.certified.untuned import best_of, passes_of, tiny

from ecjax.planning.certified import Settings, certify, plan_lanes
from ecjax.planning.certified.node_sets import Between, states_of
from ecjax.planning.certified.set_program import SetProgram
from ecjax.planning.certified.waits import slopes
from ecjax.problem import builtin
from ecjax.problem.cluster_options import ClusterOptions

NODES = 4
PLANS = 4000  # random ones
ONE = np.ones(1)


# those of every day are quickly searched by both
DAILY = {"mixed": 1, "mixed_writes": 9, "sites": 1, "capacity": 8, "charges": 4}
EACH = [
    pytest.param(seed, kind, marks=[] if seed == daily else pytest.mark.slow)
    for kind, daily in DAILY.items()
    for seed in sorted({0, 1, 2, 4, 5, 7, daily})
]


@pytest.mark.parametrize(("seed", "kind"), EACH)
def test_plans_are_the_best_and_bounds_near_them(seed, kind):
    _, problem, theta = tiny(seed, kind, 2, NODES)
    best = best_of(seed, kind, 2, NODES)
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
    z = random.uniform(*ends, PLANS)
    stored, probabilities = np.zeros((2, PLANS, 2, NODES))
    for i, (k, length) in enumerate(zip(rows.hot, rows.length, strict=True)):
        kept = random.integers(max(k, length), NODES + 1, PLANS)
        stored[:, i] = random.random((PLANS, NODES)).argsort(axis=1) < kept[:, None]
        probabilities[:, i] = _spread(random.random((PLANS, NODES)) * stored[:, i], k)
    values = _values(service, rows, stored, probabilities, z)
    assert np.isfinite(values).sum() > 100
    assert values.min() >= bound * (1 - 1e-9)


def _spread(weights, k):
    """Probabilities (plans, m) up to 1 with sum k, in proportion to weights as far as that goes."""
    low, high = (
        np.zeros((len(weights), 1)),
        k / np.where(weights > 0, weights, 1.0).min(axis=1, keepdims=True),
    )
    for _ in range(100):
        middle = 0.5 * (low + high)
        less = np.minimum(1, middle * weights).sum(axis=1, keepdims=True) < k
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.minimum(1, high * weights)


def _values(service, rows, stored, probabilities, z):
    """Objectives of plans (plans, r, m), each at one z; infinite where a node is overloaded."""
    prices = np.outer(rows.chunks, rows.chunk_price) + np.outer(rows.bytes, rows.byte_price)
    row = np.repeat(np.arange(rows.number), np.diff(rows.start))
    reads = rows.read[:, None] * probabilities[:, row]  # of entries, (plans, E, m)
    work = service.background.T[:, None] + np.einsum("nme,pem->npm", service.moments[:, :, rows.grid], reads)
    room = np.where(work[0] < 1, 1 - work[0], np.nan)
    wait, spread = work[1] / (2 * room), work[2] / (3 * room)
    d = wait[:, None] + service.mean[:, rows.grid].T - z[:, None, None]
    root = np.sqrt(d * d + (spread + wait * wait)[:, None] + service.variance[:, rows.grid].T)
    total = z + rows.per_dollar * (stored * prices).sum(axis=(1, 2))
    total += (reads * (d + root)).sum(axis=(1, 2)) / 2 / service.rate
    return np.where(np.isnan(total), np.inf, total)


def gap_of_groups(cluster: ClusterOptions) -> float:
    """Of the certified plan of three groups."""
    nodes, files = (table(cluster.completed()).to_pandas() for table in (builtin.nodes, builtin.files))
    problem = problems.Case(nodes, files.assign(min_extra_chunks=0)).problem()
    plans, bound, _ = plan_lanes(problem, np.array([50.0]), ONE, ONE, Settings(gap=1e-4))
    return float(plans.evaluation.objective[0] / bound[0] - 1)


def test_groups_on_nodes_of_few_kinds_leave_a_thousandth_open():
    """Three groups on three kinds of three nodes: mixtures of placements cost two percent less than any plan does."""
    cluster = ClusterOptions(
        hardware="tahoe",
        bytes=200e6,
        k=[6, 7, 4],
        rates=[354, 236, 354],
        load=0.8,
        nodes_per_site=3,
        grouped=True,
        dollars_per_tb=[40e3, 40e3, 40e3],
    )
    assert 0 <= gap_of_groups(cluster) <= 2e-3


def test_groups_on_nodes_that_all_differ_are_proved_by_prices():
    """Branches over the 96 sets of rows would take minutes; prices leave less than a percent open."""
    cluster = ClusterOptions(
        bytes=200e6,
        k=[6, 5, 4],
        rates=[3, 2, 4],
        grouped=True,
        nodes_per_site=1,
        slowdown=np.linspace(0.5, 2, 12).tolist(),
        dollars_per_tb=np.linspace(30, 10, 12).tolist(),
        connect_mean_s=np.linspace(5e-4, 2e-3, 12).tolist(),
    )
    assert 0 <= gap_of_groups(cluster) <= 1e-2


def test_reads_of_one_chunk_on_nodes_that_all_differ_have_a_bound():
    """Their z is 0: tolerances are parts of what they cost at least."""
    _, problem, _ = tiny(3, "alone", 3, 12)
    certificate = certify(passes_of(problem, 0.0), Settings(gap=1e-3))
    assert 0 < certificate.lower_bound < np.inf
