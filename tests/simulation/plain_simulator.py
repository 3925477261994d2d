"""A slow simulator in plain Python, to compare the engines of a replay with: the next event is looked for everywhere.

Draws are those of the engines (services and connection delays by counter, choices of nodes by ``subset``); nothing
else is shared with them.

Rules
- Events at the same time come in this order: services end (by node, then class), requests complete, nodes come up, go
  down, extra accesses are sent, requests arrive.
- A request is complete once ``need`` of its chunks are at the client (finish + connection delay) and, where its link is
  limited, have passed it one by one in the order in which they came.
- A node that is down serves nothing. Its accesses, those in service first (by class), then those waiting (by class, in
  order), are lost: each is sent at once to the up node of the row that the request has no access at, with the fewest
  accesses there (ties: lowest entry), and queues up there with the draw of that node. Where there is none it waits
  at its node, in its old place, and is served from the beginning.
- New requests go to up nodes only; down nodes among those drawn, or next in turn, are replaced by up nodes in the
  order of the draw (round robin: of the turn). Where fewer than ``need`` are up the rest wait at the down nodes of
  the row with the fewest accesses waiting (ties: lowest entry). Extra accesses of hedging never go to down nodes.
- Late binding: an access lost goes back to its request, which keeps its place in the order of arrival; an idle node
  (the lowest entry, unless it is a new request) takes it.
"""

import math

import numpy as np
from systems import service_time

from ecjax.simulation import completion, subset
from ecjax.streams import streams

FINISH, COMPLETE, UP, DOWN, HEDGE, ARRIVAL = range(6)


class Access:
    def __init__(self, request, entry, node, sent):
        self.request, self.entry, self.node, self.sent = request, entry, node, sent
        self.work = self.remaining = self.since = None  # of the service, once it has begun


class Request:
    def __init__(self, number, time, file, need, entries, lane):
        self.number, self.time, self.file, self.need, self.entries, self.lane = (
            number,
            time,
            file,
            need,
            entries,
            lane,
        )
        self.accesses = {}  # entry -> Access
        self.ready = []
        self.complete = False


class Node:
    def __init__(self, index, queues):
        self.index, self.up = index, True
        self.waiting = [[] for _ in range(queues)]  # by class, in order
        self.serving = {}  # server -> Access; a server per class, or one per channel

    def load(self):
        return len(self.serving) + sum(map(len, self.waiting))


