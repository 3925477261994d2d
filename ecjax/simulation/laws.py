"""Laws of service times: X = (offset_0 + offset_1 B) + (scale_0 + scale_1 B) U for a chunk of B bytes, U as named."""

import math
from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
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
    "exponential_with_stalls",  # U exponential with mean 1; with probability a, X is b s longer
    # U as of empirical; with probability a, X is longer by one of the samples b, ..., b + STALL_SAMPLES - 1 (s)
    "empirical_with_stalls",
)
(
    DETERMINISTIC,
    EXPONENTIAL,
    GAMMA,
    LOGNORMAL,
    PARETO,
    WEIBULL,
    TWO_POINT,
    EMPIRICAL,
    STALLED,
    EMPIRICAL_STALLED,
) = range(len(KINDS))
STALL_SAMPLES = 32  # of an empirical law, in order
STALLS = 1 << 20  # streams of a request at a node: those of its further chunks, from here those of stalls


WITH_STALLS = (STALLED, EMPIRICAL_STALLED)

# columns of ``Laws.table``: s, s/B, s, s/B, parameters of U, one of the kinds, and which samples are its own
COLUMNS = 9
OFFSET, OFFSET_PER_BYTE, SCALE, SCALE_PER_BYTE, A, B, KIND, FIRST_SAMPLE, SAMPLES = range(COLUMNS)
LINES = slice(OFFSET, SCALE_PER_BYTE + 1)  # offset_0, offset_1, scale_0, scale_1


class Laws(NamedTuple):
    """Service laws, one per entry; entry j < m is node j's, further ones are of background work."""

    table: np.ndarray  # (l, COLUMNS)
    samples: np.ndarray  # (all samples,) values of U of the empirical laws

    def slowed(self, factor: np.ndarray) -> "Laws":
        """The same with the services of the m nodes longer by factors (m,)."""
        table = self.table.copy()
        table[: len(factor), LINES] *= factor[:, None]
        stalled = np.flatnonzero(table[: len(factor), KIND] == STALLED)
        table[stalled, B] *= factor[stalled]
        samples = self.samples
        for law in np.flatnonzero(table[: len(factor), KIND] == EMPIRICAL_STALLED).tolist():
            table[law, B], samples = len(samples), np.append(samples, factor[law] * self.stalls(law))
        return Laws(table, samples)

    def stalls(self, law: int) -> np.ndarray:
        """Equally likely stalls of a law, s, of which it has one with probability ``A``."""
        kind, first = int(self.table[law, KIND]), int(self.table[law, B])
        if kind == STALLED:
            return self.table[law, B : B + 1]
        return self.samples[first : first + STALL_SAMPLES] if kind == EMPIRICAL_STALLED else np.zeros(1)

    def stall_moments(self, count: int) -> np.ndarray | None:
        """E[S^n], s^n, of the stalls S of the first ``count`` laws, (3, count); None where none has any."""
        kinds = self.table[:count, KIND]
        if not np.isin(kinds, WITH_STALLS).any():
            return None
        probability = np.where(np.isin(kinds, WITH_STALLS), self.table[:count, A], 0.0)
        powers = np.arange(1, 4)[:, None]
        return probability * np.stack(
            [np.mean(self.stalls(law) ** powers, axis=1) for law in range(count)], axis=1
        )


@njit()
def _unit(kind, a, b, state):
    """A draw of U of any kind but empirical."""
    if kind in (EXPONENTIAL, STALLED):
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


@njit(inline="always")
def unit(table, samples, law, state):
    """A draw of U."""
    kind = int(table[law, KIND])
    if kind in (EMPIRICAL, EMPIRICAL_STALLED):
        place = int(streams.uniform(state) * table[law, SAMPLES])
        value = samples[int(table[law, FIRST_SAMPLE]) + min(place, int(table[law, SAMPLES]) - 1)]
    else:
        value = _unit(kind, table[law, A], table[law, B], state)
    return value


@njit(inner=True)
def _further_units(table, samples, law, chunks, state):
    """Sum of the draws of U after the first."""
    total = 0.0
    start = streams.mixed(state)
    for number in range(1, chunks):
        total += unit(table, samples, law, streams.stream(start, number))
    return total


@njit(inner=True)
def _stalls(table, samples, law, chunks, state):
    """Stalls of all chunks, s."""
    total = 0.0
    start = streams.mixed(state)
    for number in range(STALLS, STALLS + chunks):
        stalling = streams.stream(start, number)
        if streams.uniform(stalling) < table[law, A]:
            if int(table[law, KIND]) == STALLED:
                total += table[law, B]
            else:
                place = int(streams.uniform(streams.advance(stalling)) * STALL_SAMPLES)
                total += samples[int(table[law, B]) + place]
    return total


@njit(inline="always")
def service(table, samples, law, chunk_bytes, chunks, state):
    """Time to serve ``chunks`` chunks of one request together, s."""
    offset = table[law, OFFSET] + table[law, OFFSET_PER_BYTE] * chunk_bytes
    scale = table[law, SCALE] + table[law, SCALE_PER_BYTE] * chunk_bytes
    total = unit(table, samples, law, state)
    if chunks > 1:  # apart: a loop in line costs all draws 70 ns
        total += _further_units(table, samples, law, chunks, state)
    work = chunks * offset + scale * total
    if int(table[law, KIND]) >= STALLED:
        work += _stalls(table, samples, law, chunks, state)
    return work
