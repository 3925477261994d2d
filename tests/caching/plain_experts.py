"""The mixture of experts in plain Python: every law is summed anew over all past reads after each of them."""

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

    def __init__(self, experts, prior, halved, octaves):
        self.experts, self.prior, self.halved, self.octaves = experts, prior, halved, octaves
        self.number, self.known = Counter(), []
        self.came, self.expected = Counter(), Counter()

    def age(self, item):
        """Reads since the last one of an item; 0 right after it."""
        return self.experts.reads[::-1].index(item)

    def kind(self, item):
        number, age = self.number[item], self.age(item)
        return min((number - 1).bit_length(), 5), (age + 1).bit_length() - 1

    def rate(self, item):
        if not self.number[item]:
            return 0.0
        kind = self.kind(item)
        factor = (self.prior + self.came[kind]) / (self.prior + self.expected[kind])
        return self.experts.probability(item) * factor

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
                self.expected[self.kind(other)] += self.octaves * length * self.experts.probability(other)
            other = self.known[int(share * len(self.known))]
            if self.number[other] and self.age(other) >= 2**self.octaves - 1:
                self.expected[self.kind(other)] += len(self.known) * self.experts.probability(other)
            if clock % self.halved == 0:
                for sums in (self.came, self.expected):
                    for kind in sums:
                        sums[kind] *= 0.5
        self.number[item] += 1
        self.experts.read(item)


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
