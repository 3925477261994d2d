"""Two earlier bounds on the mean latency of coded reads, that the JLCM paper compares with in its Fig. 7.

Both serve one request at a time: a request is an M/G/1 customer whose service ends with an order statistic of the
nodes' service times, so that with S the service and lambda the rate of requests (Pollaczek and Khinchine)::

    T <= E[S] + lambda E[S^2] / (2 (1 - lambda E[S])),   infinite where lambda E[S] >= 1

They are of alike nodes, files that are alike in size, and Poisson arrivals; there is no connection delay.

Split-merge (theorem 3 of Joshi, Liu, Soljanin, "On the delay-storage trade-off in content download from coded
distributed storage systems", IEEE JSAC 32, 2014), for exponential service: every request goes to all n nodes, all of
which are blocked until k are done. It bounds fork-join with cancellation, where a node that is done goes on with the
next request.

Forks (Liang, Kozat, "FAST CLOUD: Pushing the envelope on delay performance of cloud storage with coding", IEEE/ACM
ToN 22, 2014), for general service. The JLCM paper says that requests go to L of N servers; the reading taken here is
that a request waits for all of its L = k nodes, and that no other request begins before. N then plays no part.
"""

import numpy as np
from numpy.typing import ArrayLike


def split_merge_bound(rate: ArrayLike, mean: float, n: int, k: int) -> np.ndarray:
    """Bound on the mean latency of an (n, k) code under fork-join with cancellation, s.

    With H_n = 1 + 1/2 + ... + 1/n the k-th smallest of n exponential times has mean (H_n - H_{n-k}) mean and variance
    (sum_{j=n-k+1}^{n} 1/j^2) mean^2. For k = 1 nothing is lost to blocking, and the bound is the mean itself.

    Args:
        rate: of requests, 1/s, any shape.
        mean: s, of the service of a chunk at a node.
        n: nodes that a request goes to.
        k: chunks that complete it.

    Returns:
        Shape of ``rate``.

    Raises:
        ValueError: k is not within 1 and n.
    """
    if not 1 <= k <= n:
        raise ValueError(f"k must be within 1 and n = {n}, not {k}")
    inverse = 1.0 / np.arange(n - k + 1, n + 1)
    first = mean * inverse.sum()
    return _one_at_a_time(rate, first, mean**2 * (inverse**2).sum() + first**2)


def forks_bound(rate: ArrayLike, value: ArrayLike, level: ArrayLike, forks: int) -> np.ndarray:
    """Bound on the mean latency of requests that wait for all of ``forks`` nodes, s; any service law.

    Args:
        rate: of requests, 1/s, any shape.
        value: (points,) s, service times, not decreasing; the law is a table, see ``largest_moments``.
        level: (points,) Pr(X <= value), from 0 to 1.
        forks: L, nodes that a request goes to.

    Returns:
        Shape of ``rate``.

    Raises:
        ValueError: ``forks`` is below 1, or the table is not one of a cumulative distribution.
    """
    return _one_at_a_time(rate, *largest_moments(value, level, forks))


def largest_moments(value: ArrayLike, level: ArrayLike, count: int) -> tuple[float, float]:
    """Mean (s) and second moment (s^2) of the largest of ``count`` independent service times.

    The law is a table between whose points the cumulative distribution is linear; a jump is two points with one value.
    With the inverse F^-1 of the distribution::

        E[max^p] = int_0^1 F^-1(u)^p L u^(L-1) du,

    of a polynomial between any two points, on which Gauss-Legendre quadrature is exact.

    Args:
        value: (points,) s, not decreasing.
        level: (points,) Pr(X <= value), not decreasing from 0 to 1.
        count: L.

    Raises:
        ValueError: ``count`` is below 1, or the table is not one of a cumulative distribution.
    """
    times, shares = np.asarray(value, float), np.asarray(level, float)
    if count < 1:
        raise ValueError(f"at least one time is needed, not {count}")
    rising = times.shape == shares.shape and np.all(np.diff(times) >= 0) and np.all(np.diff(shares) >= 0)
    if not rising or shares[0] != 0 or shares[-1] != 1:
        raise ValueError("values and levels must be of one shape and not decrease, levels from 0 to 1")
    node, weight = np.polynomial.legendre.leggauss(count // 2 + 2)  # exact up to degree count + 2
    place = (node + 1) / 2
    u = shares[:-1, None] + np.diff(shares)[:, None] * place
    x = times[:-1, None] + np.diff(times)[:, None] * place
    density = count * u ** (count - 1) * np.diff(shares)[:, None] * weight / 2
    return float((density * x).sum()), float((density * x**2).sum())


def _one_at_a_time(rate: ArrayLike, first: float, second: float) -> np.ndarray:
    """Mean sojourn of an M/G/1 queue, s, from two moments of its service."""
    rates = np.asarray(rate, float)
    idle = 1 - rates * first
    stable = idle > 0
    return np.where(stable, first + rates * second / (2 * np.where(stable, idle, 1)), np.inf)
