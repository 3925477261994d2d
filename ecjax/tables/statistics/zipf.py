"""Zipf's law fitted to the popularity of files."""

from typing import NamedTuple

import numpy as np

_STEPS = 100


class ZipfFit(NamedTuple):
    """Exponent s of p_r proportional to r^-s over ranks r = 1, ..., files, and its standard error."""

    exponent: float
    error: float


def fit_zipf(counts: np.ndarray) -> ZipfFit:
    """Maximum-likelihood Zipf exponent over the ranks of the observed distinct files.

    With N accesses, n_r of them to the r-th most popular of R files, the log-likelihood is
    -s sum_r n_r ln r - N ln sum_r r^-s; it is concave, its derivative N (E_s[ln r] - mean of ln r) and its information
    N Var_s[ln r]. Newton's method, kept inside a bracket, finds the root. Ranks are those of the counts themselves, so
    that chance alone makes equally popular files look a little unequal (s slightly above 0).

    Args:
        counts: accesses of each file, (files,); zeros are left out.

    Returns:
        Exponent and standard error by Fisher's information; both NaN with fewer than two files.
    """
    counts = np.sort(counts[counts > 0])[::-1].astype(float)
    if counts.shape[0] < 2:
        return ZipfFit(float("nan"), float("nan"))
    logs = np.log(np.arange(1, counts.shape[0] + 1))
    total = counts.sum()
    target = float(counts @ logs / total)

    def mean_and_variance(s: float) -> tuple[float, float]:
        weights = np.exp(-s * logs)
        weights /= weights.sum()
        mean = float(weights @ logs)
        return mean, float(weights @ (logs - mean) ** 2)

    low, high = 0.0, 1.0
    while mean_and_variance(high)[0] > target:
        low, high = high, 2 * high
    s = 0.5 * (low + high)
    for _ in range(_STEPS):
        mean, variance = mean_and_variance(s)
        low, high = (s, high) if mean > target else (low, s)
        step = s + (mean - target) / variance if variance > 0 else 0.5 * (low + high)
        new = step if low < step < high else 0.5 * (low + high)
        if abs(new - s) <= 1e-13 * max(s, 1.0):
            s = new
            break
        s = new
    return ZipfFit(s, float(1 / np.sqrt(total * mean_and_variance(s)[1])))
