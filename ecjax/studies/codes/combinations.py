"""A code for every class of files: rows of ``class_codes`` and ``combinations``."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ecjax.cores import available_cores, one_blas_thread
from ecjax.durability.codes import Code
from ecjax.status import Status
from ecjax.studies.codes.inputs import Case
from ecjax.studies.codes.latencies import Known, latency_columns
from ecjax.studies.codes.layouts import Classes, by_class
from ecjax.studies.codes.options import CodesOptions

_MOST_PLANNED = 12
_MOST_COMPARED = 10**6  # combinations before any is planned

Row = dict[str, Any]


def class_rows(case: Case, rows: Sequence[Row]) -> list[Row]:
    """A row per class and candidate: latencies of its reads where all files have that code.

    Args:
        case: candidates and classes.
        rows: of the candidates, with ``class_STATE``.
    """
    classes = _classes(case)
    made = []
    for at, name in enumerate(classes.names):
        for row in rows:
            made.append(
                {
                    "service_class": name,
                    "code": row["code"],
                    "file_count": int(np.sum(classes.of_file == at)),
                    "bytes_share": float(classes.bytes_share[at]),
                    "read_share": float(classes.read_share[at]),
                    "overhead": row["overhead"],
                    "dollars_per_period": row["dollars_per_period"] * float(classes.bytes_share[at]),
                    "nines": row["nines"],
                    **_latencies(row, at),
                    "status": row["status"],
                }
            )
    return made


def _latencies(row: Row, at: int) -> Row:
    columns: Row = {}
    for state in ("healthy", "down"):
        pair = row[f"class_{state}"][at] if f"class_{state}" in row else (None, None)
        columns |= {f"{state}_mean_s": pair[0], f"{state}_p99_s": pair[1]}
    return columns


def combination_rows(
    case: Case, options: CodesOptions, rows: Sequence[Row], each: Callable[[float], None] = lambda _: None
) -> list[Row]:
    """A row per combination of codes that may be worth it, planned as one; the recommended one is marked.

    Combinations are compared by dollars and mean latency, where that of a class is the one with all files in its code;
    those that no other beats are planned, at most a dozen, spread over their dollars.

    Args:
        case: candidates and classes.
        options: of the job.
        rows: of the candidates, with ``class_STATE``.
        each: is told the share that is done after every plan.
    """
    classes = _classes(case)
    by_name = {code.name: code for code in case.codes}
    known = {row["code"]: row for row in rows}
    planned = _worth_a_plan(classes, [row for row in rows if _candidate(row, options)])
    by_k: dict[tuple[int, ...], list[int]] = {}
    for at, names in enumerate(planned):
        by_k.setdefault(tuple(by_name[name].k for name in names), []).append(at)
    cores = available_cores()
    at_once = max(1, min(len(by_k), cores))

    def alike(places: list[int]) -> list[tuple[int, Row]]:
        shared = Known(max(1, cores // at_once))
        made = []
        for at in places:
            codes = tuple(by_name[name] for name in planned[at])
            made.append((at, _row(codes, [known[code.name] for code in codes], case, options, shared)))
            each(1 / len(planned))
        return made

    with one_blas_thread(), ThreadPoolExecutor(at_once) as pool:
        made = dict(itertools.chain.from_iterable(pool.map(alike, by_k.values())))
    result = [made[at] for at in range(len(planned))]
    for row in result:
        row["pareto"] = row["status"] == Status.OK and not any(_better(other, row) for other in result)
    best = chosen_combination(result, options.max_p99_s)
    for row in result:
        row["recommended"] = row is best
    return result


def chosen_combination(rows: Sequence[Row], max_p99_s: float | None) -> Row | None:
    """The durable combination of least dollars that keeps the promise on latency, or without one the knee.

    The knee is, of those that no other beats, the one of least dollars times mean latency. None where none is.
    """
    durable = [row for row in rows if row["durable"]]
    if max_p99_s is not None:
        return min(durable, key=_dollars_then_mean, default=None)
    durable = [row for row in durable if row["pareto"]] or durable
    if not durable:
        return None
    return min(durable, key=lambda row: row["dollars_per_period"] * row["healthy_mean_s"])


def _dollars_then_mean(row: Row) -> tuple[float, float]:
    return row["dollars_per_period"], row["healthy_mean_s"]


def _classes(case: Case) -> Classes:
    assert case.traffic is not None and case.traffic.classes is not None
    return case.traffic.classes


def _candidate(row: Row, options: CodesOptions) -> bool:
    """Whether a code is durable enough by itself; what is lost of all files is judged of the combination."""
    known = row["status"] == Status.OK and row["nines"] is not None and "class_healthy" in row
    return known and row["nines"] >= options.durability_nines


def _worth_a_plan(classes: Classes, rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Combinations on the front of dollars and mean latency, at most so many, the cheapest first."""
    options = []
    for at in range(len(classes.names)):
        points = [
            (
                row["dollars_per_period"] * classes.bytes_share[at],
                row["class_healthy"][at][0] * classes.read_share[at],
                row["code"],
            )
            for row in rows
            if row["class_healthy"][at][0] is not None
        ]
        options.append(_front(points))
    while math.prod(map(len, options)) > _MOST_COMPARED:
        longest = max(options, key=len)
        longest[:] = longest[::2]
    points = [
        (
            sum(point[0] for point in parts),
            sum(point[1] for point in parts),
            tuple(point[2] for point in parts),
        )
        for parts in itertools.product(*options)
    ]
    front = _front(points)
    few = np.unique(np.linspace(0, len(front) - 1, min(len(front), _MOST_PLANNED)).round().astype(int))
    return [front[at][2] for at in few]


