"""Popularity of items as counters that decay together.

The counter c of an item that was last read at ``last`` is worth c 2^{-(now - last) / H} now. That is 2^{-now / H} times
its weight c 2^{last / H}, and the factor is common to all items: it changes no order and no best plan. So weights are
kept instead: a read touches one of them, and nothing has to decay. They are relative to a moment that moves on before
numbers overflow.
"""

from ecjax.machine_code import njit

_HALF_LIVES = 256.0  # after so many the moment moves on


@njit(inline="always", error_model="numpy")
def count_read(items, edges, half_life_s, e, m, now):
    """Count a read of item m at edge e.

    Args:
        items: of ``State``; weights are c 2^{(last - reference) / H}; updated.
        edges: of ``State``; updated.
        half_life_s: H.
        e: edge.
        m: item.
        now: s, at least that of every earlier read.

    Returns:
        What all weights of the edge were multiplied by before: 1 nearly always.
    """
    passed = (now - edges[e].reference_s) / half_life_s
    scale = 1.0
    if passed > _HALF_LIVES:
        scale = 2.0**-passed
        for n in range(items.shape[1]):
            items[e, n].weight *= scale
        edges[e].reference_s = now
        passed = 0.0
    items[e, m].weight += 2.0**passed
    return scale
