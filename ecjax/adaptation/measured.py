"""Laws of task delays from measured ones: quantiles by chunk size, and how alike the tasks of one request are."""

from typing import NamedTuple

import numpy as np
from scipy import special

from ecjax.adaptation.delays import DelayModel
from ecjax.adaptation.proxy import EMPIRICAL

LEAST_DELAYS = 100  # of a group of chunk sizes
_MOST_SIZES = 16  # groups; so many distinct sizes are groups of their own
_MOST_RHO = 0.99  # the copula of a replay needs less than 1
_QUANTILES = 2001


class Delays(NamedTuple):
    """D delays of tasks, those of one request in consecutive places."""

    bytes: np.ndarray  # (D,) of the chunk
    seconds: np.ndarray  # (D,)
    request: np.ndarray  # (D,) int64, equal for the tasks of one request


class Measured(NamedTuple):
    """An empirical law, and what it was made of."""

    model: DelayModel
    rho_error: float  # standard error of the model's rho; NaN where no request has two tasks
    requests: int  # with two tasks or more
    counts: np.ndarray  # (S,) delays of each of the model's sizes
    least: np.ndarray  # (S,) bytes of the smallest chunk in it
    most: np.ndarray  # (S,) of the largest


def measured(delays: Delays, name: str) -> Measured:
    """The empirical law of delays.

    Up to 16 distinct chunk sizes are groups of their own; of more, quantiles of the sizes are the limits of 16 groups.
    Groups of fewer than 100 delays are joined to the neighbour that is nearer in size (by ratio). A group has the mean
    size of its chunks. Its quantile function is linear between the ordered delays (Hazen's); the largest tabulated
    value is such that the mean is that of the delays.

    The correlation is that of the normal scores of tasks of one request, over all pairs. A
    score is the normal quantile of (rank - 1/2) / delays in the group. Correlations below 0 count as 0, those above
    0.99 as 0.99. The standard error is the jackknife's over requests.

    Args:
        delays: at least ``LEAST_DELAYS``, chunks of a byte or more.
        name: of the law.
    """
    group = _groups(delays.bytes)
    counts = np.bincount(group)
    order = np.lexsort((delays.seconds, group))
    ends = np.cumsum(counts)
    ordered = np.split(delays.seconds[order], ends[:-1])
    in_order = np.split(delays.bytes[order], ends[:-1])
    sizes = np.array([sample.mean() for sample in in_order])
    rho, error, requests = _alike(delays, group, ordered)
    model = DelayModel(
        name,
        EMPIRICAL,
        rho=rho,
        sizes=sizes,
        quantiles=np.stack([_quantiles(sample) for sample in ordered]),
    )
    least, most = (np.array([edge(sample) for sample in in_order]) for edge in (np.min, np.max))
    return Measured(model, error, requests, counts, least, most)


def exponential_rho(correlation: float) -> float:
    """Correlation of normal scores that gives two exponential (also shifted) delays this correlation.

    With g(z) = -ln Phi(-z) and Hermite polynomials, corr(g(Z), g(Z')) = sum_k E[g(Z) He_k(Z)]^2 rho^k / k!, k >= 1.
    Below 0 counts as 0, above 0.99 as 0.99.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    value = -special.log_ndtr(-nodes) * weights / weights.sum()
    orders = np.arange(1, 40)
    square = [(np.polynomial.hermite_e.hermeval(nodes, np.eye(40)[k]) @ value) ** 2 for k in orders]
    terms = np.array(square) / special.factorial(orders)
    grid = np.linspace(0, _MOST_RHO, 2001)
    return float(np.interp(correlation, terms @ grid ** orders[:, None], grid))


def _groups(sizes: np.ndarray) -> np.ndarray:
    """Group of each size (D,), from 0, ascending with the size."""
    distinct, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    group = np.arange(len(distinct))
    if len(distinct) > _MOST_SIZES:
        # a distinct size goes where its middle delay lies
        middle = np.cumsum(counts) - counts / 2
        _, group = np.unique((middle * _MOST_SIZES / len(sizes)).astype(np.int64), return_inverse=True)
    held = np.bincount(group, counts)
    mean = np.bincount(group, counts * distinct) / held
    while len(held) > 1 and held.min() < LEAST_DELAYS:
        place = int(held.argmin())
        ratio = np.diff(np.log(mean))
        joined = (
            place if place == 0 or (place < len(ratio) and ratio[place] < ratio[place - 1]) else place - 1
        )
        # groups ``joined`` and joined + 1 become one
        mean[joined] = np.average(mean[joined : joined + 2], weights=held[joined : joined + 2])
        held[joined] += held[joined + 1]
        mean, held = np.delete(mean, joined + 1), np.delete(held, joined + 1)
        group[group > joined] -= 1
    return group[inverse]


def _quantiles(ordered: np.ndarray) -> np.ndarray:
    """(Q,) quantiles of ascending delays."""
    count = len(ordered)
    probability = np.linspace(0, 1, _QUANTILES)
    values = np.interp(probability * count + 0.5, np.arange(1, count + 1), ordered)
    # the last cell can hold many delays of a long tail, whose mean is far from the middle of its ends (where it holds
    # one or none, rounding of the cells before it can ask for less than what is below: a change of 1e-4 of the mean)
    total = ordered.mean() * (_QUANTILES - 1)
    rest = values[1:-1].sum() + values[0] / 2
    values[-1] = max(2 * (total - rest), values[-2])
    return values


def _alike(delays: Delays, group: np.ndarray, ordered: list[np.ndarray]) -> tuple[float, float, int]:
    """Correlation of the normal scores of two tasks of one request, its standard error, requests with two tasks."""
    from scipy.stats import rankdata  # takes 0.3 s, and is not for every command

    begins = np.concatenate([[True], delays.request[1:] != delays.request[:-1]])
    request = np.cumsum(begins) - 1
    tasks = np.bincount(request)
    several = tasks > 1
    requests = int(several.sum())
    scores = np.empty(len(group))
    for number, sample in enumerate(ordered):
        member = group == number
        scores[member] = special.ndtri((rankdata(delays.seconds[member]) - 0.5) / len(sample))
    squares = np.bincount(request, scores**2)[several]
    # over the pairs of a request: sum of s_a s_b, and of (s_a^2 + s_b^2) / 2
    products = (np.bincount(request, scores)[several] ** 2 - squares) / 2
    norms = squares * (tasks[several] - 1) / 2
    if not norms.sum() > 0:
        return 0.0, float("nan"), requests
    value = products.sum() / norms.sum()
    error = float("nan")
    if requests > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            others = (products.sum() - products) / (norms.sum() - norms)
        error = float(np.sqrt((requests - 1) / requests * ((others - value) ** 2).sum()))
    return float(np.clip(value, 0.0, _MOST_RHO)), error, requests
