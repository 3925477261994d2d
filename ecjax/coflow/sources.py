"""Which k of the n servers that keep a chunk send one."""

import numpy as np

from ecjax.coflow.workload import Workload
from ecjax.machine_code import njit

RANDOM, SMALLEST_LOAD, LEAST_BOTTLENECK, LEAST_WORK_AHEAD = range(4)
CODES = {
    "random": RANDOM,
    "smallest_load": SMALLEST_LOAD,
    "least_bottleneck": LEAST_BOTTLENECK,
    "least_work_ahead": LEAST_WORK_AHEAD,
}
ROUNDING = 1e-9  # relative: loads that differ by less are equal


def random_order(workload: Workload, seed: int) -> np.ndarray:
    """The candidates of every coflow in a random order, (N,): uniform, and the same for every scheduler."""
    draws = np.random.default_rng(seed).random(len(workload.candidate))
    coflow = np.repeat(np.arange(len(workload.arrival_s)), np.diff(workload.first_candidate))
    return workload.candidate[np.lexsort((draws, coflow))]


@njit(inner=True)
def choose(candidates, k, rule, queued, chunk, capacity, selection):
    """The k candidates that a rule prefers, as places in ``candidates``, into ``selection`` (k,); ties: the earlier.

    Args:
        candidates: servers in random order, (n,).
        k: how many are needed.
        rule: RANDOM takes the first k; SMALLEST_LOAD those with the fewest bytes queued (Algorithm 3 of the D-Target
            paper); the others those whose queued bytes and the chunk take the least time, which makes the read's own
            bottleneck least.
        queued: (S,) bytes that each server has yet to send.
        chunk: bytes of a chunk.
        capacity: bytes/s of every server, (S,).
        selection: out.
    """
    n = len(candidates)
    used = np.zeros(n, dtype=np.bool_)
    for place in range(k):
        best, least = -1, np.inf
        for i in range(n):
            if used[i]:
                continue
            server = candidates[i]
            if rule == RANDOM:
                value = 0.0
            elif rule == SMALLEST_LOAD:
                value = queued[server]
            else:
                value = (queued[server] + chunk) / capacity[server]
            if best < 0 or value < least - ROUNDING * abs(least):
                best, least = i, value
        used[best] = True
        selection[place] = best
