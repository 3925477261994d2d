"""Moments of many samples at once, kept as (count, mean, central sums), merged without loss of precision.

A row of 7 numbers stands for one sample: n, mean, M_2, ..., M_6 with M_p = sum (x - mean)^p. Two rows merge by moving
both to the common mean with the binomial theorem (Pebay 2008, Formulas for Robust, One-Pass Parallel Computation of
Covariances and Arbitrary-Order Statistical Moments, SAND2008-6212). Order 6 is what the standard error of a third
moment needs.
"""

import math

import numpy as np

from ecjax.machine_code import njit

ORDER = 6
WIDTH = ORDER + 1
_BINOMIAL = np.array([[math.comb(p, j) for j in range(WIDTH)] for p in range(WIDTH)], float)


@njit(inner=True)
def moved(row, distance, power):
    """Sum of (x - mean + distance)^power over the sample that ``row`` stands for."""
    total = row[0] * distance**power
    for j in range(2, power + 1):
        total += _BINOMIAL[power, j] * distance ** (power - j) * row[j]
    return total


@njit()
def merge_rows(into, other, places):
    """Merge each row of ``other`` (rows, 7) into the row of ``into`` that ``places`` (rows,) names."""
    fresh = np.empty(WIDTH)
    for i in range(other.shape[0]):
        if other[i, 0] == 0:
            continue
        old, new = into[places[i]], other[i]
        count = old[0] + new[0]
        mean = old[1] + (new[1] - old[1]) * (new[0] / count)
        for power in range(2, WIDTH):
            fresh[power] = moved(old, old[1] - mean, power) + moved(new, new[1] - mean, power)
        old[0], old[1] = count, mean
        for power in range(2, WIDTH):
            old[power] = fresh[power]


@njit()
def sample_rows(values, places, rows):
    """Rows (rows, 7) of ``values`` (n,) grouped by ``places`` (n,): two passes, means first."""
    out = np.zeros((rows, WIDTH))
    for i in range(values.shape[0]):
        out[places[i], 0] += 1.0
        out[places[i], 1] += values[i]
    for row in range(rows):
        if out[row, 0] > 0:
            out[row, 1] /= out[row, 0]
    for i in range(values.shape[0]):
        row = out[places[i]]
        distance = values[i] - row[1]
        power = distance
        for j in range(2, WIDTH):
            power *= distance
            row[j] += power
    return out


def scaled_rows(rows: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Rows of the samples multiplied by ``factors``: (..., 7) and (...,) -> (..., 7)."""
    powers = np.asarray(factors, float)[..., None] ** np.array([0, *range(1, WIDTH)])
    return rows * powers


def weighted_rows(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows of samples whose values all count so many times: (..., 7) and (...,) -> (..., 7)."""
    weighted = rows * np.asarray(weights, float)[..., None]
    weighted[..., 1] = rows[..., 1]
    return weighted


def pooled_rows(rows: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Rows (count, 7) of the samples (n, 7) pooled by ``groups`` (n,)."""
    out = np.zeros((count, WIDTH))
    merge_rows(out, np.ascontiguousarray(rows, float), np.ascontiguousarray(groups, np.int64))
    return out


def raw_moments(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First three raw moments of each sample and their standard errors.

    The moment m_p = sum x^p / n has standard error sqrt(Var[x^p] / (n - 1)) with Var[x^p] over the sample; for p = 1
    this is the usual s / sqrt(n). Powers are expanded about the mean, so that a narrow law keeps its digits.

    Args:
        rows: (..., 7).

    Returns:
        Moments (..., 3) in units^1, units^2, units^3, NaN where n = 0; standard errors of the same shape, NaN where
        n < 2.
    """
    count, mean = rows[..., 0], rows[..., 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(count > 0, mean, np.nan)
        central = {p: rows[..., p] / count for p in range(2, WIDTH)}
        central[0], central[1] = np.ones_like(mean), np.zeros_like(mean)
        moments, errors = [], []
        for p in (1, 2, 3):
            # x^p = sum_j weight_j (x - mean)^j
            weights = [math.comb(p, j) * mean ** (p - j) for j in range(p + 1)]
            moments.append(sum(w * central[j] for j, w in enumerate(weights)))
            variance = sum(
                weights[i] * weights[j] * (central[i + j] - central[i] * central[j])
                for i in range(1, p + 1)
                for j in range(1, p + 1)
            )
            errors.append(np.sqrt(np.maximum(variance, 0) / np.where(count > 1, count - 1, np.nan)))
    return np.stack(moments, -1), np.stack(errors, -1)
