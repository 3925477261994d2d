"""A slow replay of caches in plain Python, to compare the engine with: every request since the beginning is remembered.

Nothing is shared with the engine but the draws of the network (``factor``), which a caller hands in. What an edge keeps
is a dictionary of sets of chunks; popularity is summed over all past requests of an item; plans are found by
enumeration, or by the textbook dynamic programme that a test compares with enumeration.

Rules that the description of a replay leaves open, as read here
- An outage is down_from <= time < down_until.
- Ties in latency: the lower copy, the lower chunk.
- A read that fails fetches nothing: no estimate moves and no policy keeps anything; it counts as a request of the item.
- The slowest chunks of an item are found by estimates of all its nodes, whether up or not: an outage says nothing about
  how long fetches take otherwise.
"""

import itertools
import math
from collections import OrderedDict, defaultdict


def least(values):
    """(value, place) of the least, the first of equals."""
    return min((value, place) for place, value in enumerate(values))


class Edge:
    """What one edge keeps and believes."""

    def __init__(self, estimate):
        self.kept = defaultdict(set)  # item -> data chunks
        self.requests = defaultdict(list)  # item -> times
        self.estimate = list(estimate)  # by node
        self.reads = 0

    def size(self):
        return sum(len(chunks) for chunks in self.kept.values())


class PlainCache:
    """A replay, one ``read`` at a time; ``decide(replay, edge, now, item, at_hand)`` changes what the edge keeps."""

    def __init__(self, stored, network, policy, decide, factor=lambda number, node: 1.0):
        self.k = stored.k
        self.node_of = [[[int(n) for n in copies if n >= 0] for copies in row] for row in stored.node_of]
        self.network, self.policy, self.decide, self.factor = network, policy, decide, factor
        self.edges = [Edge(row) for row in network.latency_s]
        self.reads = 0

    def is_up(self, node, now):
        n = self.network
        outages = zip(n.down_node, n.down_from_s, n.down_until_s, strict=True)
        return not any(node == at and start <= now < end for at, start, end in outages)

    def rate(self, edge, item, now):
        """Requests per second, from every past request of the item."""
        half_life = self.policy.half_life_s
        return (
            sum(2.0 ** (-(now - then) / half_life) for then in edge.requests[item]) * math.log(2) / half_life
        )

    def latencies(self, edge, item):
        """Estimates of the data chunks of an item, by chunk."""
        return [min(edge.estimate[n] for n in self.node_of[item][j]) for j in range(self.k)]

    def order(self, edge, item):
        """Data chunks, slowest first."""
        latency = self.latencies(edge, item)
        return sorted(range(self.k), key=lambda j: -latency[j])

    def value(self, edge, item, chunks, rate):
        """Seconds per second saved by keeping these chunks of the item; no read takes less than ``edge_s``."""
        latency, least = self.latencies(edge, item), self.network.edge_s
        missing = [latency[j] for j in range(self.k) if j not in chunks]
        return rate * (max([least, *latency]) - max([least, *missing]))

    def total_value(self, edge, now):
        return sum(
            self.value(edge, item, chunks, self.rate(edge, item, now)) for item, chunks in edge.kept.items()
        )

    def tau(self, edge, item, rate):
        """Equation 1, with what a chunk takes that is kept."""
        order = self.order(edge, item)
        return [self.value(edge, item, set(order[:j]), rate) for j in range(self.k + 1)]

    def read(self, now, item, at):
        """One read; (latency, chunks that were kept)."""
        edge, number = self.edges[at], self.reads
        latency, hits = self.serve(edge, number, at, now, item)
        self.reads += 1
        edge.reads += 1
        edge.requests[item].append(now)
        self.decide(self, edge, now, item, latency < math.inf)
        return latency, hits

    def serve(self, edge, number, at, now, item):
        """Latency and hits of a read; moves the estimates of the nodes it fetches from."""
        kept = set(edge.kept[item])
        fetched, lost = [], 0
        for chunk in range(self.k):
            if chunk in kept:
                continue
            node = self.best_copy(edge, item, chunk, now)
            if node is None:
                lost += 1
            else:
                fetched.append(node)
        stand_in = []
        for chunk in range(self.k, len(self.node_of[item])):
            node = self.best_copy(edge, item, chunk, now)
            if node is not None:
                stand_in.append((edge.estimate[node], chunk, node))
        if len(stand_in) < lost:
            return math.inf, len(kept)
        fetched += [node for _, _, node in sorted(stand_in)[:lost]]
        slowest = self.network.edge_s
        a = self.policy.memory
        for node in fetched:
            measured = self.network.latency_s[at][node] * self.factor(number, node)
            slowest = max(slowest, measured)
            # equation 17, written so that an estimate that is right stays as it is to the last bit
            edge.estimate[node] += (1 - a) * (measured - edge.estimate[node])
        return slowest + (self.network.decode_s if lost else 0.0), len(kept)

    def best_copy(self, edge, item, chunk, now):
        up = [node for node in self.node_of[item][chunk] if self.is_up(node, now)]
        return min(up, key=lambda node: edge.estimate[node]) if up else None


