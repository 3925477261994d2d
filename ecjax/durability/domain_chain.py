"""Loss of one group whose chunks share domains: a lost domain takes all chunks that it holds."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecjax.durability.elimination import Loss, Rates, loss_rates

# chunks, missing, lost as a whole; a group is the sorted tuple of its domains
Domain = tuple[int, int, bool]
Group = tuple[Domain, ...]


class Chain(NamedTuple):
    """What a group's chain of losses is made of.

    Attributes:
        chunks_per_domain: chunks of the group in each of its domains
        survives: [f + 1] probability that a group without f chunks that lived with fewer is decodable,
            as shares of all sets of f chunks: 1 up to m and 0 after for MDS codes
        failure_rate: [scenarios] failures of a disk per year
        domain_rate: [scenarios] losses of a domain per year
        repair_rate: repairs per year, [scenarios], by missing chunks, lost domains and lost disks
        latent: [scenarios] probability that a chunk that must be read has an error
    """

    chunks_per_domain: tuple[int, ...]
    survives: tuple[float, ...]
    failure_rate: Rates
    domain_rate: Rates
    repair_rate: Callable[[int, int, int], Rates]
    latent: Rates


def missing_chunks(group: Group) -> int:
    """Chunks that a group misses."""
    return sum(missing for _, missing, _ in group)


def _changed(group: Group, old: Domain, new: Domain) -> Group:
    domains = list(group)
    domains.remove(old)
    return tuple(sorted([*domains, new]))


def chain_loss_rates(chain: Chain) -> dict[int, Rates]:
    """Losses per year of one group under failures of disks and of whole domains.

    A state is the multiset over the domains of (chunks, missing, lost as a whole). Repairs go one at a time to the
    domain with most missing chunks, of equal ones to that with fewest chunks.

    Every step to f missing chunks loses with 1 - p_f / p_before and, where chunks are
    left without any redundancy, with 1 - (1 - h)^{critical chunks} (latent errors).

    Returns:
        losses per year by the domains that are then lost as a whole, [scenarios] each
    """
    n = sum(chain.chunks_per_domain)
    shares = chain.survives

    def arrives(group: Group, before: int, rate: Rates) -> list[tuple[Group | Loss, Rates]]:
        f, lost = missing_chunks(group), Loss(sum(whole for _, _, whole in group))
        alive = shares[f] / shares[before] if f < len(shares) else 0.0
        if not alive:
            return [(lost, rate)]
        following = shares[f + 1] / shares[f] if f + 1 < len(shares) else 0.0
        critical = (n - f) * (1 - following)
        read = alive * (1 - chain.latent) ** critical
        return [(group, rate * read), (lost, rate * (1 - read))]

    def steps(group: Group) -> list[tuple[Group | Loss, Rates]]:
        before = missing_chunks(group)
        targets: list[tuple[Group | Loss, Rates]] = []
        for domain, count in Counter(group).items():
            chunks, missing, whole = domain
            if missing == chunks:
                continue
            one = _changed(group, domain, (chunks, missing + 1, whole))
            targets += arrives(one, before, count * (chunks - missing) * chain.failure_rate)
            everything = _changed(group, domain, (chunks, chunks, True))
            targets += arrives(everything, before, count * chain.domain_rate)
        if before:
            worst = max(group, key=lambda domain: (domain[1], -domain[0]))
            chunks, missing, whole = worst
            repaired = _changed(group, worst, (chunks, missing - 1, whole and missing > 1))
            lost_domains = sum(lost for _, _, lost in group)
            lost_disks = sum(gone for _, gone, lost in group if not lost)
            targets.append((repaired, chain.repair_rate(before, lost_domains, lost_disks)))
        return targets

    start = tuple(sorted((chunks, 0, False) for chunks in chain.chunks_per_domain))
    return loss_rates(start, steps, missing_chunks)


def mds_survives(m: int) -> tuple[float, ...]:
    """Shares of decodable sets of 0, 1, ... losses of an MDS code: all up to m."""
    return (1.0,) * (m + 1)


def plain_rates(repair_rates: list[float]) -> Callable[[int, int, int], Rates]:
    """Repair rates that depend on the number of missing chunks only."""
    return lambda missing, lost_domains, lost_disks: np.array(repair_rates[missing - 1])


def state_count(chunks_per_domain: tuple[int, ...], fatal: int) -> int:
    """States of a group that misses fewer than ``fatal`` chunks, where nothing but their number is lost."""
    total = np.zeros(fatal, object)
    total[0] = 1
    for chunks, domains in Counter(chunks_per_domain).items():
        # multisets of so many domains by missing chunks: of each kind of domain any number
        ways = np.zeros((domains + 1, fatal), object)
        ways[0, 0] = 1
        for missing in (0, *(2 * list(range(1, min(chunks, fatal - 1) + 1)))):
            for count in range(domains):
                ways[count + 1, missing:] += ways[count, : fatal - missing]
        total = np.convolve(total, ways[domains])[:fatal]
    return int(total.sum())
