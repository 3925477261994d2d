"""Caching chunks at the edge: which chunks of which items to keep, planned and replayed.

Source: Liu, Wang, Li, Peng and Pan, "Sampling-Based Caching for Low Latency in Distributed Coded Storage Systems", IEEE
Transactions on Services Computing 16, 2023 (SampleX), and what is there called the optimal and the near-optimal scheme.

An item is K data chunks and R parity chunks at nodes far away; an edge keeps up to C data chunks. A read takes its
cached chunks from the edge and fetches the other data chunks at the same time, so it is as slow as the slowest of them.
With latencies l_1 >= ... >= l_K of its chunks and r reads per second, keeping the j slowest saves per second (eq. 1)

    tau_0 = 0,   tau_j = r (l_1 - l_{j+1}) for 0 < j < K,   tau_K = r l_1.

A plan is a number of chunks lambda_m in {0, ..., K} per item with sum lambda_m <= C; the best one has the largest sum
of tau_{m, lambda_m}: a knapsack with one choice per item. The paper samples partitions of C (how many items have j
chunks) because its optimum takes hours; ``exact`` takes half a millisecond.

What a replay does with a read of item m at an edge, in this order:

1. Data chunks of m that the edge keeps are served in ``edge_s``. Every other data chunk is fetched from the copy whose
   node is up and has the least estimated latency at this edge. A chunk without such a copy is lost for now: the fastest
   parity chunks (by estimate, from nodes that are up) stand in, and ``decode_s`` is added once. With too few of them
   the read fails.
2. The latency is the longest of the fetches (``edge_s`` at least), and the decoding.
3. Each fetch moves the estimate of its node at this edge, L <- a L + (1 - a) measured (equation 17), in the order of
   the chunks, those that stand in last.
4. The popularity of m at this edge, a counter that decays with half-life H: c <- c 2^{-(now - last) / H} + 1.
   Rates are c 2^{-(now - last) / H} ln 2 / H, of every item, when they are read (equation 16 as printed decays only
   the requested item). Or, as ``exact`` learns where no half-life is said, the probability that the next read is of m
   by a mixture of such counters, and of ages, on the clock of reads (``experts``).
5. The policy may keep chunks of m that it does not keep yet (all were at hand just now; a recovered data chunk is kept,
   not the parity chunk), and drop any. Policies that plan as a whole, once per period or every so many reads, change
   all items at once; what they add is fetched beside the reads, and counted. Caches of whole items that everybody
   knows have a file each in ``peers``.

What an edge keeps is a set of chunks, not a number: when estimates change order, the set is no longer the slowest ones,
and its value is r (l_1 - l of the slowest chunk that is not kept). In a replay no l counts as less than ``edge_s``, as
no read is faster, and tau_K = r (l_1 - edge_s): equation 1 where that is 0.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecjax.caching.batched import exact_batched
    from ecjax.caching.knapsack import exact
    from ecjax.caching.sampling import samplex

__all__ = ["exact", "exact_batched", "samplex"]

_HOME = {
    "exact": "knapsack",
    "exact_batched": "batched",
    "samplex": "sampling",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"ecjax.caching.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ecjax.caching' has no attribute {name!r}")
