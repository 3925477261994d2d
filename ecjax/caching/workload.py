"""What a replay of caches may be given: places of chunks, how far nodes are, and reads whose popularity drifts."""

from typing import NamedTuple

import numpy as np

from ecjax.caching.system import Reads, Stored

_PLACES, _TIMES, _RANKS, _EDGES, _DRIFT = 0xCAC1, 0xCAC2, 0xCAC3, 0xCAC4, 0xCAC5  # purposes of random numbers
_AT_ONCE = 1 << 20  # places of buckets that are drawn in one call

NODES = ("tokyo", "ohio", "ireland", "sao_paulo", "oregon", "northern_california")
EDGES = ("victoria", "san_francisco", "toronto")
# (E, N) mean time to fetch a chunk of 1 MB. Nodes and edges are those of the SampleX paper, which prints no latencies
# of single nodes: these are chosen by distance.
LATENCY_S = np.array(
    [
        [0.520, 0.410, 0.690, 0.980, 0.140, 0.210],
        [0.500, 0.380, 0.670, 0.890, 0.180, 0.110],
        [0.720, 0.150, 0.480, 0.700, 0.360, 0.390],
    ]
)


class Popularity(NamedTuple):
    """Zipf's law over M items: the r-th most popular is read in proportion to r^-exponent; or steps.

    After every ``period_s`` a share ``drift`` of the items, chosen at random, exchange their ranks at random, where
    these are two or more.
    """

    items: int  # M
    exponent: float  # of no meaning where there are steps
    drift: float  # from 0 to 1; 0: ranks stay
    period_s: float
    steps: tuple[
        tuple[int, float], ...
    ] = ()  # items, and what they are read together, the most popular first

    @property
    def moved(self) -> int:
        """Items that exchange ranks after every period: 0, or at least 2."""
        moved = round(self.drift * self.items)
        return moved if moved >= 2 else 0

    @property
    def shares(self) -> np.ndarray:
        """Of the reads, by rank, (M,)."""
        if self.steps:
            alike = np.concatenate([np.full(count, weight / count) for count, weight in self.steps])
            return alike / alike.sum()
        weight = np.arange(1, self.items + 1, dtype=float) ** -self.exponent
        return weight / weight.sum()


def placed(items: int, k: int, parity: int, copies: int, nodes: int, buckets: int, seed: int) -> Stored:
    """Chunks spread over nodes of several buckets (servers) each; bucket b of node i has number i buckets + b.

    The chunks of an item go round the nodes, in a new random order every time, so that no node has two more of them
    than another, and take buckets of a node in a random order: no two are at one bucket while there are
    enough, that is nodes times buckets.

    Args:
        items: M.
        k: data chunks of an item.
        parity: parity chunks.
        copies: of every chunk, at least 1; the chunks' first copies are placed first, then their second ones.
        nodes: N.
        buckets: of each node.
        seed: of the places.
    """
    total = (k + parity) * copies
    rounds = -(-total // nodes)
    random = np.random.default_rng([seed, _PLACES])
    node = random.permuted(np.broadcast_to(np.arange(nodes), (items, rounds, nodes)), axis=2)
    turn = (np.arange(rounds) % buckets)[:, None]
    some = max(_AT_ONCE // (nodes * buckets), 1)  # the orders of all items would take most of the memory
    for first in range(0, items, some):
        part = node[first : first + some]
        order = random.permuted(np.broadcast_to(np.arange(buckets), (len(part), nodes, buckets)), axis=2)
        part *= buckets
        part += order[np.arange(len(part))[:, None, None], part // buckets, turn]
    place = node.reshape(items, -1)[:, :total]
    return Stored(k, np.ascontiguousarray(place.reshape(items, copies, k + parity).transpose(0, 2, 1)))


def zipf_reads(popularity: Popularity, count: int, rate_per_s: float, edges: int, seed: int) -> Reads:
    """Poisson arrivals at edges that are alike: all have the same popular items.

    The same seed gives the same times, edges and ranks whatever the law of the items (common random numbers).

    Args:
        popularity: of the items.
        count: Q, reads at all edges together.
        rate_per_s: of these.
        edges: E; the edge of a read is drawn uniformly.
        seed: of everything that is random.
    """
    time = np.cumsum(np.random.default_rng([seed, _TIMES]).standard_exponential(count)) / rate_per_s
    uniform = np.random.default_rng([seed, _RANKS]).random(count)
    below = np.cumsum(popularity.shares)
    rank = np.minimum(np.searchsorted(below, uniform * below[-1], side="right"), popularity.items - 1)
    edge = np.random.default_rng([seed, _EDGES]).integers(edges, size=count)
    return Reads(time, _drifted(popularity, rank, time, seed), edge)


def _drifted(popularity: Popularity, rank: np.ndarray, time: np.ndarray, seed: int) -> np.ndarray:
    """The item of each rank at each time, (Q,); before the first exchange item i has rank i."""
    moved = popularity.moved
    if not moved:
        return rank
    random = np.random.default_rng([seed, _DRIFT])
    of_rank = np.arange(popularity.items)
    item = np.empty_like(rank)
    period = np.floor(time / popularity.period_s).astype(np.int64)
    begin = np.searchsorted(period, np.arange(period[-1] + 2))
    for number in range(len(begin) - 1):
        reads = slice(begin[number], begin[number + 1])
        item[reads] = of_rank[rank[reads]]
        ranks = random.choice(popularity.items, moved, replace=False)
        of_rank[ranks] = of_rank[random.permutation(ranks)]
    return item


def of_buckets(latency_s: np.ndarray, buckets: int) -> np.ndarray:
    """Latencies (E, N) of nodes as those of their buckets, (E, N buckets)."""
    return np.repeat(latency_s, buckets, axis=1)