# --- plans -----------------------------------------------------------------------------------------------------------


def best_by_enumeration(options, capacity):
    """(value, chunks per item): the best of all plans; options[i][j] is the value of j chunks of item i."""
    best = (-math.inf, None)
    for plan in itertools.product(*(range(len(row)) for row in options)):
        if sum(plan) <= capacity:
            value = sum(row[j] for row, j in zip(options, plan, strict=True))
            if value > best[0]:
                best = (value, plan)
    return best


def best_plan(options, capacity):
    """The same by the textbook dynamic programme; of equal plans the one with fewest chunks of the last items."""
    best = {0: (0.0, ())}  # chunks used -> value, plan
    for row in options:
        after = {}
        for used, (value, plan) in best.items():
            for j, gain in enumerate(row):
                if used + j <= capacity and (used + j not in after or value + gain > after[used + j][0]):
                    after[used + j] = (value + gain, plan + (j,))
        best = after
    return max(best.values(), key=lambda found: (found[0], -sum(found[1])))


# --- policies --------------------------------------------------------------------------------------------------------


def keep_nothing(replay, edge, now, item, at_hand):
    pass


def whole(replay):
    return set(range(replay.k))


class LeastRecentlyUsed:
    """Whole items; the last used enters, the longest unused goes. One for each edge."""

    def __init__(self):
        self.order = defaultdict(OrderedDict)

    def __call__(self, replay, edge, now, item, at_hand):
        order, room = self.order[id(edge)], replay.policy.capacity // replay.k
        if item in order:
            order.move_to_end(item)
        elif at_hand and room:
            if len(order) == room:
                del edge.kept[order.popitem(last=False)[0]]
            order[item] = True
            edge.kept[item] = whole(replay)


class LeastFrequentlyUsed:
    """Whole items; uses are counted while an item is kept; of equals the one whose last use is longest ago goes."""

    def __init__(self):
        self.uses = defaultdict(dict)  # item -> (times used, last used)
        self.clock = 0

    def __call__(self, replay, edge, now, item, at_hand):
        uses, room = self.uses[id(edge)], replay.policy.capacity // replay.k
        self.clock += 1
        if item in uses:
            uses[item] = (uses[item][0] + 1, self.clock)
        elif at_hand and room:
            if len(uses) == room:
                out = min(uses, key=uses.get)
                del uses[out], edge.kept[out]
            uses[item] = (1, self.clock)
            edge.kept[item] = whole(replay)


def decayed_frequency(replay, edge, now, item, at_hand):
    """Whole items; one enters if it is more popular than the least popular that is kept."""
    room = replay.policy.capacity // replay.k
    inside = [other for other, chunks in edge.kept.items() if chunks]
    if item in inside or not at_hand or not room:
        return
    if len(inside) == room:
        out = min(inside, key=lambda other: replay.rate(edge, other, now))
        if replay.rate(edge, out, now) >= replay.rate(edge, item, now):
            return
        del edge.kept[out]
    edge.kept[item] = whole(replay)


