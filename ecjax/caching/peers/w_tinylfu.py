"""W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM TOS 13, 2017).

New items go to a window, an LRU queue of a hundredth of the room (one item at least). The oldest of the window and
the first to go of the main queues contend, and the one that a sketch says was read more often stays. The main queues
are a segmented LRU: probation, a fifth, and protection; a read in probation protects. The sketch counts in hashed
cells, which are halved every 32 reads per item of room in the main queues. Sketch, sizes, what counts as a read (not
one in the window) and that the last of probation goes where protection pushes more into it than its fifth are those
of libCacheSim, but for the room of two items: there protection has one, and a hit throws out nothing.
"""

import math

import numpy as np

from ecjax.caching.clock import nanoseconds
from ecjax.caching.queues import NONE, empty_queues, move, oldest
from ecjax.machine_code import njit

_WINDOW, _PROBATION, _PROTECTION = 0, 1, 2
_WINDOW_SHARE, _PROBATION_SHARE = 0.01, 0.2
_READS_PER_ITEM = 32  # until the counts are halved
_ERROR = 0.001  # share of false positives that the size of a Bloom filter is for
_CELLS_PER_ITEM = -math.log(_ERROR) / math.log(2) ** 2
_HASHES = math.ceil(math.log(2) * _CELLS_PER_ITEM)
_SEEDS = (np.uint64(0x12345678), np.uint64(0x12344321))
# of XXH64
_PRIMES = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0x85EBCA77C2B2AE63),
    np.uint64(0x27D4EB2F165667C5),
)


@njit(inline="always")
def _turned(value, bits):
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@njit()
def _hashed(number, seed):
    """The lower 32 bits of XXH64 of a number of 8 bytes."""
    value = seed + _PRIMES[4] + np.uint64(8)
    value ^= _turned(np.uint64(number) * _PRIMES[1], 31) * _PRIMES[0]
    value = _turned(value, 27) * _PRIMES[0] + _PRIMES[3]
    value = (value ^ (value >> np.uint64(33))) * _PRIMES[1]
    value = (value ^ (value >> np.uint64(29))) * _PRIMES[2]
    return np.uint32((value ^ (value >> np.uint64(32))) & np.uint64(0xFFFFFFFF))


@njit()
def _cell(hashed, h, cells):
    return (np.uint64(hashed[0]) + np.uint64(h) * np.uint64(hashed[1])) % np.uint64(2**32) % np.uint64(cells)


@njit()
def _hashes(m):
    return _hashed(m, _SEEDS[0]), _hashed(m, _SEEDS[1])


@njit()
def _add(sketch, m):
    hashed = _hashes(m)
    for h in range(_HASHES):
        sketch[_cell(hashed, h, sketch.size)] += 1


@njit()
def _estimated(sketch, m):
    hashed, least = _hashes(m), sketch[0] * 0 + 2**62
    for h in range(_HASHES):
        least = min(least, sketch[_cell(hashed, h, sketch.size)])
    return least


@njit()
def _first_of_main(links, items, size):
    return oldest(links, items + (_PROBATION if size[_PROBATION] > 0 else _PROTECTION))


@njit()
def _enter_main(links, place, size, probation, protection, m):
    free = size[_PROBATION] >= probation and size[_PROTECTION] < protection
    move(links, place, size, m, _PROTECTION if free else _PROBATION)


@njit()
def _make_room(links, place, size, sketch, main, probation, protection):
    """Items of the window move to the main queues while these have room; then one item goes."""
    items = place.size
    while size[_WINDOW] > 0:
        contender = oldest(links, items + _WINDOW)
        full = size[_PROBATION] + size[_PROTECTION] >= main
        stays = not full
        if full and main > 0:
            victim = _first_of_main(links, items, size)
            stays = _estimated(sketch, contender) > _estimated(sketch, victim)
            if stays:
                move(links, place, size, victim, NONE)
        if stays:
            _enter_main(links, place, size, probation, protection, contender)
        else:
            move(links, place, size, contender, NONE)
        _add(sketch, contender)
        if full:
            return
    move(links, place, size, _first_of_main(links, items, size), NONE)


@njit()
def replay_items(reads, room, hit, decided_ns, kept):
    """See ``ecjax.caching.peers``."""
    moment, items = np.empty(2, np.int64), kept.size
    main = room - max(int(_WINDOW_SHARE * room), 1)
    probation = int(_PROBATION_SHARE * main)
    protection = max(int((1 - _PROBATION_SHARE) * main), 1)  # with none the item that is hit would go
    sketch = np.zeros(max(math.ceil(_CELLS_PER_ITEM * main), 2 * _HASHES), np.int64)
    links, place, size = empty_queues(items, 3), np.full(items, NONE), np.zeros(3, np.int64)
    counted = 0
    for i in range(reads.item.size):
        m = reads.item[i]
        hit[i] = place[m] != NONE
        if place[m] == _WINDOW:
            move(links, place, size, m, _WINDOW)
        elif hit[i]:
            move(links, place, size, m, _PROTECTION)
            while size[_PROTECTION] > protection:
                move(links, place, size, oldest(links, items + _PROTECTION), _PROBATION)
                while size[_PROBATION] > probation:
                    move(links, place, size, oldest(links, items + _PROBATION), NONE)
            _add(sketch, m)
            counted += 1
            if counted >= _READS_PER_ITEM * main:
                counted = 0
                sketch >>= 1
        elif room > 0 and reads.whole[i]:
            while size.sum() >= room:
                _make_room(links, place, size, sketch, main, probation, protection)
            move(links, place, size, m, _WINDOW)
            _add(sketch, m)
        decided_ns[i] = nanoseconds(moment)
    for m in range(items):
        kept[m] = place[m] != NONE
