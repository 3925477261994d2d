"""Overload that no spread of reads avoids, against the linear program written out."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest
from scipy.optimize import linprog

from ecjax.optimize import Problem
from ecjax.problem.overload import least_overload


def least_load(problem: Problem) -> float:
    """Least load of the busiest node: over reads x <= chunks s <= 1 of every row and node, with all their sums."""
    rows, nodes = problem.rows, problem.nodes.count
    count = rows * nodes
    service = np.asarray(problem.nodes.service[0])
    reads = np.asarray(problem.reads).T @ service
    writes = np.zeros_like(reads) if problem.writes is None else np.asarray(problem.writes).T @ service
    loads = np.zeros((nodes, 2 * count + 1))
    for j in range(nodes):
        loads[j, j:count:nodes] = reads[:, j]
        loads[j, count + j : 2 * count : nodes] = writes[:, j]
        loads[j, -1] = -1
    chunk = np.hstack([np.eye(count), -np.eye(count), np.zeros((count, 1))])
    by_row = np.kron(np.eye(rows), np.ones(nodes))
    nothing = np.zeros((rows, 1))
    result = linprog(
        np.append(np.zeros(2 * count), 1.0),
        A_ub=np.vstack([loads, chunk, np.hstack([np.zeros_like(by_row), -by_row, nothing])]),
        b_ub=np.concatenate(
            [-np.asarray(problem.nodes.background[0]), np.zeros(count), -np.asarray(problem.floor)]
        ),
        A_eq=np.hstack([by_row, np.zeros_like(by_row), nothing]),
        b_eq=np.asarray(problem.k),
        bounds=[(0, 1 if may else 0) for may in 2 * np.ravel(_allowed(problem)).tolist()] + [(None, None)],
    )
    return result.fun


def _allowed(problem: Problem) -> np.ndarray:
    if problem.allowed is None:
        return np.ones((problem.rows, problem.nodes.count), bool)
    return np.asarray(problem.allowed)


def forbidden(problem: Problem) -> Problem:
    """Rows that may use four of the six nodes each, the first nodes more often than the last."""
    allowed = np.ones((problem.rows, problem.nodes.count), bool)
    for row in range(problem.rows):
        allowed[row, [4 + row % 2, 2 + row % 3]] = False
    return replace(problem, allowed=jnp.asarray(allowed))


CASES = {
    "sizes": lambda: problems.mixed().problem(),
    "affine law": lambda: problems.affine().problem(),
    "background": lambda: problems.fixed().problem(),
    "one chunk, all nodes, files never read": lambda: problems.idle().problem(),
    "k = 1": lambda: problems.replicated().problem(),
    "groups and writes": lambda: problems.grouped().problem(),
    "forbidden nodes": lambda: forbidden(
        problems.Case(
            problems.mixed().nodes, problems.mixed().files.assign(k=2, min_extra_chunks=1)
        ).problem()
    ),
}


@pytest.mark.parametrize("factor", [0.7, 1.3, 1.8, 2.5, 30.0])
@pytest.mark.parametrize("name", CASES)
def test_the_least_load_of_the_busiest_node_is_that_of_the_linear_program(name, factor):
    problem = CASES[name]()
    powers = {"reads": problem.reads * factor}
    if problem.writes is not None:
        powers["writes"] = problem.writes * factor
    problem = replace(problem, **powers)
    expected, load = least_load(problem), least_overload(problem)
    if expected < 1:
        assert load is None
    else:
        assert load is not None
        assert load.max() == pytest.approx(expected, rel=1e-3)
        assert load.max() >= expected * (1 - 1e-9)


def test_many_files_are_taken_some_at_a_time(monkeypatch):
    problem = replace(CASES["forbidden nodes"](), reads=4 * CASES["forbidden nodes"]().reads)
    whole = least_overload(problem)
    monkeypatch.setattr("ecjax.problem.overload._BLOCK", 7)
    assert whole is not None
    np.testing.assert_allclose(least_overload(problem), whole, rtol=1e-9)
