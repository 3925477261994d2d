"""Service laws of nodes from the service times of a log: what a replay of its later part draws from.

Service is X = offset(B) + scale(B) U for chunks of B bytes, with U drawn from the node's own samples or from a law with
their moments. How X goes with B is taken from the log, too: of four relations the simplest under which U is alike
whatever the size. Where tails of sizes are far from it, services may have stalls beside them that are as long for
every size (``stalls``).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import nnls

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
from ecjax.validation.stalls import Stalling, law_quantile, stalling, with_stalls

EMPIRICAL = "empirical"
LEAST_SAMPLES = 20  # of a node, for a law of its own; of a size, to take part in a relation
RELATIONS = (
    "independent of the size",  # X = U
    "proportional to the size",  # X = B U
    "affine in the size",  # X = (a + b B) U
    "affine in the size, mean and deviation apart",  # X = (a + b B) + (c + d B) (U - u), u the same for all nodes
)
_INDEPENDENT, _PROPORTIONAL, _AFFINE, _APART = range(len(RELATIONS))
WITH_STALLS = ", beside stalls that do not depend on it"  # of a relation
TAILS_APART = 1.25  # factor between 99 % quantiles of a size, of the log and of a law, that is too much
_MOMENTS_APART, _TOO_FAR = 0.1, 0.15  # logarithms of factors: of moments; of moments and tails together
_BETTER = 0.7  # part of a misfit that may be left by what is less simple
_LEAST_FOR_MOMENTS = 100  # services of a node and class of sizes
_SIZE_CLASSES = 8
_MOST_SIZES = 16  # distinct sizes that are classes of their own
_LEAST_FOR_TAIL = 500  # samples of a size at a node, for its 99 % quantile
_SCORED = 10000  # samples of a node that the choice of the relation looks at


@dataclass(frozen=True)
class Samples:
    """Service times of one operation, s of them.

    Attributes:
        node: (s,) int64, below m.
        bytes: (s,) B.
        service: (s,) s.
    """

    node: np.ndarray
    bytes: np.ndarray
    service: np.ndarray


@dataclass(frozen=True)
class ServiceLaws:
    """Laws of m nodes.

    Attributes:
        laws: m laws.
        relation: one of ``RELATIONS``, or that and ``WITH_STALLS``; None where all chunks have one size.
        pooled: (m,) bool, nodes with too few samples: theirs is the law of all nodes together.
    """

    laws: Laws
    relation: str | None
    pooled: np.ndarray


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
    misfit = _misfit_of_laws(samples, fit.laws)
    if misfit < _TOO_FAR:
        return fit
    stalls = _stalls(samples, pooled)
    body = np.ones(len(samples.node), bool)
    for mask, of_node in stalls:
        body[mask] = of_node is None or ~of_node.stalled
    if body.all():
        return fit
    kept = Samples(samples.node[body], samples.bytes[body], samples.service[body])
    without = _fit(kept, names, sizes, family, pooled)
    alone = iter([of_node for _, of_node in stalls])
    together = stalls[-1][1] if pooled.any() else None
    laws = with_stalls(
        without.laws, [together if pooled[node] else next(alone) for node in range(len(names))]
    )
    if _misfit_of_laws(samples, laws) > _BETTER * misfit:
        return fit
    return ServiceLaws(laws, f"{without.relation}{WITH_STALLS}", pooled)


def _stalls(samples: Samples, pooled: np.ndarray) -> list[tuple[np.ndarray, Stalling | None]]:
    """Samples (s,) and stalls of each node with a law of its own, then of all others together, if there are any."""
    classes = size_classes(samples.bytes)
    masks = [samples.node == node for node in np.flatnonzero(~pooled).tolist()]
    masks += [pooled[samples.node]] if pooled.any() else []
    return [
        (
            mask,
            stalling(samples.service[mask], samples.bytes[mask], classes[mask]) if mask.any() else None,
        )
        for mask in masks
    ]


def _misfit_of_laws(samples: Samples, laws: Laws) -> float:
    """How far moments by laws are off, and tails where they are furthest: logarithms of factors."""
    powers = samples.bytes[:, None] ** np.arange(4)
    moments = law_fit.polynomials(laws, len(laws.table))[:2]
    tail = tail_misfit(samples, laws)
    off = 0.0 if tail is None or not tail[3] > 0 else abs(float(np.log(tail[3] / tail[2])))
    return off + _moment_misfit(samples, np.einsum("npa,ap->na", moments[:, :, samples.node], powers))


def _moment_misfit(samples: Samples, expected: np.ndarray) -> float:
    """Root mean square, over services, of the logarithms of first and second moments by law over those measured.

    Args:
        samples: services, compared by node and class of sizes.
        expected: first and second moment of each by its law, s and s^2, (2, s).
    """
    cell = size_classes(samples.bytes) * (samples.node.max() + 1) + samples.node
    counts = np.bincount(cell)
    used = np.flatnonzero(counts >= _LEAST_FOR_MOMENTS)
    if not used.size:
        return 0.0
    total = np.zeros(len(used))
    for power, law in enumerate(expected, start=1):
        of_law, of_log = (np.bincount(cell, values)[used] for values in (law, samples.service**power))
        some = (of_law > 0) & (of_log > 0)
        total[some] += np.log(of_law[some] / of_log[some]) ** 2
    return float(np.sqrt(np.average(total, weights=counts[used])))


def _fit(samples: Samples, names: list, sizes: np.ndarray, family: str, pooled: np.ndarray) -> ServiceLaws:
    """Laws without stalls."""
    span = np.array([min(sizes.min(), samples.bytes.min()), max(sizes.max(), samples.bytes.max())])
    by_size = _Sizes(samples, pooled)
    relation, lines = _relation(samples, by_size, span)
    units = _units(samples, lines)
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
        Node, size (B), and the quantiles of its samples and of its law (s); None where no node has enough of a size.
    """
    worst, furthest = None, 0.0
    sizes, counts = np.unique(samples.bytes, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_MOST_SIZES]
    for size in sizes[frequent[counts[frequent] >= _LEAST_FOR_TAIL]]:
        of_size = samples.bytes == size
        for node in np.unique(samples.node[of_size]).tolist():
            measured = samples.service[of_size & (samples.node == node)]
            if len(measured) < _LEAST_FOR_TAIL:
                continue
            row = laws.table[node]
            first, count = int(row[FIRST_SAMPLE]), int(row[SAMPLES])
            units = laws.samples[first : first + count]
            line = row[OFFSET] + row[OFFSET_PER_BYTE] * size, row[SCALE] + row[SCALE_PER_BYTE] * size
            law = law_quantile(laws, node, line[0] + line[1] * units, 0.99)
            seen = float(np.quantile(measured, 0.99))
            apart = abs(np.log(law / seen)) if law > 0 and seen > 0 else 0.0
            if worst is None or apart > furthest:
                worst, furthest = (node, float(size), seen, float(law)), apart
    return worst


