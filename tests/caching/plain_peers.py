"""Caches of whole items in plain Python, one read at a time; ``read(item, whole)`` says whether the item was there.

Nothing is shared with the engine. Items whose read fails (``whole`` is False) change nothing.
"""

import math
from collections import OrderedDict


class Lru:
    def __init__(self, room):
        self.room, self.kept = room, OrderedDict()

    def read(self, item, whole):
        if item in self.kept:
            self.kept.move_to_end(item)
            return True
        if self.room and whole:
            if len(self.kept) == self.room:
                self.kept.popitem(last=False)
            self.kept[item] = None
        return False


class Least:
    """The item with the least (priority, last read) goes."""

    def __init__(self, room):
        self.room, self.kept, self.times, self.reads, self.inflation = room, {}, {}, 0, 0

    def read(self, item, whole):
        self.reads += 1
        if item in self.kept:
            self.times[item] += 1
            self.kept[item] = (self.priority(item), self.reads)
            return True
        if self.room and whole:
            self.times[item] = 1
            self.enter(item)
        return False


class Lfu(Least):
    def priority(self, item):
        return self.times[item]

    def enter(self, item):
        if len(self.kept) == self.room:
            del self.kept[min(self.kept, key=self.kept.get)]
        self.kept[item] = (1, self.reads)


class Gdsf(Least):
    def priority(self, item):
        return self.inflation + self.times[item]

    def enter(self, item):
        self.kept[item] = (self.priority(item), self.reads)
        if len(self.kept) > self.room:
            out = min(self.kept, key=self.kept.get)
            self.inflation = self.kept.pop(out)[0]


class Sieve:
    def __init__(self, room):
        self.room, self.kept, self.marked, self.hand = room, [], set(), None  # oldest first

    def read(self, item, whole):
        if item in self.kept:
            self.marked.add(item)
            return True
        if self.room and whole:
            if len(self.kept) == self.room:
                at = 0 if self.hand is None else self.kept.index(self.hand)
                while self.kept[at] in self.marked:
                    self.marked.remove(self.kept[at])
                    at = (at + 1) % len(self.kept)
                self.hand = self.kept[at + 1] if at + 1 < len(self.kept) else None
                del self.kept[at]
            self.kept.append(item)
        return False


class Arc:
    """Figure 4 of the paper, line by line."""

    def __init__(self, room):
        self.room, self.p = room, 0.0
        self.t1, self.t2, self.b1, self.b2 = [], [], [], []  # LRU first

    @property
    def kept(self):
        return self.t1 + self.t2

    def replace(self, in_b2):
        if self.t1 and (len(self.t1) > self.p or (in_b2 and len(self.t1) == self.p)) or not self.t2:
            self.b1.append(self.t1.pop(0))
        else:
            self.b2.append(self.t2.pop(0))

    def read(self, item, whole):
        for queue in (self.t1, self.t2):
            if item in queue:
                queue.remove(item)
                self.t2.append(item)
                return True
        if not self.room or not whole:
            return False
        full = len(self.t1) + len(self.t2) == self.room
        if item in self.b1:
            self.p = min(self.p + max(len(self.b2) / len(self.b1), 1), self.room)
            self.b1.remove(item)
            if full:
                self.replace(False)
            self.t2.append(item)
        elif item in self.b2:
            self.p = max(self.p - max(len(self.b1) / len(self.b2), 1), 0)
            self.b2.remove(item)
            if full:
                self.replace(True)
            self.t2.append(item)
        else:
            if len(self.t1) + len(self.b1) == self.room:
                if full and self.b1:
                    self.b1.pop(0)
                    self.replace(False)
                elif full:
                    self.t1.pop(0)
            elif full:
                if len(self.t1) + len(self.t2) + len(self.b1) + len(self.b2) >= 2 * self.room and self.b2:
                    self.b2.pop(0)
                self.replace(False)
            self.t1.append(item)
        return False


class S3Fifo:
    def __init__(self, room):
        self.room, self.small_room, self.ghosts = room, int(0.1 * room), int(0.9 * room)
        self.small, self.main, self.ghost, self.times, self.full_once = [], [], [], {}, False

    @property
    def kept(self):
        return self.small + self.main

    def read(self, item, whole):
        if item in self.kept:
            self.times[item] += 1
            return True
        if not self.room or not whole:
            return False
        to_main = item in self.ghost
        if to_main:
            self.ghost.remove(item)
        elif not self.full_once and len(self.small) >= self.small_room and len(self.kept) < self.room:
            to_main = True
        while len(self.kept) >= self.room:
            self.full_once = True
            if len(self.main) > self.room - self.small_room or not self.small:
                self.leave_main()
            else:
                self.leave_small()
        self.times[item] = 0
        (self.main if to_main else self.small).append(item)
        return False

    def leave_small(self):
        while self.small:
            out = self.small.pop(0)
            if self.times[out] < 2:
                if self.ghosts:
                    self.ghost = [*self.ghost, out][-self.ghosts :]
                return
            self.times[out] = 0
            self.main.append(out)

    def leave_main(self):
        while self.main:
            out = self.main.pop(0)
            if not self.times[out]:
                return
            self.times[out] = min(self.times[out], 3) - 1
            self.main.append(out)


