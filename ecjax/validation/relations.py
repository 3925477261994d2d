"""How service times go with the size of chunks: of four relations the simplest under which sizes look alike."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

LEAST_SAMPLES = 20  # of a node, for a law of its own; of a size, to take part in a relation
RELATIONS = (
    "independent of the size",  # X = U
    "proportional to the size",  # X = B U
    "affine in the size",  # X = (a + b B) U
    "affine in the size, mean and deviation apart",  # X = (a + b B) + (c + d B) (U - u), u the same for all nodes
)
INDEPENDENT, PROPORTIONAL, AFFINE, APART = range(len(RELATIONS))
MOST_SIZES = 16  # distinct sizes that are classes of their own
BETTER = 0.7  # part of a misfit that may be left by what is less simple
_MOMENTS_APART = 0.1  # logarithm of a factor that is too much
_LEAST_FOR_MOMENTS = 100  # services of a node and class of sizes
_SIZE_CLASSES = 8
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


def size_classes(sizes: np.ndarray) -> np.ndarray:
    """Class of each size (s,), from 0: distinct sizes are classes of their own where they are few, else ranges are."""
    distinct = np.unique(sizes)
    if len(distinct) > MOST_SIZES:
        distinct = np.unique(np.quantile(sizes, np.linspace(0, 1, _SIZE_CLASSES + 1)[:-1]))
    return np.searchsorted(distinct, sizes, side="right") - 1


class Sizes:
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


def chosen_relation(samples: Samples, sizes: Sizes, span: np.ndarray) -> tuple[int, np.ndarray]:
    """The chosen relation and offset and scale of every node, constant and slope of each: (m, 4)."""
    nodes = len(sizes.pooled)
    candidates = {INDEPENDENT: np.tile([0.0, 0.0, 1.0, 0.0], (nodes, 1))}
    if span[0] > 0:
        candidates[PROPORTIONAL] = np.tile([0.0, 0.0, 0.0, 1.0], (nodes, 1))
    if span[0] == span[1]:
        return INDEPENDENT, candidates[INDEPENDENT]
    if sizes.classes == 1:  # other sizes come later: nothing tells how long they take
        relation = max(candidates)
        return relation, candidates[relation]
    fitted = sizes.lines()
    if fitted is not None:
        mean, deviation = fitted
        if np.all(_at(mean, span) > 0):
            candidates[AFFINE] = np.hstack([np.zeros((nodes, 2)), mean])
        if np.all(_at(deviation, span) > 1e-9 * _at(mean, span)):
            node, size = samples.node, samples.bytes
            steps = (samples.service - mean[node, 0] - mean[node, 1] * size) / (
                deviation[node, 0] + deviation[node, 1] * size
            )
            # neither part below 0: a chunk of another size must not take less than no time
            offset = np.maximum(mean + steps.min() * deviation, 0.0)
            candidates[APART] = np.hstack([offset, deviation])
    scores = {number: _misfit(samples, sizes, lines) for number, lines in candidates.items()}
    # a misfit of 0.5 is what chance makes of a relation that holds
    enough = 1.2 * min(scores.values()) + 0.5
    relation = next(number for number in sorted(scores) if scores[number] <= enough)
    # of services that hardly vary no two sizes look alike once their lines are off by a little: then moments tell
    chosen = _misfit_of_lines(samples, candidates[relation])
    if chosen > _MOMENTS_APART:
        apart = {number: _misfit_of_lines(samples, lines) for number, lines in candidates.items()}
        nearest = min(apart, key=lambda number: apart[number])
        relation = nearest if apart[nearest] < BETTER * chosen else relation
    return relation, candidates[relation]


def _misfit_of_lines(samples: Samples, lines: np.ndarray) -> float:
    """``moment_misfit`` where services are drawn by lines from the values of U of their node."""
    units, line = units_by(samples, lines), lines[samples.node]
    offset, scale = line[:, 0] + line[:, 1] * samples.bytes, line[:, 2] + line[:, 3] * samples.bytes
    counts = np.maximum(np.bincount(samples.node), 1)
    one, two = ((np.bincount(samples.node, units**power) / counts)[samples.node] for power in (1, 2))
    expected = np.stack([offset + scale * one, offset**2 + 2 * offset * scale * one + scale**2 * two])
    return moment_misfit(samples, expected)


def _at(lines: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Values of lines (m, 2) at both ends of the sizes: (m, 2)."""
    return lines[:, :1] + lines[:, 1:] * span


def units_by(samples: Samples, lines: np.ndarray) -> np.ndarray:
    """U of every sample."""
    line, size = lines[samples.node], samples.bytes
    return np.maximum(samples.service - line[:, 0] - line[:, 1] * size, 0.0) / (
        line[:, 2] + line[:, 3] * size
    )


def _misfit(samples: Samples, sizes: Sizes, lines: np.ndarray) -> float:
    """Mean over sizes of n D^2, D the Kolmogorov distance of the n values of U of a size from those of all sizes.

    Every value counts by its rank among those of its node, so that nodes with few samples tell something together,
    and those with other laws do not mix.
    """
    from scipy.stats import rankdata  # takes 0.3 s, and is not for every command

    units = units_by(samples, lines)
    ranks, classes = [], []
    for place in sizes.places:
        place = place[:: 1 + len(place) // _SCORED]
        if len(place) > 1 and (mean := units[place].mean()) > 0:
            # equal but for rounding is equal
            ranks.append((rankdata(np.round(units[place] / mean, 9)) - 0.5) / len(place))
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


def moment_misfit(samples: Samples, expected: np.ndarray) -> float:
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