def size_classes(sizes: np.ndarray) -> np.ndarray:
    """Class of each size (s,), from 0: distinct sizes are classes of their own where they are few, else ranges are."""
    distinct = np.unique(sizes)
    if len(distinct) > _MOST_SIZES:
        distinct = np.unique(np.quantile(sizes, np.linspace(0, 1, _SIZE_CLASSES + 1)[:-1]))
    return np.searchsorted(distinct, sizes, side="right") - 1


class _Sizes:
    """Samples by node and class of sizes."""

    def __init__(self, samples: Samples, pooled: np.ndarray) -> None:
        self.samples, self.pooled = samples, pooled
        counts = np.bincount(samples.node, minlength=len(pooled))
        # samples of each node
        self.places = np.split(np.argsort(samples.node, kind="stable"), np.cumsum(counts)[:-1])
        self.of_sample = size_classes(samples.bytes)
        self.classes = int(self.of_sample.max()) + 1

    def lines(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and deviation by size, constant and slope of each, at least 0, for every node: (m, 2) each.

        A node without two sizes of enough samples has the lines of all nodes, times how much slower it is. None where
        all nodes together do not have them.
        """
        samples, nodes = self.samples, len(self.pooled)
        everyone, slowness = np.arange(len(samples.node)), np.ones(nodes)
        for _ in range(3):  # the lines of nodes as fast as each other, and how fast they are by them, in turn
            together = self._lines_of(everyone, samples.service / slowness[samples.node])
            if together is None:
                return None
            expected = np.bincount(samples.node, together[0, 0] + together[0, 1] * samples.bytes, nodes)
            totals = np.bincount(samples.node, samples.service, nodes)
            slowness = np.ones(nodes)
            np.divide(totals, expected, out=slowness, where=~self.pooled & (totals > 0) & (expected > 0))
        lines = np.empty((2, nodes, 2))
        for node in range(nodes):
            place = self.places[node]
            fitted = None if self.pooled[node] else self._lines_of(place, samples.service[place])
            lines[:, node] = together * slowness[node] if fitted is None else fitted
        return lines[0], lines[1]

    def _lines_of(self, samples: np.ndarray, service: np.ndarray) -> np.ndarray | None:
        """Least squares over classes: rows mean and deviation, columns constant and slope."""
        size, place = self.samples.bytes[samples], self.of_sample[samples]
        count = np.bincount(place, minlength=self.classes)
        used = count >= LEAST_SAMPLES
        if np.count_nonzero(used) < 2:
            return None
        divisor = np.maximum(count, 1)
        mean = np.bincount(place, service, self.classes) / divisor
        sizes = (np.bincount(place, size, self.classes) / divisor)[used]
        deviation = np.sqrt(np.bincount(place, (service - mean[place]) ** 2, self.classes) / divisor)[used]
        mean, count = mean[used], count[used]
        error = np.maximum(deviation, 1e-3 * mean) / np.sqrt(count)
        weight = error[error > 0].min(initial=np.inf) / np.maximum(error, np.finfo(float).tiny)
        if not np.isfinite(weight).all():  # no service takes any time
            return np.zeros((2, 2))
        design = weight[:, None] * np.stack([np.ones_like(sizes), sizes / sizes.max()], axis=1)
        rows = []
        for values in (mean, deviation):
            height = max(float(values.max()), np.finfo(float).tiny)
            rows.append(nnls(design, weight * values / height)[0] * height / [1.0, sizes.max()])
        return np.array(rows)


def _relation(samples: Samples, sizes: _Sizes, span: np.ndarray) -> tuple[int, np.ndarray]:
    """The chosen relation and offset and scale of every node, constant and slope of each: (m, 4)."""
    nodes = len(sizes.pooled)
    candidates = {_INDEPENDENT: np.tile([0.0, 0.0, 1.0, 0.0], (nodes, 1))}
    if span[0] > 0:
        candidates[_PROPORTIONAL] = np.tile([0.0, 0.0, 0.0, 1.0], (nodes, 1))
    if span[0] == span[1]:
        return _INDEPENDENT, candidates[_INDEPENDENT]
    if sizes.classes == 1:  # other sizes come later: nothing tells how long they take
        relation = max(candidates)
        return relation, candidates[relation]
    fitted = sizes.lines()
    if fitted is not None:
        mean, deviation = fitted
        if np.all(_at(mean, span) > 0):
            candidates[_AFFINE] = np.hstack([np.zeros((nodes, 2)), mean])
        if np.all(_at(deviation, span) > 1e-9 * _at(mean, span)):
            node, size = samples.node, samples.bytes
            steps = (samples.service - mean[node, 0] - mean[node, 1] * size) / (
                deviation[node, 0] + deviation[node, 1] * size
            )
            # neither part below 0: a chunk of another size must not take less than no time
            offset = np.maximum(mean + steps.min() * deviation, 0.0)
            candidates[_APART] = np.hstack([offset, deviation])
    scores = {number: _misfit(samples, sizes, lines) for number, lines in candidates.items()}
    # a misfit of 0.5 is what chance makes of a relation that holds
    enough = 1.2 * min(scores.values()) + 0.5
    relation = next(number for number in sorted(scores) if scores[number] <= enough)
    # of services that hardly vary no two sizes look alike once their lines are off by a little: then moments tell
    apart = {number: _misfit_of_lines(samples, lines) for number, lines in candidates.items()}
    nearest = min(apart, key=lambda number: apart[number])
    if apart[relation] > _MOMENTS_APART and apart[nearest] < _BETTER * apart[relation]:
        relation = nearest
    return relation, candidates[relation]


def _misfit_of_lines(samples: Samples, lines: np.ndarray) -> float:
    """``_moment_misfit`` where services are drawn by lines from the values of U of their node."""
    units, line = _units(samples, lines), lines[samples.node]
    offset, scale = line[:, 0] + line[:, 1] * samples.bytes, line[:, 2] + line[:, 3] * samples.bytes
    counts = np.maximum(np.bincount(samples.node), 1)
    one, two = ((np.bincount(samples.node, units**power) / counts)[samples.node] for power in (1, 2))
    expected = np.stack([offset + scale * one, offset**2 + 2 * offset * scale * one + scale**2 * two])
    return _moment_misfit(samples, expected)


def _at(lines: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Values of lines (m, 2) at both ends of the sizes: (m, 2)."""
    return lines[:, :1] + lines[:, 1:] * span


def _units(samples: Samples, lines: np.ndarray) -> np.ndarray:
    """U of every sample."""
    line, size = lines[samples.node], samples.bytes
    return np.maximum(samples.service - line[:, 0] - line[:, 1] * size, 0.0) / (
        line[:, 2] + line[:, 3] * size
    )


def _misfit(samples: Samples, sizes: _Sizes, lines: np.ndarray) -> float:
    """Mean over sizes of n D^2, D the Kolmogorov distance of the n values of U of a size from those of all sizes.

    Every value counts by its rank among those of its node, so that nodes with few samples tell something together,
    and those with other laws do not mix.
    """
    units = _units(samples, lines)
    ranks, classes = [], []
    for place in sizes.places:
        place = place[:: 1 + len(place) // _SCORED]
        if len(place) > 1 and (mean := units[place].mean()) > 0:
            # equal but for rounding is equal
            ranks.append((stats.rankdata(np.round(units[place] / mean, 9)) - 0.5) / len(place))
            classes.append(sizes.of_sample[place])
    if not ranks:
        return 0.0
    rank, size = np.concatenate(ranks), np.concatenate(classes)
    order = np.argsort(rank, kind="stable")
    rank, size = rank[order], size[order]
    everyone = np.arange(1, len(rank) + 1) / len(rank)
    last = np.append(np.diff(rank) > 0, True)  # of equal values
    scores = []
    for number in np.unique(size):
        below = np.cumsum(size == number)
        scores.append(below[-1] * np.abs(below / below[-1] - everyone)[last].max() ** 2)
    return float(np.mean(scores))


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
