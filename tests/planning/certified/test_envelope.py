"""Prices of the convex envelope: never worse, near a linear program's optimum, and bounds that no plan beats."""

import jax.numpy as jnp
import numpy as np
import pytest
from planning.brute_force import optimum
from scipy.optimize import linprog

from ecjax.model import Files, Nodes
from ecjax.planning.certified.bound import lower_bound
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.envelope import improve
from ecjax.planning.certified.envelope_master import LinearMaster
from ecjax.planning.certified.nodes import NodeMinima
from ecjax.planning.certified.relax import Passes, groups_of, relax, respond
from ecjax.planning.problem import evaluate, prepare

# compilation of its programs takes minutes in all
pytestmark = pytest.mark.slow


def problem_of(seed: int, files: int, nodes: int, sizes, load: float, write: float = 0.0):
    """Files with chunks of given sizes (drawn if a sequence) on nodes of different speed, balanced to about a load."""
    random = np.random.default_rng(seed)
    mean = np.exp(random.uniform(0, np.log(4), nodes))
    spread = random.uniform(0.2, 1.0, nodes)
    service = np.zeros((3, 4, nodes))
    service[0, 1], service[1, 2] = mean, mean**2 * (1 + spread)
    service[2, 3] = mean**3 * (1 + spread) * (1 + 2 * spread)
    k = random.integers(1, nodes, files).astype(float)
    size = random.choice(sizes, files) if len(sizes) != files else np.asarray(sizes)
    rate = random.lognormal(0, 1, files)
    # spread evenly over all nodes the slowest has the load
    rate *= load / np.max(mean * (rate * size * k).sum() / nodes)
    law = Nodes(
        jnp.asarray(service),
        jnp.full(nodes, 0.01),
        jnp.full(nodes, 1e-4),
        jnp.zeros((3, nodes)),
        jnp.asarray(random.uniform(1, 5, nodes)),
        jnp.zeros(nodes),
    )
    columns = (size, size, k, np.zeros(files), rate, rate * write)
    return prepare(law, Files(*map(jnp.asarray, columns)))


def relaxed_of(problem, theta: float):
    """The relaxation and what belongs to it."""
    service, rows = flatten(problem)
    passes = Passes(service, rows._replace(per_dollar=theta / rows.number), 1)
    kinds = np.zeros((rows.number, len(service.mean)), np.int8)
    z = respond(passes, kinds, None, np.zeros(len(service.mean)), 6, 1e-3, 0).z
    return (
        passes,
        relax(passes, groups_of(service, rows), kinds, z, 1e-4, 60),
        NodeMinima(service, passes.rows),
    )


def value(prices, relaxed, minima) -> float:
    """The bound by prices at the relaxation's z, without z."""
    tol = 1e-5 * abs(relaxed.objective)
    return float(minima.sums(prices, np.array([relaxed.z]), tol)[0]) + prices.cheapest


