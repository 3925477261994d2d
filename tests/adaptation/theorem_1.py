"""TOFEC's Theorem 1: the best codes as real numbers, from the two sides of its equations in ``static_code``."""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from ecjax.adaptation.static_code import backlog_of, dimension, price_of_code, usage

LOG_PRICE = 60.0  # |ln| of a price of thread time
LOG_RATIO = 40.0  # |ln(r - 1)| of a code


class Codes(NamedTuple):
    """The best codes of C classes at one rate."""

    n: np.ndarray  # (C,)
    k: np.ndarray  # (C,)
    utilisation: float  # x, share of the thread time
    backlog: float  # Q, requests waiting


def price_of(backlog, threads):
    """Price of thread time at a backlog Q > 0: (2x - x^2) / (L (1 - x)^2), x^2 / (1 - x) = Q."""
    backlog = np.asarray(backlog, float)
    busy = 2 * backlog / (backlog + np.sqrt(backlog**2 + 4 * backlog))
    idle = busy**2 / backlog
    return (2 * busy - busy**2) / (threads * idle**2)


def code_at(delays, size, price, background=False):
    """The best code (n, k) of a class at a price of thread time, any shape: Eq. 6 = Eq. 7 by halving ln(r - 1)."""
    log_price = np.log(price)
    low, high = np.full_like(log_price, -LOG_RATIO), np.full_like(log_price, LOG_RATIO)
    for _ in range(64):
        ratio = 0.5 * (low + high)
        k = dimension(delays, size, ratio, background)
        above = np.log(price_of_code(delays, size, ratio, k, background)) > log_price
        low, high = np.where(above, ratio, low), np.where(above, high, ratio)
    ratio = 0.5 * (low + high)
    k = dimension(delays, size, ratio, background)
    return k * (1 + np.exp(ratio)), k


def best_real_codes(classes, delays, threads, rate):
    """The price at which the codes of all classes make the utilisation that has this price."""
    share = np.array([c.share for c in classes])

    def codes(log_price):
        pairs = zip(classes, delays, strict=True)
        return np.array([code_at(d, c.bytes, np.exp(log_price), c.background) for c, d in pairs])

    def utilisation(codes):
        used = [
            usage(d, c.bytes, n, k, c.background) for c, d, (n, k) in zip(classes, delays, codes, strict=True)
        ]
        return rate * float(share @ np.array(used)) / threads

    def excess(log_price):
        return utilisation(codes(log_price)) + np.expm1(-0.5 * np.log1p(threads * np.exp(log_price)))

    log_price = optimize.brentq(excess, -LOG_PRICE, LOG_PRICE, xtol=1e-13)
    best = codes(log_price)
    return Codes(best[:, 0], best[:, 1], utilisation(best), float(backlog_of(np.exp(log_price), threads)))
