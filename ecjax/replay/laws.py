"""Laws of service times: X = (offset_0 + offset_1 B) + (scale_0 + scale_1 B) U for a chunk of B bytes, U as named."""

import math
from typing import NamedTuple

import numba
import numpy as np

from ecjax.streams import streams

KINDS = (
    "deterministic",  # U = 0
    "exponential",  # U exponential with mean 1; shifted exponential by the offset
    "gamma",  # U gamma with shape a and scale 1
    "lognormal",  # U = exp(a N)
    "pareto",  # U on [1, b], Pr(U > u) = (u^-a - b^-a) / (1 - b^-a)
    "weibull",  # U = E^(1/a), E exponential with mean 1
    "two_point",  # U = 1 with probability a, else 0
    "empirical",  # U one of the samples, each as likely
)
DETERMINISTIC, EXPONENTIAL, GAMMA, LOGNORMAL, PARETO, WEIBULL, TWO_POINT, EMPIRICAL = range(len(KINDS))


class Laws(NamedTuple):
    """Service laws, one per entry; entry j < m is node j's, further ones are of background work."""

    table: (
        np.ndarray
    )  # (l, 9) offset_0 (s), offset_1 (s/B), scale_0 (s), scale_1 (s/B), a, b, kind, first sample, samples
    samples: np.ndarray  # (all samples,) values of U of the empirical laws


@numba.njit(cache=True, nogil=True)
def _unit(kind, a, b, state):
    """A draw of U of any kind but empirical."""
    if kind == EXPONENTIAL:
        return streams.exponential(state)
    if kind == LOGNORMAL:
        return math.exp(a * streams.normal(state))
    if kind == WEIBULL:
        return streams.exponential(state) ** (1.0 / a)
    if kind == GAMMA:
        return streams.gamma(state, a)
    if kind == PARETO:
        return (1.0 - streams.uniform(state) * (1.0 - b**-a)) ** (-1.0 / a)
    if kind == TWO_POINT:
        return 1.0 if streams.uniform(state) < a else 0.0
    return 0.0


@numba.njit(cache=True, nogil=True, inline="always")
def unit(table, samples, law, state):
    """A draw of U."""
    kind = int(table[law, 6])
    if kind == EMPIRICAL:
        place = int(streams.uniform(state) * table[law, 8])
        value = samples[int(table[law, 7]) + min(place, int(table[law, 8]) - 1)]
    else:
        value = _unit(kind, table[law, 4], table[law, 5], state)
    return value


@numba.njit(cache=True, nogil=True)
def _further_units(table, samples, law, chunks, state):
    """Sum of the draws of U after the first."""
    total = 0.0
    start = streams.mixed(state)
    for number in range(1, chunks):
        total += unit(table, samples, law, streams.stream(start, number))
    return total


@numba.njit(cache=True, nogil=True, inline="always")
def service(table, samples, law, chunk_bytes, chunks, state):
    """Time to serve ``chunks`` chunks of one request together, s."""
    offset = table[law, 0] + table[law, 1] * chunk_bytes
    scale = table[law, 2] + table[law, 3] * chunk_bytes
    total = unit(table, samples, law, state)
    if chunks > 1:  # apart: a loop in line costs all draws 70 ns
        total += _further_units(table, samples, law, chunks, state)
    return chunks * offset + scale * total
