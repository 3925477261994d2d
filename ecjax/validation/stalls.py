"""Stalls among the service times of a log: which services had one, and empirical laws of what is left and of them.

A relation under which U is alike whatever the size cannot have stalls that are as long for small chunks as for large
ones: they would grow with the chunk. Here services that are far above what the affine law of their size has count
as that law's mean and a stall, which has a law of its own.
"""

import math
from typing import NamedTuple

import numpy as np

from ecjax.simulation.laws import EMPIRICAL_STALLED, KIND, STALL_SAMPLES, A, B, Laws
from ecjax.tables.statistics.affine import DROPPED_SHARE
from ecjax.tables.statistics.stalls import stalling_law

_LEAST, _LEAST_BESIDE = 20, 5  # stalls of a node, for a law of them; where other nodes have stalls
_LEAST_MISFIT = 1.02  # whether they explain the log is looked at afterwards


class Stalling(NamedTuple):
    """Services of a node that stalled."""

    stalled: np.ndarray  # (s,) bool
    probability: float
    times: np.ndarray  # (n,) s


def stalling(
    service: np.ndarray,
    size: np.ndarray,
    size_class: np.ndarray,
    others: tuple[float, float] | None = None,
) -> Stalling | None:
    """Which services of a node stalled; None where no stalls explain that some take long.

    A service stalled if it took longer than the mean of its size by a time that hardly any does otherwise. Where that
    is not so, as for large chunks, whose services vary more, as many of the longest count as of the other sizes.

    Args:
        service: (s,) s.
        size: (s,) B.
        size_class: (s,) from 0.
        others: probability and mean time (s) of stalls of other nodes, for one that does not show them by itself.
    """
    counts = np.bincount(size_class).astype(float)
    used = np.flatnonzero(counts > 0)
    kept, measured = np.empty((2, len(used))), np.empty((2, len(used)))
    for place, number in enumerate(used):
        values = np.sort(service[size_class == number])
        measured[:, place] = values.mean(), (values**2).mean()
        values = values[: len(values) - int(DROPPED_SHARE * len(values))]
        kept[:, place] = values.mean(), values.std()
    sizes = np.bincount(size_class, size)[used] / counts[used]
    law, probability, time = stalling_law(
        sizes, counts[used], (kept[0], kept[1]), (measured[0], measured[1]), _LEAST_MISFIT
    )
    if math.isnan(law.psi_s_per_byte) or (probability == 0 and others is None):
        return None
    if probability == 0 and others is not None:
        probability, time = others
    fixed, random = law.at(size)
    above = service - fixed - random
    # an exponential part is longer by that as rarely as a third of the stalls, for every size
    least = float(np.clip(random.max() * (np.log(3 / probability) - 1), time / 10, time / 2))
    spread = np.maximum(law.at(sizes)[1], 1e-9 * time)
    clear = np.exp(-1 - least / spread) < probability / 10
    clear[spread.argmin()] = True
    clear_reads = np.isin(size_class, used[clear])
    stalled = clear_reads & (above > least)
    if np.count_nonzero(stalled) < (_LEAST if others is None else _LEAST_BESIDE):
        return None
    share, times = float(stalled.sum() / clear_reads.sum()), above[stalled]
    for number in used[~clear].tolist():
        members = np.flatnonzero(size_class == number)
        longest = members[np.argsort(above[members])][len(members) - round(share * len(members)) :]
        stalled[longest] = True
    return Stalling(stalled, share, times)


def with_stalls(laws: Laws, stalls: list[Stalling | None]) -> Laws:
    """Empirical laws and stalls beside them.

    Args:
        laws: l empirical laws.
        stalls: of each law, or none.
    """
    table, samples = laws.table.copy(), [laws.samples]
    first = len(laws.samples)
    for law, of_law in enumerate(stalls):
        if of_law is None:
            continue
        points = np.quantile(of_law.times, (np.arange(STALL_SAMPLES) + 0.5) / STALL_SAMPLES)
        samples.append(points * of_law.times.mean() / points.mean())
        table[law, [A, B, KIND]] = of_law.probability, first, EMPIRICAL_STALLED
        first += STALL_SAMPLES
    return Laws(table, np.concatenate(samples))


def law_quantile(laws: Laws, law: int, values: np.ndarray, level: float) -> float:
    """Quantile of a law with its stalls, s.

    Args:
        laws: empirical laws.
        law: which of them.
        values: (s,) services of that size by the samples of the law, without stalls, s.
        level: in (0, 1).
    """
    values = np.sort(values)
    if int(laws.table[law, KIND]) != EMPIRICAL_STALLED:
        return float(np.quantile(values, level))
    probability, stalls = laws.table[law, A], laws.stalls(law)
    low, high = 0.0, float(values[-1] + stalls.max())
    for _ in range(60):
        middle = (low + high) / 2
        below = np.searchsorted(values, middle, side="right") * (1 - probability)
        below += probability * np.searchsorted(values, middle - stalls, side="right").mean()
        low, high = (low, middle) if below >= level * len(values) else (middle, high)
    return high
