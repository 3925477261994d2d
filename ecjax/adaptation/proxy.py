"""What a proxy is given, as plain arrays: classes of requests, the delays of their tasks, and a strategy."""

from typing import NamedTuple

import numpy as np

WAITING, IN_SYSTEM, IDLE = range(3)  # signals
SIGNALS = ("waiting", "in_system", "idle")
EXPONENTIAL, LOGNORMAL, EMPIRICAL = range(3)  # kinds of delays


class RequestClass(NamedTuple):
    """Requests of one type and size."""

    name: str
    op: str  # "read" or "write"
    bytes: float  # J
    share: float  # of all requests; the shares of a proxy's classes sum to 1
    k_max: int  # largest code dimension
    r_max: float  # largest redundancy ratio n / k
    background: bool  # what is not needed for the answer is finished, not cancelled


class Tasks(NamedTuple):
    """Delays of tasks: D = shift + scale U, U exponential with mean 1 (EXPONENTIAL) or exp(shape N) (LOGNORMAL).

    EMPIRICAL takes D from ``quantiles``, linear between them. Tasks of one request depend on each other through a
    Gaussian copula: N_j = sqrt(rho) Z_0 + sqrt(1 - rho) Z_j. Entry [c, k] of an array is of class c with dimension k;
    [c, 0] is not used.
    """

    kind: np.ndarray  # (C,) int64
    shape: np.ndarray  # (C,) standard deviation of log U; lognormal only
    rho: np.ndarray  # (C,) correlation of the normal scores of two tasks of one request, in [0, 1]
    shift: np.ndarray  # (C, K + 1) s
    scale: np.ndarray  # (C, K + 1) s
    quantiles: (
        np.ndarray
    )  # (C, K + 1, Q) s, at probabilities 0, 1/(Q-1), ..., 1; (C, K + 1, 0) where none is empirical
    background: np.ndarray  # (C,) bool


class Strategy(NamedTuple):
    """Codes by level of a signal. Level m of class c is taken when edges[c, m - 1] <= signal < edges[c, m]."""

    name: str
    signal: int  # WAITING, IN_SYSTEM or IDLE
    memory: float  # weight of the past in the smoothed signal, in [0, 1); 0: the signal as it is
    edges: np.ndarray  # (C, M) ascending; inf where a class has fewer levels
    n: np.ndarray  # (C, M + 1) int64, n >= k
    k: np.ndarray  # (C, M + 1) int64, from 1 to K
    weight: float = (
        1.0  # of the smoothed signal in what is compared with the edges; the signal as it is has the rest
    )
