"""Locally recoverable codes LRC(k, l, g): what they decode, and how long a group lasts.

k data chunks in l local groups with one parity each, g global parities: n = k + l + g. The code is taken as maximally
recoverable: a set of losses is decodable exactly if sum_i max(0, a_i - 1) + b <= g, with a_i missing in local group i
and b global parities missing. Other constructions decode less.
"""

import math
from functools import lru_cache

import numpy as np

from ecjax.durability.elimination import Loss, Rates, loss_rate

Missing = tuple[tuple[int, ...], int]  # by local group, most first; global parities


@lru_cache(maxsize=256)
def decodable_patterns(k: int, l: int, g: int) -> tuple[int, ...]:  # noqa: E741
    """[n + 1] number of sets of f lost chunks that are decodable, f = 0, ..., n.

    Args:
        k: data chunks, a multiple of l
        l: local groups
        g: global parities
    """
    size = k // l + 1
    # counts[s][f]: sets of f losses in the groups so far that take s of the global parities
    counts = {(0, 0): 1}
    for _ in range(l):
        grown: dict[tuple[int, int], int] = {}
        for (taken, f), ways in counts.items():
            for a in range(size + 1):
                key = (taken + max(0, a - 1), f + a)
                if key[0] <= g:
                    grown[key] = grown.get(key, 0) + ways * math.comb(size, a)
        counts = grown
    patterns = [0] * (k + l + g + 1)
    for (taken, f), ways in counts.items():
        for b in range(g - taken + 1):
            patterns[f + b] += ways * math.comb(g, b)
    return tuple(patterns)


def decodable_shares(k: int, l: int, g: int) -> tuple[float, ...]:  # noqa: E741
    """[n + 1] share of the sets of f lost chunks that are decodable."""
    n = k + l + g
    return tuple(ways / math.comb(n, f) for f, ways in enumerate(decodable_patterns(k, l, g)))


def _repaired(state: Missing) -> Missing:
    """The state after the next repair: groups without local repair first, then globals, then single losses."""
    groups, global_parities = state
    if groups[0] < 2 and global_parities:
        return groups, global_parities - 1
    return tuple(sorted((groups[0] - 1, *groups[1:]), reverse=True)), global_parities


def lrc_loss_rate(code: tuple[int, int, int], failure_rate: float, repair_rates: list[float]) -> float:
    """Losses per year of one group, by the exact chain over (missing by local group, missing global parities).

    Args:
        code: k, l and g
        failure_rate: failures per chunk and year
        repair_rates: [>= l + g] repairs per year with 1, 2, ... chunks missing, one at a time
    """
    k, l, g = code  # noqa: E741
    size = k // l + 1

    def steps(state: Missing) -> list[tuple[Missing | Loss, Rates]]:
        groups, b = state
        taken = sum(max(0, a - 1) for a in groups) + b
        targets: list[tuple[Missing | Loss, Rates]] = []
        for i, a in enumerate(groups):
            if a < size:
                after = tuple(sorted((*groups[:i], a + 1, *groups[i + 1 :]), reverse=True))
                fits = taken + (a >= 1) <= g
                targets.append(((after, b) if fits else Loss(), np.array((size - a) * failure_rate)))
        if b < g:
            targets.append(((groups, b + 1) if taken < g else Loss(), np.array((g - b) * failure_rate)))
        missing = sum(groups) + b
        if missing:
            targets.append((_repaired(state), np.array(repair_rates[missing - 1])))
        return targets

    return float(loss_rate(((0,) * l, 0), steps, lambda state: sum(state[0]) + state[1]))


def lrc_product_rate(code: tuple[int, int, int], failure_rate: float, repair_rates: list[float]) -> float:
    """Losses per year of one group by products of the lumped chain over the number of missing chunks.

    R = sum_f [prod_{i<f} (n-i) lambda p_{i+1} / mu_{i+1}] (n-f) lambda (1 - p_{f+1}), with p_f the share of the sets
    of f losses that are decodable, given that the sets before were: p_{f+1} stands for its ratio to p_f.

    Args:
        code: k, l and g
        failure_rate: failures per chunk and year
        repair_rates: [>= l + g] repairs per year with 1, 2, ... chunks missing
    """
    k, l, g = code  # noqa: E741
    n = k + l + g
    shares = decodable_shares(k, l, g)
    rate, reached = 0.0, 1.0
    for f in range(l + g + 1):
        survives = shares[f + 1] / shares[f]
        rate += reached * (n - f) * failure_rate * (1 - survives)
        if not survives:
            break
        reached *= (n - f) * failure_rate * survives / repair_rates[f]
    return rate
