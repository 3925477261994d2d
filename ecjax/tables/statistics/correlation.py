"""Correlation between the delays of the chunks of one request."""

from typing import NamedTuple

import numba
import numpy as np

from ecjax.tables.statistics.index import mix

SAMPLED_REQUESTS = 1 << 14
CHUNKS_KEPT = 32
_WEYL = np.uint64(0x9E3779B97F4A7C15)


class Correlation(NamedTuple):
    """Pooled correlation over pairs of chunks of one request, its standard error, and the requests behind it."""

    value: float
    error: float
    requests: int


@numba.njit(cache=True, nogil=True)
def _sample(begins, delays, groups, state, random, kept_delays, kept_groups, kept):
    """Reservoir of requests: ``state`` holds requests seen and the place of the open one (-1: not kept)."""
    for i in range(begins.shape[0]):
        if begins[i]:
            seen = state[0]
            state[0] += 1
            if seen < kept.shape[0]:
                state[1] = seen
            else:
                random[0] += _WEYL
                place = np.int64(mix(random[0]) % np.uint64(seen + 1))
                state[1] = place if place < kept.shape[0] else -1
            if state[1] >= 0:
                kept[state[1]] = 0
        place = state[1]
        if place >= 0 and not np.isnan(delays[i]) and kept[place] < kept_delays.shape[1]:
            kept_delays[place, kept[place]] = delays[i]
            kept_groups[place, kept[place]] = groups[i]
            kept[place] += 1


class RequestSample:
    """A uniform sample of up to 16,384 requests with the delays of their first 32 chunks (algorithm R).

    Args:
        seed: of the sampling.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.array([0, -1], np.int64)
        self._random = np.array([seed], np.uint64)
        self._delays = np.zeros((SAMPLED_REQUESTS, CHUNKS_KEPT))
        self._groups = np.zeros((SAMPLED_REQUESTS, CHUNKS_KEPT), np.int64)
        self._kept = np.zeros(SAMPLED_REQUESTS, np.int64)

    def add(self, begins: np.ndarray, delays: np.ndarray, groups: np.ndarray) -> None:
        """Add rows: whether each begins a request, its delay in s (NaN: none) and its group, each (n,)."""
        _sample(begins, delays, groups, self._state, self._random, self._delays, self._groups, self._kept)

    def correlation(self) -> Correlation:
        """Correlation of the sampled chunk delays, see ``pooled_correlation``."""
        used = min(int(self._state[0]), SAMPLED_REQUESTS)
        return pooled_correlation(self._delays[:used], self._groups[:used], self._kept[:used])


def pooled_correlation(delays: np.ndarray, groups: np.ndarray, chunks: np.ndarray) -> Correlation:
    """Pooled within-request correlation of delays centred by the means of their groups.

    sum over requests and pairs a < b of y_a y_b, over the same sum of (y_a^2 + y_b^2) / 2, with y the delay minus the
    mean of its group. A group is a node and a chunk size: centring by node alone would make files of different size
    look correlated. The standard error is the jackknife's over requests.

    Args:
        delays: (requests, width), the first ``chunks[i]`` of row i count.
        groups: group of each delay, (requests, width) integers.
        chunks: (requests,).

    Returns:
        NaN where no request has two chunks or delays do not vary.
    """
    held = np.arange(delays.shape[1]) < chunks[:, None]
    _, numbers = np.unique(groups[held], return_inverse=True)
    values = delays[held]
    if values.shape[0] == 0:
        return Correlation(float("nan"), float("nan"), 0)
    means = np.bincount(numbers, values) / np.bincount(numbers)
    centred = np.zeros_like(delays)
    centred[held] = values - means[numbers]
    paired = chunks >= 2
    total, squares = centred[paired].sum(axis=1), (centred[paired] ** 2).sum(axis=1)
    products = (total**2 - squares) / 2
    norms = squares * (chunks[paired] - 1) / 2
    number = int(paired.sum())
    all_products, all_norms = products.sum(), norms.sum()
    if number == 0 or all_norms <= 0:
        return Correlation(float("nan"), float("nan"), number)
    value = all_products / all_norms
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (all_products - products) / (all_norms - norms)
    error = np.sqrt((number - 1) / number * ((others - value) ** 2).sum()) if number > 1 else float("nan")
    return Correlation(float(value), float(error), number)
