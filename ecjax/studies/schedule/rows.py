"""Rows of the ``coflows`` and ``coflow_widths`` datasets of a replay of transfers."""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax import intervals
from ecjax.coflow.workload import Workload

LEVELS = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
_NAMES = ("mean_s", *LEVELS)
COLUMNS = (*_NAMES, *map(intervals.half_width_of, _NAMES))


def statistics(completion: np.ndarray, isolation: np.ndarray, fair: np.ndarray | None) -> dict[str, Any]:
    """Mean and quantiles of times and slowdowns, with half widths, and improvement, named as in the result tables.

    Args:
        completion: s, from arrival to end, (C,), in the order of arrivals.
        isolation: s, the same alone on the fabric, (C,).
        fair: s, the same under ``fair``, (C,); None where that is not known.
    """
    times = intervals.statistics(completion, LEVELS)
    slowdowns = intervals.statistics(completion / isolation, LEVELS)
    return {
        **{name: times[name] for name in COLUMNS},
        "improvement": None if fair is None else float(fair.mean() / completion.mean()),
        **{slowdown_of(name): slowdowns[name] for name in COLUMNS},
    }


def slowdown_of(name: str) -> str:
    """Name of a statistic of slowdowns from that of times: mean_s, p95_s, p95_ci_s to slowdown, slowdown_p95, ..."""
    return f"slowdown_{name}".removesuffix("_s").removesuffix("_mean")


def coflows(
    named: dict[str, str],
    ids: pa.Array,
    workload: Workload,
    completion: np.ndarray,
    isolation: np.ndarray,
) -> pa.Table:
    """One row per coflow.

    Args:
        named: run_id, scheduler and sources.
        ids: (C,) coflow ids.
        workload: what was transferred.
        completion: s, (C,).
        isolation: s, (C,).
    """
    columns = _repeated(named, len(ids))
    columns |= {
        "coflow_id": ids,
        "arrival_s": workload.arrival_s,
        "completion_s": completion,
        "isolation_s": isolation,
        "bytes": workload.coflow_bytes,
        "width": workload.width,
    }
    return pa.table(columns)


def coflow_widths(
    named: dict[str, str],
    edges: list[int],
    workload: Workload,
    completion: np.ndarray,
    isolation: np.ndarray,
    fair: np.ndarray | None,
) -> pa.Table:
    """One row per class of widths that has coflows; arguments as above.

    Args:
        named: run_id, scheduler and sources.
        edges: least width of each class, ascending; what is narrower than the first is in none.
        workload: what was transferred.
        completion: s, (C,).
        isolation: s, (C,).
        fair: s, under ``fair``, (C,), or None.
    """
    place = np.searchsorted(edges, workload.width, side="right") - 1
    rows = []
    for number, name in enumerate(width_classes(edges)):
        inside = place == number
        if inside.any():
            values = statistics(completion[inside], isolation[inside], None if fair is None else fair[inside])
            rows.append(named | {"width_class": name, "coflow_count": int(inside.sum())} | values)
    return pa.Table.from_pylist(rows)


def width_classes(edges: list[int]) -> list[str]:
    """Names of the classes of widths: "[1,2)", ..., "[21,inf)"."""
    return [f"[{low},{high})" for low, high in zip(edges, [*edges[1:], "inf"], strict=True)]


def _repeated(named: dict[str, str], count: int) -> dict[str, Any]:
    return {name: pa.repeat(pa.scalar(value), count) for name, value in named.items()}
