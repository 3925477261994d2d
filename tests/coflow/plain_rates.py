"""Rates of every scheduler in plain Python, and the state that they see; see ``plain_fabric`` for the rules."""

import numpy as np
from plain_sources import choose_again, smallest_first

FULL = 1e-9  # part of a port's capacity that counts as none
REACHED = 1e-10  # part of a limit of bytes sent that may miss
FIRST_QUEUE_BYTES, QUEUES = 10e6, 10


class State:
    """What a scheduler sees. Ports are numbered through: first those that send, then those that receive."""

    def __init__(self, workload, fabric):
        self.bytes = [float(b) for b in workload.bytes]
        self.remaining = list(self.bytes)
        self.source = [int(s) for s in workload.source]
        self.receiver = [len(fabric.send) + int(d) for d in workload.destination]
        self.capacity = [float(c) for c in fabric.send] + [float(c) for c in fabric.receive]
        first = [int(f) for f in workload.first_flow]
        self.flows_of = [range(a, b) for a, b in zip(first, first[1:], strict=False)]
        self.sent = [0.0] * len(self.flows_of)
        self.active = []  # coflows, earliest first
        self.arrived = self.ended = False  # whether coflows did since rates were computed last
        self.order = []  # that a scheduler keeps
        self.rule = "given"
        self.candidates = {}  # of the reads that have arrived, in random order
        sizes = [sum(self.bytes[f] for f in flows) for flows in self.flows_of]
        self.heavy_bytes = float(np.quantile(sizes, 0.8))

    def ports(self, flow):
        return self.source[flow], self.receiver[flow]

    def unfinished(self, coflow):
        return [f for f in self.flows_of[coflow] if self.remaining[f] > 0]

    def loads(self, coflow, size=None):
        """Port -> bytes of the unfinished flows of the coflow, remaining ones or another size."""
        load = {}
        for f in self.unfinished(coflow):
            for p in self.ports(f):
                load[p] = load.get(p, 0.0) + (size or self.remaining)[f]
        return load

    def bottleneck(self, coflow, size=None):
        return max(load / self.capacity[p] for p, load in self.loads(coflow, size).items())

    def full(self, port, left):
        return left[port] <= FULL * self.capacity[port]


def give(state, flow, rate, rates, left):
    rates[flow] += rate
    for p in state.ports(flow):
        left[p] = max(left[p] - rate, 0.0)


def madd(state, order, rates, left, size):
    for c in order:
        load = state.loads(c, size)
        if any(state.full(p, left) for p in load):
            continue
        longest = max(amount / left[p] for p, amount in load.items())
        for f in state.unfinished(c):
            give(state, f, size[f] / longest, rates, left)


def backfill(state, order, rates, left):
    for c in order:
        for f in sorted(state.unfinished(c), key=lambda f: (*state.ports(f), f)):
            if not any(state.full(p, left) for p in state.ports(f)):
                give(state, f, min(left[p] for p in state.ports(f)), rates, left)


def share(state, flows, rates, left):
    count = {}
    for f in flows:
        for p in state.ports(f):
            count[p] = count.get(p, 0) + 1
    parts = [(f, min(left[p] / count[p] for p in state.ports(f))) for f in flows]
    for f, rate in parts:
        give(state, f, rate, rates, left)


def ordered(order_of, full=False):
    """MADD in the order that a function of the state returns, then backfill."""

    def rates_of(state):
        order = order_of(state)
        if state.rule == "least_work_ahead" and (state.arrived or state.ended):
            choose_again(state, order)
        rates, left = [0.0] * len(state.bytes), list(state.capacity)
        madd(state, order, rates, left, state.bytes if full else state.remaining)
        backfill(state, order, rates, left)
        return rates

    return rates_of


def by_bottleneck(state):
    return smallest_first(sorted(state.active), state.bottleneck)


def by_arrival(state):
    return sorted(state.active)


def kept(order_of, when):
    """The same order until coflows arrive, or arrive or end."""

    def order(state):
        if state.arrived or (when == "arrivals and ends" and state.ended):
            state.order = order_of(state)
        return [c for c in state.order if c in state.active]

    return order


def by_full_bottleneck(state):
    return smallest_first(sorted(state.active), lambda c: state.bottleneck(c, state.bytes))


def port_times(state):
    """Coflow -> port -> seconds that the port takes for what is left of it."""
    return {
        c: {p: load / state.capacity[p] for p, load in state.loads(c).items()} for c in sorted(state.active)
    }


def by_bssi(state):
    return bssi(port_times(state), range(len(state.capacity)))


def by_local_search(state):
    loads = port_times(state)
    one, other = exchange(by_bottleneck(state), loads), exchange(by_bssi(state), loads)
    return other if sum_of_ends(other, loads) < sum_of_ends(one, loads) * (1 - 1e-12) else one


def sum_of_ends(order, loads):
    """Sum of the completion times if every port served the coflows in this order, whatever the others do."""
    at, ends = {}, 0.0
    for c in order:
        for p, load in loads[c].items():
            at[p] = at.get(p, 0.0) + load
        ends += max(at[p] for p in loads[c])
    return ends


