"""Loss of one group of an LRC whose chunks share domains, with the local group of every chunk.

Chunks of a domain are of different local groups as far as there are such: a lost domain then costs each local group one
chunk, which it repairs by itself.
"""

from collections import Counter
from collections.abc import Callable

from ecjax.durability.domain_chain import Chain
from ecjax.durability.elimination import Loss, Rates, loss_rates

# labels of its chunks, labels of the missing ones, lost as a whole; the label of global parities is l
Domain = tuple[tuple[int, ...], tuple[int, ...], bool]
Group = tuple[Domain, ...]


def placed_labels(k: int, l: int, g: int, chunks_per_domain: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:  # noqa: E741
    """Local groups of the chunks of each domain, l for global parities; the fullest take local groups in turn."""
    labels = [label for _ in range(k // l + 1) for label in range(l)] + [l] * g
    places = []
    for chunks in sorted(chunks_per_domain, reverse=True):
        places.append(tuple(sorted(labels[:chunks])))
        del labels[:chunks]
    return tuple(places)


def lrc_chain_loss_rates(code: tuple[int, int, int], chain: Chain) -> dict[int, Rates]:
    """Losses per year of one group under failures of disks and of whole domains; ``chain.survives`` is not used.

    A state has sum_i max(0, a_i - 1) + b <= g, see ``lrc``. What lowers that sum is repaired first, of it what is
    in the domain with most missing chunks.

    Args:
        code: k, l and g
        chain: domains, rates and latent errors

    Returns:
        losses per year by the domains that are then lost as a whole, [scenarios] each
    """
    _, l, g = code  # noqa: E741

    def taken(lost: Counter[int]) -> int:
        return sum(lost[i] - 1 for i in range(l) if lost[i]) + lost[l]

    def arrives(group: Group, rate: Rates) -> list[tuple[Group | Loss, Rates]]:
        lost, end = _missing(group), Loss(sum(whole for _, _, whole in group))
        if taken(lost) > g:
            return [(end, rate)]
        if taken(lost) < g:
            return [(group, rate)]
        intact = Counter(label for chunks, _, _ in group for label in chunks)
        intact.subtract(lost)
        critical = sum(count for label, count in intact.items() if label == l or lost[label])
        read = (1 - chain.latent) ** critical
        return [(group, rate * read), (end, rate * (1 - read))]

    def steps(group: Group) -> list[tuple[Group | Loss, Rates]]:
        targets: list[tuple[Group | Loss, Rates]] = []
        for domain, count in Counter(group).items():
            chunks, missing, whole = domain
            for label, alive in (Counter(chunks) - Counter(missing)).items():
                more = (chunks, tuple(sorted((*missing, label))), whole)
                targets += arrives(_changed(group, domain, more), count * alive * chain.failure_rate)
            if len(missing) < len(chunks):
                gone = _changed(group, domain, (chunks, chunks, True))
                targets += arrives(gone, count * chain.domain_rate)
        lost = _missing(group)
        if lost:
            whole_domains = sum(whole for _, _, whole in group)
            disks = sum(len(missing) for _, missing, whole in group if not whole)
            rate = chain.repair_rate(lost.total(), whole_domains, disks)
            targets.append((_repaired(group, lambda label: label == l or lost[label] > 1), rate))
        return targets

    start: Group = tuple(
        sorted((labels, (), False) for labels in placed_labels(*code, chain.chunks_per_domain))
    )
    return loss_rates(start, steps, lambda group: _missing(group).total())


def _missing(group: Group) -> Counter[int]:
    return Counter(label for _, missing, _ in group for label in missing)


def _changed(group: Group, old: Domain, new: Domain) -> Group:
    domains = list(group)
    domains.remove(old)
    return tuple(sorted([*domains, new]))


def _repaired(group: Group, urgent: Callable[[int], bool]) -> Group:
    """The state after the next repair."""
    domain, label = max(
        ((domain, label) for domain in group for label in domain[1]),
        key=lambda each: (urgent(each[1]), len(each[0][1]), -len(each[0][0])),
    )
    chunks, missing, whole = domain
    rest = list(missing)
    rest.remove(label)
    return _changed(group, domain, (chunks, tuple(rest), whole and bool(rest)))
