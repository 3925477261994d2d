"""Rates that last: what a flow gets by MADD with full sizes or by Share stays until its own inputs change.

At an event few flows change their rate: of 17,000 that send under Aalo in the Facebook trace, 270. A flow with a
lasting rate is left alone in between: ``rest`` is what it had at the moment ``since``, and ``until`` is when it ends.
The flows of a coflow from one source are a row; of each row the earliest end is known, or a moment that is not after
it. What backfill adds is short-lived, and is taken from ``rest`` at every event.
"""

import numpy as np

from ecjax.machine_code import njit

ENDED = 1e-10  # of its size: a flow with less left has ended
_CLOCK = 4e-16  # relative: moments that differ by less are equal
SAME = 1e-12  # relative: rates that differ by less are equal


@njit(inner=True)
def left(state, x, now):
    """Bytes that a flow has left, over the scale of its coflow."""
    return state.rest[x] - state.base[x] * (now - state.since[x])


@njit(inner=True)
def has_ended(state, x, now):
    """Whether a flow has nothing left but rounding, of its bytes or of the time."""
    speed = state.base[x] + state.rate[x]
    return left(state, x, now) * state.scale[state.coflow[x]] <= max(
        ENDED * state.size[x], _CLOCK * now * speed
    )


@njit(inner=True)
def set_base(state, x, speed, now):
    """Give a flow another lasting rate."""
    a, before = state.at_source[x], state.until[x]
    state.rest[x] = left(state, x, now)
    state.since[x] = now
    more = speed - state.base[x]
    state.spent[a] += more
    state.spent[state.at_target[x]] += more
    state.base[x] = speed
    after = np.inf
    if speed > 0.0:
        after = now + state.rest[x] / speed
        state.slowest[a] = max(state.slowest[a], state.size[x] / speed)
    state.until[x] = after
    if after <= state.row_end[a]:
        state.row_end[a] = after
    elif before <= state.row_end[a]:
        state.stale[a] = True


@njit(inner=True)
def without_backfill(state, x):
    """A flow loses what backfill gave it, some of which it has used: its end at its lasting rate is sooner now."""
    if state.base[x] > 0.0:
        a = state.at_source[x]
        state.until[x] = state.since[x] + state.rest[x] / state.base[x]
        state.row_end[a] = min(state.row_end[a], state.until[x])


@njit(inner=True)
def settle(state, c, now):
    """What the flows of a coflow have left, into ``rest``."""
    for x in range(state.first[c], state.first[c + 1]):
        if state.rest[x] > 0.0:
            state.rest[x] = left(state, x, now)
            state.since[x] = now


@njit(inner=True)
def _look_again(state, a):
    """Earliest end of a row, from its flows."""
    soonest, slowest = np.inf, 0.0
    for x in range(state.begin[a], state.end[a]):
        if state.base[x] > 0.0:
            soonest = min(soonest, state.until[x])
            slowest = max(slowest, state.size[x] / state.base[x])
    state.row_end[a], state.slowest[a], state.stale[a] = soonest, slowest, False


@njit(inner=True)
def next_end(state, count):
    """When the next flow ends by its lasting rate, s."""
    soonest = np.inf
    row_end = state.row_end
    for i in range(count):
        c = state.active[i]
        use = state.first_use[c]
        for a in range(use, use + state.sources[c]):
            if row_end[a] < soonest:
                if state.stale[a]:
                    _look_again(state, a)
                soonest = min(soonest, row_end[a])
    return soonest


@njit(inner=True)
def may_end(state, a, now):
    """Whether a flow of a row may have ended."""
    return state.row_end[a] - now <= ENDED * state.slowest[a] + _CLOCK * now
