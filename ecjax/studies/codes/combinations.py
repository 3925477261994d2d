"""A code for every class of files: rows of ``class_codes`` and ``combinations``."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ecjax.cores import available_cores, one_blas_thread
from ecjax.durability.assessment import NEGLIGIBLE_LOAD, assess, nines
from ecjax.durability.codes import Code
from ecjax.status import Status
from ecjax.studies.codes.comparison import burden_of, worth_a_plan
from ecjax.studies.codes.inputs import Case
from ecjax.studies.codes.latencies import Known, latency_columns
from ecjax.studies.codes.layouts import Classes, by_class
from ecjax.studies.codes.options import CodesOptions
from ecjax.studies.codes.rows import repairs_status

Row = dict[str, Any]


def class_rows(case: Case, rows: Sequence[Row]) -> list[Row]:
    """A row per class and candidate: what its reads load, and their latencies where all files have that code.

    Args:
        case: candidates and classes.
        rows: of the candidates, with ``class_STATE``.
    """
    assert case.traffic is not None
    classes = classes_of_case(case)
    made = []
    for at, name in enumerate(classes.names):
        for code, row in zip(case.codes, rows, strict=True):
            made.append(
                {
                    "service_class": name,
                    "code": code.name,
                    "file_count": int(np.sum(classes.of_file == at)),
                    "bytes_share": float(classes.bytes_share[at]),
                    "read_share": float(classes.read_share[at]),
                    "overhead": row["overhead"],
                    "dollars_per_period": row["dollars_per_period"] * float(classes.bytes_share[at]),
                    "nines": row["nines"],
                    "load": burden_of(case.traffic, classes, at, code).load,
                    **_latencies(row, at),
                    "status": row["status"],
                }
            )
    return made


def _latencies(row: Row, at: int) -> Row:
    columns: Row = {}
    for name in ("healthy", "down", "small_healthy", "small_down"):
        pair = row[f"class_{name}"][at] if f"class_{name}" in row else (None, None)
        columns |= {f"{name}_mean_s": pair[0], f"{name}_p99_s": pair[1]}
    return columns


def combination_rows(
    case: Case, options: CodesOptions, rows: Sequence[Row], each: Callable[[float], None] = lambda _: None
) -> list[Row]:
    """A row per combination of codes that may be worth it, planned as one; the recommended one is marked.

    Those that no other beats in dollars and mean latency by ``comparison.worth_a_plan`` are planned, at most a dozen,
    spread over their dollars.

    Args:
        case: candidates and classes.
        options: of the job.
        rows: of the candidates, with ``class_STATE``.
        each: is told the share that is done after every plan.
    """
    classes = classes_of_case(case)
    by_name = {code.name: code for code in case.codes}
    known = {row["code"]: row for row in rows}
    assert case.traffic is not None
    enough = [by_name[row["code"]] for row in rows if _candidate(row, options)]
    planned = worth_a_plan(case.traffic, classes, enough)
    by_k: dict[tuple[int, ...], list[int]] = {}
    for at, codes in enumerate(planned):
        by_k.setdefault(tuple(code.k for code in codes), []).append(at)
    cores = available_cores()
    at_once = max(1, min(len(by_k), cores))

    def alike(places: list[int]) -> list[tuple[int, Row]]:
        shared = Known(max(1, cores // at_once))
        made = []
        for at in places:
            alone = [known[code.name] for code in planned[at]]
            made.append((at, _row(planned[at], alone, case, options, shared)))
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


def classes_of_case(case: Case) -> Classes:
    """The classes, where there are any."""
    assert case.traffic is not None and case.traffic.classes is not None
    return case.traffic.classes


def _candidate(row: Row, options: CodesOptions) -> bool:
    """Whether a code is durable enough by itself, though all files in it may be more than the nodes serve."""
    return row["nines"] is not None and row["nines"] >= options.durability_nines


def _row(
    codes: tuple[Code, ...], alone: Sequence[Row], case: Case, options: CodesOptions, known: Known
) -> Row:
    """A combination: what is lost, repaired and paid by shares of the bytes, latencies of one plan."""
    assert case.traffic is not None
    classes = classes_of_case(case)
    share = classes.bytes_share
    layout = by_class(codes, classes)
    planned = latency_columns(layout, case.traffic, case.cluster, case.failures, known)

    def total(column: str) -> float:
        return float(share @ np.array([row[column] for row in alone]))

    # without room for repairs, which the status says, as without reads
    pace = planned.get("repair_pace") or 1.0
    assessed = [assess(code, case.cluster.at_pace(pace), case.failures) for code in codes]
    row: Row = {
        "codes": json.dumps(dict(zip(classes.names, (code.name for code in codes), strict=True))),
        "overhead": total("overhead"),
        "dollars_per_period": total("dollars_per_period"),
        "repair_bytes_per_day": total("repair_bytes_per_day"),
        "durable": False,
    }
    known_losses = [each for each in assessed if each is not None and each.repair_share <= NEGLIGIBLE_LOAD]
    enough = len(known_losses) == len(codes)
    if enough:
        rate = float(share @ np.array([each.any_loss_rate for each in known_losses]))
        row["nines"] = min(nines(each.losses) for each in known_losses)
        row["any_loss_probability"] = -math.expm1(-rate)
        enough = row["nines"] >= options.durability_nines and (
            options.max_any_loss is None or row["any_loss_probability"] <= options.max_any_loss
        )
    for name in ("healthy", "down", "small_healthy", "small_down"):
        pairs = planned.pop(f"class_{name}", [])
        for what, values in zip(("mean", "p99"), zip(*pairs, strict=True), strict=False):
            if any(value is not None for value in values):
                by_name = dict(zip(classes.names, values, strict=True))
                row[f"class_{name}_{what}_s"] = json.dumps(by_name)
    row |= planned
    if row["status"] == Status.OK:
        statuses = [repairs_status(code, each, pace) for code, each in zip(codes, assessed, strict=True)]
        row |= next(filter(None, statuses), {})
    slowest = row.get("down_p99_s")
    fast = options.max_p99_s is None or (slowest is not None and slowest <= options.max_p99_s)
    row["durable"] = row["status"] == Status.OK and enough and fast
    return row


def _better(other: Row, row: Row) -> bool:
    """Whether another is as good in dollars and mean latency, and better in one."""
    if other["status"] != Status.OK:
        return False
    pairs = [(other[name], row[name]) for name in ("dollars_per_period", "healthy_mean_s")]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
