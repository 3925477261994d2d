"""Parts of the schedulers: MADD, backfill and equal shares on what the ports have left."""

import numpy as np

from ecjax.coflow.bits import ONE, ZERO, lowest
from ecjax.coflow.lasting import SAME, set_base, without_backfill
from ecjax.coflow.state import SERVED
from ecjax.machine_code import copy_into, njit

ROUNDING = 1e-12  # relative: keys that differ by less are equal
NOTHING = 1e-9  # of a port's capacity: what is less counts as none


@njit(inner=True)
def clear(state):
    """No rates but the lasting ones, and all ports free."""
    for i in range(state.counts[SERVED]):
        x = state.served[i]
        state.rate[x] = 0.0
        without_backfill(state, x)
    state.counts[SERVED] = 0
    copy_into(state.free, state.capacity)


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
def madd_full(state, count, now):
    """MADD by full sizes, as printed: every flow of the coflow gets size / g, which lasts until g changes."""
    for i in range(count):
        c = state.active[i]
        use = state.first_use[c]
        g, pace = _time_left(state, c, state.full), state.pace[c]
        if g == np.inf and pace == np.inf:
            continue
        if g == np.inf or not abs(g - pace) <= SAME * g:
            state.pace[c] = g
            for x in range(state.first[c], state.first[c + 1]):
                if state.rest[x] > 0.0:
                    set_base(state, x, state.size[x] / g, now)
        for q in range(use, use + state.sources[c] + state.targets[c]):
            state.spent[q] = state.full[q] / state.pace[c]
            state.free[state.port[q]] -= state.spent[q]


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
def share(state, group, sharing, changed, now):
    """Share(G, R): every flow of the coflows in ``group`` gets min over its ports of what is left / flows of the group.

    Only flows at ports where what is offered has changed are looked at.

    Args:
        state: the state.
        group: coflows.
        sharing: (S + D,) work array of zeros, zeros again afterwards.
        changed: (S + D,) work array, whole numbers.
        now: s.
    """
    port, flows, free = state.port, state.flows, state.free
    for c in group:
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            sharing[port[q]] += flows[q]
    for c in group:
        _offer(state, c, sharing, changed, now)
    for c in group:
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            free[port[q]] -= state.spent[q]
    for c in group:
        use = state.first_use[c]
        for q in range(use, use + state.sources[c] + state.targets[c]):
            p = port[q]
            sharing[p] = 0.0
            if free[p] < NOTHING * state.capacity[p]:
                free[p] = 0.0


@njit(inner=True)
def _offer(state, c, sharing, changed, now):
    """Share of one coflow of the group; arguments as there."""
    port, flows, free, level, rest = state.port, state.flows, state.free, state.level, state.rest
    use, sources = state.first_use[c], state.sources[c]
    count = 0
    for q in range(use, use + sources + state.targets[c]):
        p = port[q]
        offer = free[p] / sharing[p] if flows[q] > 0 and free[p] > 0.0 else 0.0
        if abs(offer - level[q]) > SAME * offer:
            level[q] = offer
            changed[count] = q
            count += 1
    for i in range(count):
        q = changed[i]
        if flows[q] == 0:
            continue
        for place in range(state.begin[q], state.end[q]):
            x = place if q < use + sources else state.by_target[place]
            if rest[x] > 0.0:
                speed = min(level[state.at_source[x]], level[state.at_target[x]])
                if speed != state.base[x]:
                    set_base(state, x, speed, now)
