"""The mixture of experts in plain Python: every law is summed anew over all past reads after each of them."""

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


class PlainMixtureCache(PlainCache):
    """A replay whose rates are those of the mixture, all of them fresh at every decision."""

    def __init__(self, stored, network, policy, decide, settings):
        super().__init__(stored, network, policy, decide)
        self.experts = {id(edge): PlainExperts(*settings) for edge in self.edges}

    def read(self, now, item, at):
        decide, self.decide = self.decide, lambda *_: None
        found = super().read(now, item, at)
        self.decide = decide
        self.experts[id(self.edges[at])].read(item)
        self.decide(self, self.edges[at], now, item, found[0] < float("inf"))
        return found

    def rate(self, edge, item, now):
        return self.experts[id(edge)].probability(item)
