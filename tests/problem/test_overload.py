"""Overload that no spread of reads avoids, against the linear program written out."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pyarrow as pa
import pytest
from scipy.optimize import linprog

from ecjax.planning import Problem, prepare, scaled
from ecjax.problem.arrays import files_arrays, nodes_arrays, placement_rows, several_per_node
from ecjax.problem.overload import demand_of, demand_of_tables, least_overload, overload


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
    expected, load = least_load(problem), least_overload(demand_of(problem))
    if expected < 1:
        assert load is None
    else:
        assert load is not None
        assert load.max() == pytest.approx(expected, rel=1e-3)
        assert load.max() >= expected * (1 - 1e-9)


def test_many_files_are_taken_some_at_a_time(monkeypatch):
    problem = replace(CASES["forbidden nodes"](), reads=4 * CASES["forbidden nodes"]().reads)
    whole = least_overload(demand_of(problem))
    monkeypatch.setattr("ecjax.problem.overload._BLOCK", 7)
    assert whole is not None
    np.testing.assert_allclose(least_overload(demand_of(problem)), whole, rtol=1e-9)


@pytest.mark.parametrize("name", ["mixed", "fixed", "idle", "replicated", "grouped"])
@pytest.mark.parametrize("factor", [1.3, 2.5])
def test_tables_tell_the_same_load_without_a_problem(name, factor):
    case = getattr(problems, name)()
    nodes, files = case.tables()
    rows = placement_rows(files)
    demand = demand_of_tables(nodes, files, rows, case.size_scaling, 1)
    load = least_overload(demand.scaled(factor, 1.5))
    other = least_overload(demand_of(scaled(case.problem(), factor, 1.5)))
    assert (load is None) == (other is None)
    if load is not None and other is not None:
        assert load.max() == pytest.approx(other.max(), rel=1e-3)


def test_several_chunks_per_node_ask_for_as_much_as_the_problem_says():
    case = problems.mixed()
    nodes, files = case.tables()
    files = files.set_column(files.column_names.index("k"), "k", [[4] * len(files)])
    arrays = several_per_node(nodes_arrays(nodes), files_arrays(files), 2)
    problem = scaled(prepare(*arrays), 40.0, 1.0)
    load = least_overload(
        demand_of_tables(nodes, files, placement_rows(files), "proportional", 2).scaled(40.0, 1.0)
    )
    assert load is not None
    assert load.max() == pytest.approx(least_overload(demand_of(problem)).max(), rel=1e-3)


def test_alike_rows_are_one_row():
    """Many files of a few sizes are a problem of a few rows; under a law of one power sizes do not matter."""
    nodes, files = problems.mixed().tables()
    many = pa.concat_tables([files] * 50)
    one = demand_of_tables(nodes, files, placement_rows(files), "proportional", 1)
    merged = demand_of_tables(nodes, many, placement_rows(many), "proportional", 1)
    assert len(merged.k) == len(one.k) == len(set(files["k"].to_pylist()))
    np.testing.assert_allclose(merged.reads, 50 * one.reads)


def test_other_work_that_overloads_a_node_alone_is_said_without_a_rate():
    """Node b has 1.5 of it, whatever is read; it may be all there is, and another node may be busier."""
    nodes = pa.array(["a", "b"])
    for load in ([0.5, 1.5], [0.5, 1.8], [2.5, 1.8]):
        message = overload(np.array(load), np.array([0.1, 1.5]), 1.0, nodes, "somehow")
        assert f"(node_id=b): load rho = {load[1]:.3g}, 1.5 of it other work of the node" in message
        assert "rate_scale" not in message and "\n" not in message
