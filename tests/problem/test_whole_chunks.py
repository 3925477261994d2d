"""Reads of d > k chunks take bytes / d from each; what is written is whole chunks of bytes / k."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

from ecjax.planning import prepare, scaled
from ecjax.planning.certified.data import flatten
from ecjax.planning.problem import NODE_WORK
from ecjax.planning.trace.data import check_form, traced
from ecjax.predict.class_bounds import class_bounds
from ecjax.predict.logged import placed_of
from ecjax.predict.workload import node_laws, workload_of
from ecjax.problem.arrays import files_arrays, nodes_arrays, placement_rows
from ecjax.problem.overload import demand_of, demand_of_tables
from ecjax.problem.service_laws import service_laws
from ecjax.queueing import class_queues
from ecjax.queueing.workload import Workload
from ecjax.traffic.bins import BinnedReads
from ecjax.traffic.node_work import Arrivals, node_work

NODES, FILES = 5, 3
FIXED, PER_BYTE, PSI, PSI_PER_BYTE = 0.02, 0.01, 0.03, 0.02  # s and s/B: an offset and an exponential part
BYTES, K, D = np.array([24.0, 12.0, 18.0]), np.array([2, 2, 3]), np.array([4, 3, 3])
READS, WRITES = np.array([0.1, 0.2, 0.15]), np.array([0.05, 0.1, 0.0])
PI, STORED = np.repeat(D[:, None] / NODES, NODES, axis=1), np.ones((FILES, NODES))


def tables(**files):
    nodes = {"node_id": [f"n{j}" for j in range(NODES)], "delta_s": [FIXED] * NODES}
    nodes |= {"delta_s_per_byte": [PER_BYTE] * NODES, "psi_s": [PSI] * NODES}
    nodes |= {"psi_s_per_byte": [PSI_PER_BYTE] * NODES}
    columns = {"file_id": list("abc"), "bytes": BYTES, "k": K, "d": D, "rate_per_s": READS}
    return pa.table(nodes), pa.table(columns | {"write_rate_per_s": WRITES} | files)


def problem(**files):
    nodes, table = tables(**files)
    rows = placement_rows(table)
    return prepare(nodes_arrays(nodes), files_arrays(table), rows.of_file, rows.count)


def moments(size):
    """E[S^n] of an offset a and an exponential part of mean b, n = 1, 2, 3."""
    a, b = FIXED + PER_BYTE * size, PSI + PSI_PER_BYTE * size
    return np.array([a + b, a**2 + 2 * a * b + 2 * b**2, a**3 + 3 * a**2 * b + 6 * a * b**2 + 6 * b**3])


def work(rate=1.0, size=1.0):
    """Load, A_2 and A_3 of each node, all nodes alike."""
    read, write = moments(BYTES * size / D), moments(BYTES * size / K)
    return rate * (read @ (READS * D / NODES) + write @ WRITES)


def test_work_of_nodes():
    own = scaled(problem(), 1.5, 2.0)
    found = NODE_WORK(own, jnp.asarray(PI), jnp.asarray(STORED))
    np.testing.assert_allclose(found, np.tile(work(1.5, 2.0)[:, None], NODES), rtol=1e-12)


def test_grouped_files_bring_their_own_chunks():
    d = np.array([4, 4, 3])
    own = problem(group=["g", "g", None], d=d)
    expected = moments(BYTES / d) @ (READS * d / NODES) + moments(BYTES / K) @ WRITES
    found = NODE_WORK(own, jnp.asarray([[4 / 5] * NODES, [3 / 5] * NODES]), jnp.ones((2, NODES)))
    np.testing.assert_allclose(found, np.tile(expected[:, None], NODES), rtol=1e-12)


def test_what_tables_ask_for_is_what_the_problem_does():
    nodes, files = tables()
    demand = demand_of_tables(nodes, files, placement_rows(files), "proportional", 1)
    for found in (demand, demand_of(problem())):
        written = found.service.T @ found.writes  # (m, rows)
        np.testing.assert_allclose(written.sum(axis=1), [moments(BYTES / K)[0] @ WRITES] * NODES, rtol=1e-12)
        read = found.service.T @ found.reads
        np.testing.assert_allclose(read.sum(axis=1), [moments(BYTES / D)[0] @ READS] * NODES, rtol=1e-12)


@pytest.mark.parametrize("count", [3, 40])
def test_sizes_of_bounds_keep_rates_and_bytes(count):
    """Of 40 files there are more sizes than the grid has: each is a mixture, of the same rate and bytes."""
    random = np.random.default_rng(3)
    size, k = random.uniform(1, 50, count), np.full(count, 2)
    d, write = random.integers(2, 5, count), random.uniform(0, 1, count)
    files = {"file_id": np.arange(count), "bytes": size, "k": k, "d": d, "rate_per_s": np.ones(count)}
    nodes, table = tables()[0], pa.table(files | {"write_rate_per_s": write})
    service, rows = flatten(prepare(nodes_arrays(nodes), files_arrays(table)))
    row = np.repeat(np.arange(count), np.diff(rows.start))
    for power in (0, 1):
        kept = service.size[rows.grid] ** power
        np.testing.assert_allclose(np.bincount(row, rows.read * kept), (size / d) ** power, rtol=1e-9)
        np.testing.assert_allclose(
            np.bincount(row, rows.write * kept), write * (size / k) ** power, rtol=1e-9
        )
    true = rows.true_size
    assert (
        len(true.edge) == 0
        if count == 3
        else np.isclose(true.between[1].sum() + true.on[1].sum(), write.sum())
    )


def test_bounds_of_classes_with_one_class_are_those_of_first_come_first_served():
    """M/G/1 at every node; k = 1 chunks of the bound's z -> -inf give its mean."""
    own = problem(k=[1, 1, 1], d=[1, 2, 2])
    size, d = BYTES, np.array([1, 2, 2])
    pi = np.repeat(d[:, None] / NODES, NODES, axis=1)
    load, second, third = moments(size / d) @ (READS * d / NODES) + moments(size) @ WRITES
    found = class_bounds(own, pi, STORED > 0, np.zeros(FILES, int), "priority", (1.0,))
    first, square, _ = moments(size / d)
    wait = second / (2 * (1 - load))
    variance = square - first**2 + third / (3 * (1 - load)) + wait**2
    # alike nodes: E + sqrt((d - 1) V)
    np.testing.assert_allclose(found, first + wait + np.sqrt((d - 1) * variance), rtol=1e-5)


