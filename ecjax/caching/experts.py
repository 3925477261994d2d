"""Popularity as a mixture of experts on the clock of reads: no half-life to choose.

Decayed counters on the clock of seconds fail on bursty logs: a burst has thousands of reads within one half-life, and one
half-life is wrong for some log. Here the clock of an edge counts its reads, and every expert h is a law of its next read,

    q_h(m) = c_mh 2^{-age_m / H_h} / S_h,   S_h the sum over all items,

with age_m the reads since item m was read. Counters have c <- c 2^{-age / H} + 1 at a read of m; experts by age alone have
c = 1, and any mixture of these orders items by their last reads, as LRU does. S is kept, not summed: S <- S 2^{-1 / H} + 1
at each read, where experts by age first take off what the item read had. The rate of an item is that of the mixture,
sum_h w_h q_h(m), with weights that follow the log loss of the next read by stochastic EM (Soft-Bayes: they go to the best
mixture, while Hedge would end at the best single expert). At a read of an item that was read before, before it is counted,

    w_h <- w_h + eta (w_h q_h / sum_l w_l q_l - w_h).

First reads teach nothing. Rates of items that are not read fall between reads, and not all alike: whoever ranks items by
them takes the rates of a few in turn anew at each read (``exchange``).
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit

COUNTERS = tuple(4.0**power for power in range(2, 9))  # half-lives of counters, reads
AGES = tuple(4.0**power for power in range(1, 7))  # half-lives of experts by age alone, reads
ETA = 0.002  # step of the weights


class Experts(NamedTuple):
    """What E edges have learned of M items; A counters come before B experts by age alone."""

    half_life: np.ndarray  # (A + B,) reads
    count: np.ndarray  # (E, M, A) c at the last read of the item
    last: np.ndarray  # (E, M) int64, clock at that read; 0: never read
    clock: np.ndarray  # (E,) int64, reads so far
    total: np.ndarray  # (E, A + B) S
    weight: np.ndarray  # (E, A + B) w, of sum 1
    scaled: np.ndarray  # (E, A + B) w / S
    eta: float


def begin_experts(
    edges: int,
    items: int,
    counters: tuple[float, ...] = COUNTERS,
    ages: tuple[float, ...] = AGES,
    eta: float = ETA,
) -> Experts:
    """Experts that know nothing, all of the same weight.

    Args:
        edges: E.
        items: M.
        counters: half-lives of counters, reads.
        ages: half-lives of experts by age alone, reads.
        eta: step of the weights, from 0 to 1.
    """
    half_life = np.array([*counters, *ages])
    return Experts(
        half_life=half_life,
        count=np.zeros((edges, items, len(counters))),
        last=np.zeros((edges, items), np.int64),
        clock=np.zeros(edges, np.int64),
        total=np.zeros((edges, len(half_life))),
        weight=np.full((edges, len(half_life)), 1.0 / len(half_life)),
        scaled=np.zeros((edges, len(half_life))),
        eta=eta,
    )


@njit(error_model="numpy")
def learn(experts, e, m):
    """Count a read of item m at edge e.

    Args:
        experts: Experts, updated.
        e: edge.
        m: item.

    Returns:
        The probability that the mixture gave to this read; 0 at a first read.
    """
    half_life, count, last, clock, total, weight, scaled, eta = experts
    counters, every = count.shape[2], half_life.size
    before = last[e, m]
    age = float(clock[e] - before)
    probability = next_read(experts, e, m)
    clock[e] += 1
    last[e, m] = clock[e]
    for h in range(every):
        left = np.exp2(-age / half_life[h]) if before > 0 else 0.0  # of what the item had, before this read
        if probability > 0.0:
            share = scaled[e, h] * left * (count[e, m, h] if h < counters else 1.0) / probability
            weight[e, h] += eta * (share - weight[e, h])
        passed = np.exp2(-1.0 / half_life[h])
        if h < counters:
            count[e, m, h] = count[e, m, h] * left * passed + 1.0
            total[e, h] = total[e, h] * passed + 1.0
        else:
            total[e, h] = (total[e, h] - left) * passed + 1.0
        scaled[e, h] = weight[e, h] / total[e, h]
    return probability


@njit(error_model="numpy")
def next_read(experts, e, m):
    """Probability that the next read of edge e is of item m, by the mixture; 0 where it has never been read."""
    half_life, count, last, clock, _, _, scaled, _ = experts
    if last[e, m] == 0:
        return 0.0
    age = float(clock[e] - last[e, m])
    rate = 0.0
    for h in range(half_life.size):
        share = scaled[e, h] * np.exp2(-age / half_life[h])
        rate += share * count[e, m, h] if h < count.shape[2] else share
    return rate
