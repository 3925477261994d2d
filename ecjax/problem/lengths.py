"""Code lengths that the files table gives, for plans that keep them."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.errors import Infeasible, UserError
from ecjax.planning import Problem
from ecjax.planning.problem import usable
from ecjax.problem.arrays import column
from ecjax.problem.constraints import of_file
from ecjax.problem.identity import Identity


def with_lengths(problem: Problem, names: Identity, files: pa.Table) -> Problem:
    """The problem with the code lengths of column ``n`` as floor; where that is empty, or absent, the floor stays.

    Files of a group share a length: those that give none follow those that do.

    Args:
        problem: with its constraints, at most one chunk per node (of ``names.per_node`` chunks of a file).
        names: ids and rows.
        files: checked files table.

    Raises:
        UserError: a length is no multiple of the chunks that a node keeps, or not that of the file's group.
        Infeasible: a length is below the floor, or beyond the nodes that may hold a chunk.
    """
    if "n" not in files.column_names:
        return problem
    n = column(files, "n", np.nan)
    fixed = np.isfinite(n)
    row = names.rows.row_of_file
    floor = np.asarray(problem.floor)
    room = np.asarray(usable(problem)).sum(axis=1)
    first = np.full(problem.rows, -1)
    first[row[fixed][::-1]] = np.flatnonzero(fixed)[::-1]
    leader = first[row]
    chunks = names.per_node
    checks = (
        (
            UserError,
            fixed & (n != n[leader]),
            lambda i: f"one n per group, {n[leader[i]]:.0f} as in row {leader[i]}",
        ),
        (UserError, fixed & (n % chunks != 0), lambda i: f"a multiple of max_chunks_per_node={chunks}"),
        (
            Infeasible,
            fixed & (n < floor[row] * chunks),
            lambda i: (
                f"at least {floor[row[i]] * chunks:.0f}, what k, d, min_extra_chunks and fixed nodes ask for"
            ),
        ),
        (
            Infeasible,
            fixed & (n > room[row] * chunks),
            lambda i: f"at most {room[row[i]] * chunks}, what the nodes that may hold its chunks can keep",
        ),
    )
    for kind, wrong, allowed in checks:
        if wrong.any():
            i = int(np.argmax(wrong))
            raise kind(f"{of_file(files, i, 'n')}: found {n[i]:.0f}; allowed: {allowed(i)}")
    lengths = floor.copy()
    lengths[row[fixed]] = n[fixed] / chunks
    return replace(problem, floor=jnp.asarray(lengths))
