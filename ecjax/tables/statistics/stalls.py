"""Services that stall: what an affine law lacks of the mean and the second moment that a log measured.

Disks retry, collect garbage, flush: now and then a service takes much longer, whatever its size. The affine law is
fitted without the worst delays and knows nothing of that; waits depend on it most. A chunk that stalls with probability
p takes T longer, so that for a law Y with E[Y], E[Y^2] and measured moments m_1, m_2::

    D_1 = m_1 - E[Y] = p T,    D_2 = m_2 - E[Y^2] = 2 E[Y] p T + p T^2
    T = (D_2 - 2 E[Y] D_1) / D_1,    p = D_1 / T
"""

import math

import numpy as np

from ecjax.tables.statistics.affine import DROPPED_SHARE, NO_LAW, SECOND_MISFIT, AffineLaw, fit_affine

_ROUNDS = 4  # the law without stalls and the stalls, in turn
_MEAN_MISFIT = 1.05  # factor
_NARROW = 3.0  # times the least mean of the exponential part: sizes of which stalls stand out
_LEAST_DELAYS = 500  # of these sizes


def stalls(law: tuple[float, float], measured: tuple[float, float]) -> tuple[float, float]:
    """Probability and time (s) of stalls that give a law the measured mean (s) and second moment (s^2); 0, 0: none do.

    Args:
        law: E[Y], E[Y^2].
        measured: m_1, m_2.
    """
    first, second = measured[0] - law[0], measured[1] - law[1]
    if not first > 0:
        return 0.0, 0.0
    time = second / first - 2 * law[0]
    probability = first / time if time > 0 else math.inf
    # what is more frequent takes part in the fit of the law
    return (probability, time) if probability < DROPPED_SHARE else (0.0, 0.0)


def stalling_law(
    sizes: np.ndarray,
    counts: np.ndarray,
    kept: tuple[np.ndarray, np.ndarray],
    measured: tuple[np.ndarray, np.ndarray],
    least_misfit: float = SECOND_MISFIT,
) -> tuple[AffineLaw, float, float]:
    """Affine law, and probability and time (s) of the stalls beside it; 0, 0 where the law alone is near the log.

    Stalls are among the delays that the fit drops: of the law itself it drops a share (0.1 - p) / (1 - p). Where they
    are lost in what the delays of large chunks vary by, those of the sizes that vary least tell them.

    Args:
        sizes: chunk sizes (B), (classes,).
        counts: delays behind each.
        kept: means and deviations (s) of each without the worst 10 %.
        measured: means (s) and second moments (s^2) of all delays of each.
        least_misfit: factor that the law's second moment has to be short by, unless its mean is short by 5 %.

    Returns:
        The law (``NO_LAW`` as ``fit_affine`` has it), p, T.
    """
    alone = fit_affine(sizes, counts, *kept)
    if math.isnan(alone.delta_s) or math.isnan(alone.psi_s_per_byte):
        return alone if not math.isnan(alone.delta_s) else NO_LAW, 0.0, 0.0
    spread = alone.at(sizes)[1]
    every, narrow = np.ones(len(sizes), bool), spread <= _NARROW * spread.min()
    stalls = _stalls_beside(alone, (sizes, counts), kept, measured, every, least_misfit)
    if stalls is None and not narrow.all() and counts[narrow].sum() >= _LEAST_DELAYS:
        stalls = _stalls_beside(alone, (sizes, counts), kept, measured, narrow, least_misfit)
    return (alone, 0.0, 0.0) if stalls is None else stalls


def _stalls_beside(
    alone: AffineLaw,
    cells: tuple[np.ndarray, np.ndarray],
    kept: tuple[np.ndarray, np.ndarray],
    measured: tuple[np.ndarray, np.ndarray],
    some: np.ndarray,
    least_misfit: float,
) -> tuple[AffineLaw, float, float] | None:
    """Law and stalls by the delays of some sizes; None where there are none, or the law is not short of them."""
    sizes, counts = cells
    weight = counts[some] / counts[some].sum()
    mean, second = (float(weight @ moment[some]) for moment in measured)
    of_law = law_moments(alone, sizes[some], counts[some])
    if not (second > least_misfit * of_law[1] or mean > _MEAN_MISFIT * of_law[0]):
        return None
    law = alone
    for _ in range(_ROUNDS):
        probability, time = stalls(law_moments(law, sizes[some], counts[some]), (mean, second))
        if probability == 0:
            return None
        share = (DROPPED_SHARE - probability) / (1 - probability)
        law = fit_affine(sizes, counts, *kept, share=share)
    probability, time = stalls(law_moments(law, sizes[some], counts[some]), (mean, second))
    return (law, probability, time) if probability > 0 else None


def with_stalls(moments: tuple[float, float], probability: float, time: float) -> tuple[float, float]:
    """Mean (s) and second moment (s^2) of a law, its own given, beside stalls."""
    mean = probability * time
    return moments[0] + mean, moments[1] + 2 * moments[0] * mean + mean * time


def law_moments(law: AffineLaw, sizes: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Mean (s) and second moment (s^2) of the law for chunks of these sizes (B), so many of each."""
    fixed, random = law.at(sizes)
    mean = fixed + random
    return tuple(float(counts @ values / counts.sum()) for values in (mean, mean**2 + random**2))  # type: ignore[return-value]
