"""Plans for a log's arrivals against brute force, SciPy, a plain sum over requests, and what bursts are known to do."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from ecjax.model import Files, Nodes
from ecjax.planning import prepare, project_hypersimplex
from ecjax.planning.trace import loops
from ecjax.planning.trace.data import accesses_of_rows, merged_bins, traced
from ecjax.planning.trace.plan import mean_wait_of, plan_trace, relaxation
from ecjax.planning.trace.pruning import prune
from ecjax.planning.trace.relax import descend, evaluate, stored_with, tangent, wait_of, work_of
from ecjax.traffic.bins import BinnedReads

MEAN = 0.1


def problem_of(files, nodes, k=2, floor=0, size=None, background=0.0, price=0.0):
    """Exponential services proportional to the size, 0.1 s on average."""
    service = np.zeros((3, 4, nodes))
    for power in (1, 2, 3):
        service[power - 1, power] = [1, 2, 6][power - 1] * MEAN**power
    service[0, 0] = 0.02
    zero, one = jnp.zeros(nodes), jnp.ones(files)
    sizes = one if size is None else jnp.asarray(size, float)
    return prepare(
        Nodes(
            jnp.asarray(service),
            zero,
            zero,
            jnp.tile(background * jnp.ones((3, 1)), (1, nodes)),
            zero + price,
            zero,
        ),
        Files(sizes, sizes, k * one, floor * one, one, 0 * one),
    )


def counted(numbers, width=1.0):
    """Reads (B, files) as counts."""
    bins, files = np.nonzero(numbers)
    return BinnedReads(
        np.full(len(numbers), width), bins, files, numbers[bins, files].astype(float), numbers.shape[1]
    )


def bursts(seed, bins=30, files=3, mean=2.0):
    rng = np.random.default_rng(seed)
    return rng.poisson(mean * rng.choice([0.2, 3.0], (bins, files), p=[0.7, 0.3]))


def test_wait_is_that_of_a_plain_sum_over_requests():
    reads, writes, size = bursts(1), bursts(2, mean=0.5), np.array([0.5, 1.0, 2.0])
    problem = problem_of(3, 4, size=size, background=0.1)
    data = traced(problem, counted(reads), counted(writes), 0.0)
    rng = np.random.default_rng(0)
    probabilities = np.asarray(project_hypersimplex(rng.uniform(size=(3, 4)), 2.0))
    stored = probabilities > 0
    total = 0.0
    for j in range(4):
        x = 0.0
        for b in range(len(reads)):
            y = x + 0.1
            for i in range(3):
                mean = 0.02 + MEAN * size[i]
                y += (reads[b, i] * probabilities[i, j] + writes[b, i] * stored[i, j]) * mean
            c = data.c[j]
            x = ((y - 1 - c) + ((y - 1 - c) ** 2 + 4 * c * y) ** 0.5) / 2
            total += data.weight[j] * x * x / (x + c)
        total += data.weight[j] * x * x / 2
    assert wait_of(data, probabilities, stored.astype(float)) == pytest.approx(total, rel=1e-10)
    alike = traced(problem_of(3, 4), counted(reads), None, 0.0)
    # of one chunk size, without other work: sum_j (J_j / m_1j) / chunks read
    np.testing.assert_allclose(alike.weight, 1 / ((0.02 + MEAN) * 2 * reads.sum()))


def test_prices_are_differences():
    data = traced(problem_of(3, 4, size=[0.5, 1, 2]), counted(bursts(3)), counted(bursts(4, mean=0.3)), 0.0)
    rng = np.random.default_rng(1)
    probabilities, stored = rng.uniform(size=(2, 3, 4))
    point = evaluate(data, probabilities, stored)
    change = rng.normal(size=(2, 3, 4))
    up, down = (wait_of(data, probabilities + h * change[0], stored + h * change[1]) for h in (1e-6, -1e-6))
    slope = np.sum(point.read * change[0]) + np.sum(point.store * change[1])
    assert (up - down) / 2e-6 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("price", [0.0, 3.0])
def test_bound_is_below_every_plan_and_the_plan_near_brute_force(price):
    data = traced(problem_of(3, 4, price=price), counted(bursts(5, mean=5.0)), None, 1e-3)
    plan = plan_trace(data, 1e-4)
    pairs = [np.isin(np.arange(4), pair).astype(float) for pair in itertools.combinations(range(4), 2)]
    objectives = []
    for rows in itertools.product(pairs, repeat=3):
        whole = np.stack(rows)
        objectives.append(evaluate(data, whole, whole).objective)
    assert plan.bound <= plan.objective
    assert plan.objective <= min(objectives) * (1 + 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        stored = rng.uniform(size=(3, 4)) < 0.7
        stored[:, :2] = True
        reads = np.asarray(project_hypersimplex(rng.uniform(size=(3, 4)), 2.0, mask=stored))
        assert evaluate(data, reads, stored.astype(float)).objective >= plan.bound * (1 - 1e-9)


def test_relaxation_is_the_least_that_scipy_finds():
    data = traced(problem_of(3, 4), counted(bursts(6, mean=5.0)), None, 0.0)
    relaxed = relaxation(data, 1e-4)

    def value(flat):
        point = evaluate(data, flat.reshape(3, 4), flat.reshape(3, 4))
        return point.objective, point.read.ravel()

    best = minimize(
        value,
        np.random.default_rng(0).uniform(size=12),
        jac=True,
        bounds=[(0, 1)] * 12,
        constraints={"type": "eq", "fun": lambda flat: flat.reshape(3, 4).sum(axis=1) - 2},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert relaxed.point.objective == pytest.approx(best.fun, rel=1e-4)
    assert relaxed.bound <= best.fun * (1 + 1e-9)


def test_tangent_bound_holds_anywhere():
    data = traced(
        problem_of(3, 4, floor=1, price=1.0), counted(bursts(7)), counted(bursts(8, mean=0.2)), 1e-2
    )
    plan = plan_trace(data, 1e-2)
    rng = np.random.default_rng(2)
    for _ in range(10):
        point = np.asarray(project_hypersimplex(rng.uniform(-1, 2, size=(3, 4)), 2.0))
        stored = stored_with(data, point)
        bound, _, above = tangent(data, point, stored, evaluate(data, point, stored))
        assert bound <= plan.objective * (1 + 1e-9)
        assert np.all(above >= -1e-9)


def test_a_file_that_bursts_alone_is_spread_over_all_nodes():
    rng = np.random.default_rng(3)
    numbers = rng.poisson(0.5, (120, 7))
    numbers[:, 0] = 0
    numbers[40:50, 0] = rng.poisson(12, 10)
    data = traced(problem_of(7, 6), counted(numbers), None, 0.0)
    plan = plan_trace(data, 1e-2)
    n = plan.stored.sum(axis=1)
    assert n[0] == 6
    assert plan.objective <= plan.bound * 1.01
    assert plan.blind_wait > 1.5 * plan.spread_wait
    assert plan.wait < 1.02 * plan.spread_wait
    # a chunk that costs more than it gains is not kept, one that gains more is
    dear = plan_trace(data._replace(keep=np.full((7, 6), plan.blind_wait / 100)), 1e-2)
    assert 2 <= dear.stored[1:].sum(axis=1).mean() < n[1:].mean()
    assert dear.stored[0].sum() > 3
    assert plan_trace(data._replace(keep=np.full((7, 6), 10.0)), 1e-2).stored.sum() == 14


def test_groups_in_turn():
    rng = np.random.default_rng(4)
    group, turn = np.arange(60) % 3, np.arange(90) // 10 % 3
    rate = 1 / (1 + rng.permutation(60)) ** 0.9
    numbers = rate[None] * np.where(turn[:, None] == group[None], 1.0, 0.02)
    numbers *= 0.6 * 6 / (2 * (0.02 + MEAN)) / numbers.sum(axis=1).mean()
    data = traced(problem_of(60, 6), counted(numbers), None, 0.0)
    plan = plan_trace(data, 1e-2)
    assert plan.wait <= 1.03 * plan.bound
    assert plan.whole_wait <= 0.85 * plan.blind_wait
    together = traced(
        problem_of(60, 6), counted(rate[None] * numbers.sum(axis=1)[:, None] / rate.sum()), None, 0.0
    )
    common = plan_trace(together, 1e-2)
    assert common.blind_wait <= 1.03 * common.spread_wait


def test_floors_sites_and_masks_are_kept():
    problem = problem_of(12, 6, floor=1, price=1.0)
    allowed = np.ones((12, 6), bool)
    allowed[::2, 5] = False
    data = traced(problem, counted(bursts(9, files=12)), counted(bursts(10, files=12, mean=0.1)), 1e-3)
    rows = data.rows._replace(site=np.arange(6) // 2, per_site=1, allowed=allowed)
    plan = plan_trace(data._replace(rows=rows), 1e-2)
    assert np.all(plan.stored.sum(axis=1) >= 3)
    assert np.all(plan.stored.reshape(12, 3, 2).sum(axis=2) <= 1)
    assert not np.any(plan.stored & ~allowed)
    assert not np.any(plan.probabilities[~plan.stored])
    np.testing.assert_allclose(plan.probabilities.sum(axis=1), 2, atol=1e-9)
    assert plan.bound <= plan.objective


def test_projection_onto_the_reads_of_rows_and_of_sites():
    rng = np.random.default_rng(5)
    data = traced(problem_of(8, 6), counted(bursts(11, files=8)), None, 0.0)
    point, mask = rng.normal(size=(8, 6)), rng.uniform(size=(8, 6)) < 0.8
    mask[:, :2] = True
    result = np.empty((8, 6))
    loops.project(point, data.rows, mask, 0, result)
    np.testing.assert_allclose(result, project_hypersimplex(point, 2.0, mask=mask), atol=1e-9)
    rows = data.rows._replace(site=np.array([0, 0, 0, 1, 1, 1]))
    loops.project(point, rows, np.ones((8, 6), bool), 1, result)
    # one chunk of each site: two rows of their own
    halves = project_hypersimplex(point.reshape(16, 3), 1.0)
    np.testing.assert_allclose(result.reshape(16, 3), halves, atol=1e-9)


def test_room_is_kept_where_chunks_cost_far_more_than_waits():
    """Two cheap nodes have room for three chunks each; the other six chunks of six files are on dear ones."""
    price = np.array([1.0, 1, 2, 2, 2, 2])
    problem = replace(problem_of(6, 6, price=price), capacity=jnp.full(6, 3.0))
    data = traced(problem, counted(bursts(9, files=6, mean=0.5)), None, 2e4)
    plan = plan_trace(data, 1e-2)
    np.testing.assert_array_equal(plan.stored.sum(axis=1), 2)
    np.testing.assert_array_equal(plan.stored.sum(axis=0)[:2], 3)
    assert plan.stored.sum(axis=0).max() <= 3


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_a_chunk_of_a_written_file_goes_where_it_costs_more_than_it_gains(part):
    """What it gains is the wait of the plan without it, less that with it."""
    numbers = np.array([[8], [0], [0], [8], [0], [0], [8], [0], [0], [0]])
    data = traced(problem_of(1, 3, k=1), counted(numbers), counted(numbers // 8), 0.0)
    share, placed = np.array([[0.36, 0.34, 0.3]]), np.ones((1, 3), bool)
    fewer = np.array([[True, True, False]])
    # the reads of the third go to the others by their room
    moved = np.array([[0.36 + 0.3 * 0.64 / 1.3, 0.34 + 0.3 * 0.66 / 1.3, 0.0]])
    gain = wait_of(data, moved, fewer.astype(float)) - wait_of(data, share, placed.astype(float))
    assert gain > 0
    _, left = prune(data._replace(keep=np.full((1, 3), part * gain)), share, placed)
    assert left[0, 2] == (part < 1)


def test_waits_are_means_over_all_chunks_that_are_written():
    """Ten reads of two chunks, and five writes to all four: 40 chunks, where the least plan has 30."""
    reads, writes = np.array([[4], [6]]), np.array([[5], [0]])
    data = traced(problem_of(1, 4), counted(reads), counted(writes), 0.0)
    even, whole = np.full((1, 4), 0.5), np.ones((1, 4))
    assert mean_wait_of(data, even, whole) == pytest.approx(wait_of(data, even, whole) * 30 / 40)
    least = np.array([[1.0, 1, 0, 0]])
    assert mean_wait_of(data, least, least) == pytest.approx(wait_of(data, least, least))


def test_no_wait_is_below_the_least_possible():
    """Bursts of twelve reads, and writes when nothing waits: a chunk on every node pays, two of three beyond need."""
    reads, writes = np.zeros((2, 60, 1), int)
    reads[::12] = 12
    writes[6::12] = writes[7::12] = 1
    data = traced(problem_of(1, 3, k=1), counted(reads), counted(writes), 0.0)
    plan = plan_trace(data, 1e-3)
    assert plan.stored.all()
    assert plan.spread_wait <= plan.wait <= plan.whole_wait
    # 60 reads and ten writes, of one chunk or of three
    assert plan.wait == pytest.approx(plan.objective * 70 / 90)
    assert plan.bound <= plan.least_wait <= plan.objective


def test_accesses_are_counted_over_bins_of_any_width():
    reads = BinnedReads(np.array([1.0, 10.0]), np.array([0, 1]), np.array([0, 1]), np.array([3.0, 7.0]), 2)
    data = traced(problem_of(2, 4), reads, None, 0.0)
    np.testing.assert_allclose(accesses_of_rows(data.reads, data.bins), [3, 7])


def test_merged_bins_keep_all_work():
    data = traced(problem_of(3, 4), counted(bursts(12)), counted(bursts(13, mean=0.5)), 0.0)
    coarse = merged_bins(data, 7)
    share, stored = np.random.default_rng(0).uniform(size=(2, 3, 4))
    assert len(coarse.bins.width) == 7
    np.testing.assert_allclose(coarse.bins.width.sum(), 30)
    fine, merged = work_of(data, share, stored), work_of(coarse, share, stored)
    np.testing.assert_allclose(merged.sum(axis=0), fine.sum(axis=0), rtol=1e-12)
    assert merged_bins(data, 30) is data


def test_prices_far_above_waits_leave_choices_with_sites_finite():
    # equal costs beside large ones: paths of no length must not go round in rounding errors
    data = traced(problem_of(12, 6, price=1.0), counted(bursts(14, files=12, mean=0.1)), None, 1.0)
    rows = data.rows._replace(site=np.arange(6) // 2, per_site=1, length=np.full(12, 3))
    plan = plan_trace(data._replace(rows=rows), 1e-2)
    assert np.all(plan.stored.sum(axis=1) == 3)
    assert plan.bound <= plan.objective <= plan.bound * 1.01


def test_a_relaxation_that_starts_where_it_ends_has_its_bound():
    """With writes, whose prices are not those of reads, a descent from its own end stops at once."""
    data = traced(
        problem_of(4, 4, floor=1), counted(bursts(3, files=4)), counted(bursts(4, files=4, mean=0.6)), 0.0
    )
    relaxed = relaxation(data, 1e-3)
    again = relaxation(data, 1e-3, relaxed.probabilities)
    assert again.bound >= 0.99 * relaxed.bound > 0
    plan = plan_trace(data, 1e-3, relaxed.probabilities)
    assert 0 < plan.bound <= relaxed.point.objective <= plan.objective


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_of_few_files_no_placement_is_much_better(seed):
    """All placements of two files on four nodes, with the best reads over each."""
    writes = counted(bursts(seed + 10, files=2, mean=1.0))
    data = traced(problem_of(2, 4), counted(bursts(seed, files=2, mean=4.0)), writes, 0.0)
    plan = plan_trace(data, 1e-3)
    choices = [places for n in (2, 3, 4) for places in itertools.combinations(range(4), n)]
    best = np.inf
    for rows in itertools.product(choices, repeat=2):
        placed = np.zeros((2, 4), bool)
        for i, places in enumerate(rows):
            placed[i, list(places)] = True
        best = min(best, descend(data, placed * 0.6, 1e-4, 60, placed).point.objective)
    assert plan.objective <= 1.01 * best
