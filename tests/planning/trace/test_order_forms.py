"""Plans for order-statistic forms of a log's wait: printed sums, brute force, z, and simulated reads."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from test_trace_plans import MEAN, bursts, counted, problem_of

from ecjax.planning import project_hypersimplex
from ecjax.planning.trace import order
from ecjax.planning.trace.data import Form, traced
from ecjax.planning.trace.order import at_z, best_z, deep_share, relaxation_with_z
from ecjax.planning.trace.plan import plan_trace
from ecjax.planning.trace.relax import evaluate, wait_of
from ecjax.traffic.penalties import EXCESS, ORDER

SERVICE = 0.02 + MEAN  # s; 0.02 constant, the rest by size 1, moments those of ``problem_of``


def plain_bound(reads, probabilities, data, z, kind):
    """z + sum over chunks of h, as it is printed, by the constants of the problem."""
    total, requests = z, reads.sum()
    for j in range(probabilities.shape[1]):
        x, c = 0.0, data.c[j]
        s, v, q = data.penalty.shift[j], data.penalty.variance[j], data.penalty.q[j]

        def h(x, s=s, v=v, q=q):
            more = 0.0 if kind == EXCESS else q * x + x * x
            return (x + s + np.sqrt((x + s) ** 2 + v + more)) / 2

        cost = 0.0
        for b in range(len(reads)):
            y = x + reads[b] @ probabilities[:, j] * SERVICE
            x = ((y - 1 - c) + ((y - 1 - c) ** 2 + 4 * c * y) ** 0.5) / 2
            cost += x / (x + c) * (h(x) - h(0.0)) + reads[b] @ probabilities[:, j] * SERVICE * h(0.0)
        line = np.linspace(0, x, 20001)
        cost += np.trapezoid([h(t) - h(0.0) for t in line], line)
        total += cost / SERVICE / requests
    return total


@pytest.mark.parametrize("kind", [ORDER, EXCESS])
def test_objective_is_the_printed_sum(kind):
    reads = bursts(1)
    data = traced(problem_of(3, 4), counted(reads), None, 0.0, form=Form(kind, 0.3))
    probabilities = np.asarray(project_hypersimplex(np.random.default_rng(0).uniform(size=(3, 4)), 2.0))
    value = wait_of(data, probabilities, probabilities)
    assert value == pytest.approx(plain_bound(reads, probabilities, data, 0.3, kind), rel=1e-7)
    np.testing.assert_allclose(data.penalty.shift, SERVICE - 0.3)


@pytest.mark.parametrize("kind", [ORDER, EXCESS])
def test_bound_is_below_every_plan_and_the_plan_near_brute_force(kind):
    data = traced(problem_of(3, 4), counted(bursts(5, mean=5.0)), None, 0.0, form=Form(kind))
    waits = traced(problem_of(3, 4), counted(bursts(5, mean=5.0)), None, 0.0)
    z, relaxed = relaxation_with_z(data, 1e-4)
    data = at_z(data, z)
    plan = plan_trace(data, 1e-4, relaxed.probabilities, waits)
    pairs = [np.isin(np.arange(4), pair).astype(float) for pair in itertools.combinations(range(4), 2)]
    whole = [np.stack(rows) for rows in itertools.product(pairs, repeat=3)]
    least = min(evaluate(data, each, each).objective for each in whole)
    assert plan.bound <= plan.objective <= least * (1 + 1e-9)
    assert plan.objective <= plan.bound * 1.02
    assert plan.wait == pytest.approx(wait_of(waits, plan.probabilities, plan.stored.astype(float)))
    # prices are differences
    rng = np.random.default_rng(1)
    there, change = rng.uniform(0.2, 0.8, (3, 4)), rng.normal(size=(3, 4))
    up, down = (wait_of(data, there + h * change, there) for h in (1e-6, -1e-6))
    assert (up - down) / 2e-6 == pytest.approx(np.sum(evaluate(data, there, there).read * change), rel=1e-5)
    # another z makes no plan much better
    other = at_z(data, best_z(data, plan.probabilities, plan.stored.astype(float)))
    assert evaluate(other, plan.probabilities, plan.stored.astype(float)).objective >= 0.99 * plan.objective


def test_best_z_is_the_least_of_a_grid():
    data = traced(problem_of(3, 4), counted(bursts(5, mean=5.0)), None, 0.0, form=Form(ORDER))
    even = np.full((3, 4), 0.5)
    z = best_z(data, even, even)
    value = wait_of(at_z(data, z), even, even)
    grid = minimize_scalar(lambda t: wait_of(at_z(data, t), even, even), (0.0, 0.5))
    assert value == pytest.approx(grid.fun, rel=1e-6)


def test_reads_of_one_chunk_have_their_mean_latency():
    """Where k = 1 there is no latest of several: z goes far below, and the bound is mean wait and service."""
    reads = counted(bursts(5, mean=5.0))
    data = traced(problem_of(3, 4, k=1), reads, None, 0.0, form=Form(ORDER))
    waits = traced(problem_of(3, 4, k=1), reads, None, 0.0)
    even = np.full((3, 4), 0.25)
    value = wait_of(at_z(data, best_z(data, even, even)), even, even)
    assert value == pytest.approx(wait_of(waits, even, even) + SERVICE, rel=2e-2)


def test_z_grows_with_the_chunks_of_a_read():
    """Twenty chunks of each read, one on every node at a constant load of 0.9: z is far above any wait."""
    nodes = 20
    reads = np.full((400, 1), 0.9 / SERVICE)
    data = traced(problem_of(1, nodes, k=nodes), counted(reads), None, 0.0, form=Form(ORDER))
    whole = np.ones((1, nodes))
    grid = minimize_scalar(lambda t: wait_of(at_z(data, t), whole, whole), (0.0, 2.0))
    value = wait_of(at_z(data, best_z(data, whole, whole)), whole, whole)
    assert value == pytest.approx(grid.fun, rel=1e-6)


def test_reads_of_one_chunk_have_their_mean_latency_in_a_burst():
    """Behind a burst workloads are hundreds of services, and z goes as far below those."""
    numbers = np.full((600, 1), 1)
    numbers[10:20] = 400
    reads = counted(numbers)
    data = traced(problem_of(1, 4, k=1), reads, None, 0.0, form=Form(ORDER))
    waits = traced(problem_of(1, 4, k=1), reads, None, 0.0)
    even = np.full((1, 4), 0.25)
    value = wait_of(at_z(data, best_z(data, even, even)), even, even)
    assert value == pytest.approx(wait_of(waits, even, even) + SERVICE, rel=2e-2)


def test_the_relaxation_is_at_the_z_that_comes_with_it(monkeypatch):
    """Also where rounds run out while another z still gains."""
    monkeypatch.setattr(order, "_ROUNDS", 1)
    monkeypatch.setattr(order, "_PART", -np.inf)
    found = iter([0.3, 0.6])
    monkeypatch.setattr(order, "best_z", lambda *_: next(found))
    data = traced(problem_of(3, 4), counted(bursts(5, mean=5.0)), None, 0.0, form=Form(ORDER))
    z, relaxed = relaxation_with_z(data, 1e-2)
    assert z == 0.3
    there = wait_of(at_z(data, z), relaxed.probabilities, relaxed.stored)
    assert relaxed.point.objective == pytest.approx(there, rel=1e-12)


@pytest.mark.parametrize("kind", [ORDER, EXCESS])
def test_bounds_are_above_what_reads_wait_for(kind):
    """Both nodes of a read, in a simulation of the fluid that the bins are of; overload makes it long."""
    rng = np.random.default_rng(7)
    reads = rng.poisson(3.0 * rng.choice([0.2, 3.0], (200, 3), p=[0.8, 0.2]))
    data = traced(problem_of(3, 4), counted(reads), None, 0.0, form=Form(kind))
    even = np.full((3, 4), 0.5)
    z = best_z(data, even, even)
    bound = wait_of(at_z(data, z), even, even)
    free, total, count = np.zeros(4), 0.0, 0
    for b, row in enumerate(reads.sum(axis=1)):
        for now in np.sort(rng.uniform(b, b + 1, row)):
            nodes = rng.permutation(4)[:2]
            wait = np.maximum(free[nodes] - now, 0.0)
            service = 0.02 + rng.exponential(MEAN, 2)
            free[nodes] = now + wait + service
            total += np.max(wait + service)
            count += 1
    assert 0.9 * total / count <= bound <= 2.5 * total / count
    share = deep_share(at_z(data, z), evaluate(at_z(data, z), even, even))
    assert 0 <= share <= 1


def test_what_has_no_such_form():
    reads = counted(bursts(1))
    with pytest.raises(ValueError, match=r"chunks of 3 sizes, from 0.5 to 2 B; allowed: one size"):
        traced(problem_of(3, 4, size=[0.5, 1, 2]), reads, None, 0.0, form=Form(ORDER))
