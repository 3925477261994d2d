"""Queues of accesses as circular doubly linked lists, and the clock of a node whose classes share its speed."""

from ecjax.machine_code import njit


@njit(inline="always")
def insert(after, before, place, access):
    """Put an access in front of another, or at the end of the queue of number ``place``."""
    last = before[place]
    after[last] = access
    before[access] = last
    after[access] = place
    before[place] = access


@njit(inline="always")
def remove(after, before, access):
    """Take an access out of its queue."""
    behind, ahead = after[access], before[access]
    after[ahead] = behind
    before[behind] = ahead


@njit(inline="always")
def advance(clock, update_s, active, node, now):
    """Bring the clock of a shared node to ``now``: it runs at 1 / (weight in service)."""
    if active[node] > 0.0:
        clock[node] += (now - update_s[node]) / active[node]
    update_s[node] = now
