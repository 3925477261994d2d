"""Theorem, lemma, examples and algorithms of the SampleX paper, which need no study."""

import math
import random
from itertools import permutations

import numpy as np
from scipy.stats import chi2

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import exact, judge, refuted, texts
from ecjax.studies.reproduce.evidence import Evidence

_SIGMAS = (10.0, 1e3, 1e6)
_RANDOM_CACHES = 300
_UPDATES = 2000


def example_2(sigma: float) -> np.ndarray:
    """The values of Fig. 2 (equation 6), (4, K + 1) with K = 3."""
    return np.array([[0, 0, 1, 1 + sigma], [0, 0, 0.9, 1], [0, 0, 0.9, 1], [0, 0, 0, 1.0]])


def example_6(sigma: float) -> np.ndarray:
    """The values of Fig. 6 (equation 14), (4, K + 1) with K = 3."""
    return np.array([[0, sigma - 1, sigma - 1, sigma]] * 3 + [[0, 0, 0, 0.1]])


def partition_values(tau: np.ndarray, capacity: int) -> np.ndarray:
    """The best value of every partition of a capacity, in order."""
    from ecjax.caching.clearing import Market
    from ecjax.caching.partitions import Partitions

    chi = Partitions(capacity, tau.shape[1] - 1, len(tau))
    return Market(tau, min(capacity, len(tau))).best_of_all(chi)[0]


def draw_probabilities(capacity: int, k: int) -> np.ndarray:
    """How likely Algorithm 1 draws each partition where line 6 takes what is left, floor(C' / k), in order of chi."""
    from ecjax.caching.partitions import Partitions

    chi = np.array(list(Partitions(capacity, k)))
    probability = np.zeros(len(chi))
    for order in permutations(range(2, k + 1)):
        left, one = np.full(len(chi), capacity), np.ones(len(chi))
        for part in order:
            one /= left // part + 1
            left = left - part * chi[:, part - 1]
        probability += one
    return probability / math.factorial(k - 1)


