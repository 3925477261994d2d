"""What the nodes of a log do in its first half: the dataset ``node_loads`` of a prediction."""

import numpy as np
import pyarrow as pa

from ecjax.simulation.laws import Laws
from ecjax.validation import theory
from ecjax.validation.halves import Halves


def node_loads(halves: Halves, laws: Laws) -> pa.Table | None:
    """Rows of ``node_loads`` without ``run_id``, one per node; None where the first half takes no time.

    rho_j is what all its accesses at node j take by the laws, reads and writes, per second of it: the load that bound
    and estimates have. Which chunks a node keeps, and at which price, a log does not tell.

    Args:
        halves: the log.
        laws: entry j is that of reads at node j, entry m + j that of writes.
    """
    span, nodes = halves.span_s[0], halves.nodes
    if span <= 0:
        return None
    law, sizes = halves.law[: halves.cut], halves.accesses.bytes[: halves.cut]
    reads = np.bincount(law[law < nodes], minlength=nodes)
    return pa.table(
        {
            "node_id": halves.accesses.node_ids,
            "load": theory.work_sums(laws, law, sizes, span, nodes)[0],
            "read_share": reads / reads.sum() if reads.any() else pa.nulls(nodes, pa.float64()),
        }
    )
