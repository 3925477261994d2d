"""The strategies of a proxy by name, each as a table of codes by level of a signal."""

import numpy as np

from ecjax.adaptation import static_code, thresholds
from ecjax.adaptation.delays import DelayModel
from ecjax.adaptation.proxy import IDLE, WAITING, RequestClass, Strategy
from ecjax.adaptation.thresholds import Ladder


def static(codes: list[tuple[int, int]]) -> Strategy:
    """One code (n, k) per class, (C,), whatever the backlog."""
    return thresholds.joined(
        "static", WAITING, 0.0, [Ladder(np.empty(0), np.array([n]), np.array([k])) for n, k in codes]
    )


def replication(classes: list[RequestClass], copies: int = 2) -> Strategy:
    """Every object is asked for ``copies`` times as a whole, as far as r_max allows."""
    codes = [(min(copies, int(static_code.longest(c.r_max, 1))), 1) for c in classes]
    return static(codes)._replace(name="replication")


def greedy(classes: list[RequestClass]) -> Strategy:
    """As many chunks as threads are idle, l: k = min(k_max, l), n = min(floor(r_max k), l); (1, 1) where none is."""
    ladders = []
    for c in classes:
        idle = np.arange(int(static_code.longest(c.r_max, c.k_max)) + 1)
        k = np.minimum(c.k_max, np.maximum(idle, 1))
        n = np.minimum(static_code.longest(c.r_max, k), np.maximum(idle, 1))
        ladders.append(Ladder(idle[1:].astype(float), n, k))
    return thresholds.joined("greedy", IDLE, 0.0, ladders)


def fast_cloud(
    classes: list[RequestClass], models: list[DelayModel], threads: int, k: int | None = None
) -> Strategy:
    """FAST CLOUD: a fixed dimension, a length by the requests that wait (``thresholds.fast_cloud_ladder``).

    Args:
        classes: (C,) classes.
        models: (C,) delays of their tasks.
        threads: L.
        k: dimension, k_max of a class where it is smaller or this is None.
    """
    ladders = [
        thresholds.fast_cloud_ladder(
            c, thresholds.fitted(c, model), threads, c.k_max if k is None else min(k, c.k_max)
        )
        for c, model in zip(classes, models, strict=True)
    ]
    return thresholds.joined("fast_cloud", WAITING, 0.0, ladders)


def tofec(
    classes: list[RequestClass], models: list[DelayModel], threads: int, memory: float = 0.99
) -> Strategy:
    """TOFEC: length and dimension by the smoothed number of requests that wait (``thresholds.tofec_ladder``).

    Args:
        classes: (C,) classes.
        models: (C,) delays of their tasks.
        threads: L.
        memory: weight of the past in the smoothed number, in [0, 1).
    """
    ladders = [
        thresholds.tofec_ladder(c, thresholds.fitted(c, model), threads)
        for c, model in zip(classes, models, strict=True)
    ]
    return thresholds.joined("tofec", WAITING, memory, ladders)