def online_updates(samples: int, updates: int, seed: int, *, mended: bool = False) -> tuple[int, int]:
    """Algorithm 2 on reads by Zipf's law whose popularity is known and stays.

    Args:
        samples: S.
        updates: how many to count.
        seed: of items and draws.
        mended: as policy ``samplex`` has it, instead of as printed.

    Returns:
        How often the value of the cache fell, and how often it rose or stayed.
    """
    from ecjax.caching.candidate_samples import candidate_samplex, partition_table
    from ecjax.caching.clearing import Market
    from ecjax.caching.partitions import Partitions
    from ecjax.caching.sampling import drawn_partitions
    from ecjax.caching.valuation import valuation

    rng = np.random.default_rng(seed)
    k, items, capacity = 6, 300, 100
    share = np.arange(1.0, items + 1) ** -1.0
    tau = valuation(share, rng.permuted(np.tile([0.52, 0.41, 0.69, 0.98, 0.14, 0.21], (items, 1)), axis=1))
    kept = np.zeros(items, np.int64)
    kept[items - capacity // k :] = k
    kept[0] += capacity % k
    table, state = partition_table(3 * k, k, k + 2), np.uint64(seed)
    fell = rose = 0
    for item in rng.choice(items, 100 * updates, p=share / share.sum()):
        if fell + rose == updates:
            break
        if kept[item] == k:
            continue
        others = np.flatnonzero(kept)
        others = others[others != item]
        mean = tau[others, kept[others]] / kept[others]
        others = others[np.argsort(mean, kind="stable")]
        room = np.cumsum(kept[others]) + kept[item]
        chosen = np.append(item, others[: int(np.searchsorted(room, k)) + 1])
        shared = int(kept[chosen].sum())
        chunks = kept[chosen]
        if mended:
            _, after_it = candidate_samplex(tau[chosen], chunks, shared, table, samples, state)
            # compiled code returns Python's integers, and takes those of 64 bits as signed
            state = np.uint64(after_it)
        else:
            chi = Partitions(shared, k, len(chosen))
            drawn = drawn_partitions(chi, "samplex", samples, int(rng.integers(2**31)))
            _, chunks = Market(tau[chosen], len(chosen)).best(drawn)
        before, after = (float(tau[chosen, each].sum()) for each in (kept[chosen], chunks))
        kept[chosen] = chunks
        if after < before * (1 - 1e-12):
            fell += 1
        else:
            rose += 1
    return fell, rose


def stuck_ratio(k: int) -> tuple[float, float]:
    """Value of what the online scheme keeps over the optimum, and the claimed 1 - (2K - 1) / C, in an example.

    C = 11 K. Ten items are worth as much with one chunk as with all, nearly; one is worth nothing without its last
    chunk, and others, as much with one chunk as that one with all, nearly, never get in. Each item is read once
    and all are equally popular. The ratio tends to 1 / K.
    """
    from ecjax.caching.knapsack import plan
    from ecjax.caching.replay import replay
    from ecjax.caching.system import Network, Policy, Reads, Stored
    from ecjax.caching.valuation import valuation

    ten, unit, capacity, items = 10, 1000.0, 11 * k, 11 * k + 1
    latency = np.array([[unit + 1, 1.0, unit - 1, unit - 2, 0.0]])
    node_of = np.array([[0] + [1] * (k - 1)] * ten + [[2] * k] + [[3] + [4] * (k - 1)] * (items - ten - 1))
    tau = valuation(np.ones(items), latency[0][node_of])
    none = np.zeros(0)
    network = Network(latency, 0.0, 0.0, 0.0, none.astype(np.int64), none, none)
    reads = Reads(np.arange(items) * 1e-3, np.arange(items), np.zeros(items, np.int64))
    policy = Policy("near_optimal", capacity, 1e9, 0.9, samples=5, period_s=1e3, replan_reads=0, seed=0)
    kept = replay(reads, Stored(k, node_of[:, :, None]), network, policy).contents[0]
    value = tau[np.arange(items), np.bitwise_count(kept)].sum()
    return float(value / plan(tau, capacity).value), 1 - (2 * k - 1) / capacity


def _valuation(evidence: Evidence) -> Finding:
    from ecjax.caching.valuation import valuation

    rng = np.random.default_rng(1)
    latency, rates = rng.exponential(1.0, (200, 7)), rng.exponential(1.0, 200)
    tau = valuation(rates, latency)
    error = 0.0
    for r, row, values in zip(rates, latency, tau, strict=True):
        slowest = [*sorted(row, reverse=True), 0.0]
        error = max(
            error, *(abs(v - r * (slowest[0] - left)) for v, left in zip(values, slowest, strict=True))
        )
    ascends = bool((np.diff(tau, axis=1) >= 0).all())
    return exact(error if ascends else 1.0, 1e-12, "200 random items of 7 chunks; no row descends")


def _lemma_1(evidence: Evidence) -> Finding:
    error = max(
        float(np.abs(partition_values(example_2(sigma), 4) / [1, 1, 1.9, 1 + sigma] - [0, 1, 1, 1]).max())
        for sigma in _SIGMAS
    )
    return exact(error, 1e-12, "0, 1, 1.9 and 1 + sigma for sigma = 10, 1e3, 1e6")


def _example_6(evidence: Evidence) -> Finding:
    values = {sigma: partition_values(example_6(sigma), 3) for sigma in _SIGMAS}
    good = all(
        math.isclose(worth.max(), 3 * sigma - 3)
        and math.isclose(worth[0], 3 * sigma - 3)
        and worth[-1] == sigma
        for sigma, worth in values.items()
    )
    ratios = [worth[-1] / worth.max() for worth in values.values()]
    return judge(
        good and min(ratios) > 1 / 3, ratios[-1], f"ratios {texts(ratios, '.6f')} for sigma = 10, 1e3, 1e6"
    )


def _theorem_1(evidence: Evidence) -> Finding:
    from ecjax.caching.knapsack import plan

    rng = np.random.default_rng(2)
    scaled = []
    for _ in range(_RANDOM_CACHES):
        k = int(rng.integers(1, 9))
        items = int(rng.integers(k, 40))
        capacity = int(rng.integers(k, items * k + 1))
        tau = np.zeros((items, k + 1))
        tau[:, 1:] = np.cumsum(rng.exponential(1.0, (items, k)) ** rng.integers(1, 6), axis=1)
        scaled.append(k * partition_values_last(tau, capacity) / plan(tau, capacity).value)
    for k in range(1, 9):  # K items that are worth as much with one chunk as with all
        tau = np.ones((k, k + 1))
        tau[:, 0] = 0
        scaled.append(k * partition_values_last(tau, k) / plan(tau, k).value)
    least = min(scaled)
    return judge(
        least >= 1 - 1e-9,
        least,
        f"never below 1/K in {_RANDOM_CACHES} random caches, and 1/K exactly where K items are worth as much with one "
        "chunk as with all: 1/K is the tight bound, above 1/(K+1)",
    )


def partition_values_last(tau: np.ndarray, capacity: int) -> float:
    """The best value of the last partition."""
    from ecjax.caching.sampling import samplex

    chunks = samplex(tau, capacity, samples=1)
    return float(np.take_along_axis(tau, chunks[:, None], axis=1).sum())


def _uniform(evidence: Evidence) -> Finding:
    from ecjax.caching.partitions import Partitions

    chi = Partitions(40, 6)
    distance = float(np.abs(draw_probabilities(40, 6) - 1 / chi.count).sum() / 2)
    negative = 1 - chi.count / math.prod(40 // part + 1 for part in range(2, 7))
    draws = random.Random(3)
    many = 10 * chi.count
    counts = np.bincount([chi.rank(chi.sample(1, draws)[0]) for _ in range(many)], minlength=chi.count)
    chance = float(chi2.sf(((counts - 10) ** 2 / 10).sum(), chi.count - 1))
    return refuted(
        distance > 0.01 and chance > 1e-3,
        distance,
        f"C = 40, K = 6: drawn from what is left, probabilities are {distance:.2f} in total variation from equal ones; "
        f"drawn from floor(C/k) as printed x_1 < 0 in {negative:.1%} of draws. Drawn by rank, as here, they are alike "
        f"(chi-square test: p = {chance:.2f})",
    )


def _decay(evidence: Evidence) -> Finding:
    from ecjax.caching.edge_state import begin_empty
    from ecjax.caching.popularity import count_read
    from ecjax.caching.system import Network

    half_life, none = 60.0, np.zeros(0)
    network = Network(np.ones((1, 1)), 0.0, 0.0, 0.0, none.astype(np.int64), none, none)
    state = begin_empty(2, network, 1, False)
    early, late = np.linspace(0, 10, 100), np.array([600.0, 605.0])
    for item, times in enumerate((early, late)):
        for now in times:
            count_read(state.items, state.edges, half_life, 0, item, now)
    ours = state.items["weight"][0] * 2 ** (-(610.0 - state.edges["reference_s"][0]) / half_life)
    wanted = [(2 ** (-(610.0 - times) / half_life)).sum() for times in (early, late)]
    printed = [_printed_counter(times, half_life) for times in (early, late)]
    if not np.allclose(ours, wanted, rtol=1e-9):
        return judge(False, None, f"counters here are {texts(ours)}, not {texts(wanted)}")
    return refuted(
        printed[0] > printed[1] and wanted[0] < wanted[1],
        printed[0] / wanted[0],
        f"100 reads of one item, then none for ten half-lives, two of another: as printed only the item that is read "
        f"decays, and the counters are {texts(printed)}; decayed to the present they are {texts(wanted)}, as here",
    )


def _printed_counter(times: np.ndarray, half_life: float) -> float:
    """Equation 16 with 2 alpha for the half-life."""
    counter, last = 0.0, times[0]
    for now in times:
        counter, last = 1 + counter * 2 ** (-(now - last) / half_life), now
    return float(counter)


def _online_ratio(evidence: Evidence) -> Finding:
    ratio, claimed = stuck_ratio(6)
    return refuted(
        ratio < claimed,
        ratio,
        f"K = 6, C = 66: the online scheme keeps {ratio:.3f} of the optimum, claimed are {claimed:.3f}: the mean value "
        "per chunk hides that an item is worth nearly as much with fewer chunks",
    )


def _never_worse(evidence: Evidence) -> Finding:
    fell, rose = online_updates(5, _UPDATES, 4)
    still, _ = online_updates(5, _UPDATES, 4, mended=True)
    share = fell / (fell + rose)
    half = 1.96 * math.sqrt(share * (1 - share) / (fell + rose))
    if still:
        return judge(
            False, 100 * share, f"as policy samplex updates the value fell at {still} of {_UPDATES} updates"
        )
    return refuted(
        fell > 0,
        100 * share,
        f"as printed the value fell at {fell} of {fell + rose} updates, as the current plan is not among the samples; "
        f"policy samplex keeps it unless a sample is worth more, and the value fell at {still} of {_UPDATES}",
        100 * (share - half),
        100 * (share + half),
    )


THEOREMS = (
    Claim(
        "samplex-eq1-valuation",
        "eq. 1-2",
        "Value of keeping the j slowest chunks of an item, which does not fall in j.",
        _valuation,
        quantity="largest difference",
    ),
    Claim(
        "samplex-lemma1-example",
        "Lemma 1, eq. 6",
        "In the example of Fig. 2 the four partitions are worth 0, 1, 1.9 and 1 + sigma.",
        _lemma_1,
        paper_value="0, 1, 1.9, 1 + sigma",
        quantity="largest relative difference",
    ),
    Claim(
        "samplex-thm1-ratio",
        "Theorem 1",
        "The last partition alone is worth more than 1/(K+1) of the optimum.",
        _theorem_1,
        paper_value="> K / (K + 1)",
        quantity="least value over optimum, times K",
    ),
    Claim(
        "samplex-fig6-tight",
        "Fig. 6, eq. 14",
        "In the example of Fig. 6 the optimum is 3 sigma - 3 and the last partition is worth sigma.",
        _example_6,
        paper_value="> 1/3",
        quantity="ratio at sigma = 1e6",
    ),
    Claim(
        "samplex-alg1-uniform",
        "Algorithm 1, Sec. IV-C",
        "Draws in shuffled order give every partition the same probability.",
        _uniform,
        paper_value="0",
        quantity="total variation from equal probabilities",
    ),
    Claim(
        "samplex-eq16-edc",
        "eq. 16",
        "Counters of popularity decay when their item is read.",
        _decay,
        paper_value="1",
        quantity="printed counter over the decayed one",
    ),
    Claim(
        "samplex-online-ratio",
        "Sec. IV-D",
        "The online near-optimal scheme has at least 1 - (2K-1)/C of the optimum.",
        _online_ratio,
        paper_value=">= 0.833",
        quantity="value over optimum",
    ),
    Claim(
        "samplex-online-never-worse",
        "Algorithm 2",
        "No online update lowers the value of the cache.",
        _never_worse,
        paper_value="0",
        quantity="updates that lower it, %",
    ),
)
