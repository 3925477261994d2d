"""Affine laws of the nodes of a trace, with their stalls, and how far they are from the services measured."""

import numpy as np
import pyarrow as pa

from ecjax.tables.rules import AFFINE_COLUMNS, STALL_COLUMNS
from ecjax.tables.statistics.affine import SECOND_MISFIT
from ecjax.tables.statistics.delays import Cells
from ecjax.tables.statistics.laws import fit_cells
from ecjax.tables.statistics.moments import pooled_rows, raw_moments
from ecjax.tables.statistics.stalls import law_moments, stalling_law, with_stalls
from ecjax.units import count_text, time_text

_MISFIT = 0.05  # relative, of the mean


def affine_laws(
    cells: Cells, count: int, names: pa.Array, notices: list[str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns of the affine laws, NaN where a part is not known, and their mean (s) and second moment (s^2).

    Args:
        cells: service times, of one operation at each node.
        count: nodes.
        names: of them.
        notices: that services stall is added.
    """
    laws, stalls, moments = np.full((count, 4), np.nan), np.zeros((count, 2)), np.full((2, count), np.nan)
    fits = fit_cells(cells)
    count_of, mean_of, square_of = cells.moments[:, :3].T
    second_of = mean_of**2 + square_of / count_of
    for node in np.unique(cells.node):
        mask = cells.node == node
        sizes, counts = cells.bytes[mask], count_of[mask]
        kept = fits.kept_mean[mask], fits.kept_std[mask]
        law, probability, time = stalling_law(sizes, counts, kept, (mean_of[mask], second_of[mask]))
        laws[node], stalls[node] = law, (probability, time)
        moments[:, node] = with_stalls(law_moments(law, sizes, counts), probability, time)
    columns = dict(zip(AFFINE_COLUMNS, laws.T, strict=True))
    if not stalls.any():
        return columns, moments
    worst = int(np.argmax(stalls[:, 0] * stalls[:, 1] ** 2))
    notices.append(
        f"Services of {count_text(np.count_nonzero(stalls[:, 0]), 'node')} stall (stall_probability, stall_s): beside "
        "the "
        f"affine law, at node {names[worst].as_py()}, "
        f"{100 * stalls[worst, 0]:.2g} % of them take {time_text(stalls[worst, 1])} longer, whatever their size."
    )
    return columns | dict(zip(STALL_COLUMNS, stalls.T, strict=True)), moments


def warn_of_misfit(cells: Cells, fitted: np.ndarray, names: pa.Array, notices: list[str]) -> None:
    """Say where laws miss the services that they were fitted to.

    Args:
        cells: service times.
        fitted: mean (s) and second moment (s^2) of each node's law, (2, nodes).
        names: of the nodes.
        notices: what to say is added.
    """
    observed, _ = raw_moments(pooled_rows(cells.moments, cells.node, len(names)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = observed[:, :2] / fitted.T
    ratio = np.where(np.isfinite(ratio), ratio, 1.0)
    misses = [np.abs(1 / ratio[:, 0] - 1) > _MISFIT, np.abs(np.log(ratio[:, 1])) > np.log(SECOND_MISFIT)]
    wrong = np.flatnonzero(misses[0] | misses[1])
    if wrong.size:
        worst = int(wrong[np.argmax(np.abs(np.log(ratio[wrong, 1])))])
        mean, second = 100 * (1 / ratio[worst, 0] - 1), ratio[worst, 1]
        notices.append(
            f"The affine law misses the service times of {count_text(wrong.size, 'node')} (node "
            f"{names[worst].as_py()}: its mean by "
            f"{mean:+.0f} %; their second moment, which waits depend on, is {second:.2g} times that of the law), as "
            "with delays that are no shifted exponentials; reference_bytes= gives moments instead."
        )


def warn_of_proportion(
    cells: Cells, second: np.ndarray, reference: float, names: pa.Array, notices: list[str]
) -> None:
    """Say where services in proportion to the size are far from those measured, as of disks that seek.

    Args:
        cells: service times.
        second: second moment of each node, of a chunk of ``reference`` bytes (s^2), (nodes,).
        reference: that size (B).
        names: of the nodes.
        notices: what to say is added.
    """
    if not reference > 0:
        return
    measured, _ = raw_moments(cells.moments)
    squares = np.bincount(cells.node, cells.moments[:, 0] * (cells.bytes / reference) ** 2, len(names))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = second * squares / np.bincount(cells.node, cells.moments[:, 0] * measured[:, 1], len(names))
    ratio = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
    wrong = np.flatnonzero(np.abs(np.log(ratio)) > np.log(SECOND_MISFIT))
    if wrong.size:
        worst = int(wrong[np.argmax(np.abs(np.log(ratio[wrong])))])
        notices.append(
            f"Service times of {count_text(wrong.size, 'node')} are not in proportion to the size: these moments keep "
            f"the mean, but make the second moment at node {names[worst].as_py()}, which waits depend on, "
            f"{ratio[worst]:.2g} times what it was. An affine law needs 20 reads of each of two sizes or more on every "
            "node, without reference_bytes=; where the size hardly counts, plan with size_scaling=none."
        )
