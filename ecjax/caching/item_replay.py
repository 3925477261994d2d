"""What caches of whole items (``ecjax.caching.peers``) have at each read of a replay.

They decide by the order of the reads alone: a read that finds its item costs the same whatever the nodes do, and one
that does not fetches all chunks. So they go through the reads of an edge at once, before any is served.
"""

from typing import NamedTuple

import numpy as np

from ecjax.caching import peers
from ecjax.caching.clock import nanoseconds
from ecjax.caching.system import NodeChanges, Reads, Stored
from ecjax.machine_code import njit


class ItemReads(NamedTuple):
    """Reads of one edge as a cache of whole items sees them."""

    item: np.ndarray  # (Q,) int64
    whole: np.ndarray  # (Q,) bool, all data chunks can be had


class ItemHits(NamedTuple):
    """What caches of whole items at all edges did."""

    hit: np.ndarray  # (Q,) bool
    decision_s: np.ndarray  # (Q,)
    kept: np.ndarray  # (E, M) bool, at the end


def replay_whole_items(
    name: str, reads: Reads, stored: Stored, changes: NodeChanges, edges: int, capacity: int
) -> ItemHits:
    """What each edge has at each read.

    Args:
        name: policy, of ``ecjax.caching.peers``.
        reads: of all edges.
        stored: where chunks are.
        changes: outages.
        edges: E.
        capacity: chunks of an edge; it keeps as many items as fit.
    """
    replay_items = peers.replay_items_of(name)
    count = len(reads.item)
    whole = _to_be_had(reads, stored, changes) if len(changes.time_s) else np.ones(count, np.bool_)
    hit, decision_s = np.zeros(count, np.bool_), np.zeros(count)
    kept = np.zeros((edges, len(stored.node_of)), np.bool_)
    moment = np.empty(2, np.int64)
    for e in range(edges):
        places = np.flatnonzero(reads.edge == e)
        part, decided_ns = np.zeros(len(places), np.bool_), np.zeros(len(places), np.int64)
        begun_ns = nanoseconds(moment)
        replay_items(
            ItemReads(reads.item[places], whole[places]), capacity // stored.k, part, decided_ns, kept[e]
        )
        hit[places] = part
        decision_s[places] = np.diff(decided_ns, prepend=begun_ns) * 1e-9
    return ItemHits(hit, decision_s, kept)


@njit()
def _to_be_had(reads, stored, changes):
    """Whether the item of each read has its data chunks at nodes that are up, or parity chunks in their place."""
    time_s, item, _ = reads
    change_s, change_node, change = changes
    k, node_of = stored.k, stored.node_of
    down = np.zeros(max(node_of.max(), change_node.max()) + 1, np.int64)
    whole = np.empty(item.size, np.bool_)
    following = 0
    for i in range(item.size):
        while following < change_s.size and change_s[following] <= time_s[i]:
            down[change_node[following]] += change[following]
            following += 1
        up = 0
        for chunk in range(node_of.shape[1]):
            for copy in range(node_of.shape[2]):
                node = node_of[item[i], chunk, copy]
                if node >= 0 and down[node] == 0:
                    up += 1
                    break
        whole[i] = up >= k
    return whole
