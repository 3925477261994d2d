"""What a histogram tells of the moments of what it counted: intervals that every law in its buckets lies in.

With counts n_b in buckets from l_b to u_b and the mean known from sum and count, the extreme laws of E[X^p], p > 1, are

- least: each bucket has all its weight at t, or at the end that is next to t (convexity; t makes the mean right),
- largest: weight at the ends of buckets only, at the upper ends of the highest buckets as far as the mean goes, since
  chords of x^p are the steeper the higher they are.

Both are the same law for all p, so that either end of the intervals is the moments of one law. Without a mean they are
all weight at the lower or at the upper ends.
"""

from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError

_ROUNDED = 1e-6  # relative, of a mean that is at an end of what the buckets allow


class Histogram(NamedTuple):
    """Counts of a nonnegative quantity, b buckets in order.

    Attributes:
        lower, upper: (b,) ends; the last upper one may be infinite.
        counts: (b,).
        mean: of all that was counted, where sum and count are known; else None.
    """

    lower: np.ndarray
    upper: np.ndarray
    counts: np.ndarray
    mean: float | None = None


class MomentInterval(NamedTuple):
    """First three raw moments.

    Attributes:
        low: (3,) of the law with the least.
        high: (3,) of the law with the largest.
    """

    low: np.ndarray
    high: np.ndarray


def moment_interval(histogram: Histogram, name: str) -> MomentInterval:
    """The least and largest first three raw moments of the laws that have this histogram.

    Args:
        histogram: see there.
        name: what messages call it.

    Raises:
        UserError: nothing was counted, the last bucket with a count has no upper end, or the mean does not fit.
    """
    used = np.flatnonzero(histogram.counts > 0)
    if not used.size:
        raise UserError(f"{name}: counts nothing; allowed: a histogram with counts")
    lower, upper, count = (np.asarray(each, float)[used] for each in histogram[:3])
    total = count.sum()
    if not np.all(np.isfinite(upper)):
        raise UserError(
            f"{name}: {count[-1] / total:.2g} of what it counts is above {lower[-1]:g} s, in a bucket without an upper "
            "end, so that it gives no second moment; allowed: a histogram with higher buckets"
        )
    weight = count / total
    if histogram.mean is None:
        least, largest = (_moments(ends, weight) for ends in (lower, upper))
        return MomentInterval(least, largest)
    mean, ends = histogram.mean, (float(weight @ lower), float(weight @ upper))
    if not ends[0] * (1 - _ROUNDED) <= mean <= ends[1] * (1 + _ROUNDED):
        raise UserError(
            f"{name}: sum / count is {mean:g} s, its buckets allow {ends[0]:g} to {ends[1]:g} s; allowed: sum, count "
            "and buckets of the same time"
        )
    mean = min(max(mean, ends[0]), ends[1])
    return MomentInterval(
        _moments(_gathered(lower, upper, weight, mean), weight), _spread(lower, upper, weight, mean)
    )


def _moments(points: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.array([weight @ points**power for power in (1, 2, 3)])


def _gathered(lower: np.ndarray, upper: np.ndarray, weight: np.ndarray, mean: float) -> np.ndarray:
    """The point of each bucket, (b,), that is next to one t, with the mean given."""
    # buckets below t are at their upper ends, those above at their lower ends; the one between makes up the rest
    below = np.concatenate([[0.0], np.cumsum(weight * (upper - lower))])
    missing = mean - weight @ lower
    between = min(int(np.searchsorted(below, missing, side="right")) - 1, len(weight) - 1)
    points = np.where(np.arange(len(weight)) < between, upper, lower)
    points[between] = min(lower[between] + (missing - below[between]) / weight[between], upper[between])
    return points


def _spread(lower: np.ndarray, upper: np.ndarray, weight: np.ndarray, mean: float) -> np.ndarray:
    """The first three moments, (3,), of weight at ends of buckets, as far up as the mean goes."""
    missing = mean - weight @ lower
    above = np.concatenate([[0.0], np.cumsum((weight * (upper - lower))[::-1])])[:-1][::-1]
    room = weight * (upper - lower)
    share = np.clip(np.divide(missing - above, room, out=np.zeros_like(room), where=room > 0), 0, 1)
    return _moments(upper, weight * share) + _moments(lower, weight * (1 - share))
