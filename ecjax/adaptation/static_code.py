"""TOFEC's model of a proxy whose codes are fixed, and the codes that are best in it.

Of a request of J bytes served with an (n, k) code, chunks of B = J / k bytes, D = Delta(B) + Exp(mean Psi(B)):

- service delay Ds = Delta(B) + Psi(B) (1/(n-k+1) + ... + 1/n), or for large n about Delta(B) + Psi(B) ln(r / (r - 1)),
  r = n / k;
- usage U = n Delta(B) + k Psi(B), thread-seconds; where what is not needed for the answer is finished in the
  background, not cancelled, U = n (Delta(B) + Psi(B)).

The queue of requests is taken for an M/M/1 with rate L / U: with x = lambda U / L its delay is
Dq = lambda U^2 / (L (L - lambda U)), its length Q = lambda Dq = x^2 / (1 - x). The codes that minimise
sum_i alpha_i Ds_i + Dq(sum_i alpha_i U_i) over real k_i > 0, r_i > 1 with the logarithm (Theorem 1) have, with
d_0 + d_1 = Delta(J) and p_0 + p_1 = Psi(J) split into what is constant and what grows with the size,

    Eq. 6: k (p_0 k + p_1) / (d_0 k + d_1) = r (r - 1) (d_1 + p_1 ln(r / (r - 1))) / (d_0 r + p_0)
    Eq. 7: (2x - x^2) / (L (1 - x)^2) = (p_0 k + p_1) / (k r (r - 1) (d_0 k + d_1)).

The paper cancels tasks. With U of the background they are

    Eq. 6: k (p_0 k + p_1) / ((d_0 + p_0) k + d_1 + p_1) = (r - 1) (d_1 + p_1 ln(r / (r - 1))) / (d_0 + p_0)
    Eq. 7: (2x - x^2) / (L (1 - x)^2) = (p_0 k + p_1) / (k r (r - 1) ((d_0 + p_0) k + d_1 + p_1)).

Both sides of Eq. 7 are the price of thread time: the delay that one more thread-second per request adds in the queue,
dDq / dU, and what it takes off the service. The price is one for all classes and tells every class its code, longer
where thread time is cheap. It depends on the backlog Q alone (Corollary 1).

Source: Liang and Kozat, TOFEC, INFOCOM 2014, Section IV; the formulas are lost in its text and were derived again.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from ecjax.adaptation.delays import LinearDelays
from ecjax.adaptation.proxy import RequestClass
from ecjax.errors import UserError

_LEAST = 1e-6  # of a task's mean delay: no part of the model is smaller
_LOG_RANGE = 40.0  # |ln(r - 1)| of a code
_HALVINGS = 64
_PRICES = (1e-6, 1e6, 61)  # tried for codes in whole numbers
_ROUNDING = 1e-9


def longest(r_max: float, k: np.ndarray | int) -> np.ndarray:
    """floor(r_max k), the longest code of a dimension; 1.1 x 10 is 11 in spite of its rounding. Any shape, int64."""
    return np.floor(r_max * np.asarray(k) + _ROUNDING).astype(np.int64)


def all_codes(k_max: int, r_max: float) -> list[tuple[int, int]]:
    """Every code (n, k) with k <= k_max and k <= n <= r_max k, by k and then n."""
    return [(n, k) for k in range(1, k_max + 1) for n in range(k, int(longest(r_max, k)) + 1)]


def usable(delays: LinearDelays, size: float) -> LinearDelays:
    """A fitted model with every part positive, as the closed form needs it: at least 1e-6 of the mean delay.

    A line fitted to a trace may cross 0 above or below the sizes at hand. It is turned until it does not, about its
    value for the whole object, so that the usage of the (1, 1) code, and with it the capacity, is kept; where that
    value itself is below 0, Delta's is taken from Psi's or the other way round.

    Args:
        delays: model of the delays.
        size: J, bytes of an object.

    Raises:
        UserError: the mean delay of a whole object is not positive and finite.
    """
    deterministic = delays.delta_s + delays.delta_s_per_byte * size
    random = delays.psi_s + delays.psi_s_per_byte * size
    mean = deterministic + random
    if not 0 < mean < np.inf:
        raise UserError(
            f"delays: a chunk of {size:g} bytes takes {mean:g} s in the linear model, it must be positive and finite"
        )
    least = _LEAST * mean
    deterministic = min(max(deterministic, 2 * least), mean - 2 * least)
    parts = []
    for whole, constant in ((deterministic, delays.delta_s), (mean - deterministic, delays.psi_s)):
        constant = min(max(constant, least), whole - least)
        parts += [constant, (whole - constant) / size]
    return LinearDelays(*parts)


def service_delay(
    delays: LinearDelays, size: float, n: np.ndarray | float, k: np.ndarray | float
) -> np.ndarray:
    """Mean service delay of tasks that start together, s: Delta(B) + Psi(B) sum_{j=n-k+1}^n 1/j; real n >= k > 0."""
    n, k = np.asarray(n, float), np.asarray(k, float)
    delta, psi = _parts(delays, size / k)
    return delta + psi * (special.digamma(n + 1) - special.digamma(n - k + 1))


def usage(
    delays: LinearDelays,
    size: float,
    n: np.ndarray | float,
    k: np.ndarray | float,
    background: bool = False,
) -> np.ndarray:
    """Mean thread time of a request whose tasks start together, thread-seconds.

    n Delta(B) + k Psi(B) where tasks are cancelled at the k-th completion, n (Delta(B) + Psi(B)) where all are
    finished, in the background.
    """
    n, k = np.asarray(n, float), np.asarray(k, float)
    delta, psi = _parts(delays, size / k)
    return n * delta + (n if background else k) * psi


def queueing_delay(rate: float, mean_usage: np.ndarray | float, threads: int) -> np.ndarray:
    """Mean delay in the queue of requests as an M/M/1, s; inf where it is unstable.

    Args:
        rate: lambda, requests/s.
        mean_usage: U, thread-seconds per request over all classes, any shape.
        threads: L.
    """
    mean_usage = np.asarray(mean_usage, float)
    idle = threads - rate * mean_usage
    return np.where(idle > 0, rate * mean_usage**2 / (threads * np.where(idle > 0, idle, 1.0)), np.inf)


def queue_length(utilisation: np.ndarray) -> np.ndarray:
    """Q, mean requests waiting in an M/M/1 at a utilisation x < 1: x^2 / (1 - x)."""
    return utilisation**2 / (1 - utilisation)


def backlog_of(price: np.ndarray | float, threads: int) -> np.ndarray:
    """Q, mean requests waiting when thread time has this price: Q = x^2 / (1 - x), 1 + L price = 1 / (1 - x)^2."""
    load = threads * np.asarray(price, float)
    return np.expm1(-0.5 * np.log1p(load)) ** 2 * np.sqrt(1 + load)


def dimension(
    delays: LinearDelays, size: float, log_extra: np.ndarray, background: bool = False
) -> np.ndarray:
    """Dimension of the best codes with redundancy ratio r = 1 + exp(log_extra): the positive root of Eq. 6, rising.

    p_0 k^2 + (p_1 - R u_0) k - R u_1 = 0 with R the right side of Eq. 6, and u_0 and u_1 what each of the n tasks adds
    to the usage: the d, and in the ``background`` the p, too.
    """
    _, d1, p0, p1 = _split(delays, size)
    u0, u1 = _of_every_task(delays, size, background)
    extra = np.exp(log_extra)
    of_k = 0.0 if background else p0
    right = (1 + extra) * extra * (d1 + p1 * np.log1p(1 / extra)) / (u0 * (1 + extra) + of_k)
    middle = p1 - right * u0
    root = np.sqrt(middle**2 + 4 * p0 * u1 * right)
    # the form of the root that does not cancel
    return np.where(middle > 0, 2 * u1 * right / (np.abs(middle) + root), (root - middle) / (2 * p0))


def price_of_code(
    delays: LinearDelays, size: float, log_extra: np.ndarray, k: np.ndarray, background: bool = False
) -> np.ndarray:
    """Price of thread time at which a code with r = 1 + exp(log_extra) is best: the right side of Eq. 7."""
    _, _, p0, p1 = _split(delays, size)
    u0, u1 = _of_every_task(delays, size, background)
    extra = np.exp(log_extra)
    return (p0 * k + p1) / (k * (1 + extra) * extra * (u0 * k + u1))


def price_of_length(delays: LinearDelays, size: float, n: np.ndarray, background: bool = False) -> np.ndarray:
    """Price of thread time at which the best code has length n; n falls as it rises."""
    log = np.log(np.asarray(n, float))
    ratio = _solve(
        lambda t: -np.log(dimension(delays, size, t, background)) - np.log1p(np.exp(t)),
        -log,
    )
    return price_of_code(delays, size, ratio, np.exp(log) / (1 + np.exp(ratio)), background)


def price_of_dimension(
    delays: LinearDelays, size: float, k: np.ndarray, background: bool = False
) -> np.ndarray:
    """Price of thread time at which the best code has dimension k; k falls as it rises."""
    k = np.asarray(k, float)
    ratio = _solve(lambda t: -np.log(dimension(delays, size, t, background)), -np.log(k))
    return price_of_code(delays, size, ratio, k, background)


def best_codes(
    classes: list[RequestClass], delays: list[LinearDelays], threads: int, rate: float
) -> list[tuple[int, int]]:
    """The allowed codes of C classes with the least mean delay in the model, harmonic sums and M/M/1.

    Of one class they are the best. Several have the best of the codes that suit a common price of thread time, improved
    one class after the other until no change of one helps. At a rate that none of these serve: the least usage.

    Args:
        classes: (C,) with their shares, k_max and r_max, and whether they end in the background.
        delays: (C,) models of their delays.
        threads: L.
        rate: lambda, requests/s.
    """
    codes = [all_codes(c.k_max, c.r_max) for c in classes]
    parts = []
    for each, d, allowed in zip(classes, delays, codes, strict=True):
        n, k = np.array(allowed, float).T
        service, used = service_delay(d, each.bytes, n, k), usage(d, each.bytes, n, k, each.background)
        parts.append((each.share * service, each.share * used))

    def total(selection: tuple[int, ...]) -> tuple[float, float]:
        used = sum(u[i] for (_, u), i in zip(parts, selection, strict=True))
        service = sum(s[i] for (s, _), i in zip(parts, selection, strict=True))
        return float(service + queueing_delay(rate, used, threads)), float(used)

    prices = np.append(0.0, np.geomspace(*_PRICES))
    best = min({tuple(int(np.argmin(s + price * u)) for s, u in parts) for price in prices}, key=total)
    improved = True
    while improved:
        before = best
        for c, options in enumerate(codes):
            best = min([best, *((*best[:c], i, *best[c + 1 :]) for i in range(len(options)))], key=total)
        improved = best != before
    return [options[i] for options, i in zip(codes, best, strict=True)]


def _parts(delays: LinearDelays, chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return delays.delta_s + delays.delta_s_per_byte * chunk, delays.psi_s + delays.psi_s_per_byte * chunk


def _of_every_task(delays: LinearDelays, size: float, background: bool) -> tuple[float, float]:
    """Part of the usage that is in proportion to n, per chunk: what is constant, and what grows with the size."""
    d0, d1, p0, p1 = _split(delays, size)
    return (d0 + p0, d1 + p1) if background else (d0, d1)


def _split(delays: LinearDelays, size: float) -> tuple[float, float, float, float]:
    return delays.delta_s, delays.delta_s_per_byte * size, delays.psi_s, delays.psi_s_per_byte * size


def _solve(falling: Callable[[np.ndarray], np.ndarray], target: np.ndarray) -> np.ndarray:
    """ln(r - 1) at which a falling function of it has the targets, by halving; any shape."""
    low, high = np.full_like(target, -_LOG_RANGE), np.full_like(target, _LOG_RANGE)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = falling(middle) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 0.5 * (low + high)