class WTinyLfu:
    def __init__(self, room):
        self.room, self.main_room = room, room - max(1, int(0.01 * room))
        self.probation_room = int(0.2 * self.main_room)
        self.protection_room = max(1, int(0.8 * self.main_room))  # with none the item that is hit would go
        self.window, self.probation, self.protection, self.hits = [], [], [], 0
        per_item = -math.log(0.001) / math.log(2) ** 2
        self.hashes = math.ceil(per_item * math.log(2))
        self.cells = [0] * max(math.ceil(per_item * self.main_room), 2 * self.hashes)

    @property
    def kept(self):
        return self.window + self.probation + self.protection

    def places(self, item):
        a, b = (xxh64(item, seed) % 2**32 for seed in (0x12345678, 0x12344321))
        return [(a + i * b) % 2**32 % len(self.cells) for i in range(self.hashes)]

    def add(self, item):
        for place in self.places(item):
            self.cells[place] += 1

    def estimate(self, item):
        return min(self.cells[place] for place in self.places(item))

    def enter_main(self, item):
        full = len(self.probation) >= self.probation_room and len(self.protection) < self.protection_room
        (self.protection if full else self.probation).append(item)

    def read(self, item, whole):
        if item in self.window:
            self.window.remove(item)
            self.window.append(item)
            return True
        for queue in (self.probation, self.protection):
            if item in queue:
                queue.remove(item)
                self.protection.append(item)
                while len(self.protection) > self.protection_room:
                    self.probation.append(self.protection.pop(0))
                    while len(self.probation) > self.probation_room:
                        self.probation.pop(0)
                self.add(item)
                self.hits += 1
                if self.hits >= 32 * self.main_room:
                    self.hits, self.cells = 0, [count // 2 for count in self.cells]
                return True
        if self.room and whole:
            while len(self.kept) >= self.room:
                self.make_room()
            self.window.append(item)
            self.add(item)
        return False

    def make_room(self):
        while self.window:
            contender = self.window.pop(0)
            full = len(self.probation) + len(self.protection) >= self.main_room
            main = self.probation or self.protection
            if not full:
                self.enter_main(contender)
            elif main and self.estimate(contender) > self.estimate(main[0]):
                main.pop(0)
                self.enter_main(contender)
            self.add(contender)
            if full:
                return
        (self.probation or self.protection).pop(0)


class Belady:
    """With bypass; is handed all reads that will come."""

    def __init__(self, room, future):
        self.room, self.future, self.kept, self.reads = room, future, set(), 0

    def next_read(self, item):
        rest = self.future[self.reads :]
        return rest.index(item) if item in rest else len(rest)

    def read(self, item, whole):
        self.reads += 1
        hit = item in self.kept
        if not hit and self.room and whole:
            self.kept.add(item)
            if len(self.kept) > self.room:
                # of items that are never read again the one just read
                self.kept.remove(max(self.kept, key=lambda each: (self.next_read(each), each == item)))
        return hit


def turned(value, bits):
    return (value << bits | value >> 64 - bits) % 2**64


def xxh64(number, seed):
    """XXH64 of a number of 8 bytes, after the specification of xxHash."""
    primes = (
        11400714785074694791,
        14029467366897019727,
        1609587929392839161,
        9650029242287828579,
        2870177450012600261,
    )
    value = (seed + primes[4] + 8) % 2**64
    value ^= turned(number * primes[1] % 2**64, 31) * primes[0] % 2**64
    value = (turned(value, 27) * primes[0] + primes[3]) % 2**64
    value = (value ^ value >> 33) * primes[1] % 2**64
    value = (value ^ value >> 29) * primes[2] % 2**64
    return value ^ value >> 32


PLAIN = {
    "lru": Lru,
    "lfu": Lfu,
    "gdsf": Gdsf,
    "sieve": Sieve,
    "arc": Arc,
    "s3_fifo": S3Fifo,
    "w_tinylfu": WTinyLfu,
    "belady": Belady,
}
