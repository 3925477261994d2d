"""Rows of the dataset ``codes``: one per candidate."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from ecjax.cores import available_cores, one_blas_thread
from ecjax.durability.assessment import (
    NEGLIGIBLE_LOAD,
    Assessment,
    assess,
    nines,
    unavailable,
)
from ecjax.durability.codes import Code
from ecjax.durability.floors import Target
from ecjax.durability.mds_chain import HOURS_PER_YEAR
from ecjax.durability.repair_times import repair_time
from ecjax.status import Status
from ecjax.studies.codes.inputs import Case
from ecjax.studies.codes.latencies import Known, latency_columns
from ecjax.studies.codes.layouts import one_code
from ecjax.studies.codes.options import CodesOptions
from ecjax.studies.spine.durability import sensitivity

_LEAST = ("overhead", "any_loss_probability", "repair_bytes_per_day", "down_p99_s")  # of a Pareto front


def code_rows(
    case: Case, options: CodesOptions, each: Callable[[float], None] = lambda _: None
) -> list[dict[str, Any]]:
    """A row per candidate, in their order.

    Args:
        case: candidates and cluster.
        options: of the job.
        each: is told the share that is done after every candidate.
    """
    by_k: dict[int, list[int]] = {}
    for at, code in enumerate(case.codes):
        by_k.setdefault(code.k, []).append(at)
    cores = available_cores()
    at_once = min(len(by_k), cores) if case.traffic is not None else 1

    def alike(codes: list[int]) -> list[tuple[int, dict[str, Any]]]:
        known = Known(max(1, cores // at_once))
        made = []
        for at in codes:
            made.append((at, _row(case.codes[at], case, options, known)))
            each(1 / len(case.codes))
        return made

    with one_blas_thread(), ThreadPoolExecutor(at_once) as pool:
        made = dict(chain.from_iterable(pool.map(alike, by_k.values())))
    rows = [made[at] for at in range(len(made))]
    for row in rows:
        row["pareto"] = _eligible(row) and not any(_better(other, row) for other in rows)
    return rows


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The durable code of least overhead, of several the one with least repair traffic; None where none is."""
    durable = [row for row in rows if row["durable"]]
    return min(durable, key=by_cost) if durable else None


def by_cost(row: dict[str, Any]) -> tuple[float, float]:
    """What a code costs: overhead first, then repair traffic."""
    return row["overhead"], row["repair_bytes_per_day"]


def _row(code: Code, case: Case, options: CodesOptions, known: Known) -> dict[str, Any]:
    latencies: dict[str, Any] = {}
    if case.traffic is not None:
        layout = one_code(code, case.traffic.classes, len(case.traffic.files))
        latencies = latency_columns(layout, case.traffic, case.cluster, case.failures, known)
    # repairs give way to reads; where these leave them nothing, which the status says, nines are those without reads
    pace = latencies.get("repair_pace", 1.0)
    cluster = case.cluster.at_pace(pace) if pace > 0 else case.cluster
    assessed = assess(code, cluster, case.failures)
    if assessed is None:
        if cluster == case.cluster:
            raise ValueError(f"{code.name}: its repairs never catch up")  # inputs.case_of has checked
        cluster, latencies = case.cluster, latencies | _never_catch_up(code, pace)
        assessed = assess(code, cluster, case.failures)
        assert assessed is not None
    raw = options.user_bytes * assessed.overhead
    disk = repair_time(cluster, code.n, code.k, code.repair_chunks, 0, 1)
    row = {
        "code": code.name,
        "k": code.k,
        "n": code.n,
        "overhead": assessed.overhead,
        "raw_bytes": raw,
        "dollars_per_period": raw * options.storage_dollars_per_byte,
        "chunks_per_domain": assessed.most_per_domain,
        "nines": None,
        "repair_s": assessed.repair_s,
        "disk_repair_s": disk.all_s,
        "repair_bytes_per_day": assessed.repair_bytes_per_day,
        "repair_load": assessed.repair_load,
        "domain_repair_load": assessed.domain_repair_load,
        "durable": False,
    }
    row["status"] = str(Status.OK)
    if assessed.repair_share <= NEGLIGIBLE_LOAD:
        row |= _losses(assessed, options) | sensitivity(code, cluster, case.failures)
        if options.outages_per_year:
            outage = options.outages_per_year, options.outage_hours / HOURS_PER_YEAR
            row["unavailable_per_year"] = unavailable(code, cluster, case.failures, *outage)
    if case.traffic is not None:
        row |= latencies
        row["durable"] = row["durable"] and row["status"] == Status.OK and _fast_enough(row, options)
    if row["status"] == Status.OK:
        row |= repairs_status(code, assessed, pace)
    return row


def repairs_status(code: Code, assessed: Assessment | None, pace: float) -> dict[str, Any]:
    """Status and error of a code whose repairs queue, or never catch up, at a pace; empty where they do neither."""
    if assessed is None:
        return _never_catch_up(code, pace)
    if assessed.repair_share <= NEGLIGIBLE_LOAD:
        return {}
    return {
        "status": str(Status.UNSTABLE),
        "error": f"{code.name}: repairs queue, load {assessed.repair_share:.3g}, so that nines are unknown; allowed: "
        f"at most {NEGLIGIBLE_LOAD:g}, by more repair_bytes_per_s or cluster_bytes_per_s, or less user_bytes",
    }


def _fast_enough(row: dict[str, Any], options: CodesOptions) -> bool:
    slowest = row.get("down_p99_s")
    return options.max_p99_s is None or (slowest is not None and slowest <= options.max_p99_s)


def _losses(assessed: Assessment, options: CodesOptions) -> dict[str, Any]:
    probability = assessed.any_loss_probability
    target = Target(options.durability_nines, options.max_any_loss)
    return {
        "object_loss_probability": -math.expm1(-assessed.losses),
        "nines": nines(assessed.losses),
        "domain_loss_share": assessed.domain_share,
        "any_group_loss_probability": -math.expm1(-assessed.any_losses),
        "latent_loss_probability": -math.expm1(-assessed.latent_losses),
        "any_loss_probability": probability,
        "any_loss_nines": nines(assessed.any_loss_rate),
        "durable": target.kept_by(assessed),
    }


def _never_catch_up(code: Code, pace: float) -> dict[str, Any]:
    """Status of a code whose repairs are too slow in what reads leave them; its figures are those without reads."""
    return {
        "repair_pace": 0.0,
        "status": str(Status.UNSTABLE),
        "error": f"{code.name}: reads leave repairs {pace:.2g} of their bandwidth, at which they never catch up; "
        "allowed: lower rates, or more nodes",
    }


def _better(other: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether the other code is as good in everything and better in something."""
    if not _eligible(other):
        return False
    pairs = [(_value(other, name), _value(row, name)) for name in _LEAST]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _value(row: dict[str, Any], name: str) -> float:
    """What a front compares; reads that do not end are the slowest, and latencies that nobody asked for are equal."""
    value = row.get(name)
    return float("inf") if value is None else value


def _eligible(row: dict[str, Any]) -> bool:
    return row["nines"] is not None and row["status"] == Status.OK
