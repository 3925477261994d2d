"""Starts that overload nodes, or shares of them, brought down: against linear programs and all placements."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest
from planning.classes.plain_classes import Plain, plain_classes, work
from problems import FILES, NODES, Case
from scipy.optimize import linprog

from ecjax.planning.classes.relief import Start, relieved
from ecjax.planning.limits import violations

TWO = np.arange(FILES) % 2


def least_ratio(plain: Plain, stored: np.ndarray, most: np.ndarray) -> float:
    """Least largest load, relative to what it may be, that some spread of the reads over the chunks has."""
    rows, nodes = stored.shape
    base = work(plain, np.zeros(stored.shape), stored)[0]
    per_read = plain.rate[:, None] * plain.moments[0]
    above = np.zeros((*most.shape, rows * nodes + 1))
    for i, j in itertools.product(range(rows), range(nodes)):
        above[plain.of_class[i], j, i * nodes + j] = per_read[i, j]
    above[:, :, -1] = -most
    sums = np.kron(np.eye(rows), np.ones(nodes))
    found = linprog(
        np.append(np.zeros(rows * nodes), 1.0),
        above.reshape(most.size, -1),
        -base.ravel(),
        np.hstack([sums, np.zeros((rows, 1))]),
        plain.k,
        bounds=[*((0, each) for each in stored.ravel()), (0, None)],
    )
    return float(found.fun) if found.success else np.inf


def ratio(plain: Plain, start: Start, most: np.ndarray) -> float:
    return float((work(plain, np.asarray(start.probabilities), np.asarray(start.stored))[0] / most).max())


def random_start(case: Case, seed: int, extra: int = 1) -> Start:
    """The same share of the reads for k + extra random nodes."""
    random = np.random.default_rng(seed)
    stored = np.zeros((len(case.files), len(case.nodes)), bool)
    for i, k in enumerate(case.k.astype(int)):
        stored[i, random.permutation(len(case.nodes))[: k + extra]] = True
    return Start(
        jnp.asarray(case.k[:, None] * stored / stored.sum(axis=1, keepdims=True)), jnp.asarray(stored)
    )


def is_a_plan(case: Case, start: Start, found: Start) -> None:
    reads, stored = np.asarray(found.probabilities), np.asarray(found.stored)
    np.testing.assert_allclose(reads.sum(axis=1), case.k, atol=1e-9)
    assert reads.min() >= 0 and reads.max() <= 1 + 1e-9 and not np.any(reads[~stored])
    np.testing.assert_array_equal(stored.sum(axis=1), np.asarray(start.stored).sum(axis=1))


SHARES = [(0.5, 0.5), (0.75, 0.25), (0.9, 0.1)]


@pytest.mark.parametrize("shares", SHARES)
def test_reads_are_spread_as_evenly_as_a_linear_program_can(shares):
    most = np.repeat(np.array(shares)[:, None], NODES, axis=1)
    for seed, make in itertools.product(range(3), (problems.mixed, problems.fixed)):
        case = make(seed).at_load(0.8)
        plain, start = plain_classes(case, TWO, "weighted"), random_start(case, seed)
        before = ratio(plain, start, most)
        found = relieved(case.problem(), start, TWO, most)
        is_a_plan(case, start, found)
        if before < 1:
            assert found is start
            continue
        after = ratio(plain, found, most)
        assert after <= before
        # stable, or nothing better with these chunks; the last norm of the loads is within 1 % of the largest
        assert after < 1 or after < 1.02 * least_ratio(plain, np.asarray(found.stored), most)
        # and placement helped, where the first one could not do it
        first = least_ratio(plain, np.asarray(start.stored), most)
        assert after <= 1.02 * max(first, 1)


def test_rows_that_read_all_their_chunks_are_placed_elsewhere():
    # no freedom but the placement: every row reads its k chunks always
    better = 0
    for seed in range(5):
        case = problems.mixed(seed).at_load(0.9)
        start = random_start(case, seed, extra=0)
        plain, alike = plain_classes(case, np.zeros(FILES, int), "priority"), np.ones((1, NODES))
        before = ratio(plain, start, alike)
        found = relieved(case.problem(), start, np.zeros(FILES, int), alike)
        is_a_plan(case, start, found)
        assert ratio(plain, found, alike) < 1
        better += before >= 1
    assert better >= 3


def test_a_stable_placement_is_found_where_all_are_tried():
    """Three files on four nodes: of the systems with some stable placement nearly all are found."""
    files = problems.mixed_files(0, 3, (1, 2, 2)).assign(min_extra_chunks=0)
    nodes, of_class = np.arange(4), np.array([0, 1, 0])
    most = np.repeat([[0.6], [0.4]], 4, axis=1)
    possible = found = 0
    for seed in range(12):
        case = Case(problems.moment_nodes(seed, 4), files).at_load(1.0)
        plain = plain_classes(case, of_class, "weighted")
        choices = [[np.isin(nodes, some) for some in itertools.combinations(nodes, n)] for n in (2, 3, 3)]
        if not any(
            least_ratio(plain, np.array(each, float), most) < 0.99 for each in itertools.product(*choices)
        ):
            continue
        possible += 1
        end = relieved(case.problem(), random_start(case, seed), of_class, most)
        found += ratio(plain, end, most) < 1
    assert possible >= 4 and found >= 0.7 * possible


def test_limits_of_sites_and_nodes_still_hold():
    case = problems.written(1).at_load(0.9)
    plain, alike = plain_classes(case, np.zeros(FILES, int), "priority"), np.ones((1, NODES))
    allowed = np.ones((FILES, NODES), bool)
    allowed[:6, 0] = False
    stored = np.zeros((FILES, NODES), bool)
    for i in range(FILES):
        # two chunks per site of two nodes at most, the slowest nodes first
        open_ = [j for j in np.argsort(-case.node("service_mean_s")) if allowed[i, j]]
        stored[i, open_[: int(case.k[i])]] = True
    start = Start(jnp.asarray(stored.astype(float)), jnp.asarray(stored))
    held = stored.sum(axis=0)
    problem = replace(
        case.problem(),
        allowed=jnp.asarray(allowed),
        site=jnp.asarray([0, 0, 0, 1, 1, 1], jnp.int32),
        per_site=3,
        capacity=jnp.asarray(np.maximum(held, 8.0)),
    )
    before = {name: found.times for name, found in violations(problem, stored).items()}
    found = relieved(problem, start, np.zeros(FILES, int), alike)
    is_a_plan(case, start, found)
    after = {name: each.times for name, each in violations(problem, np.asarray(found.stored)).items()}
    assert all(after[name] <= before[name] for name in after) and after["allowed"] == 0
    assert np.all(np.asarray(found.stored).sum(axis=0) <= np.maximum(held, 8))
    assert 1 <= ratio(plain, start, alike) and ratio(plain, found, alike) < ratio(plain, start, alike)
