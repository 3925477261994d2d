"""Whether arrivals are Poisson: the verdict over the blocks of ``arrivals``."""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import smirnov

from ecjax.tables.importers.clock import TIED

LEVEL = 0.05
_SMALLEST_P = 1e-300
_KNOTS = 257


class PoissonTest(NamedTuple):
    """Result of the test.

    Attributes:
        blocks: number of blocks.
        p_value: of all blocks together (Fisher's method), NaN where there is no block.
        rejected_share: share of blocks rejected at the 5 % level; 0.05 is what Poisson arrivals give.
    """

    blocks: int
    p_value: float
    rejected_share: float


def too_coarse(resolution_s: float, ties: int, requests: int, span_s: float) -> bool:
    """Whether a clock ticks too coarsely to tell anything of the gaps between arrivals.

    Ties are spread over the tick as Poisson arrivals would be, so that a test of them finds what was put in.

    Args:
        resolution_s: length of a tick (s); 0 where the clock is continuous: no tie was spread.
        ties: arrivals at the same tick as the one before.
        requests: all arrivals.
        span_s: from the first arrival to the last (s).
    """
    return resolution_s > 0 and (ties > TIED * requests or resolution_s * requests > TIED * span_s)


def poisson_test(distances: np.ndarray, sizes: np.ndarray) -> PoissonTest:
    """Test of Poisson arrivals whose rate may change from block to block.

    Each block's distance has Kolmogorov's exact two-sided law for its number of uniforms; the p-values of the blocks,
    independent and uniform under the hypothesis, are combined by Fisher's method. With millions of arrivals the
    combined p-value rejects deviations that do not matter: the share of rejected blocks says how far they go.

    Args:
        distances: Kolmogorov-Smirnov distance of each block, (blocks,).
        sizes: number of uniforms behind each, (blocks,).
    """
    if distances.shape[0] == 0:
        return PoissonTest(0, float("nan"), float("nan"))
    p = np.empty(distances.shape[0])
    for size in np.unique(sizes):
        mask = sizes == size
        p[mask] = kolmogorov_survival(distances[mask], int(size))
    statistic = -2 * np.log(np.maximum(p, _SMALLEST_P)).sum()
    combined = float(stats.chi2.sf(statistic, 2 * p.shape[0]))
    return PoissonTest(p.shape[0], combined, float(np.mean(p < LEVEL)))


def kolmogorov_survival(distances: np.ndarray, size: int) -> np.ndarray:
    """Probability that the Kolmogorov-Smirnov distance of ``size`` uniforms (two-sided) reaches each of ``distances``.

    The exact law costs up to a millisecond per value, so that for many its logarithm is taken at 514 distances and
    interpolated (relative error below 1e-5); beyond 3 / sqrt(size) it is twice the one-sided law, to all digits.
    """
    if distances.shape[0] <= _KNOTS:
        return stats.kstwo.sf(distances, size)
    first, border, last = 0.5 / size, 3 / np.sqrt(size), 1 - 0.5 / size
    near, far = np.linspace(first, border, _KNOTS), np.linspace(np.log1p(-border), np.log1p(-last), _KNOTS)
    common = CubicSpline(near, np.log(stats.kstwo.sf(near, size)))
    # The law vanishes with a power of 1 - distance, whose logarithm is therefore the variable to interpolate in.
    rare = CubicSpline(far[::-1], np.log(2 * smirnov(size, -np.expm1(far[::-1]))))
    logarithm = np.where(
        distances < border,
        common(np.clip(distances, first, border)),
        rare(np.log1p(-np.clip(distances, border, last))),
    )
    return np.exp(np.minimum(logarithm, 0.0))