def test_queues_of_classes_meet_whole_chunks():
    """Rates, bytes and squares by class; sizes of writes stand for ranges, which keep these."""
    own, of_file = problem(), np.array([0, 1, 1])
    laws = service_laws(tables()[0], own.files, "auto", "proportional")
    load = Workload.of(READS, BYTES / D, D, node_laws(laws, NODES))
    member = jnp.asarray(of_file[None] == np.arange(2)[:, None])
    none = jnp.zeros((2, 2, NODES, NODES))
    writes = class_queues.ClassWrites(jnp.asarray(WRITES[:, None] * STORED), own.files.write_bytes, none)
    rates, sizes = class_queues._class_arrivals(jnp.asarray(PI), load, member, writes)
    other = class_queues._beside(load, member, jnp.zeros((2, 3, NODES)), writes)
    for number in range(2):
        of = of_file == number
        for power in range(3):
            read = np.sum((READS * D / NODES * (BYTES / D) ** power)[of])
            expected = read + np.sum((WRITES * (BYTES / K) ** power)[of])
            np.testing.assert_allclose(np.sum(rates[number] * sizes**power, axis=0), expected, rtol=1e-9)
        written = moments(BYTES / K)[:, of] @ WRITES[of]
        np.testing.assert_allclose(other[number], np.tile(written[:, None], NODES), rtol=1e-3)


def test_work_of_logs():
    """Blocks of a log for plans, and bins of one for estimates: of writes alone, 1 s each."""
    own = problem()
    nodes, _ = tables()
    binned = BinnedReads(np.ones(3), np.arange(3), np.arange(3), np.array([2.0, 1.0, 1.0]), FILES)
    data = traced(own, binned, binned, 1.0)
    np.testing.assert_allclose(data.writes.bytes, [2 * 12, 6, 6])
    np.testing.assert_allclose(data.reads.bytes, [2 * 6, 4, 6])
    laws = service_laws(nodes, own.files, "auto", "proportional")
    placed = placed_of(own, workload_of(own, laws, STORED > 0), PI, STORED > 0, writes=False)
    # laws are points: their moments are off by 2e-5
    seen = node_work(Arrivals(binned, binned), placed)
    expected = np.array([2.0, 1.0, 1.0]) * (moments(BYTES / D)[0] * D / NODES + moments(BYTES / K)[0])
    np.testing.assert_allclose(seen.work, np.tile(expected[:, None], NODES), rtol=1e-4)
    with pytest.raises(ValueError, match="chunks of 3 sizes, from 4 to 12 B"):
        check_form(own, np.ones(FILES), np.ones(FILES))
