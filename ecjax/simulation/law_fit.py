"""Service laws from moments, and the moments of service laws.

Nodes are described by three moments, or by a shifted exponential law that is affine in the chunk size. A replay needs a
law: ``auto`` takes the affine law as it is and gives three moments to a shifted Weibull law (shifted gamma, or two
points, where no shifted Weibull law has them); the other names keep fewer moments and say which.
"""

import math

import numpy as np
from scipy import optimize, special

from ecjax.model import CONSTANT, with_stalls
from ecjax.simulation import laws as columns
from ecjax.simulation.laws import KINDS, Laws

FAMILIES = (
    "auto",  # all three moments
    "deterministic",  # the mean
    "exponential",  # the mean
    "shifted_exponential",  # mean and variance
    "gamma",  # mean and variance
    "lognormal",  # mean and variance
    "pareto",  # mean and variance, largest / smallest = ratio
)
PARETO_RATIO = 1000.0
_SHAPES = (0.25, 60.0)  # of Weibull laws: beyond, skewness hardly changes


def fit(family: str, mean: float, second: float, third: float, ratio: float = PARETO_RATIO) -> np.ndarray:
    """Law with these raw moments, as many as the family keeps: (COLUMNS,), a row of ``Laws.table`` without powers of B.

    Args:
        family: one of FAMILIES.
        mean: s.
        second: s^2.
        third: s^3; only ``auto`` uses it.
        ratio: of the largest and the smallest value, for ``pareto``.

    Raises:
        ValueError: the family has no law with these moments; the message says why.
    """
    variance = max(second - mean**2, 0.0)
    deviation = math.sqrt(variance)
    if family == "exponential":
        return _row("exponential", 0.0, mean)
    if family == "deterministic" or deviation <= 1e-9 * mean:
        return _row("deterministic", mean, 0.0)
    if family == "shifted_exponential":
        if deviation > mean * (1 + 1e-12):
            raise ValueError(
                f"a standard deviation of {deviation:.4g} s above the mean of {mean:.4g} s; "
                "gamma, lognormal and pareto have such"
            )
        return _row("exponential", max(mean - deviation, 0.0), deviation)
    if family == "gamma":
        return _row("gamma", 0.0, variance / mean, mean**2 / variance)
    if family == "lognormal":
        sigma = math.sqrt(math.log1p(variance / mean**2))
        return _row("lognormal", 0.0, mean * math.exp(-(sigma**2) / 2), sigma)
    if family == "pareto":
        return _pareto(mean, second, ratio)
    return _three_moments(mean, deviation, third)


def empirical(samples: list[np.ndarray], offset: np.ndarray, scale: np.ndarray) -> Laws:
    """Laws that draw from samples of U.

    Args:
        samples: values of U of each of the l laws.
        offset: (2, l) s, s/B.
        scale: (2, l) s, s/B.
    """
    table = np.zeros((len(samples), columns.COLUMNS))
    table[:, columns.LINES] = np.concatenate([offset, scale]).T
    table[:, columns.KIND] = columns.EMPIRICAL
    count = np.array([len(of_law) for of_law in samples])
    table[:, columns.FIRST_SAMPLE], table[:, columns.SAMPLES] = np.cumsum(count) - count, count
    return Laws(table, np.concatenate([np.sort(np.asarray(of_law, float)) for of_law in samples]))


def unit_moments(laws: Laws) -> np.ndarray:
    """E[U], E[U^2], E[U^3] of every law: (3, l)."""
    moments = np.empty((3, len(laws.table)))
    for law, row in enumerate(laws.table):
        kind = KINDS[int(row[columns.KIND])]
        if kind in ("empirical", "empirical_with_stalls"):
            first, count = int(row[columns.FIRST_SAMPLE]), int(row[columns.SAMPLES])
            of_law = laws.samples[first : first + count]
            moments[:, law] = [np.mean(of_law**n) for n in (1, 2, 3)]
        else:
            a, b = row[columns.A], row[columns.B]
            moments[:, law] = [_unit_moment(kind, a, b, n) for n in (1, 2, 3)]
    return moments


def polynomials(laws: Laws, nodes: int) -> np.ndarray:
    """Service moments of the first ``nodes`` laws as polynomials in the chunk size: (3, 4, m), as ``Nodes.service``."""
    one, two, three = unit_moments(laws)[:, :nodes]
    d0, d1, s0, s1 = laws.table[:nodes, columns.LINES].T
    fixed, random = np.stack([d0, d1]), np.stack([s0, s1])
    moments = np.zeros((3, 4, nodes))
    terms: dict[int, tuple] = {1: ((1, 0, None), (1, 1, one)), 2: ((1, 0, None), (2, 1, one), (1, 2, two))}
    terms[3] = ((1, 0, None), (3, 1, one), (3, 2, two), (1, 3, three))
    for n, parts in terms.items():
        for binomial, power, moment in parts:
            product = np.ones((1, nodes))
            for factor in [fixed] * (n - power) + [random] * power:
                longer = np.zeros((len(product) + 1, nodes))
                longer[:-1] += product * factor[0]
                longer[1:] += product * factor[1]
                product = longer
            moments[n - 1, : n + 1] += binomial * product * (1.0 if moment is None else moment)
    stall = laws.stall_moments(nodes)
    return moments if stall is None else np.stack(with_stalls(moments, stall, CONSTANT))


