"""Laws fitted to gathered delays: the affine law of each group of cells, and how far a node is from an exponential."""

from dataclasses import dataclass

import numpy as np

from ecjax.tables.statistics.affine import AffineLaw, fit_affine, trimmed_cells
from ecjax.tables.statistics.bins import DELAY_BINS_PER_OCTAVE, bin_edges
from ecjax.tables.statistics.delays import Cells


@dataclass(frozen=True)
class Fits:
    """Affine laws of the groups (quantity, node, operation) of some cells.

    Attributes:
        group: group of each cell, ascending, (cells,).
        laws: one per group.
        kept_mean, kept_std: mean and deviation of each cell without its worst 10 % (s), (cells,).
    """

    group: np.ndarray
    laws: list[AffineLaw]
    kept_mean: np.ndarray
    kept_std: np.ndarray


def fit_cells(cells: Cells) -> Fits:
    """Fit an affine law to every quantity, node and operation."""
    group = group_numbers(cells)
    _, mean, std = trimmed_cells(cells)
    counts = cells.moments[:, 0]
    laws = []
    for number in range(int(group[-1]) + 1 if group.size else 0):
        mask = group == number
        laws.append(fit_affine(cells.bytes[mask], counts[mask], mean[mask], std[mask]))
    return Fits(group, laws, mean, std)


def group_numbers(cells: Cells) -> np.ndarray:
    """Number of each cell's group (quantity, node, operation), ascending from 0, (cells,)."""
    keys = np.stack([cells.quantity, cells.node, cells.write.astype(np.int64)])
    changes = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    return np.concatenate([np.zeros(min(1, keys.shape[1]), np.int64), np.cumsum(changes)])


def pooled_bins(cells: Cells, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Histogram of each group, its cells together: group, bin and count of every used bin, sorted, each (bins,)."""
    keys = np.stack([group[cells.bin_cell], cells.bin])
    order = np.lexsort(keys[::-1])
    keys, counts = keys[:, order], cells.bin_sums[order, 0]
    starts = np.flatnonzero(np.any(np.diff(keys, axis=1, prepend=-1) != 0, axis=0))
    return keys[0, starts], keys[1, starts], np.add.reduceat(counts, starts) if starts.size else counts


def exponential_distance(bins: np.ndarray, counts: np.ndarray, mean: float) -> float:
    """Kolmogorov distance of a histogram of delays from the exponential law of the same mean.

    The empirical distribution is known exactly at the edges of the bins, and there the distance is taken: it is short
    of the whole one by at most 0.8 %, by how much an exponential can rise within a bin 2.2 % wide.

    Args:
        bins: used bins, ascending, (n,), see ``bins``.
        counts: delays in each, (n,).
        mean: their mean (s); NaN is returned unless it is above 0.
    """
    if not mean > 0:
        return float("nan")
    lower, upper = bin_edges(bins, DELAY_BINS_PER_OCTAVE)
    after = np.cumsum(counts) / counts.sum()
    before = after - counts / counts.sum()
    distances = np.abs([before + np.expm1(-lower / mean), after + np.expm1(-upper / mean)])
    return float(distances.max())
