"""From tables and a plan to the arrays that a replay runs on, and what its bound and estimate are about."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax import optimize
from ecjax.errors import UserError
from ecjax.optimize import placement
from ecjax.problem import arrays as inputs
from ecjax.problem.arrays import column
from ecjax.problem.classes import Classes, file_classes
from ecjax.replay import law_fit
from ecjax.replay.laws import Laws
from ecjax.replay.system import System, whole_units
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PlanCase


def classes(case: PlanCase) -> Classes:
    """Service classes in ascending order; where files have none, a class per k, named k=..."""
    return file_classes(case.names, case.files)


def problem_of(case: PlanCase, laws: Laws, rate_scale: float, size_scale: float) -> optimize.Problem:
    """The planning problem with the moments of these laws, scaled: what bound and estimate are about."""
    nodes = replace(case.problem.nodes, service=jnp.asarray(law_fit.polynomials(laws, len(case.nodes))))
    if case.per_node > 1:
        plain = inputs.nodes_arrays(case.nodes, case.size_scaling)
        nodes, _ = inputs.several_per_node(
            replace(plain, service=nodes.service), inputs.files_arrays(case.files), case.per_node
        )
    return optimize.scaled(replace(case.problem, nodes=nodes), rate_scale, size_scale)


def spread(case: PlanCase, policy: str, problem: optimize.Problem) -> np.ndarray:
    """Probabilities (R, m) that a policy reads with: the plan's, all chunks alike, or proportional to service rates."""
    stored = jnp.asarray(case.stored)
    if policy in ("probabilistic", "hedged"):
        return case.probabilities
    if policy == "proportional":
        return np.asarray(placement.proportional(problem, stored))
    return np.asarray(placement.even(problem, stored))


def build(
    case: PlanCase, laws: Laws, probabilities: np.ndarray, problem: optimize.Problem, options: ReplayOptions
) -> tuple[System, np.ndarray]:
    """System and arrival rates (files of the system,), 1/s; the files of the case come first.

    Writes of a file are requests of a file of their own that loads every chunk; background work of a node likewise.

    Args:
        case: tables and placement.
        laws: service laws of the nodes.
        probabilities: (R, m) that reads are spread with.
        problem: scaled; rates and chunk sizes are taken from it.
        options: decoding and client links.
    """
    files, per_node = problem.files, case.per_node
    r = files.count
    rank = classes(case).of_file
    need = np.rint(np.asarray(files.k)).astype(np.int64)
    row = np.arange(r) if problem.row is None else np.asarray(problem.row)
    row_need = np.rint(np.asarray(problem.k)).astype(np.int64)
    rows, node = np.nonzero(case.stored)
    starts = [0, *np.cumsum(case.stored.sum(axis=1)).tolist()]
    units = [whole_units(probabilities[rows, node], np.array(starts), row_need)]
    law = [node]
    chunk = np.asarray(files.chunk_bytes)
    size = chunk * np.asarray(files.k)
    table = {
        "need": [need],
        "chunk_bytes": [chunk / per_node],
        "extra_s": [options.decode_s_per_byte * size],
        "link_s": [
            np.zeros(r)
            if not options.client_bandwidth_bytes_per_s
            else chunk / options.client_bandwidth_bytes_per_s
        ],
        "group": [rank],
        "queue": [rank],
        "row": [row],
    }
    rates, laws_table = [np.asarray(files.rate)], [laws.table]
    nodes_of, counts = [node], [np.full(len(node), per_node)]
    full = np.int64(1) << 40
    if problem.writes is not None:
        written = case.stored.sum(axis=1)
        _append(table, written[row], chunk / per_node, rank, len(starts) - 1 + row)
        rates.append(np.asarray(files.write_rate))
        starts += (starts[-1] + np.cumsum(written)).tolist()
        nodes_of.append(node)
        law.append(node)
        counts.append(np.full(len(node), per_node))
        units.append(np.full(len(node), full))
    other = np.asarray(problem.nodes.background)
    for busy in np.flatnonzero(other[0] > 0):
        rate, own = law_fit.background(*other[:, busy])
        last = np.array([rank.max()])
        _append(table, np.ones(1, np.int64), np.zeros(1), last, np.array([len(starts) - 1]))
        rates.append(np.array([rate]))
        starts.append(starts[-1] + 1)
        nodes_of.append(np.array([busy]))
        law.append(np.array([sum(len(t) for t in laws_table)]))
        laws_table.append(own[None])
        counts.append(np.ones(1, np.int64))
        units.append(np.full(1, full))
    connect_mean, connect_variance = (
        column(case.nodes, "connect_mean_s"),
        column(case.nodes, "connect_var_s2"),
    )
    varies = (connect_variance > 0) & (connect_mean > 0)
    shape = np.where(varies, connect_mean**2 / np.where(varies, connect_variance, 1.0), 0.0)
    system = System(
        laws=Laws(np.concatenate(laws_table), laws.samples),
        connect=np.stack(
            [shape, np.where(varies, connect_mean / np.where(varies, shape, 1.0), connect_mean)]
        ),
        start=np.array(starts),
        node=np.concatenate(nodes_of).astype(np.int64),
        law=np.concatenate(law).astype(np.int64),
        units=np.concatenate(units),
        chunks=np.concatenate(counts).astype(np.int64),
        **{name: np.concatenate(parts) for name, parts in table.items()},
    )
    return system, np.concatenate(rates)


