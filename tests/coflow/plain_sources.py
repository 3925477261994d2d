"""Which servers reads take their chunks from, in plain Python; see ``plain_fabric`` for the rules."""

import numpy as np

TIED = 1e-9  # part of a value that rounding may add or miss


def smallest_first(items, value):
    """Items, smallest value first; of those whose values only rounding tells apart the earlier in ``items``."""
    ranked = sorted(range(len(items)), key=lambda i: value(items[i]))
    groups = []
    for i in ranked:
        if groups and value(items[i]) - value(items[groups[-1][-1]]) <= TIED * value(items[i]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return [items[i] for group in groups for i in sorted(group)]


def queued(state, server):
    """Remaining bytes that a server has to send."""
    return sum(
        state.remaining[f] for c in state.active for f in state.unfinished(c) if state.source[f] == server
    )


def choose(state, coflow, rule, candidates, taken):
    """Give the flows of a read their sources; ``candidates`` come in random order.

    Servers often have the same bytes left to send, of the same reads, and only rounding orders them: there those
    ``taken`` by another replay are taken over, if their loads are the smallest but for rounding.
    """
    flows = state.flows_of[coflow]
    if rule != "random":
        chunk = state.bytes[flows[0]]

        def load(server):
            if rule == "smallest_load":
                return queued(state, server)
            return (queued(state, server) + chunk) / state.capacity[server]

        candidates = smallest_first(candidates, load)
        loads = np.array([load(server) for server in candidates])
        tied = (np.diff(loads) <= TIED * loads[1:]) & (loads[1:] > 0)
        if taken is not None and tied.any() and rule != "least_work_ahead":
            theirs = [load(server) for server in taken[list(flows)]]
            np.testing.assert_allclose(theirs, loads[: len(flows)], rtol=len(loads) * TIED)
            candidates = taken[list(flows)]
    for f, server in zip(flows, candidates, strict=False):
        state.source[f] = int(server)


def choose_again(state, order):
    """Chunks that have not begun go to the servers with the least work of coflows before theirs."""
    ahead = [0.0] * len(state.capacity)
    for c in order:
        flows = state.unfinished(c)
        idle = [f for f in flows if state.remaining[f] == state.bytes[f]]
        if state.candidates.get(c) is not None and idle:
            begun = {state.source[f] for f in state.flows_of[c] if f not in idle}
            present = {state.source[f] for f in idle}
            free = [s for s in state.candidates[c] if s not in begun]
            chunk = state.bytes[idle[0]]
            free.sort(key=lambda s: s not in present)
            done = {s: (ahead[s] + chunk) / state.capacity[s] for s in free}
            best = smallest_first(free, done.get)[: len(idle)]
            moving = [f for f in idle if state.source[f] not in best]
            for f, server in zip(moving, [s for s in best if s not in present], strict=True):
                state.source[f] = int(server)
        for f in flows:
            ahead[state.source[f]] += state.remaining[f]
