"""Parts of the schedulers: MADD, backfill and equal shares on what the ports have left."""

import numpy as np

from ecjax.coflow.bits import ONE, ZERO, lowest
from ecjax.coflow.state import SERVED
from ecjax.machine_code import njit

ROUNDING = 1e-12  # relative: keys that differ by less are equal
NOTHING = 1e-9  # of a port's capacity: what is less counts as none


@njit(inner=True)
def clear(state):
    """No rates, and all ports free."""
    for i in range(state.counts[SERVED]):
        state.rate[state.served[i]] = 0.0
    state.counts[SERVED] = 0
    state.free[:] = state.capacity


@njit(inner=True)
def bottleneck(state, c, load):
    """Bottleneck of a coflow: max over its ports of load (``state.load`` or ``state.full``) / capacity, s if bytes."""
    worst = 0.0
    port, capacity = state.port, state.capacity
    use = state.first_use[c]
    for q in range(use, use + state.sources[c] + state.targets[c]):
        worst = max(worst, load[q] / capacity[port[q]])
    return worst


@njit(inner=True)
def _after(one, other, tie):
    """Whether a key is larger than another; ``tie`` where only rounding tells them apart."""
    if abs(one - other) <= ROUNDING * one:
        return tie
    return one > other


@njit(inner=True)
def sort_active(state, count):
    """Active coflows by key, ties by number; nearly sorted already, so by insertion."""
    active, key = state.active, state.key
    for i in range(1, count):
        c = active[i]
        j = i - 1
        while j >= 0 and _after(key[active[j]], key[c], active[j] > c):
            active[j + 1] = active[j]
            j -= 1
        active[j + 1] = c


@njit(inner=True)
def _time_left(state, c, load):
    """Bottleneck g = max over the ports of load / what they have left; inf where one has nothing left."""
    port, flows, free, capacity = state.port, state.flows, state.free, state.capacity
    use = state.first_use[c]
    g = 0.0
    for q in range(use, use + state.sources[c] + state.targets[c]):
        if flows[q] == 0:
            continue
        p = port[q]
        if free[p] <= NOTHING * capacity[p]:
            return np.inf
        g = max(g, load[q] / free[p])
    return g


@njit(inner=True)
def madd(state, count):
    """MADD by remaining bytes, in the order of the active coflows; sets ``drain``."""
    port, load, free = state.port, state.load, state.free
    for i in range(count):
        c = state.active[i]
        use = state.first_use[c]
        g = _time_left(state, c, load)
        state.drain[c] = g * state.scale[c]
        if g == np.inf:
            continue
        for q in range(use, use + state.sources[c] + state.targets[c]):
            free[port[q]] -= load[q] / g


@njit(inner=True)
def give(state, x, amount):
    """Raise the rate of a flow."""
    if state.rate[x] == 0.0:
        state.served[state.counts[SERVED]] = x
        state.counts[SERVED] += 1
    state.rate[x] += amount


@njit(inner=True)
def madd_full(state, count):
    """MADD by full sizes, as printed: every flow of the coflow gets size / g."""
    for i in range(count):
        c = state.active[i]
        use = state.first_use[c]
        g = _time_left(state, c, state.full)
        if g == np.inf:
            continue
        for x in range(state.first[c], state.first[c + 1]):
            if state.rest[x] > 0.0:
                give(state, x, state.size[x] / g)
        for q in range(use, use + state.sources[c] + state.targets[c]):
            state.free[state.port[q]] -= state.full[q] / g


@njit(inner=True)
def round_off(state):
    """Remainders of ports that are nothing but rounding become none."""
    free, capacity = state.free, state.capacity
    for p in range(len(free)):
        if free[p] < NOTHING * capacity[p]:
            free[p] = 0.0


@njit(inner=True)
def free_targets(state, c):
    """Bits of the coflow's targets with free ports, into ``mask``; whether a source and a target are free."""
    port, flows, free, mask = state.port, state.flows, state.free, state.mask
    use, sources, targets = state.first_use[c], state.sources[c], state.targets[c]
    any_free = False
    for q in range(use, use + sources):
        if flows[q] > 0 and free[port[q]] > 0.0:
            any_free = True
            break
    if not any_free:
        return False
    any_free = False
    mask[: (targets + 63) // 64] = ZERO
    for b in range(targets):
        q = use + sources + b
        if flows[q] > 0 and free[port[q]] > 0.0:
            mask[b >> 6] |= ONE << np.uint64(b & 63)
            any_free = True
    return any_free


@njit()
def first_flow(state, a, b):
    """First flow from use a to use b; flows of a source are in the order of their targets."""
    at_target = state.at_target
    low, high = state.begin[a], state.end[a]
    while low < high:
        middle = (low + high) // 2
        if at_target[middle] < b:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inner=True)
def fill(state, c):
    """Backfill of one coflow: its flows by source and target get all that both ports have left."""
    if not free_targets(state, c):
        return
    port, flows, free, mask, word = state.port, state.flows, state.free, state.mask, state.word
    rest, capacity = state.rest, state.capacity
    use, sources = state.first_use[c], state.sources[c]
    words = (state.targets[c] + 63) // 64
    for a in range(use, use + sources):
        s = port[a]
        if flows[a] == 0 or free[s] <= 0.0:
            continue
        row = state.first_word[c] + (a - use) * words
        for w in range(words):
            both = word[row + w] & mask[w]
            while both != ZERO and free[s] > 0.0:
                bit = lowest(both)
                both &= both - ONE
                b = use + sources + w * 64 + bit
                d = port[b]
                x = first_flow(state, a, b)
                while rest[x] <= 0.0:
                    x += 1
                amount = min(free[s], free[d])
                give(state, x, amount)
                free[s] -= amount
                free[d] -= amount
                if free[s] < NOTHING * capacity[s]:
                    free[s] = 0.0
                if free[d] < NOTHING * capacity[d]:
                    free[d] = 0.0
                    mask[w] &= ~(ONE << np.uint64(bit))
            if free[s] <= 0.0:
                break


@njit(inner=True)
def backfill(state, count):
    """Backfill in the order of the active coflows."""
    round_off(state)
    for i in range(count):
        fill(state, state.active[i])


@njit(inner=True)
def share(state, group, sharing, used):
    """Share(G, R): every flow of the coflows in ``group`` gets min over its ports of what is left / flows of the group.

    Args:
        state: the state.
        group: coflows.
        sharing: (S + D,) work array of zeros, zeros again afterwards.
        used: (S + D,) the same.
    """
    port, flows, free = state.port, state.flows, state.free
    rest, target = state.rest, state.target
    for c in group:
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            sharing[port[q]] += flows[q]
    for c in group:
        use = state.first_use[c]
        for a in range(use, use + state.sources[c]):
            s = port[a]
            if flows[a] == 0 or free[s] <= 0.0:
                continue
            sender_share = free[s] / sharing[s]
            for x in range(state.begin[a], state.end[a]):
                d = target[x]
                if rest[x] <= 0.0 or free[d] <= 0.0:
                    continue
                amount = min(sender_share, free[d] / sharing[d])
                give(state, x, amount)
                used[s] += amount
                used[d] += amount
    for c in group:
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            p = port[q]
            free[p] -= used[p]
            used[p] = 0.0
            sharing[p] = 0.0
    round_off(state)