def _append(
    table: dict[str, list], need: np.ndarray, chunk: np.ndarray, queue: np.ndarray, row: np.ndarray
) -> None:
    """Files that stand for other work: latencies are not reported."""
    zero = np.zeros(len(need))
    values = (need, chunk, zero, zero, np.full(len(need), -1), queue, row)
    for parts, value in zip(table.values(), values, strict=True):
        parts.append(value)


def loads(case: PlanCase, problem: optimize.Problem, probabilities: np.ndarray) -> np.ndarray:
    """Load rho of every node, (m,), under state-independent dispatch."""
    work = optimize.node_work(problem, jnp.asarray(probabilities), jnp.asarray(case.stored, float))
    return np.asarray(work[0])


def overfull_class(
    case: PlanCase,
    problem: optimize.Problem,
    probabilities: np.ndarray,
    ranks: Classes,
    weights: np.ndarray,
) -> str | None:
    """Which class asks more of a node than its part of a strict partition gives, in one line; None where none does.

    Other work of a node is asked for by the last class.

    Args:
        case: ids and placement.
        problem: scaled.
        probabilities: (R, m).
        ranks: classes of the files.
        weights: (C, m) parts.
    """
    files, first = problem.files, np.asarray(problem.nodes.service)[0]
    reads, kept = (
        np.asarray(optimize.of_files(problem, jnp.asarray(rows))) for rows in (probabilities, case.stored)
    )
    powers = np.asarray(files.chunk_bytes)[:, None] ** np.arange(4)
    worst, words = 1.0, None
    for number, name in enumerate(ranks.names):
        own = ranks.of_file == number
        asked = (np.asarray(files.rate)[own, None] * powers[own]).T @ reads[own]
        if problem.writes is not None:
            asked = asked + (np.asarray(files.write_rate)[own, None] * powers[own]).T @ kept[own]
        load = np.sum(first * asked, axis=0)
        if number == len(ranks.names) - 1:
            load = load + np.asarray(problem.nodes.background[0])
        full = load / weights[number]
        node = int(np.argmax(full))
        if full[node] >= worst:
            worst = full[node]
            words = (
                f"queue=partitioned: class {name} asks for {load[node]:.3g} of node {case.names.nodes[node].as_py()}, "
                f"its part is {weights[number, node]:.3g}; allowed: weights above what every class asks for, or lower "
                "rates"
            )
    return words


def positions(table: pa.Table, name: str, ids: pa.Array, what: str) -> np.ndarray:
    """Positions of a table's ids, which must all be there.

    Raises:
        UserError: an id that ``ids`` lacks.
    """
    found = inputs.index_in(table[name], ids)
    wrong = np.flatnonzero((found < 0) & pc.is_valid(table[name]).to_numpy())
    if wrong.size:
        raise UserError(
            f"{what}: column {name}, row {wrong[0]}: found {table[name][int(wrong[0])].as_py()!r}, an unknown one"
        )
    return found