class Simulation:
    """A run; ``latencies`` (requests,) s, NaN where never complete; ``records`` of the accesses that were served to the
    end: (request, node, sent, finish); ``busy`` (m,) s of service given, that of accesses cut short too.
    """

    def __init__(
        self,
        system,
        times,
        files,
        seed,
        policy="probabilistic",
        queue="fcfs",
        weights=None,
        probes=2,
        cancel=True,
        hedge_delay=0.0,
        hedges=1,
        hedge_budget=math.inf,
        outages=(),
        channels=None,
    ):
        self.channels = np.ones(system.nodes, int) if channels is None else channels
        self.system, self.seed, self.policy, self.queue = system, seed, policy, queue
        self.probes, self.hedge_delay, self.hedges = probes, hedge_delay, hedges
        self.hedge_budget, self.needed, self.hedged = hedge_budget, 0, 0
        self.cancel = cancel and policy in ("fork_join", "hedged")
        queues = int(system.queue.max()) + 1
        weights = np.ones(queues) if weights is None else np.asarray(weights)
        if weights.ndim == 1:  # at every node
            weights = np.outer(weights, np.ones(system.nodes))
        self.weights = weights.tolist()
        self.nodes = [Node(j, max(queues, len(self.weights))) for j in range(system.nodes)]
        self.turns = {}
        self.now = -math.inf
        self.live = {}  # requests that are not complete
        self.hedge_times = {}  # request -> time
        self.latencies = np.full(len(times), np.nan)
        self.records = []
        self.busy = np.zeros(system.nodes)
        self.transitions = self._transitions(outages)
        arrivals = list(zip(times, files, strict=True))
        number = 0
        while number < len(arrivals) or self.live or any(node.load() for node in self.nodes):
            events = [
                (self._finish_time(node, server), FINISH, node.index, server)
                for node in self.nodes
                for server in node.serving
            ]
            events += [
                (self._complete_time(request), COMPLETE, request.number, 0)
                for request in self.live.values()
                if len(request.ready) >= request.need
            ]
            events += self.transitions[:1]
            events += [(time, HEDGE, request, 0) for request, time in self.hedge_times.items()]
            if number < len(arrivals):
                events.append((arrivals[number][0], ARRIVAL, number, 0))
            if not events:
                break  # what is left waits for ever
            self.now, kind, which, server = min(events)
            if kind == FINISH:
                self._finish(self.nodes[which], server)
            elif kind == COMPLETE:
                self._complete(self.live[which])
            elif kind == UP:
                self.transitions.pop(0)
                self.nodes[which].up = True
                self._start(self.nodes[which])
            elif kind == DOWN:
                self.transitions.pop(0)
                self._down(self.nodes[which])
            elif kind == HEDGE:
                self._hedge(which)
            else:
                self._arrive(number, *arrivals[number])
                number += 1

    def _transitions(self, outages):
        found = []
        for node in {node for node, _, _ in outages}:
            own = sorted((start, end) for j, start, end in outages if j == node and end > start)
            merged = own[:1]
            for start, end in own[1:]:
                if start <= merged[-1][1]:
                    merged[-1] = (merged[-1][0], max(merged[-1][1], end))
                else:
                    merged.append((start, end))
            for start, end in merged:
                found += [(start, DOWN, node, 0)] + ([(end, UP, node, 0)] if end < math.inf else [])
        return sorted(found)

    # service

    def _speed(self, node, server):
        if self.queue == "partitioned":
            return self.weights[server][node.index]
        if self.queue == "shared":
            every = [self.weights[other][node.index] for other in node.serving]
            return self.weights[server][node.index] / sum(every)
        return 1.0

    def _finish_time(self, node, server):
        access = node.serving[server]
        return access.since + access.remaining / self._speed(node, server)

    def _settle(self, node):
        """Under sharing speeds change with the servers that are busy: note what was served before they do."""
        if self.queue == "shared":
            for server, access in node.serving.items():
                access.remaining -= (self.now - access.since) * self._speed(node, server)
            for access in node.serving.values():
                access.since = self.now

    def _stop(self, node, server):
        """Take an access out of service, wherever it is in it."""
        access = node.serving[server]
        self._settle(node)
        left = access.remaining - (self.now - access.since) * self._speed(node, server)
        self.busy[node.index] += access.work - max(left, 0.0)
        del node.serving[server]
        return access

    def _start(self, node):
        """Begin what can begin at a node."""
        servers = (
            range(len(node.waiting))
            if self.queue in ("partitioned", "shared")
            else range(self.channels[node.index])
        )
        for server in servers:
            if node.up and server not in node.serving:
                access = self._next(node, server)
                if access is not None:
                    self._settle(node)
                    access.work = access.remaining = service_time(
                        self.system, self.seed, access.request.number, access.entry, access.request.file
                    )
                    access.since = self.now
                    node.serving[server] = access

    def _next(self, node, server):
        """The access that a free server takes, out of the queue."""
        if self.policy == "late_binding":
            return self._take(node, server)
        if self.queue in ("partitioned", "shared"):
            return node.waiting[server].pop(0) if node.waiting[server] else None
        for waiting in node.waiting:  # under fcfs all are in the first
            if waiting:
                return waiting.pop(0)
        return None

    def _take(self, node, server):
        """Late binding: the first request that keeps a chunk here, has no access here yet, and needs one more."""
        found = []
        for request in self.live.values():
            entries = [
                e for e in request.entries if self.system.node[e] == node.index and e not in request.accesses
            ]
            if entries and len(request.accesses) < request.need:
                if self.queue in ("fcfs", "priority") or request.lane == server:
                    found.append((request.lane, request.number, entries[0]))
        if not found:
            return None
        _, number, entry = min(found)
        request = self.live[number]
        request.accesses[entry] = Access(request, entry, node, request.time)
        return request.accesses[entry]

    def _send(self, request, entry, sent):
        access = Access(request, entry, self.nodes[self.system.node[entry]], sent)
        request.accesses[entry] = access
        access.node.waiting[request.lane].append(access)
        self._start(access.node)

    # events

    def _finish(self, node, server):
        access = self._settled_out(node, server)
        request = access.request
        self.records.append((request.number, node.index, access.sent, self.now))
        if not request.complete:
            start = np.uint64(streams.key(self.seed, streams.CONNECT))
            counter = request.number * self.system.nodes + node.index
            state = np.uint64(streams.stream(start, counter))
            request.ready.append(self.now + completion.connection(self.system.connect, node.index, state))
        self._start(node)

    def _settled_out(self, node, server):
        access = node.serving[server]
        self._settle(node)
        self.busy[node.index] += access.work
        del node.serving[server]
        return access

    def _complete_time(self, request):
        ready = sorted(request.ready)[: request.need]
        link = self.system.link_s[request.file]
        if link == 0:
            return ready[-1]
        free = -math.inf
        for time in ready:
            free = max(free, time) + link
        return free

    def _complete(self, request):
        request.complete = True
        del self.live[request.number]
        self.hedge_times.pop(request.number, None)
        self.latencies[request.number] = self.now - request.time + self.system.extra_s[request.file]
        if not self.cancel:
            return
        freed = []
        for access in request.accesses.values():
            node = access.node
            if access in node.waiting[request.lane]:
                node.waiting[request.lane].remove(access)
            for server, other in list(node.serving.items()):
                if other is access:
                    self._stop(node, server)
                    freed.append(node)
        for node in freed:
            self._start(node)

    def _down(self, node):
        node.up = False
        lost = [(server, self._stop(node, server)) for server in sorted(node.serving)]
        if self.policy == "late_binding":
            for _, access in lost:
                del access.request.accesses[access.entry]
                for entry in access.request.entries:
                    self._start(self.nodes[self.system.node[entry]])
            return
        waiting = node.waiting
        node.waiting = [[] for _ in waiting]
        queued = [access for _, access in lost] + [access for own in waiting for access in own]
        for access in queued:  # all count as waiting here until they have gone
            node.waiting[access.request.lane].append(access)
        for access in queued:
            request = access.request
            free = [
                (self.nodes[self.system.node[e]].load(), e)
                for e in request.entries
                if self.nodes[self.system.node[e]].up and e not in request.accesses
            ]
            if free:
                node.waiting[request.lane].remove(access)
                del request.accesses[access.entry]
                self._send(request, min(free)[1], access.sent)

    def _hedge(self, number):
        request = self.live[number]
        del self.hedge_times[number]
        start = np.uint64(streams.mixed(self._dispatch_state(number)))
        order = np.zeros(len(request.entries), np.int64)
        subset.shuffle(order, len(order), np.uint64(streams.stream(start, 1)))
        free = [request.entries[i] for i in order]
        free = [e for e in free if e not in request.accesses and self.nodes[self.system.node[e]].up]
        for entry in free[: self.hedges]:
            if self.hedged + 1 <= self.hedge_budget * self.needed:
                self.hedged += 1
                self._send(request, entry, self.now)

    # dispatch

    def _dispatch_state(self, number):
        return np.uint64(streams.stream(np.uint64(streams.key(self.seed, streams.DISPATCH)), number))

    def _arrive(self, number, time, file):
        system = self.system
        row = system.row[file]
        entries = range(system.start[row], system.start[row + 1])
        lane = 0 if self.queue == "fcfs" else int(system.queue[file])
        request = Request(number, time, file, int(system.need[file]), entries, lane)
        self.live[number] = request
        if self.policy == "late_binding":
            for entry in self._shuffled(request):
                self._start(self.nodes[system.node[entry]])
            return
        for entry in self._chosen(request, row):
            self._send(request, entry, time)
        if self.policy == "hedged" and system.group[file] >= 0:
            self.needed += request.need
        if self.policy == "hedged" and system.group[file] >= 0 and request.need < len(entries):
            self.hedge_times[number] = time + self.hedge_delay

    def _shuffled(self, request):
        order = np.zeros(len(request.entries), np.int64)
        subset.shuffle(order, len(order), self._dispatch_state(request.number))
        return [request.entries[i] for i in order]

    def _chosen(self, request, row):
        entries, need = request.entries, request.need
        up = {e for e in entries if self.nodes[self.system.node[e]].up}
        load = {e: self.nodes[self.system.node[e]].load() for e in entries}
        if self.policy == "fork_join":
            chosen = [e for e in entries if e in up]
        elif self.policy in ("least_loaded", "power_of_d"):
            probed = [e for e in self._shuffled(request) if e in up]
            if self.policy == "power_of_d":
                probed = probed[: self.probes * need]
            chosen = sorted(probed, key=load.get)[:need]  # stable: ties in the shuffled order
        else:
            if need == len(entries):
                chosen, order = list(entries), []
            elif self.policy == "round_robin":
                turn = self.turns.get(row, 0)
                order = [entries[(turn + i) % len(entries)] for i in range(len(entries))]
                chosen = order[:need]
                self.turns[row] = (turn + need) % len(entries)
            else:
                order, taken = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.int64)
                state = self._dispatch_state(request.number)
                count = subset.draw(self.system.units, entries.start, entries.stop, order, taken, state)
                chosen, order = list(taken[:count]), [entries[i] for i in order]
            others = [e for e in order if e in up and e not in chosen]
            chosen = [e for e in chosen if e in up]
            chosen += others[: need - len(chosen)]
        if len(chosen) < need:
            down = sorted((e for e in entries if e not in up), key=lambda e: (load[e], e))
            chosen += down[: need - len(chosen)]
        return chosen


def simulate(system, times, files, seed, **settings):
    """Latencies (requests,), s, of a run; settings as of Simulation."""
    return Simulation(system, times, files, seed, **settings).latencies
