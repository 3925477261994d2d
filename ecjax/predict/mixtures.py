"""Mixtures of laws of latencies, given at common points."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack

from ecjax.queueing.estimate import LEVELS


class Cells(NamedTuple):
    """Laws, and how many reads of groups have each."""

    laws: np.ndarray  # (cells, P) Pr(T <= x) at the points
    mean: np.ndarray  # (cells,) s
    weights: csr_matrix  # (G, cells) reads


def joined(parts: list[Cells]) -> Cells:
    """Several lists of laws as one."""
    return Cells(
        np.concatenate([each.laws for each in parts]),
        np.concatenate([each.mean for each in parts]),
        hstack([each.weights for each in parts], "csr"),
    )


def statistics(points: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Means (G,) and quantiles (G, 4) of ``LEVELS``, s; nan of a group without reads."""
    total = np.asarray(cells.weights.sum(axis=1)).ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.asarray(cells.weights @ cells.mean).ravel() / total
        laws = np.clip(np.asarray(cells.weights @ cells.laws) / total[:, None], 0.0, 1.0)
    scores, places = -np.log(np.maximum(1 - laws, 1e-15)), np.log(points)
    levels = -np.log1p(-np.asarray(LEVELS))
    quantiles = np.full((len(total), len(LEVELS)), np.nan)
    for group in np.flatnonzero(total > 0):
        quantiles[group] = np.exp(np.interp(levels, scores[group], places))
    return mean, quantiles


def law_means(points: np.ndarray, laws: np.ndarray) -> np.ndarray:
    """Means of laws, s, (cells,): integrals of 1 - F."""
    above = 1 - laws
    return points[0] + (above[:, 1:] + above[:, :-1]) / 2 @ np.diff(points)


def laws_of_quantiles(points: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Laws (K, P) through quantiles (K, 4) of ``LEVELS``: as Weibull laws between them and beyond.

    The logarithm of -log(1 - F) is linear in log x, as it is for exponential laws and their powers.
    """
    levels, at = np.log(-np.log1p(-np.asarray(LEVELS))), np.log(points)
    scores = np.empty((len(quantiles), len(points)))
    for row, places in enumerate(np.log(quantiles)):
        # where laws have jumps quantiles are equal
        places = places + 1e-9 * np.arange(len(LEVELS))
        slope = np.diff(levels) / np.diff(places)
        part = np.clip(np.searchsorted(places, at) - 1, 0, len(slope) - 1)
        scores[row] = levels[part] + slope[part] * (at - places[part])
    return -np.expm1(-np.exp(np.minimum(scores, 5.0)))