def background(load: float, second: float, third: float) -> tuple[float, np.ndarray]:
    """Rate (1/s) and law of work with given sums lambda m_1, lambda m_2, lambda m_3: gamma distributed jobs.

    The wait that work causes depends on these three sums alone, in mean and variance; how often it comes does not
    show. Where no gamma law fits (very long tails), jobs are exponential and the third sum is that of those.
    """
    first, other = second / load, third / second  # m_2 / m_1, m_3 / m_2 = (a + 1) s, (a + 2) s
    scale = other - first
    if scale <= 1e-12 * first:
        return load / first, _row("deterministic", first, 0.0)
    shape = first / scale - 1.0
    if shape <= 1e-3:
        return load / (first / 2), _row("exponential", 0.0, first / 2)
    return load / (shape * scale), _row("gamma", 0.0, scale, shape)


def _row(kind: str, offset: float, scale: float, a: float = 0.0, b: float = 0.0) -> np.ndarray:
    return np.array([offset, 0.0, scale, 0.0, a, b, KINDS.index(kind), 0.0, 0.0])


def _pareto(mean: float, second: float, ratio: float) -> np.ndarray:
    def excess(alpha: float) -> float:
        return (
            _unit_moment("pareto", alpha, ratio, 2) / _unit_moment("pareto", alpha, ratio, 1) ** 2
            - second / mean**2
        )

    # the squared variation peaks near 1 and falls with alpha
    top = optimize.minimize_scalar(lambda alpha: -excess(alpha), bounds=(0.3, 3.0), method="bounded").x
    if excess(top) < 0:
        raise ValueError(
            f"a squared coefficient of variation of {second / mean**2 - 1:.4g}; with a ratio of {ratio:g} "
            f"it is at most {excess(top) + second / mean**2 - 1:.4g}"
        )
    alpha = optimize.brentq(excess, top, 1e4)
    return _row("pareto", 0.0, mean / _unit_moment("pareto", alpha, ratio, 1), alpha, ratio)


def _three_moments(mean: float, deviation: float, third: float) -> np.ndarray:
    skewness = (third - 3 * mean * deviation**2 - mean**3) / deviation**3

    def weibull_skewness(shape: float) -> float:
        one, two, three = (special.gamma(1 + n / shape) for n in (1, 2, 3))
        return (three - 3 * one * two + 2 * one**3) / (two - one**2) ** 1.5

    if weibull_skewness(_SHAPES[1]) < skewness < weibull_skewness(_SHAPES[0]):
        shape = optimize.brentq(lambda c: weibull_skewness(c) - skewness, *_SHAPES, xtol=1e-13)
        one, two = special.gamma(1 + 1 / shape), special.gamma(1 + 2 / shape)
        scale = deviation / math.sqrt(two - one**2)
        if mean - scale * one >= 0:
            return _row("weibull", mean - scale * one, scale, shape)
    if skewness > 0 and mean - 2 * deviation / skewness >= 0:
        return _row("gamma", mean - 2 * deviation / skewness, deviation * skewness / 2, 4 / skewness**2)
    # two points c -+ ... with the given mean, deviation and skewness
    half = math.sqrt(skewness**2 + 4)
    low, high = mean + deviation * (skewness - half) / 2, mean + deviation * (skewness + half) / 2
    if low < 0:
        raise ValueError(
            f"a mean of {mean:.4g} s, a standard deviation of {deviation:.4g} s and a skewness of {skewness:.4g} "
            "belong to no time that is never negative"
        )
    return _row("two_point", low, high - low, (mean - low) / (high - low))


def _unit_moment(kind: str, a: float, b: float, n: int) -> float:
    if kind == "deterministic":
        return 0.0
    if kind in ("exponential", "exponential_with_stalls"):
        return float(math.factorial(n))
    if kind == "gamma":
        return float(special.poch(a, n))
    if kind == "lognormal":
        return math.exp(n**2 * a**2 / 2)
    if kind == "weibull":
        return float(special.gamma(1 + n / a))
    if kind == "two_point":
        return a
    # bounded Pareto: density a u^(-a - 1) / (1 - b^-a) on [1, b]
    norm = a / -math.expm1(-a * math.log(b))
    return norm * (math.log(b) if abs(n - a) < 1e-9 else math.expm1((n - a) * math.log(b)) / (n - a))