def dropping(replay, edge, item, now):
    """What j of the chunks that are kept are worth at best, for j = 0 to as many as are kept.

    Only the chunks before the first that is missing (slowest first) are of use, and the best j of them are the slowest.
    """
    order = replay.order(edge, item)
    kept = [j for j in order if j in edge.kept[item]]
    rate = replay.rate(edge, item, now)
    return [replay.value(edge, item, set(kept[:j]), rate) for j in range(len(kept) + 1)]


def release_price(values):
    """What a chunk is worth that is let go first, at the least."""
    last = len(values) - 1
    return min((values[last] - values[j]) / (last - j) for j in range(last))


def candidates_by(replay, edge, item, now, price, room):
    """Items kept, cheapest first, until K chunks are free or could be; ``room`` are of the item itself."""
    free = replay.policy.capacity - edge.size() + room
    inside = [other for other, chunks in edge.kept.items() if chunks and other != item]
    found = []
    for other in sorted(inside, key=lambda other: price(dropping(replay, edge, other, now))):
        if free >= replay.k:
            break
        found.append(other)
        free += len(edge.kept[other])
    return found


def mean_value(values):
    """What a chunk is worth on average."""
    return values[-1] / (len(values) - 1)


class Exchange:
    """The best plan for the requested item and candidates by ``price``, if it is better than what is kept."""

    def __init__(self, price, own_room):
        self.price, self.own_room = price, own_room

    def __call__(self, replay, edge, now, item, at_hand):
        if not at_hand or len(edge.kept[item]) == replay.k:
            return
        own = len(edge.kept[item]) if self.own_room else 0
        others = candidates_by(replay, edge, item, now, self.price, own)
        room = replay.policy.capacity - edge.size() + len(edge.kept[item])
        room += sum(len(edge.kept[other]) for other in others)
        rate = replay.rate(edge, item, now)
        options = [replay.tau(edge, item, rate)] + [dropping(replay, edge, other, now) for other in others]
        best, plan = best_plan(options, room)
        before = replay.value(edge, item, edge.kept[item], rate) + sum(row[-1] for row in options[1:])
        if best <= before * (1 + 1e-12):
            return
        edge.kept[item] = set(replay.order(edge, item)[: plan[0]])
        for other, j in zip(others, plan[1:], strict=True):
            kept = [chunk for chunk in replay.order(edge, other) if chunk in edge.kept[other]]
            edge.kept[other] = set(kept[:j])


exact_online = Exchange(release_price, own_room=False)
near_optimal = Exchange(mean_value, own_room=True)


def to_be_had(replay, edge, item, now):
    """Data chunks that are kept, at a node that is up, or decoded from K others that are."""
    near = {chunk for chunk in range(replay.k) if replay.best_copy(edge, item, chunk, now) is not None}
    near |= edge.kept[item]
    far = range(replay.k, len(replay.node_of[item]))
    parity = sum(replay.best_copy(edge, item, chunk, now) is not None for chunk in far)
    return whole(replay) if len(near) + parity >= replay.k else near


def plan_all(replay, edge, rates, now):
    """Keep the best plan for these rates, by item, of what can be had now (None: of all), whatever is kept."""
    items = list(rates)
    options, chunks = [], []
    for item in items:
        had = whole(replay) if now is None else to_be_had(replay, edge, item, now)
        chunks.append([chunk for chunk in replay.order(edge, item) if chunk in had])
        sets = [set(chunks[-1][:j]) for j in range(len(had) + 1)]
        options.append([replay.value(edge, item, chosen, rates[item]) for chosen in sets])
    _, plan = best_plan(options, replay.policy.capacity)
    edge.kept.clear()
    for item, mine, j in zip(items, chunks, plan, strict=True):
        if j:
            edge.kept[item] = set(mine[:j])
