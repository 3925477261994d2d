"""The mixture of experts in plain Python: every law is summed anew over all past reads after each of them."""

import math
from collections import Counter

from plain_cache import PlainCache


class PlainExperts:
    """What one edge has learned of the reads so far."""

    def __init__(self, counters, ages, eta):
        self.laws = [(half_life, True) for half_life in counters] + [(half_life, False) for half_life in ages]
        self.weight = [1 / len(self.laws)] * len(self.laws)
        self.eta, self.reads = eta, []
        self.summed = None

    def now(self):
        """The laws of all experts, summed once between two reads."""
        if self.summed is None:
            self.summed = [self.law(*each) for each in self.laws]
        return self.summed

    def law(self, half_life, counts):
        """{item: probability of the next read}; of ages every item counts once, by its last read."""
        mass = {}
        for age, item in enumerate(reversed(self.reads)):
            if counts or item not in mass:
                mass[item] = mass.get(item, 0.0) + 2.0 ** (-age / half_life)
        total = sum(mass.values())
        return {item: each / total for item, each in mass.items()}

    def probability(self, item):
        """Of the next read, by the mixture."""
        return sum(w * law.get(item, 0.0) for w, law in zip(self.weight, self.now(), strict=True))

    def read(self, item):
        """Learn from a read; returns the probability it had."""
        probability = self.probability(item)
        if item in self.reads:
            shares = [w * law[item] / probability for w, law in zip(self.weight, self.now(), strict=True)]
            self.weight = [w + self.eta * (share - w) for w, share in zip(self.weight, shares, strict=True)]
        self.reads.append(item)
        self.summed = None
        return probability


class PlainReturns:
    """Reads that came beside those expected, by kinds of items, on top of the mixture."""

    def __init__(self, experts, priors, doubt, looked, halved, octaves):
        self.experts, self.priors, self.doubt = experts, priors, doubt
        self.looked, self.halved, self.octaves = looked, halved, octaves
        self.number, self.gap, self.known = Counter(), Counter(), []
        self.came, self.expected, self.exposed = Counter(), Counter(), Counter()
        self.ahead = {}

    def age(self, item):
        """Reads since the last one of an item; 0 right after it."""
        return self.experts.reads[::-1].index(item)

    def kind(self, item):
        octave = [(self.gap[item] + 1).bit_length() - 1, (self.age(item) + 1).bit_length() - 1]
        return min((self.number[item] - 1).bit_length(), 5), min(octave[0] // 3, 4), octave[1]

    def rate(self, item):
        if not self.number[item]:
            return 0.0
        kind = self.kind(item)
        return self.experts.probability(item) * max(self.right_by(kind), self.ahead.get(kind, 0.0))

    def right_by(self, kind):
        """Reads that came over those expected: of a kind, held to those of all gaps, and these to 1."""
        prior, prior_of_gaps = self.priors
        all_gaps = [(kind[0], gap, kind[2]) for gap in range(5)]
        of_all = (prior + sum(self.came[one] for one in all_gaps)) / (
            prior + sum(self.expected[one] for one in all_gaps)
        )
        by_all = of_all * self.expected[kind]
        error = self.doubt * (by_all + prior_of_gaps) ** 0.5
        # the nearest to what all gaps tell of what came, more or less the error
        came = min(max(by_all, self.came[kind] - error), self.came[kind] + error)
        return (prior_of_gaps * of_all + came) / (prior_of_gaps + self.expected[kind])

    def worth(self, kind):
        """Reads per read of room for an item of a kind, over those the mixture expects; 0 if best let go now."""
        n, g, first = kind
        found, still_there, hits, room = [], 1.0, 0.0, 0.0
        for a in range(first, 40):
            if not self.exposed[n, g, a]:
                break
            hazard = self.expected[n, g, a] / self.exposed[n, g, a] * self.right_by((n, g, a))
            length = 2**a
            if a == first:
                length, now, mean = 2**a / 2, hazard, self.expected[kind] / self.exposed[kind]
            else:
                hazard *= max(0, 1 - self.doubt / (1 + self.came[n, g, a]) ** 0.5)
            hits += still_there * (1 - math.exp(-hazard * length))
            room += still_there * ((1 - math.exp(-hazard * length)) / hazard if hazard else length)
            still_there *= math.exp(-hazard * length)
            found.append(hits / room)
        return max(found) / mean if found and max(found) > (1 + 1e-12) * now else 0.0

    def read(self, item):
        clock = len(self.experts.reads)
        if self.number[item]:
            self.came[self.kind(item)] += 1
        else:
            self.known.append(item)
        if clock:
            share = clock * 0.6180339887498949 % 1
            length = 2 ** (clock % self.octaves)
            age = length + int(share * length) - 1
            if age < clock and self.age(other := self.experts.reads[-1 - age]) == age:
                self.expect(other, self.octaves * length)
            other = self.known[int(share * len(self.known))]
            if self.number[other] and self.age(other) >= 2**self.octaves - 1:
                self.expect(other, len(self.known))
            if clock % self.looked == 0:
                kinds = [(n, g, a) for n in range(6) for g in range(5) for a in range(20)]
                self.ahead = {kind: self.worth(kind) for kind in kinds}
            if clock % self.halved == 0:
                for sums in (self.came, self.expected, self.exposed):
                    for kind in sums:
                        sums[kind] *= 0.5
        self.gap[item] = self.age(item) if self.number[item] else 0
        self.number[item] += 1
        self.experts.read(item)

    def expect(self, item, items):
        self.expected[self.kind(item)] += items * self.experts.probability(item)
        self.exposed[self.kind(item)] += items


class PlainMixtureCache(PlainCache):
    """A replay whose rates are those of the mixture, all of them fresh at every decision."""

    def __init__(self, stored, network, policy, decide, settings):
        super().__init__(stored, network, policy, decide)
        *laws, returns = settings
        self.returns = {id(edge): PlainReturns(PlainExperts(*laws), *returns) for edge in self.edges}

    def read(self, now, item, at):
        decide, self.decide = self.decide, lambda *_: None
        found = super().read(now, item, at)
        self.decide = decide
        self.returns[id(self.edges[at])].read(item)
        self.decide(self, self.edges[at], now, item, found[0] < float("inf"))
        return found

    def rate(self, edge, item, now):
        return self.returns[id(edge)].rate(item)