CASES = {
    "two sizes": dict(sizes=[0.5, 1.0], load=0.9),
    "written": dict(sizes=[0.5, 1.0], load=0.6, write=0.05),
    "ten sizes": dict(sizes=np.linspace(0.3, 1, 10), load=0.9),
    "one size, written": dict(sizes=[1.0], load=0.8, write=0.05),
    "many sizes": dict(sizes=np.exp(np.random.default_rng(1).normal(0, 0.5, 60)), load=0.7),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_prices_are_not_worse(name):
    """And their cheapest choices are those of a pass over the rows."""
    passes, relaxed, minima = relaxed_of(problem_of(3, 60, 5, **CASES[name]), 1.0)
    better = improve(passes, relaxed, minima, 1e-4, 30)
    before, after = (value(prices, relaxed, minima) for prices in (relaxed.prices[-1], better))
    assert after >= before - 1e-3 * abs(relaxed.objective)
    assert after + relaxed.z <= relaxed.objective * (1 + 1e-9)
    assert (better.read >= 0).all() and (better.write >= 0).all()
    group = np.zeros(passes.rows.number, np.int64)
    cheapest = passes.cheapest(better.read, better.write, better.chunk, group, 1)[0]
    assert better.cheapest == pytest.approx(cheapest, rel=1e-12)


def test_most_of_the_gap_of_two_sizes_closes():
    """The slopes of a latency that is not convex are bad prices; those of the envelope leave less than half the gap."""
    passes, relaxed, minima = relaxed_of(problem_of(3, 60, 5, **CASES["two sizes"]), 1.0)
    better = improve(passes, relaxed, minima, 1e-4, 30)
    before, after = (
        relaxed.objective - relaxed.z - value(prices, relaxed, minima)
        for prices in (relaxed.prices[-1], better)
    )
    assert after < 0.5 * before


@pytest.mark.parametrize("seed", range(3))
def test_bound_is_below_the_brute_force_optimum(seed):
    """Tiny problems with two sizes, with writes every other time."""
    problem = problem_of(seed, 3, 4, [0.4, 1.0], 0.6, 0.05 * (seed % 2))
    passes, relaxed, _ = relaxed_of(problem, 0.3)
    bound = lower_bound(passes, relaxed, 1e-4, 50).value
    best = optimum(problem, 0.3).objective
    assert bound <= best * (1 + 1e-7)
    assert bound > 0


@pytest.mark.parametrize("name", CASES)
def test_no_random_plan_is_below_the_bound(name):
    """Random placements with even reads, evaluated with the true sizes."""
    problem = problem_of(5, 60, 5, **CASES[name])
    passes, relaxed, _ = relaxed_of(problem, 1.0)
    bound = lower_bound(passes, relaxed, 1e-2, 50).value
    assert np.isfinite(bound)
    random = np.random.default_rng(0)
    k = np.asarray(problem.k).astype(int)
    for _ in range(5):
        stored = np.stack([random.permutation(5) < random.integers(each, 6) for each in k])
        reads = stored * (k / stored.sum(axis=1))[:, None]
        plan = evaluate(problem, jnp.asarray(reads), jnp.asarray(stored), jnp.asarray(1.0))
        assert not plan.objective < bound * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_master_agrees_with_another_solver(seed):
    """Random bounded programs, to the gap asked for, and again after more columns."""
    random = np.random.default_rng(seed)
    rows, n = 6, 15
    right = np.append(np.zeros(rows - 1), 1.0)
    master = LinearMaster(right)

    def add(count: int) -> None:
        columns = np.vstack([random.normal(size=(rows - 1, count)), np.ones(count)])
        master.add(columns, random.uniform(0, 1, count))

    # slacks of either sign make every start feasible
    eye = np.vstack([np.eye(rows - 1), np.zeros((1, rows - 1))])
    master.add(np.hstack([eye, -eye]), np.full(2 * (rows - 1), 3.0))
    add(n)
    master.start(np.full(len(master.cost), 0.1), np.zeros(rows), 0.1)
    for _ in range(2):
        found = master.centre(1e-7)
        best = linprog(master.cost, A_eq=master.rows, b_eq=right, method="highs")
        assert found == pytest.approx(best.fun, abs=1e-5)
        assert right @ master.multipliers == pytest.approx(best.fun, abs=1e-5)
        add(5)
        master.go_on(1e-3, 0)


def test_at_low_load_the_bound_holds_little_back():
    """Waits are next to nothing then, and so is what is not convex: small steps over z may not use up all prices."""
    random, nodes, files = np.random.default_rng(0), 12, 130
    seek, per_byte = 0.008, 1 / 180e6  # s, exponential; s per byte
    powers = [[seek, per_byte], [2 * seek**2, 2 * seek * per_byte, per_byte**2]]
    powers += [[6 * seek**3, 6 * seek**2 * per_byte, 3 * seek * per_byte**2, per_byte**3]]
    service = np.zeros((3, 4, nodes))
    for moment, polynomial in zip(service, powers, strict=True):
        moment[: len(polynomial)] = np.array(polynomial)[:, None]
    rate = 0.3 / np.arange(1, files + 1)
    size = np.array([random.uniform(250, 225_000, int(9000 * each) + 1).mean() for each in rate])
    none = jnp.zeros(nodes)
    law = Nodes(jnp.asarray(service), none, none, jnp.zeros((3, nodes)), none, jnp.full(nodes, 2e-11))
    columns = (size, size, np.full(files, 4.0), np.full(files, 6.0), rate, np.zeros(files))
    passes, relaxed, _ = relaxed_of(prepare(law, Files(*map(jnp.asarray, columns))), 100.0)
    # of other z than the best only so few get prices of their own
    bound = lower_bound(passes, relaxed, 1e-5, 8).value
    assert relaxed.objective * (1 - 1e-2) <= bound <= relaxed.objective * (1 + 1e-9)
