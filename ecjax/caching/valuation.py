"""What keeping chunks of an item is worth: equation 1 of the SampleX paper (Liu and others, IEEE TSC 16, 2023)."""

import operator

import numpy as np

from ecjax.errors import UserError


def valuation(rates, latency_s) -> np.ndarray:
    """Latency saved per second by keeping the j slowest chunks of each item, equation 1.

    With the latencies in descending order l_1 >= ... >= l_K: tau_0 = 0, tau_j = r (l_1 - l_{j+1}) for 0 < j < K and
    tau_K = r l_1.

    Args:
        rates: r, (..., M), reads of each item per second; leading axes are caches, popularities and so on.
        latency_s: (..., M, K), mean time to fetch each data chunk, s, in any order; leading axes broadcast.

    Returns:
        tau, (..., M, K + 1), s/s, nondecreasing along the last axis.

    Raises:
        UserError: a rate or a latency is negative or not finite, or the shapes do not fit.
    """
    rates = np.asarray(rates, dtype=np.float64)
    latency = np.asarray(latency_s, dtype=np.float64)
    if latency.ndim < 2 or latency.shape[-1] < 1 or rates.ndim < 1 or rates.shape[-1] != latency.shape[-2]:
        raise UserError(
            f"latency_s: found shape {latency.shape} beside rates of shape {rates.shape}; "
            "allowed: (..., M, K) beside (..., M), K at least 1"
        )
    for name, values in (("rates", rates), ("latency_s", latency)):
        good = np.isfinite(values) & (values >= 0)
        if not good.all():
            at = tuple(int(i) for i in np.argwhere(~good)[0])
            raise UserError(f"{name}: found {values[at]} at {at}; allowed: finite numbers of at least 0")
    slowest_first = -np.sort(-latency, axis=-1)
    saved = np.concatenate(
        [slowest_first[..., :1] - slowest_first, slowest_first[..., :1]], axis=-1
    )  # l_1 - l_1 = 0 for no chunk, ..., l_1 - l_K for K - 1 chunks, l_1 for all
    return rates[..., None] * saved


def checked_valuation(tau) -> np.ndarray:
    """``tau`` as a contiguous float64 array (M, K + 1), after checks; whole numbers are exact up to 2^53.

    Raises:
        UserError: it has another shape, is not finite, does not begin with 0 or descends along a row.
    """
    try:
        tau = np.ascontiguousarray(tau, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError("tau: found something that is not a table of numbers; allowed: (M, K + 1)") from None
    if tau.ndim != 2 or tau.shape[1] < 2:
        raise UserError(f"tau: found shape {tau.shape}; allowed: (M, K + 1), K at least 1")
    # one pass tells that all is well; which item is not so is looked for only then. NaN fails every comparison.
    if not ((tau[:, 0] == 0).all() and (tau[:, 1:] >= tau[:, :-1]).all() and (tau[:, -1] < np.inf).all()):
        for item, row in enumerate(tau):
            if not np.isfinite(row).all():
                raise UserError(
                    f"tau: found {row[~np.isfinite(row)][0]} for item {item}; allowed: finite numbers"
                )
            if row[0] != 0:
                raise UserError(f"tau: found {row[0]:g} for no chunk of item {item}; allowed: 0")
            if (np.diff(row) < 0).any():
                chunks = int(np.flatnonzero(np.diff(row) < 0)[0]) + 1
                raise UserError(
                    f"tau: found {row[chunks]:g} for {chunks} chunks of item {item}, less than for one chunk less; "
                    "allowed: rows that do not descend"
                )
    return tau


def checked_whole(name: str, value, least: int = 0) -> int:
    """``value`` as an int, or a UserError that names it: a whole number of at least ``least``."""
    try:
        whole = operator.index(value)
    except TypeError:
        whole = least - 1
    if whole < least or isinstance(value, bool):
        raise UserError(f"{name}: found {value!r}; allowed: a whole number of at least {least}")
    return whole
