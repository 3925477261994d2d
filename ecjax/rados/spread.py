"""What pools have to do, spread at will over the OSDs that their rules allow: bounds of all placements."""

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ecjax.rados.records import Cluster

if TYPE_CHECKING:
    from ecjax.rados.plan import Demand


def allowed_osds(cluster: Cluster) -> np.ndarray:
    """(P, m) bool: OSDs on which the rule of each pool allows shards."""
    return np.stack(
        [
            cluster.usable & (True if each is None else np.isin(cluster.osds, list(each.allowed)))
            for each in cluster.domains
        ]
    )


def pool_work(cluster: Cluster, demand: "Demand", free: np.ndarray) -> np.ndarray:
    """(P,) work of the groups of each pool that may change, places ``free``: reads, and what primaries have besides."""
    work = np.zeros(len(cluster.pools))
    np.add.at(work, cluster.groups.pool[free], demand.work[free])
    return work * (np.array([pool.k for pool in cluster.pools]) + demand.primary)


def least_spread(work: np.ndarray, there: np.ndarray, base: np.ndarray, speed: np.ndarray) -> float | None:
    """Least max load, relative to speed, where work is spread at will: a linear program. None where it fits nowhere.

    Args:
        work: (P,) of each pool.
        there: (P, m) bool, OSDs that may take it.
        base: (m,) load that stays where it is.
        speed: (m,).
    """
    if not len(speed):
        return None
    pool, osd = np.nonzero(there & (work > 0)[:, None])
    count, number = len(pool), np.arange(len(pool))
    # the last variable is the load
    fits = sparse.csr_array((np.ones(count), (osd, number)), (len(speed), count + 1))
    fits = sparse.csr_array(
        fits - sparse.csr_array((speed, (np.arange(len(speed)), np.full(len(speed), count))))
    )
    whole = sparse.csr_array((np.ones(count), (pool, number)), (len(work), count + 1))
    solved = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=fits,
        b_ub=-base,
        A_eq=whole[work > 0],
        b_eq=work[work > 0],
        method="highs",
    )
    return float(solved.fun) if solved.status == 0 else None