def exchange(order, loads):
    """Go through the order again and again, exchanging neighbours if all would end sooner, on average."""
    better = True
    while better:
        better = False
        for i in range(len(order) - 1):
            other = [*order[:i], order[i + 1], order[i], *order[i + 2 :]]
            if sum_of_ends(other, loads) < sum_of_ends(order, loads) * (1 - 1e-12):
                order, better = other, True
    return order


def bssi(loads, ports):
    """Algorithm 1: the last place to the coflow with the least weight per load on the heaviest port, and so on."""
    weight, waiting, backwards = dict.fromkeys(loads, 1.0), list(loads), []
    while waiting:
        total = {p: sum(loads[c].get(p, 0.0) for c in waiting) for p in ports}
        heaviest = max(ports, key=lambda p: (total[p], -p))
        there = [c for c in waiting if loads[c].get(heaviest, 0.0) > 0]
        last = min(there, key=lambda c: (weight[c] / loads[c][heaviest], -c))
        dual = weight[last] / loads[last][heaviest]
        for c in there:
            weight[c] -= dual * loads[c][heaviest]
        waiting.remove(last)
        backwards.append(last)
    return backwards[::-1]


def queue_of(sent):
    q = 0
    while q < QUEUES - 1 and sent >= FIRST_QUEUE_BYTES * 10.0**q * (1 - REACHED):
        q += 1
    return q


def aalo(state):
    queues = {}
    for c in by_arrival(state):
        queues.setdefault(queue_of(state.sent[c]), []).append(c)
    weights = sum(QUEUES - q for q in queues)
    rates, over = [0.0] * len(state.bytes), [0.0] * len(state.capacity)
    for q, coflows in sorted(queues.items()):
        left = [capacity * (QUEUES - q) / weights for capacity in state.capacity]
        for c in coflows:
            share(state, state.unfinished(c), rates, left)
        over = [a + b for a, b in zip(over, left, strict=True)]
    backfill(state, [c for _, coflows in sorted(queues.items()) for c in coflows], rates, over)
    return rates


def until_next_queue(state, speed):
    """Seconds until a coflow reaches its next queue, at these bytes/s per coflow."""
    limits = {c: FIRST_QUEUE_BYTES * 10.0 ** queue_of(state.sent[c]) for c in state.active}
    return min(((limits[c] - state.sent[c]) / speed[c] for c in state.active if speed[c] > 0), default=np.inf)


def heavy(state, coflow):
    return state.sent[coflow] >= state.heavy_bytes * (1 - REACHED)


def baraat(state):
    rates, left = [0.0] * len(state.bytes), list(state.capacity)
    group = []
    for c in by_arrival(state):
        group.append(c)
        if not heavy(state, c):
            share(state, [f for g in group for f in state.unfinished(g)], rates, left)
            group = []
    share(state, [f for g in group for f in state.unfinished(g)], rates, left)
    backfill(state, by_arrival(state), rates, left)
    return rates


def until_heavy(state, speed):
    light = [c for c in state.active if speed[c] > 0 and not heavy(state, c)]
    return min(((state.heavy_bytes - state.sent[c]) / speed[c] for c in light), default=np.inf)


def pfabric(state):
    rates, left = [0.0] * len(state.bytes), list(state.capacity)
    flows = [f for c in state.active for f in state.unfinished(c)]
    for f in smallest_first(sorted(flows), lambda f: state.remaining[f]):
        give(state, f, min(left[p] for p in state.ports(f)), rates, left)
    return rates


def fair(state):
    """Progressive filling: all rates grow together; a flow stops at the first of its ports that is full."""
    rates, left = [0.0] * len(state.bytes), list(state.capacity)
    growing = [f for c in state.active for f in state.unfinished(c)]
    while growing:
        count = [0] * len(left)
        for f in growing:
            for p in state.ports(f):
                count[p] += 1
        level, tightest = min((left[p] / count[p], p) for p in range(len(left)) if count[p])
        for f in [f for f in growing if tightest in state.ports(f)]:
            give(state, f, level, rates, left)
            growing.remove(f)
    return rates


def equal_share(state):
    count = [0] * len(state.capacity)
    flows = [f for c in state.active for f in state.unfinished(c)]
    for f in flows:
        for p in state.ports(f):
            count[p] += 1
    rates = [0.0] * len(state.bytes)
    for f in flows:
        rates[f] = min(state.capacity[p] / count[p] for p in state.ports(f))
    return rates


# name -> rates of a state, and seconds until an event that only this scheduler has
SCHEDULERS = {
    "dtarget": (ordered(kept(by_full_bottleneck, "arrivals"), full=True), None),
    "dtarget_remaining": (ordered(kept(by_bottleneck, "arrivals")), None),
    "varys": (ordered(by_bottleneck), None),
    "fifo": (ordered(by_arrival), None),
    "sincronia": (ordered(kept(by_bssi, "arrivals and ends")), None),
    "local_search": (ordered(kept(by_local_search, "arrivals and ends")), None),
    "aalo": (aalo, until_next_queue),
    "baraat": (baraat, until_heavy),
    "pfabric": (pfabric, None),
    "fair": (fair, None),
    "equal_share": (equal_share, None),
}
