"""Small systems that rules replay by themselves, and the transform of a queue's wait as a power series."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_TABLE_COLUMNS = 9


class Small(NamedTuple):
    """A few nodes and files, every file with a placement row of its own.

    Attributes:
        need: (r,) chunks per read.
        placements: r lists of nodes.
        shift: (m,) s, constant part of a chunk's service.
        random: (m,) s, mean of its exponential part.
        probabilities: r lists; None: need / n.
        counted: (r,) whether a file's reads are counted; None: all.
        queues: (r,) class at the nodes; None: one.
        chunks: that every node of a read serves together.
    """

    need: Sequence[int]
    placements: Sequence[Any]
    shift: Sequence[float]
    random: Sequence[float]
    probabilities: Sequence[Any] | None = None
    counted: Sequence[bool] | None = None
    queues: Sequence[int] | None = None
    chunks: int = 1


def poisson(rates: Sequence[float], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrival times, s, and files of so many requests of independent Poisson streams."""
    random = np.random.default_rng(seed)
    rate = np.asarray(rates, float)
    times = np.cumsum(random.standard_exponential(count)) / rate.sum()
    return times, random.choice(len(rate), count, p=rate / rate.sum())


def replayed(
    small: Small,
    arrivals: tuple[np.ndarray, np.ndarray],
    policy: str = "probabilistic",
    queue: str = "fcfs",
    weights: Sequence[float] = (1.0,),
    seed: int = 0,
) -> Any:
    """The tally of a replay, with the latency of every request."""
    from ecjax.simulation import tally
    from ecjax.simulation.run import Policy, Queue, replay

    system = _system(small)
    times, files = arrivals
    counts = tally.empty(len(times), 1, system.nodes, files=system.files, paths=True)
    settings = Policy(policy), Queue(queue, np.asarray(weights, float))
    return replay(system, iter([(times, files)]), counts, seed, *settings).tally


def _system(small: Small) -> Any:
    from ecjax.simulation.laws import KINDS, Laws
    from ecjax.simulation.system import System, whole_units

    need = np.asarray(small.need, np.int64)
    files, nodes = len(need), len(small.shift)
    table = np.zeros((nodes, _TABLE_COLUMNS))
    table[:, 0], table[:, 2], table[:, 6] = small.shift, small.random, KINDS.index("exponential")
    start = np.concatenate(([0], np.cumsum([len(row) for row in small.placements])))
    node = np.concatenate([np.asarray(row, np.int64) for row in small.placements])
    shares: Sequence[Any] = small.probabilities or [
        np.full(len(row), k / len(row)) for k, row in zip(need, small.placements, strict=True)
    ]
    nothing = np.zeros(files, np.int64)
    return System(
        laws=Laws(table, np.zeros(1)),
        connect=np.zeros((2, nodes)),
        need=need,
        chunk_bytes=np.ones(files),
        extra_s=np.zeros(files),
        link_s=np.zeros(files),
        group=nothing if small.counted is None else np.where(small.counted, 0, -1).astype(np.int64),
        queue=nothing if small.queues is None else np.asarray(small.queues, np.int64),
        row=np.arange(files),
        start=start,
        node=node,
        law=node.copy(),
        units=whole_units(np.concatenate([np.asarray(row, float) for row in shares]), start, need),
        chunks=np.full(len(node), small.chunks, np.int64),
    )


def interval(values: np.ndarray, batches: int = 20) -> tuple[float, float]:
    """Mean of a stationary series and half width of its 95 % interval, by means of batches."""
    from scipy import stats

    means = np.array([part.mean() for part in np.array_split(values, batches)])
    half = stats.t.ppf(0.975, batches - 1) * means.std(ddof=1) / np.sqrt(batches)
    return float(means.mean()), float(half)


def wait_by_transform(load: float, first: float, second: float, third: float) -> tuple[float, float]:
    """Mean, s, and variance, s^2, of an M/G/1 wait, from the transform of Pollaczek and Khinchine.

    (1 - rho) / (1 - rho R(s)) with R(s) = (1 - X(s)) / (m_1 s) = 1 - m_2 s / (2 m_1) + m_3 s^2 / (6 m_1) - ...,
    divided out as power series in s: derivatives at 0 are moments.
    """
    residual = np.array([1.0, -second / (2 * first), third / (6 * first)])
    return _moments_of_quotient(np.array([1 - load, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]) - load * residual)


def priority_waits_by_transform(
    rates: Sequence[float], moments: Sequence[Sequence[float]]
) -> list[tuple[float, float]]:
    """Mean, s, and variance, s^2, of the wait of two classes, the first before the second, non-preemptive.

    From the transforms (Conway, Maxwell and Miller, "Theory of Scheduling", 1967, 8-6), with B_k that of a service::

        W_1(s) = ((1 - rho) s + Lambda_2 (1 - B_2(s))) / (s - Lambda_1 (1 - B_1(s)))
        W_2(s) = (1 - rho) t / (s - Lambda_2 (1 - B_2(t))),  t = s + Lambda_1 (1 - G(s))

    G is that of a busy period of class 1 alone. All are divided by s, as power series.

    Args:
        rates: Lambda of both classes, 1/s.
        moments: of their services, (2, 3) in s, s^2, s^3.
    """
    one, two = (np.array([first, -second / 2, third / 6]) for first, second, third in moments)
    idle = 1 - rates[0] * one[0] - rates[1] * two[0]
    unit = np.array([1.0, 0.0, 0.0])
    high = _moments_of_quotient(idle * unit + rates[1] * two, unit - rates[0] * one)
    first, second, third = moments[0]
    alone = 1 - rates[0] * first
    busy = first / alone, second / alone**3, third / alone**4 + 3 * rates[0] * second**2 / alone**5
    t = unit + rates[0] * np.array([busy[0], -busy[1] / 2, busy[2] / 6])
    square = np.convolve(t, t)[:3]
    # 1 - B_2(t) = m_1 t - m_2 t^2 / 2 + m_3 t^3 / 6 - ..., of which t^n begins with s^n
    served = two[0] * t
    served[1:] += two[1] * square[:2]
    served[2] += two[2] * t[0] ** 3
    return [high, _moments_of_quotient(idle * t, unit - rates[1] * served)]


def _moments_of_quotient(dividend: np.ndarray, divisor: np.ndarray) -> tuple[float, float]:
    """Mean and variance of the law whose transform is a quotient of power series, (3,) each."""
    quotient = np.zeros(3)
    for power in range(3):
        rest = dividend[power] - quotient[:power] @ divisor[power:0:-1]
        quotient[power] = rest / divisor[0]
    mean = -quotient[1]
    return float(mean), float(2 * quotient[2] - mean**2)
