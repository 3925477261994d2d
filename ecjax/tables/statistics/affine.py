"""The affine shifted-exponential law of delay on chunk size, D(B) ~ Delta(B) + Exp(mean Psi(B)).

Delta = delta + delta_per_byte B and Psi = psi + psi_per_byte B, fitted as Liang and Kozat (TOFEC) estimate them: the
worst 10 % of the delays of each size are dropped, then mean and standard deviation are regressed on the size by least
squares. Dropping the tail of an exponential also lowers its mean and deviation, by factors that do not depend on the
law's parameters (``trimmed_exponential``); the fit divides them out, since without that Psi comes out 41 % too small.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.tables.statistics.delays import Cells

DROPPED_SHARE = 0.1
SECOND_MISFIT = 1.25  # factor that second moments may be off by, of services measured and of a law for them
LEAST_SAMPLES = 20  # in a size class, for it to take part in a fit


class AffineLaw(NamedTuple):
    """Delta(B) = delta_s + delta_s_per_byte B and Psi(B) = psi_s + psi_s_per_byte B.

    One chunk size alone tells nothing of the slopes: they are NaN then, and the constants are Delta and Psi at it.
    """

    delta_s: float
    delta_s_per_byte: float
    psi_s: float
    psi_s_per_byte: float

    def at(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Delta and Psi (s) of chunks of ``sizes`` bytes."""
        law = np.nan_to_num(self)
        return law[0] + law[1] * sizes, law[2] + law[3] * sizes


NO_LAW = AffineLaw(*4 * (math.nan,))


def trimmed_exponential(share: float) -> tuple[float, float]:
    """Mean and standard deviation of an exponential law of mean 1 without its largest ``share``.

    With c = -ln share: mean = 1 - share c / (1 - share), E[x^2] = (2 - share (c^2 + 2c + 2)) / (1 - share).
    """
    if share == 0:
        return 1.0, 1.0
    cut = -math.log(share)
    mean = 1 - share * cut / (1 - share)
    second = (2 - share * (cut * cut + 2 * cut + 2)) / (1 - share)
    return mean, math.sqrt(second - mean * mean)


def trimmed_cells(cells: Cells, share: float = DROPPED_SHARE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and standard deviation of each cell without its largest delays.

    ``floor(share n)`` delays are dropped, from the top bin of the histogram down; of the bin that the cut goes through,
    the kept part is taken to have the bin's own mean and mean square (a bin is 2.2 % wide).

    Returns:
        Kept count, mean (s), standard deviation (s), each (cells,); NaN where nothing is kept.
    """
    number = cells.moments.shape[0]
    counts, sums, squares = cells.bin_sums.T
    ends = np.cumsum(counts)
    total = np.bincount(cells.bin_cell, counts, number)
    before = np.cumsum(total) - total
    count = total - np.floor(share * total + 1e-9)
    below = ends - counts - before[cells.bin_cell]
    part = np.clip(count[cells.bin_cell] - below, 0, counts) / counts
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(cells.bin_cell, part * sums, number) / count
        # Squares about the mean, bin by bin, do not cancel where the delays hardly vary.
        about = squares - 2 * mean[cells.bin_cell] * sums + counts * mean[cells.bin_cell] ** 2
        variance = np.bincount(cells.bin_cell, part * np.maximum(about, 0), number) / count
    return count, mean, np.sqrt(variance)


def fit_affine(
    sizes: np.ndarray,
    counts: np.ndarray,
    means: np.ndarray,
    deviations: np.ndarray,
    share: float = DROPPED_SHARE,
) -> AffineLaw:
    """Least squares of trimmed mean and deviation on chunk size, weighted by the number of delays.

    Psi(B) is the deviation and Delta(B) the mean, both with the trimming's factors divided out. The four terms are kept
    at or above 0, as delays are (non-negative least squares).

    Args:
        sizes: chunk sizes (B), (classes,).
        counts: delays behind each; classes with fewer than 20 are left out.
        means: trimmed means (s).
        deviations: trimmed standard deviations (s).
        share: share of the delays that was dropped.

    Returns:
        The law; slopes NaN for one size, all NaN for none.
    """
    used = counts >= LEAST_SAMPLES
    if not used.any():
        return NO_LAW
    sizes, counts, means, deviations = (a[used] for a in (sizes, counts, means, deviations))
    mean_factor, deviation_factor = trimmed_exponential(share)
    psi = deviations / deviation_factor
    delta = means - mean_factor * psi
    if sizes.shape[0] == 1:
        return AffineLaw(max(float(delta[0]), 0.0), math.nan, float(psi[0]), math.nan)
    from scipy.optimize import nnls  # takes 0.2 s, and is not for every command

    scale = sizes.max()
    weights = np.sqrt(counts / counts.sum())
    design = weights[:, None] * np.stack([np.ones_like(sizes), sizes / scale], axis=1)
    fits = []
    for values in (delta, psi):
        height = max(float(np.abs(values).max()), np.finfo(float).tiny)
        constant, slope = nnls(design, weights * values / height)[0] * height
        fits.append((float(constant), float(slope / scale)))
    return AffineLaw(*fits[0], *fits[1])
