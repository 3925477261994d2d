"""Thresholds on the backlog: which code is best with how many requests waiting."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.adaptation import static_code
from ecjax.adaptation.delays import DelayModel, LinearDelays, linear_delays
from ecjax.adaptation.proxy import SIGNALS, RequestClass, Strategy


class Ladder(NamedTuple):
    """Codes of one class by level: level m is taken when edges[m - 1] <= signal < edges[m]."""

    edges: np.ndarray  # (M,) strictly ascending
    n: np.ndarray  # (M + 1,) int64
    k: np.ndarray  # (M + 1,) int64


def fitted(request_class: RequestClass, model: DelayModel) -> LinearDelays:
    """TOFEC's model of the delays of a class, fitted on the sizes of its chunks (two at least), all parts positive."""
    sizes = request_class.bytes / np.arange(1, max(request_class.k_max, 2) + 1)
    return static_code.usable(linear_delays(model, sizes), request_class.bytes)


def tofec_ladder(request_class: RequestClass, delays: LinearDelays, threads: int) -> Ladder:
    """TOFEC's thresholds (Section IV-C).

    Q_n is the backlog at which the best code has length n, n = 1, ..., N = floor(r_max k_max). A code of length n is
    used for H_n <= q < H_{n-1}, where H_n = (Q_n + Q_{n+1}) / 2, H_0 = inf, H_N = 0; the same for k. Then n is at most
    r_max k (line 6 of the algorithm). As k < n in every best code, n is never below k. Where the tasks of the class end
    in the background, best codes are those of ``static_code`` for that; the paper's are of cancelled tasks.

    Args:
        request_class: the class.
        delays: model of its delays, every part positive.
        threads: L.
    """
    size = request_class.bytes
    lengths = np.arange(1, int(static_code.longest(request_class.r_max, request_class.k_max)) + 1)
    dimensions = np.arange(1, request_class.k_max + 1)
    by_length = _midpoints(
        static_code.backlog_of(
            static_code.price_of_length(delays, size, lengths, request_class.background), threads
        )
    )
    by_dimension = _midpoints(
        static_code.backlog_of(
            static_code.price_of_dimension(delays, size, dimensions, request_class.background), threads
        )
    )
    return _merged(request_class, by_length, by_dimension)


def fast_cloud_ladder(request_class: RequestClass, delays: LinearDelays, threads: int, k: int) -> Ladder:
    """Thresholds of FAST CLOUD: k is fixed, n by the backlog.

    Total delays (harmonic sums, M/M/1) of the codes (n, k) and (n + 1, k) as functions of the rate cross once: the
    longer code is better below the crossing. There the queue of the longer one is longer too; the threshold is the
    middle of the two lengths. Every class is judged as if it were alone.

    Args:
        request_class: the class.
        delays: model of its delays, every part positive.
        threads: L.
        k: dimension.
    """
    size = request_class.bytes
    n = np.arange(k, int(static_code.longest(request_class.r_max, k)) + 1)
    service = static_code.service_delay(delays, size, n, float(k))
    used = static_code.usage(delays, size, n, float(k), request_class.background) / threads
    short, long = used[:-1], used[1:]
    gain = service[:-1] - service[1:]
    # gain = Dq(long) - Dq(short), the smaller root of short long s rate^2 - (short + long) s rate + gain = 0
    both, s = short + long, long - short + gain
    rate = 2 * gain / (both * s + np.sqrt((both * s) ** 2 - 4 * short * long * s * gain))
    backlog = 0.5 * (static_code.queue_length(rate * short) + static_code.queue_length(rate * long))
    return Ladder(backlog[::-1], n[::-1], np.full(len(n), k))


def joined(name: str, signal: int, memory: float, ladders: list[Ladder]) -> Strategy:
    """A strategy of the ladders of C classes: edges padded with inf, the last code repeated."""
    most = max(len(ladder.edges) for ladder in ladders)
    padded = [most - len(ladder.edges) for ladder in ladders]
    return Strategy(
        name,
        signal,
        memory,
        np.array(
            [
                np.pad(g.edges.astype(float), (0, p), constant_values=np.inf)
                for g, p in zip(ladders, padded, strict=True)
            ]
        ),
        np.array([np.pad(g.n, (0, p), mode="edge") for g, p in zip(ladders, padded, strict=True)]),
        np.array([np.pad(g.k, (0, p), mode="edge") for g, p in zip(ladders, padded, strict=True)]),
    )


def threshold_table(strategy: Strategy, classes: list[RequestClass]) -> list[dict[str, Any]]:
    """A strategy as a table that a proxy can load: which code at which (smoothed) signal.

    One row per class and level: class, signal, memory, backlog_from, backlog_below (inf at the last level), n, k.
    The signal is the one that ``backlog_from`` and ``backlog_below`` count: requests, or idle threads.
    """
    rows = []
    for c, request_class in enumerate(classes):
        edges = strategy.edges[c][strategy.edges[c] < np.inf]
        bounds = [0.0, *edges.tolist(), np.inf]
        rows += [
            {
                "class": request_class.name,
                "signal": SIGNALS[strategy.signal],
                "memory": strategy.memory,
                "backlog_from": bounds[m],
                "backlog_below": bounds[m + 1],
                "n": int(strategy.n[c, m]),
                "k": int(strategy.k[c, m]),
            }
            for m in range(len(edges) + 1)
        ]
    return rows


def _midpoints(backlogs: np.ndarray) -> np.ndarray:
    return 0.5 * (backlogs[1:] + backlogs[:-1])


def _merged(request_class: RequestClass, by_length: np.ndarray, by_dimension: np.ndarray) -> Ladder:
    """One ladder of thresholds on n and on k, without levels whose code is the one before."""
    edges = np.unique(np.concatenate([by_length, by_dimension]))
    start = np.concatenate([[-np.inf], edges])[:, None]
    k = 1 + np.sum(by_dimension > start, axis=1)
    n = np.minimum(1 + np.sum(by_length > start, axis=1), static_code.longest(request_class.r_max, k))
    new = np.append(True, (n[1:] != n[:-1]) | (k[1:] != k[:-1]))
    return Ladder(edges[new[1:]], n[new], k[new])
