"""Rows of the datasets of ``ecjax adapt`` besides ``runs``: codes, latencies, timeline, thresholds, delays."""

import math

import numpy as np

from ecjax.adaptation.delays import DelayModel, linear_delays, mean_delay, quantile
from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, RequestClass, Strategy
from ecjax.adaptation.replay import Outcome
from ecjax.intervals import LEVELS, statistics
from ecjax.studies.spine.batches import Rows

_SHORTEST = 0.9  # share of the delays, the shortest, that TOFEC fits its linear model on
_FAR = LEVELS | {"p999_s": 0.999}
_GRID = 4096  # probabilities by which moments are integrated


def codes(
    classes: list[RequestClass], strategy: Strategy, class_of: np.ndarray, outcome: Outcome, first: int
) -> Rows:
    """How many requests were served with each code, and how fast; by class.

    Args:
        classes: C of them.
        strategy: its codes by level.
        class_of: (N,) class of each request.
        outcome: of the N requests.
        first: requests before this one are not counted.
    """
    levels = strategy.n.shape[1]
    place = class_of[first:].astype(np.int64) * levels + outcome.level[first:]
    shape = (len(classes), levels)
    count = np.bincount(place, minlength=strategy.n.size).reshape(shape)
    total = np.bincount(place, outcome.latency_s[first:], minlength=strategy.n.size).reshape(shape)
    rows: Rows = []
    for c, each in enumerate(classes):
        pairs = list(zip(strategy.n[c].tolist(), strategy.k[c].tolist(), strict=True))
        for code in sorted(set(pairs), key=lambda pair: (pair[1], pair[0])):
            columns = [level for level, pair in enumerate(pairs) if pair == code]
            requests = int(count[c, columns].sum())
            if requests:
                row = {"class": each.name, "n": code[0], "k": code[1], "requests": requests}
                shares = {"share": requests / int(count[c].sum())}
                rows.append(row | shares | {"mean_s": float(total[c, columns].sum() / requests)})
    return rows


def latencies(classes: list[RequestClass], class_of: np.ndarray, latency: np.ndarray) -> Rows:
    """Statistics of all requests and, where there are several classes, of each.

    Args:
        classes: C of them.
        class_of: (N,).
        latency: (N,) s.
    """
    rows: Rows = [{"group": "all", "requests": len(latency), **_statistics(latency)}]
    if len(classes) > 1:
        for c, each in enumerate(classes):
            of_class = latency[class_of == c]
            if of_class.size:
                row = {"group": "class", "class": each.name, "requests": len(of_class)}
                rows.append(row | _statistics(of_class))
    return [row | {"source": "replayed"} for row in rows]


def _statistics(latency: np.ndarray) -> dict[str, float | None]:
    """What ``latencies`` has columns for."""
    values = statistics(latency, _FAR)
    return {name: value for name, value in values.items() if name != "std_ci_s"}


def timeline(arrival: np.ndarray, latency: np.ndarray, dimension: np.ndarray, length: float) -> Rows:
    """Latencies by time of arrival, from 0 on, in intervals.

    Args:
        arrival: (N,) s, ascending.
        latency: (N,) s.
        dimension: (N,) k of the code of each request.
        length: s, of an interval.
    """
    origin = math.floor(arrival[0] / length)
    place = np.floor(arrival / length).astype(np.int64) - origin
    edges = np.searchsorted(place, np.arange(place[-1] + 2))
    rows: Rows = []
    for number in range(len(edges) - 1):
        inside = slice(edges[number], edges[number + 1])
        row = {"start_s": (origin + number) * length, "requests": int(inside.stop - inside.start)}
        if row["requests"]:
            row |= {
                "mean_s": float(latency[inside].mean()),
                "p90_s": float(np.quantile(latency[inside], 0.9)),
            }
            row |= {"mean_k": float(dimension[inside].mean())}
        rows.append(row)
    return rows


def delays(classes: list[RequestClass], models: list[DelayModel]) -> Rows:
    """Delays of tasks by class and chunk size, and TOFEC's linear model of them (Fig. 6).

    Args:
        classes: C of them.
        models: law of the tasks' delays of each.
    """
    rows: Rows = []
    probability = (np.arange(_GRID) + 0.5) / _GRID
    for each, model in zip(classes, models, strict=True):
        sizes = each.bytes / np.arange(1, each.k_max + 1)
        fit = linear_delays(model, sizes)
        for size in sizes[::-1].tolist():
            shortest = quantile(model, size, probability * _SHORTEST)
            psi = fit.psi_s + fit.psi_s_per_byte * size
            row = {
                "quantity": "task",
                "class": each.name,
                "op": each.op,
                "chunk_bytes": size,
                "mean_s": mean_delay(model, size),
                "std_s": _deviation(model, size, probability),
                **dict(zip(_FAR, quantile(model, size, np.array(list(_FAR.values()))).tolist(), strict=True)),
                "kept_mean_s": float(shortest.mean()),
                "kept_std_s": float(shortest.std()),
                **fit._asdict(),
                "fit_mean_s": fit.delta_s + fit.delta_s_per_byte * size + psi,
                "fit_std_s": psi,
            }
            rows.append(row)
    return rows


def _deviation(model: DelayModel, size: float, probability: np.ndarray) -> float:
    """Standard deviation of the delay of a task, s."""
    if model.kind == EMPIRICAL:
        return float(quantile(model, size, probability).std())
    scale = model.scale_s + model.scale_s_per_byte * size
    if model.kind == EXPONENTIAL:
        return scale
    variance = model.shape**2
    return scale * math.sqrt(math.exp(variance) * math.expm1(variance))