def _front(points: Sequence[tuple[float, float, Any]]) -> list[tuple[float, float, Any]]:
    """The points that no other beats in both numbers, the least first number first."""
    front: list[tuple[float, float, Any]] = []
    for point in sorted(points, key=lambda each: each[:2]):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def _row(
    codes: tuple[Code, ...], alone: Sequence[Row], case: Case, options: CodesOptions, known: Known
) -> Row:
    """A combination: what is lost, repaired and paid by shares of the bytes, latencies of one plan."""
    assert case.traffic is not None
    classes = _classes(case)
    share = classes.bytes_share
    layout = by_class(codes, classes)
    planned = latency_columns(layout, case.traffic, case.cluster, case.failures.disk_rate, known)

    def total(column: str) -> float:
        return float(share @ np.array([row[column] for row in alone]))

    survives = np.array([math.log1p(-row["any_loss_probability"]) for row in alone])
    row: Row = {
        "codes": json.dumps(dict(zip(classes.names, (code.name for code in codes), strict=True))),
        "overhead": total("overhead"),
        "dollars_per_period": total("dollars_per_period"),
        "nines": min(row["nines"] for row in alone),
        "any_loss_probability": -math.expm1(float(share @ survives)),
        "repair_bytes_per_day": total("repair_bytes_per_day"),
    }
    for state in ("healthy", "down"):
        pairs = planned.pop(f"class_{state}", [])
        for what, values in zip(("mean", "p99"), zip(*pairs, strict=True), strict=False):
            by_name = dict(zip(classes.names, values, strict=True))
            row[f"class_{state}_{what}_s"] = json.dumps(by_name)
    row |= planned
    slowest = row.get("down_p99_s")
    row["durable"] = (
        row["status"] == Status.OK
        and (options.max_any_loss is None or row["any_loss_probability"] <= options.max_any_loss)
        and (options.max_p99_s is None or (slowest is not None and slowest <= options.max_p99_s))
    )
    return row


def _better(other: Row, row: Row) -> bool:
    """Whether another is as good in dollars and mean latency, and better in one."""
    if other["status"] != Status.OK:
        return False
    pairs = [(other[name], row[name]) for name in ("dollars_per_period", "healthy_mean_s")]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
