"""Service laws of nodes from the service times of a log: what a replay of its later part draws from.

Service is X = offset(B) + scale(B) U for chunks of B bytes, with U drawn from the node's own samples or from a law with
their moments. How X goes with B is taken from the log, too: of four relations the simplest under which U is alike
whatever the size. Where tails of sizes are far from it, services may have stalls beside them that are as long for
every size (``stalls``).
"""

from dataclasses import dataclass, replace

import numpy as np

from ecjax.errors import UserError
from ecjax.simulation import law_fit
from ecjax.simulation.laws import (
    FIRST_SAMPLE,
    LINES,
    OFFSET,
    OFFSET_PER_BYTE,
    SAMPLES,
    SCALE,
    SCALE_PER_BYTE,
    Laws,
)
from ecjax.validation.relations import (
    BETTER,
    LEAST_SAMPLES,
    MOST_SIZES,
    RELATIONS,
    Samples,
    Sizes,
    chosen_relation,
    moment_misfit,
    size_classes,
    units_by,
)
from ecjax.validation.stalls import Stalling, law_quantile, stalling, with_stalls

EMPIRICAL = "empirical"
WITH_STALLS = ", beside stalls that do not depend on it"  # of a relation
TAILS_APART = 1.25  # factor between 99 % quantiles of a size, of the log and of a law, that is too much
_TOO_FAR = 0.15  # of the logarithms of how far moments and tails of a law are off
_LEAST_FOR_TAIL = 500  # samples of a size at a node, for its 99 % quantile


@dataclass(frozen=True)
class ServiceLaws:
    """Laws of m nodes.

    Attributes:
        laws: m laws.
        relation: one of ``RELATIONS``, or that and ``WITH_STALLS``; None where all chunks have one size.
        pooled: (m,) bool, nodes with too few samples: theirs is the law of all nodes together.
        misfit: as ``tail_misfit`` has it, of empirical laws of several sizes.
    """

    laws: Laws
    relation: str | None
    pooled: np.ndarray
    misfit: tuple[int, float, float, float] | None = None


def fit_service(samples: Samples, names: list, sizes: np.ndarray, family: str) -> ServiceLaws:
    """Laws of the nodes.

    Args:
        samples: at least one.
        names: ids of the m nodes, for messages.
        sizes: B, the chunk sizes that service times will be drawn for; only the smallest and the largest matter.
        family: "empirical", or one of ``law_fit.FAMILIES``, which keeps moments of U.

    Raises:
        UserError: the family has no law with the moments of a node.
    """
    pooled = np.bincount(samples.node, minlength=len(names)) < LEAST_SAMPLES
    fit = _fit(samples, names, sizes, family, pooled)
    if family != EMPIRICAL or fit.relation is None:
        return fit
    fit = replace(fit, misfit=tail_misfit(samples, fit.laws))
    misfit = _misfit_of_laws(samples, fit)
    if misfit < _TOO_FAR:
        return fit
    stalls = _stalls(samples, pooled)
    body = np.ones(len(samples.node), bool)
    for place, of_node in stalls:
        body[place] = of_node is None or ~of_node.stalled
    if body.all():
        return fit
    kept = Samples(samples.node[body], samples.bytes[body], samples.service[body])
    without = _fit(kept, names, sizes, family, pooled)
    alone = iter([of_node for _, of_node in stalls])
    together = stalls[-1][1] if pooled.any() else None
    laws = with_stalls(
        without.laws, [together if pooled[node] else next(alone) for node in range(len(names))]
    )
    tail = tail_misfit(samples, laws)
    better = ServiceLaws(laws, f"{without.relation}{WITH_STALLS}", pooled, tail)
    return better if _misfit_of_laws(samples, better) <= BETTER * misfit else fit


def _stalls(samples: Samples, pooled: np.ndarray) -> list[tuple[np.ndarray, Stalling | None]]:
    """Places and stalls of each node with a law of its own, then of all others together, if there are any."""
    classes, counts = size_classes(samples.bytes), np.bincount(samples.node, minlength=len(pooled))
    of_node = np.split(np.argsort(samples.node, kind="stable"), np.cumsum(counts)[:-1])
    places = [of_node[node] for node in np.flatnonzero(~pooled).tolist()]
    places += [np.flatnonzero(pooled[samples.node])] if pooled.any() else []

    def of(place: np.ndarray, others: tuple[float, float] | None = None) -> Stalling | None:
        return (
            stalling(samples.service[place], samples.bytes[place], classes[place], others)
            if place.size
            else None
        )

    stalls = [of(place) for place in places]
    known = [(each.probability, float(each.times.mean())) for each in stalls if each is not None]
    if known:
        probability, time = np.median(known, axis=0).tolist()
        stalls = [each or of(place, (probability, time)) for each, place in zip(stalls, places, strict=True)]
    return list(zip(places, stalls, strict=True))


