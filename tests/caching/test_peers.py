"""Caches of whole items, read by read: as in plain Python, as in libCacheSim, and what must hold for any of them."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_peers import PLAIN
from real_log import cloudphysics

from ecjax.caching.item_replay import ItemReads
from ecjax.caching.peers import NAMES, replay_items_of

VECTORS = json.loads((Path(__file__).parent / "experts.json").read_text())["cache_peers"]
LIBRARY = {
    "lru": "LRU",
    "lfu": "LFU",
    "gdsf": "GDSF",
    "sieve": "Sieve",
    "arc": "ARC",
    "s3_fifo": "S3FIFO",
    "w_tinylfu": "WTinyLFU",
}


def replayed(name, items, room, whole=None, count=None):
    """Hits of all reads, and what is kept at the end."""
    item = np.array(items, np.int64)
    whole = np.ones(len(item), bool) if whole is None else np.array(whole, bool)
    kept = np.zeros(count or int(item.max(initial=0)) + 1, bool)
    hit, decided_ns = np.zeros(len(item), bool), np.zeros(len(item), np.int64)
    replay_items_of(name)(ItemReads(item, whole), room, hit, decided_ns, kept)
    assert (np.diff(decided_ns) >= 0).all()
    return hit, set(np.flatnonzero(kept).tolist())


def zipf(seed, count, items, exponent=0.9):
    weight = np.arange(1.0, items + 1) ** -exponent
    return np.random.default_rng(seed).choice(items, count, p=weight / weight.sum())


def test_every_peer_has_its_oracle():
    assert set(NAMES) == set(PLAIN) == {*LIBRARY, "belady"}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(data=st.data())
def test_same_path_as_plain(name, data):
    reads = data.draw(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 9)), max_size=120))
    room = data.draw(st.integers(0, 13))
    items, whole = [item for item, _ in reads], [chance > 0 for _, chance in reads]
    plain = PLAIN[name](room, items) if name == "belady" else PLAIN[name](room)
    expected = [plain.read(*read) for read in zip(items, whole, strict=True)]
    hit, kept = replayed(name, items, room, whole)
    assert hit.tolist() == expected
    if name == "belady":  # of items that are never read again any may stay
        assert len(kept) == len(plain.kept)
    else:
        assert kept == set(plain.kept)


@pytest.mark.parametrize("name", NAMES)
def test_same_path_as_plain_where_queues_are_long(name):
    items = zipf(4, 3000, 200).tolist()
    plain = PLAIN[name](40, items) if name == "belady" else PLAIN[name](40)
    assert replayed(name, items, 40)[0].tolist() == [plain.read(item, True) for item in items]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"belady"}))
@pytest.mark.parametrize("room", [1, 2, 3, 5])
def test_an_item_stays_when_it_is_hit(name, room):
    items = zipf(6, 60, 5).tolist()
    hit, _ = replayed(name, items, room)
    assert hit.any()
    for place in np.flatnonzero(hit):
        assert items[place] in replayed(name, items[: place + 1], room)[1]


def library_hits(name, items, room):
    """Hits by libCacheSim; the window of W-TinyLFU has one item at least, which 1 % is not in small caches."""
    library = pytest.importorskip("libcachesim", reason="libcachesim is not installed")
    options = {"window_size": (1 + 1e-9) / room} if name == "w_tinylfu" and room < 100 else {}
    cache = getattr(library, LIBRARY[name])(room, hashpower=12, **options)
    request = library.Request()
    request.obj_size = 1
    hits = np.empty(len(items), bool)
    for place, item in enumerate(items.tolist()):
        request.obj_id = item
        hits[place] = cache.get(request)
    return hits


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("room", [20, 57, 150])
def test_same_path_as_libcachesim(name, room):
    # a law that stays, another one, and a scan of many items: 12 000 reads
    items = np.concatenate(
        [zipf(1, 5000, 600), 599 - zipf(2, 5000, 600), np.arange(100, 1100), zipf(1, 1000, 600)]
    )
    np.testing.assert_array_equal(replayed(name, items, room)[0], library_hits(name, items, room))


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("room", [25, 100])
def test_same_path_as_libcachesim_on_a_real_log(name, room):
    items = cloudphysics()
    np.testing.assert_array_equal(replayed(name, items, room)[0], library_hits(name, items, room))


@pytest.mark.parametrize("room", [25, 100])
def test_hits_on_a_real_log_are_those_known(room):
    items = cloudphysics()
    assert (len(items), items.max() + 1) == (VECTORS["reads"], VECTORS["items"])
    hits = {name: int(replayed(name, items, room)[0].sum()) for name in NAMES}
    for name in ("LRU", "SIEVE", "Belady"):
        assert hits[name.lower()] == VECTORS["hits"][name][str(room)]
    # of a simple version of the pseudo-code of the paper
    assert hits["arc"] == pytest.approx(VECTORS["hits"]["ARC"][str(room)], abs=2)
    assert hits["belady"] == max(hits.values())


def most_hits(items, room):
    """By trying everything that can be kept after each read."""
    best = {frozenset(): 0}
    for item in items:
        after = {}
        for kept, hits in best.items():
            hits += item in kept
            everything = kept | {item}
            for count in range(min(room, len(everything)) + 1):
                for chosen in map(frozenset, combinations(sorted(everything), count)):
                    after[chosen] = max(after.get(chosen, -1), hits)
        best = after
    return max(best.values())


@settings(max_examples=40)
@given(st.lists(st.integers(0, 4), max_size=9), st.integers(0, 3))
def test_nothing_hits_more_often_than_belady(items, room):
    assert replayed("belady", items, room)[0].sum() == most_hits(items, room)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.3, 1.0]))
def test_what_holds_for_all(seed, room, exponent):
    items = zipf(seed, 400, 30, exponent)
    hits = {}
    for name in NAMES:
        hit, kept = replayed(name, items, room)
        assert len(kept) <= room and kept <= set(items.tolist())
        first = np.unique(items, return_index=True)[1]
        assert not hit[first].any()
        # every prefix ends with what is kept then
        for count in (100, 250):
            part, before = replayed(name, items[:count], room)
            if name != "belady":
                np.testing.assert_array_equal(part, hit[:count])
            assert len(before) <= room
        hits[name] = hit
    assert all(hit.sum() <= hits["belady"].sum() for hit in hits.values())
    # a larger LRU cache keeps all that a smaller one keeps
    larger = replayed("lru", items, room + 2)[0]
    assert (larger | ~hits["lru"]).all()
    assert replayed("belady", items, room + 2)[0].sum() >= hits["belady"].sum()
