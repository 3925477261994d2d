"""``exact`` beside all peers on logs of every kind; ``pytest -m slow -s`` of this file prints the table of the guide.

Four chunks .98, .69, .52 and .21 s away, whole items for the peers, mean latency of the last three quarters of reads.
"""

from functools import partial

import numpy as np
import pytest
from drawn_caches import policy
from real_log import cloudphysics

from ecjax.caching import edge_state
from ecjax.caching.experts import begin_experts
from ecjax.caching.replay import replay
from ecjax.caching.system import Network, Reads, Stored
from ecjax.caching.workload import Popularity, zipf_reads

NONE = np.zeros(0)
FOUR = Network(np.array([[0.98, 0.69, 0.52, 0.21]]), 0.0, 0.001, 0.03, NONE.astype(np.int64), NONE, NONE)
PEERS = ("lru", "lfu", "arc", "s3_fifo", "sieve", "w_tinylfu", "gdsf")
# where it is known to be further from the best peer than 1.5 %
MISSED = {("CloudPhysics 64 KiB", 0.1): 0.04, ("CloudPhysics 64 KiB", 0.15): 0.04}
pytestmark = pytest.mark.slow


def zipf(exponent, seed=5, count=100_000, items=1000, drift=0.0, period=2000.0):
    return zipf_reads(Popularity(items, exponent, drift, period), count, 1.0, 1, seed).item


def with_scans(seed, exponent, items, every, length):
    """Zipf's law with scans in between, of items that come again in other scans."""
    rng, base = np.random.default_rng(seed), zipf(exponent, seed, items=items)
    parts, at = [], 0
    while at < len(base):
        step = int(rng.exponential(every)) + 1
        parts += [base[at : at + step]]
        at += step
        first, many = rng.integers(0, 4 * length), int(length * rng.uniform(0.5, 1.5))
        parts += [items + (first + np.arange(many)) % (8 * length)]
    return np.concatenate(parts)


def episodes(seed, items=5000, count=60_000):
    """As a disk sees it: runs of extents each read a few times, regions, hot ones, and loops."""
    rng, parts, total = np.random.default_rng(seed), [], 0
    while total < count:
        kind, first = rng.choice(4, p=[0.35, 0.25, 0.3, 0.1]), rng.integers(items)
        if kind == 0:
            many = int(rng.lognormal(4, 1))
            part = np.repeat((first + np.arange(many)) % items, rng.integers(1, 6))
        elif kind == 1:
            many = int(rng.lognormal(3.5, 1)) + 2
            part = (first + rng.integers(0, many, int(many * rng.uniform(1, 6)))) % items
        elif kind == 2:
            part = np.minimum((rng.pareto(0.8, int(rng.lognormal(5, 1))) * 3).astype(int), items - 1)
        else:
            part = np.tile((first + np.arange(int(rng.lognormal(5.5, 0.8)))) % items, rng.integers(2, 4))
        parts.append(part)
        total += len(part)
    return np.unique(np.concatenate(parts)[:count], return_inverse=True)[1]


SHARES = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3)  # of the items; below, chunks
LOGS = {
    "CloudPhysics 1 MiB": (lambda: cloudphysics(2**20), SHARES),
    "CloudPhysics 64 KiB": (lambda: cloudphysics(2**16), SHARES),
    **{
        f"Zipf {exponent}": ((lambda exponent=exponent: zipf(exponent)), (100, 400))
        for exponent in (0.7, 0.8, 0.9, 1.0, 1.1)
    },
    "Zipf 1.0, 5 % of ranks change per 2000 reads": (lambda: zipf(1.0, drift=0.05), (100, 400)),
    "Zipf 0.8, 10 % of ranks change per 5000 reads": (
        lambda: zipf(0.8, 9, drift=0.1, period=5000.0),
        (100, 400),
    ),
    "Zipf 1.0 and scans of 400": (lambda: with_scans(7, 1.0, 1000, 2000, 400), (100, 400, 1200)),
    "Zipf 0.8 and scans of 1500": (lambda: with_scans(11, 0.8, 2000, 3000, 1500), (100, 400, 1200)),
    "episodes 1": (lambda: episodes(1), (0.03, 0.1, 0.2, 0.3)),
    "episodes 2": (lambda: episodes(2), (0.03, 0.1, 0.2, 0.3)),
}


def mean_s(name, item, chunks, popularity=None):
    """Mean latency, s."""
    count = len(item)
    reads = Reads(np.arange(float(count)), item.astype(np.int64), np.zeros(count, np.int64))
    stored = Stored(4, np.tile(np.arange(4), (item.max() + 1, 1))[:, :, None].copy())
    config = policy(name, chunks, half_life_s=None if name == "exact" else 1.0, replan_reads=0)
    return replay(reads, stored, FOUR, config, popularity).latency_s[count // 4 :].mean()


def counted_s(item, chunks, monkeypatch):
    """Mean latency where popularity is what has been counted so far, s: no learner of a fixed law knows more."""
    with monkeypatch.context() as patch:
        patch.setattr(edge_state, "begin_experts", partial(begin_experts, counters=(1e12,), ages=()))
        return mean_s("exact", item, chunks)


@pytest.mark.parametrize("name", list(LOGS))
def test_reads_take_as_long_as_with_the_best_peer(name, monkeypatch):
    draw, sizes = LOGS[name]
    item = draw()
    missed = []
    for size in sizes:
        chunks = int(4 * (item.max() + 1) * size) if size < 1 else size
        peers = {peer: mean_s(peer, item, chunks) for peer in PEERS}
        best = min(peers, key=peers.__getitem__)
        found, bound = mean_s("exact", item, chunks), mean_s("belady", item, chunks)
        words = f"| {name} | {chunks} | {1e3 * found:.1f} ({found / peers[best] - 1:+.1%}) | "
        words += f"{1e3 * peers[best]:.1f} ({best}) | {1e3 * peers['lru']:.1f} | {1e3 * bound:.1f} |"
        if name.startswith("Zipf") and "," not in name and "scans" not in name:
            law = np.arange(1.0, item.max() + 2) ** -float(name.split()[1])
            fixed = mean_s("optimal_static", item, chunks, law[None])
            counted = counted_s(item, chunks, monkeypatch)
            words += f" best fixed plan {1e3 * fixed:.1f} ({found / fixed - 1:+.2%}; "
            words += f"by counts {counted / fixed - 1:+.2%})"
            # 0.3 %, or hardly more than it costs to learn the law from so few reads
            assert found <= min(1.006 * fixed, max(1.003 * fixed, 1.0015 * counted))
        print(words)
        if found > (1 + MISSED.get((name, size), 0.015)) * peers[best]:
            missed.append(words)
    assert not missed
