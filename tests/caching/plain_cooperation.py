"""Edges that serve each other, the slow way: every set of chunks is tried, every read is worked out by hand."""

import itertools

import numpy as np


def read_s(far, kept, near):
    """Latency of a read: ``far[j]`` of chunk j from its node, ``kept[f][j]``, ``near[f]`` from edge f."""
    return max(min([far[j]] + [near[f] for f in range(len(kept)) if kept[f][j]]) for j in range(len(far)))


def item_saves(rates, far, between, kept):
    """What an item saves per second: ``far[e][j]``, ``kept[f][j]``."""
    return sum(rates[e] * (max(far[e]) - read_s(far[e], kept, between[e])) for e in range(len(rates)))


def all_kept(stores, k):
    """Every way to keep chunks of one item."""
    for bits in itertools.product((False, True), repeat=stores * k):
        yield np.array(bits).reshape(stores, k)


def item_options(rates, latency, between, stores):
    """Per item: {chunks at each edge: the most it saves}."""
    found = []
    for m in range(rates.shape[1]):
        best = {}
        for kept in all_kept(stores, latency.shape[2]):
            counts = tuple(int(n) for n in kept.sum(axis=1))
            saves = item_saves(rates[:, m], latency[:, m], between, kept)
            best[counts] = max(best.get(counts, 0.0), saves)
        found.append(best)
    return found


def best_saved(rates, latency, between, capacity):
    """The most that any plan saves, over all combinations of what items do."""
    best = {tuple(0 for _ in capacity): 0.0}
    for options in item_options(rates, latency, between, len(capacity)):
        after = {}
        for used, value in best.items():
            for counts, saves in options.items():
                total = tuple(u + n for u, n in zip(used, counts, strict=True))
                if all(t <= c for t, c in zip(total, capacity, strict=True)):
                    after[total] = max(after.get(total, -1.0), value + saves)
        best = after
    return max(best.values())


def drawn(edges, items, k, seed, values=None):
    """Rates, latencies and times between edges; of few ``values`` (s) there are ties."""
    random = np.random.default_rng(seed)
    rates = random.exponential(size=(edges, items)) * (random.random((edges, items)) < 0.9)
    if values is None:
        latency, between = random.random((edges, items, k)), random.random((edges, edges))
    else:
        latency = random.choice(values, (edges, items, k))
        between = random.choice(np.append(values, np.inf), (edges, edges))
    np.fill_diagonal(between, 0.01)
    return rates, latency, between
