"""What every node does and keeps under a plan: the dataset ``node_loads``."""

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from ecjax.planning import Problem
from ecjax.planning.problem import prices, reading_prices
from ecjax.problem.identity import Identity


def node_loads(
    run_id: str, problem: Problem, probabilities: ArrayLike, stored: ArrayLike, names: Identity
) -> pa.Table:
    """Rows of ``node_loads``, one per node.

    rho_j = sum_p service_1p,j (reads_p . pi_j + writes_p . stored_j) + background_j, with sums over placement rows;
    costs are chunk prices, surcharges and prices of reads, which add up to the cost of the plan.

    Args:
        run_id: run.
        problem: scaled as the run scales it.
        probabilities: (R, m) share of a row's reads that use the node.
        stored: (R, m) bool, whether it keeps a chunk of the row.
        names: ids, and how many chunks of a file stand for one of the problem.
    """
    reads, chunks = np.asarray(probabilities, float), np.asarray(stored, float)
    work = np.asarray(problem.reads) @ reads
    chunk_reads = work[0]
    if problem.writes is not None:
        work = work + np.asarray(problem.writes) @ chunks
    cost = np.sum(np.asarray(prices(problem)) * chunks, axis=0)
    reading = reading_prices(problem)
    if reading is not None:
        cost = cost + np.sum(np.asarray(reading) * reads, axis=0)
    columns = {
        "load": np.sum(np.asarray(problem.nodes.work)[0] * work, axis=0)
        + np.asarray(problem.nodes.background)[0],
        "read_share": chunk_reads / max(chunk_reads.sum(), np.finfo(float).tiny),
        "chunks": names.per_node * np.rint(np.asarray(problem.price_chunks) @ chunks).astype(np.int64),
        "bytes_stored": np.asarray(problem.price_bytes) @ chunks,
        "cost_dollars_per_period": cost,
    }
    ids = {"run_id": pa.repeat(pa.scalar(run_id, pa.string()), len(names.nodes)), "node_id": names.nodes}
    return pa.table(ids | columns)