def _misfit_of_laws(samples: Samples, fit: ServiceLaws) -> float:
    """How far moments by laws are off, and tails where they are furthest: logarithms of factors."""
    tail, moments = fit.misfit, law_fit.polynomials(fit.laws, len(fit.laws.table))[:2]
    expected = np.zeros((2, len(samples.node)))
    for power in range(4):
        expected += moments[:, power, samples.node] * samples.bytes**power
    off = 0.0 if tail is None else abs(float(np.log(tail[3] / tail[2])))
    return off + moment_misfit(samples, expected)


def _fit(samples: Samples, names: list, sizes: np.ndarray, family: str, pooled: np.ndarray) -> ServiceLaws:
    """Laws without stalls."""
    span = np.array([min(sizes.min(), samples.bytes.min()), max(sizes.max(), samples.bytes.max())])
    by_size = Sizes(samples, pooled)
    relation, lines = chosen_relation(samples, by_size, span)
    units = units_by(samples, lines)
    alone = np.flatnonzero(~pooled)
    groups = [units[by_size.places[node]] for node in alone]
    labels = [f"node {names[node]}" for node in alone]
    if pooled.any():
        groups.append(units)
        labels.append("all nodes together")
    group = np.where(pooled, len(alone), np.cumsum(~pooled) - 1)
    if family == EMPIRICAL:
        none = np.zeros((2, len(groups)))
        drawn = law_fit.empirical(groups, none, none)
        inside = np.stack([np.zeros(len(groups)), np.ones(len(groups))])
    else:
        drawn = _by_moments(groups, labels, family)
        inside = drawn.table[:, [OFFSET, SCALE]].T  # U itself is offset + scale V
    table = drawn.table[group]
    offset, scale = lines[:, :2], lines[:, 2:]
    table[:, LINES] = np.concatenate(
        [offset + scale * inside[0, group][:, None], scale * inside[1, group][:, None]], axis=1
    )
    return ServiceLaws(
        Laws(table, drawn.samples), None if span[0] == span[1] else RELATIONS[relation], pooled
    )


def tails_apart(misfit: tuple[int, float, float, float]) -> bool:
    """Whether the quantiles of a ``tail_misfit`` are too far from each other."""
    _, _, measured, law = misfit
    return bool(abs(np.log(law / measured)) > np.log(TAILS_APART))


def tail_misfit(samples: Samples, laws: Laws) -> tuple[int, float, float, float] | None:
    """Where 99 % quantiles of empirical laws are furthest from those of the samples, by node and the most read sizes.

    Args:
        samples: that the laws were made of, at nodes numbered as these.
        laws: empirical, one per node.

    Returns:
        Node, size (B), and the quantiles of its samples and of its law (s), both above 0; None where no node has enough
        of a size, or services are too short for the log's clock.
    """
    worst, furthest = None, 0.0
    sizes, of_size, counts = np.unique(samples.bytes, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:MOST_SIZES]
    chosen = np.flatnonzero(np.isin(of_size, frequent[counts[frequent] >= _LEAST_FOR_TAIL]))
    order = chosen[np.lexsort((samples.node[chosen], of_size[chosen]))]
    keys = of_size[order] * (samples.node.max(initial=0) + 1) + samples.node[order]
    for place in np.split(order, np.flatnonzero(np.diff(keys)) + 1):
        if len(place) < _LEAST_FOR_TAIL:
            continue
        node, size = int(samples.node[place[0]]), float(samples.bytes[place[0]])
        row = laws.table[node]
        first, count = int(row[FIRST_SAMPLE]), int(row[SAMPLES])
        units = laws.samples[first : first + count]
        line = row[OFFSET] + row[OFFSET_PER_BYTE] * size, row[SCALE] + row[SCALE_PER_BYTE] * size
        law = law_quantile(laws, node, line[0] + line[1] * units, 0.99)
        measured = float(np.quantile(samples.service[place], 0.99))
        if not (law > 0 and measured > 0):  # no factor tells how far they are apart
            continue
        apart = abs(np.log(law / measured))
        if worst is None or apart > furthest:
            worst, furthest = (node, size, measured, float(law)), apart
    return worst


def _by_moments(groups: list[np.ndarray], labels: list[str], family: str) -> Laws:
    """Laws with moments of the samples."""
    rows = []
    for values, label in zip(groups, labels, strict=True):
        try:
            rows.append(law_fit.fit(family, *(float(np.mean(values**power)) for power in (1, 2, 3))))
        except ValueError as error:
            raise UserError(
                f"service: found {family}, which no service times of {label} follow: {error}; allowed: {EMPIRICAL}, "
                "or a law that has them"
            ) from None
    return Laws(np.array(rows), np.zeros(1))
