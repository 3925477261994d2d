"""Newton's steps by the roots of few rows: those of the whole matrix."""

import numpy as np
import pytest
from planning.smoothed.samples_of_rows import sample

from ecjax.planning.smoothed import host_demand as module
from ecjax.planning.smoothed import latency, newton
from ecjax.planning.smoothed.backend import NUMPY
from ecjax.planning.smoothed.host_demand import host_demand
from ecjax.planning.smoothed.low_rank import solve_low_rank


def system(seed, widths, roots, scale=1.0):
    """Blocks of sites, roots of rows whose covariances are part of the blocks, a diagonal; and the whole matrix."""
    random = np.random.default_rng(seed)
    m = sum(widths)
    order, start = random.permutation(m), np.append(0, np.cumsum(widths))
    blocks, whole = np.zeros((m, max(widths))), np.zeros((m, m))
    flat = random.normal(size=(roots, m))
    for begin, end in zip(start[:-1], start[1:], strict=True):
        at = order[begin:end]
        block = random.normal(size=(len(at), 2 * len(at)))
        block = scale * (block @ block.T + flat[:, at].T @ flat[:, at])
        blocks[at, : len(at)] = block
        whole[np.ix_(at, at)] = block
    # as if every row had its covariances in all of its sites
    flat *= np.sqrt(scale / len(widths))
    diagonal = random.uniform(0.1, 1, m)
    return blocks, (order, start), flat, diagonal, whole + np.diag(diagonal) - flat.T @ flat


@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("widths", [[1] * 40, [3, 1, 4, 2, 5, 4, 6, 3, 2, 10]], ids=["alone", "sites"])
def test_solutions_are_those_of_the_whole_matrix(widths, scale):
    for seed in range(3):
        blocks, sites, flat, diagonal, whole = system(seed, widths, 8, scale)
        right = np.random.default_rng(seed).normal(size=len(diagonal))
        solution = solve_low_rank(blocks, sites, flat, diagonal, right)
        np.testing.assert_allclose(whole @ solution, right, atol=1e-8)
        np.testing.assert_allclose(solution, np.linalg.solve(whole, right), rtol=1e-6, atol=1e-9)


def test_a_matrix_that_is_not_positive_has_no_solution():
    blocks, sites, flat, diagonal, _ = system(0, [2] * 10, 4)
    assert solve_low_rank(blocks, sites, 100 * flat, diagonal, np.ones(20)) is None


@pytest.mark.parametrize(("nodes", "sites", "per_site"), [(40, 0, 1), (42, 7, 1), (42, 7, 2)])
def test_prices_are_the_same_either_way(nodes, sites, per_site, monkeypatch):
    drawn = sample(5, nodes, 6, sites, per_site)
    loads = 0.5 * (1 - drawn.law.background[0]) / drawn.law.moments[0]
    z = latency.best_z(NUMPY, drawn.law, loads)
    read = latency.cost(np, drawn.law, loads, z).slope
    solutions = []
    for ratio in (2.0, np.inf):
        monkeypatch.setattr(module, "_ROOTS_TO_NODES", ratio)
        demand = host_demand(drawn.by_node, drawn.sites, False, lambda number, part: [part(0, number)])
        assert (demand.step is not None) == (ratio == 2.0)
        cluster = newton.Cluster(drawn.law, np.full(nodes, np.inf))
        solutions.append(
            newton.solve(NUMPY, cluster, demand, newton.Settings(), float(z), read, np.zeros(nodes))
        )
    few, whole = solutions
    assert few.promise < 1e-9
    assert few.objective == pytest.approx(whole.objective, rel=1e-6)
    np.testing.assert_allclose(few.loads, whole.loads, rtol=1e-2, atol=1e-3 * whole.loads.max())
