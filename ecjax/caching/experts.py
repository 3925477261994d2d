"""Popularity as a mixture of experts on the clock of reads: no half-life to choose.

Decayed counters on the clock of seconds fail on bursty logs: a burst has thousands of reads within one half-life, and
one half-life is wrong for some log. Here the clock of an edge counts its reads, and every expert h is a law of its
next read,

    q_h(m) = c_mh 2^{-age_m / H_h} / S_h,   S_h the sum over all items,

with age_m the reads since item m was read. Counters have c <- c 2^{-age / H} + 1 at a read of m; experts by age alone
have c = 1, and any mixture of these orders items by their last reads, as LRU does. S is kept, not summed: S <- S
2^{-1 / H} + 1 at each read, where experts by age first take off what the item read had. The rate of an item is that
of the mixture, sum_h w_h q_h(m), with weights that follow the log loss of the next read by stochastic EM (Soft-Bayes:
they go to the best mixture, while Hedge would end at the best single expert). At a read of an item that was read
before, before it is counted,

    w_h <- w_h + eta (w_h q_h / sum_l w_l q_l - w_h).

First reads teach nothing. Rates of items that are not read fall between reads, and not all alike: whoever ranks items
by them takes the rates of a few in turn anew at each read (``exchange``).

No law here expects items of one age again more than younger ones; ``returns`` does. A larger eta follows changes
sooner, and above 0.01 logs without changes suffer. Half-lives up to 4^10 reads are for long logs whose popularity
stays.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit

COUNTERS = tuple(4.0**power for power in range(2, 11))  # half-lives of counters, reads
AGES = tuple(4.0**power for power in range(1, 7))  # half-lives of experts by age alone, reads
ETA = 0.005  # step of the weights
# columns of what is remembered of an item; counters come after them
LAST, NUMBER, GAP, COUNTS = 0, 1, 2, 3


class Experts(NamedTuple):
    """What E edges have learned of M items; experts with the same half-life share its powers.

    There are A counters, which come first, and B experts by age alone, of D different half-lives.
    """

    half_life: np.ndarray  # (D,) reads, descending
    quarter: (
        np.ndarray
    )  # (D,) bool, of the one before: what is left is the fourth power of what is left of that
    passed: np.ndarray  # (D,) 2^{-1 / H}, what is left after a read
    counter: np.ndarray  # (D,) int64, number of the counter with this half-life, or -1
    ager: np.ndarray  # (D,) int64, number of the expert by age alone with it, or -1
    # (E, M, 3 + A) clock at the last read of the item (0: never read), number of its reads, reads between the last two
    # (0: there was one), c at the last: in one place, since what a read costs is mostly waiting for memory
    memory: np.ndarray
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
        counters: half-lives of counters, reads, all different.
        ages: half-lives of experts by age alone, reads, all different.
        eta: step of the weights, from 0 to 1.
    """
    half_lives = sorted({*counters, *ages}, reverse=True)
    experts = len(counters) + len(ages)
    counter = [counters.index(each) if each in counters else -1 for each in half_lives]
    ager = [len(counters) + ages.index(each) if each in ages else -1 for each in half_lives]
    return Experts(
        half_life=np.array(half_lives),
        quarter=np.array(
            [place > 0 and 4 * each == half_lives[place - 1] for place, each in enumerate(half_lives)]
        ),
        passed=np.exp2(-1.0 / np.array(half_lives)),
        counter=np.array(counter),
        ager=np.array(ager),
        memory=np.zeros((edges, items, COUNTS + len(counters))),
        clock=np.zeros(edges, np.int64),
        total=np.zeros((edges, experts)),
        weight=np.full((edges, experts), 1.0 / experts),
        scaled=np.zeros((edges, experts)),
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
    half_life, quarter, passed, counter, ager = (
        experts.half_life, experts.quarter, experts.passed, experts.counter, experts.ager
    )  # fmt: skip
    memory, clock, total, weight = experts.memory, experts.clock, experts.total, experts.weight
    scaled, eta = experts.scaled, experts.eta
    probability = next_read(experts, e, m)
    read_before = memory[e, m, LAST] > 0.0
    age = clock[e] - memory[e, m, LAST]
    clock[e] += 1
    memory[e, m, LAST] = clock[e]
    memory[e, m, NUMBER] += 1.0
    if read_before:
        memory[e, m, GAP] = age
    left = 0.0
    for d in range(half_life.size):
        if read_before:
            left = _left(age, half_life[d], quarter[d], left)
        h = counter[d]
        if h >= 0:
            count = memory[e, m, COUNTS + h] * left
            _teach(weight, scaled, e, h, count, probability, eta)
            memory[e, m, COUNTS + h] = count * passed[d] + 1.0
            total[e, h] = total[e, h] * passed[d] + 1.0
            scaled[e, h] = weight[e, h] / total[e, h]
        h = ager[d]
        if h >= 0:
            _teach(weight, scaled, e, h, left, probability, eta)
            total[e, h] = (total[e, h] - left) * passed[d] + 1.0
            scaled[e, h] = weight[e, h] / total[e, h]
    return probability


@njit(inline="always", error_model="numpy")
def _left(age, half_life, quarter, longer):
    """2^{-age / H}; ``longer`` is that of the half-life before."""
    if quarter:
        square = longer * longer
        return square * square
    return np.exp2(-age / half_life)


@njit(inline="always", error_model="numpy")
def _teach(weight, scaled, e, h, left, probability, eta):
    """Move the weight of expert h towards its share of the probability, S of which is ``left``."""
    if probability > 0.0:
        weight[e, h] += eta * (scaled[e, h] * left / probability - weight[e, h])


@njit(error_model="numpy")
def next_read(experts, e, m):
    """Probability that the next read of edge e is of item m, by the mixture; 0 where it has never been read."""
    half_life, quarter, counter, ager = experts.half_life, experts.quarter, experts.counter, experts.ager
    memory, clock, scaled = experts.memory, experts.clock, experts.scaled
    if memory[e, m, LAST] == 0.0:
        return 0.0
    age = clock[e] - memory[e, m, LAST]
    probability = left = 0.0
    for d in range(half_life.size):
        left = _left(age, half_life[d], quarter[d], left)
        share = 0.0
        if counter[d] >= 0:
            share += scaled[e, counter[d]] * memory[e, m, COUNTS + counter[d]]
        if ager[d] >= 0:
            share += scaled[e, ager[d]]
        probability += share * left
    return probability
