"""Laws of the latency of reads that meet known means and variances of the workloads at their nodes.

Pr(T_j <= x) = (1 - u) F_S(x) + u F_L(x) at a node that is busy with probability u: the late law has mean X/u + m_1,
variance (V + X^2)/u - (X/u)^2 + sigma^2, and a third moment by ``late_law``. At nodes with c channels the workload is
that of one server c times as fast, and reads wait with probability C(u, c) of Erlang, not u (``queueing.channels``). A
read ends with the last of k nodes, which are independent given the path: common arrivals are in it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ecjax.queueing.channels import erlang_c
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.sojourn_law import served_law, service_at
from ecjax.queueing.subsets import drawing_probabilities, subset_product
from ecjax.queueing.wait_law import MOST_LOAD, WaitLaw
from ecjax.queueing.workload import Workload, size_position
from ecjax.traffic.late_law import LEAST_SCV, Served, gamma_third, late_cumulative

POINTS = 256
_BELOW, _ABOVE = 0.02, 40.0  # of the shortest mean service, of the longest mean latency: where laws are taken
_OF_MEDIAN = 0.5  # of the shortest median: they begin below it
LEAST_BUSY = 1e-9
_LATTICE = 2048


class Seen(NamedTuple):
    """What reads meet at their nodes, S situations."""

    mean: jax.Array  # (S, m) s, X
    variance: jax.Array  # (S, m) s^2, V
    busy: jax.Array  # (S, m) u


class Readers(NamedTuple):
    """Files as readers, K kinds of them."""

    drawing: jax.Array  # (K, m) of the conditional Poisson draw of the nodes
    k: jax.Array  # (K,) nodes of a read
    mean: jax.Array  # (K, m) s, m_1 and connection delay
    variance: jax.Array  # (K, m) s^2, of service and connection delay
    third: jax.Array  # (K, m) s^3, their third central moment
    lump: jax.Array  # (K, m) s, m_3/m_2 of the work of a chunk
    alone: jax.Array  # (C, m, P) F_S with the connection delay, of C chunk sizes
    size: jax.Array  # (K,) row of ``alone`` of the size at or below
    part: jax.Array  # (K,) how far sizes are on the way to the next
    channels: jax.Array | None  # (m,) requests that a node serves at once; None: one


def grid(shortest_s: float, longest_s: float, beyond_s: float = 0.0, median_s: float = np.inf) -> np.ndarray:
    """Points at which laws are taken, s, (P,), rising in even ratios: at most twice ``POINTS``.

    Args:
        shortest_s: mean service time.
        longest_s: mean latency.
        beyond_s: what hardly any service and connection delay together exceeds; rare ones may be many means long.
        median_s: median service time, which may be far below the mean; infinite: not known.
    """
    mean, end = _BELOW * shortest_s, max(_ABOVE * longest_s, longest_s + beyond_s)
    begin = min(mean, _OF_MEDIAN * median_s)
    # as dense as from the mean on
    points = POINTS * np.log(end / begin) / np.log(end / mean)
    return np.geomspace(begin, end, min(round(points), 2 * POINTS))


def readers(
    points: jax.Array,
    probabilities: jax.Array,
    workload: Workload,
) -> Readers:
    """Kinds of files with the laws of their services.

    Args:
        points: s, (P,).
        probabilities: pi, (K, m).
        workload: chunk sizes of the kinds, services, connection delays and channels of the nodes.
    """
    service, connect, channels = workload.service, workload.connect, workload.channels
    nodes = service.nodes
    none = jnp.zeros(nodes)
    lattice = WaitLaw(jnp.ones(nodes), jnp.ones(nodes), jnp.zeros((nodes, 8)), jnp.ones(nodes, bool))
    served = served_law(workload.sizes, service, connect, lattice, _LATTICE)
    alone = service_at(jnp.broadcast_to(points[None], (*workload.sizes.shape, *points.shape)), served)
    first, second, third = service.moments(workload.chunk_bytes[:, None])
    delay = Delay(none, none) if connect is None else connect
    # delays of mean 0 are none, whatever their variance: no gamma law has both
    delay = Delay(delay.mean, jnp.where(delay.mean > 0, delay.variance, 0.0))
    drawing = lax.map(lambda row: drawing_probabilities(row, workload.most), probabilities, batch_size=64)
    lump = third / jnp.where(second > 0, second, 1.0)
    return Readers(
        drawing,
        jnp.round(probabilities.sum(axis=1)),
        first + delay.mean[None, :],
        second - first**2 + delay.variance[None, :],
        third - 3 * first * second + 2 * first**3 + gamma_third(delay.mean, delay.variance)[None, :],
        lump if channels is None else lump / channels[None, :],
        alone,
        *size_position(workload),
        channels,
    )


def latency_laws(points: jax.Array, seen: Seen, kind: jax.Array, of: Readers, most: int) -> jax.Array:
    """Pr(T <= x) of reads in S situations, (S, P).

    Args:
        points: s, (P,).
        seen: workloads.
        kind: (S,) of the file that is read.
        of: the kinds.
        most: largest k, static.
    """

    def law(arguments):
        mean, variance, busy, kind = arguments
        u = jnp.maximum(busy, LEAST_BUSY)
        wait = mean / u
        spread = jnp.maximum((variance + mean**2) / u - wait**2, LEAST_SCV * wait**2)
        service = Served(of.mean[kind], of.variance[kind], of.third[kind], of.lump[kind])
        late = late_cumulative(points, wait, spread, service)
        low, part = of.size[kind], of.part[kind]
        alone = of.alone[low] + part * (of.alone[jnp.minimum(low + 1, of.alone.shape[0] - 1)] - of.alone[low])
        waiting = u if of.channels is None else erlang_c(jnp.minimum(u, MOST_LOAD), of.channels)
        at_node = (1 - waiting)[:, None] * alone + waiting[:, None] * late
        return subset_product(of.drawing[kind], of.k[kind], at_node, most)

    return lax.map(law, (*seen, kind), batch_size=16)


def law_means(points: jax.Array, laws: jax.Array) -> jax.Array:
    """Means of laws at points, s, (...)."""
    above = 1 - laws
    return points[0] + (above[..., 1:] + above[..., :-1]) / 2 @ jnp.diff(points)
