"""Plans for one cluster, and their rows."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.engine import Worker
from ecjax.predict.plan_estimates import PlanEstimate
from ecjax.rados.batches import Batch, Limits, batches_of
from ecjax.rados.commands import changes
from ecjax.rados.plan import Plan, plan_of, role_load, shortened, with_sets
from ecjax.rados.shared import Shared, parts_of, shared_demand
from ecjax.status import Status
from ecjax.stopwatch import Stopwatch
from ecjax.studies.ceph.inputs import Case
from ecjax.studies.ceph.latencies import Service, estimate, least_latency, read_probabilities
from ecjax.studies.ceph.options import LOAD, MEAN
from ecjax.studies.ceph.rows import (
    batch_rows,
    command_rows,
    mean_load,
    note_uncounted,
    notes_apart,
    osd_rows,
    plan_rows,
    ratio,
)
from ecjax.studies.ceph.scenarios import scenario_rows
from ecjax.studies.ceph.tables import TABLES
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run

_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0)  # of the speeds


@dataclass(frozen=True)
class Item:
    """One plan."""

    run: Run
    within: float


class Settings(NamedTuple):
    """What all plans of a study have in common."""

    limits: Limits
    tolerance: int | None  # of counts, where shards move; None: roles only
    service: Service | None  # times of shard reads, where they are known
    what_if: list[str]  # scenarios
    objective: str  # what is least: load, mean or p99

    @property
    def timed(self) -> Service | None:
        """Times by which plans are made; None: by loads, as is asked for, or for want of times."""
        return None if self.objective == LOAD else self.service


class Planned(NamedTuple):
    """A plan and its batches, and latencies as it is and after each batch; none where they are not known."""

    plan: Plan
    batches: list[Batch]
    latencies: list[PlanEstimate]
    shared: Shared  # what of the loads counts in plan and batches


def solve(
    settings: Settings, case: Case, items: dict[str, Item], worker: Worker
) -> tuple[Rows, dict[str, list[pa.Table]]]:
    """Rows of ``runs`` and the other datasets.

    Args:
        settings: of the study.
        case: the cluster.
        items: plans to make, by run id.
        worker: where they are made.
    """
    rows: Rows = []
    datasets: dict[str, list[pa.Table]] = {name: [] for name in TABLES.names}
    for name, item in items.items():
        with Stopwatch(of_process=True) as stopwatch:
            planned = planned_of(case, item.within, settings)
        row = item.run.row() | columns_of(case, planned, settings, item.within)
        row |= {"status": str(Status.OK), "solve_s": stopwatch.own_s}
        rows.append(row)
        for dataset, each in datasets_of(case, planned, settings, item.within).items():
            if each:
                datasets[dataset].append(pa.Table.from_pylist([{"run_id": name} | row for row in each]))
        worker.advance(1.0)
    return rows, datasets


def planned_of(case: Case, within: float, settings: Settings) -> Planned:
    """A plan, and the batches that bring it about.

    Where latencies are to be least, OSDs get work by powers of their speed, from all alike to much more for fast ones,
    and the plan with the least estimate is taken, or none where none is less than it is now.
    """
    if settings.timed is None:
        return _planned(case, within, settings)
    mean = settings.timed.moments[0]
    relative = mean.mean() / mean
    speeds = [relative**power for power in _POWERS]
    plans = [
        _planned(case._replace(demand=case.demand._replace(speed=speed)), within, settings)
        for speed in speeds
    ]
    plan = shortened(case.cluster, case.demand, plans[0].plan, ())
    plans = [Planned(plan, [], plans[0].latencies[:1], plans[0].shared), *plans]
    quantity = 0 if settings.objective == MEAN else 1
    # of equal ones the first, which changes nothing
    best = int(np.argmin([planned.latencies[-1][quantity] for planned in plans]))
    return _as_loads(case, plans[best], settings)


def _as_loads(case: Case, planned: Planned, settings: Settings) -> Planned:
    """A plan for other speeds, with the loads and the bound of those that the OSDs have."""
    cluster, speed = case.cluster, case.demand.speed
    shared = shared_demand(cluster, case.demand, settings.tolerance)
    before, after = (role_load(cluster, shared.demand, sets) for sets in ({}, planned.plan.sets))
    # what OSDs have that are down or out stays there; the rest is at best spread evenly over the others
    usable = shared.able & cluster.usable
    even = float((after * speed)[usable].sum() / speed[usable].sum())
    bound = max(even, float(after[shared.able & ~usable].max(initial=0.0)))
    roles = planned.plan.roles._replace(bound=bound, copies_bound=math.nan)
    sets: dict[str, tuple[int, ...]] = {}
    batches = []
    for batch in planned.batches:
        sets |= {change.group: change.after for change in batch.changes}
        batches.append(batch._replace(load=role_load(cluster, shared.demand, sets)))
    plan = planned.plan._replace(before=before, after=after, roles=roles)
    return Planned(plan, batches, planned.latencies, shared)


def _planned(case: Case, within: float, settings: Settings) -> Planned:
    cluster = case.cluster
    shared = shared_demand(cluster, case.demand, settings.tolerance)
    demand = shared.demand
    plan = plan_of(cluster, demand, within, settings.tolerance)
    listed = changes(cluster, plan.sets)
    batches = batches_of(cluster, listed, demand, plan.before, settings.limits)
    plan = shortened(cluster, demand, plan, {change.group for batch in batches for change in batch.changes})
    return Planned(plan, batches, _latencies(case, batches, settings.service), shared)


def _latencies(case: Case, batches: list[Batch], service: Service | None) -> list[PlanEstimate]:
    if service is None:
        return []
    sets: dict[str, tuple[int, ...]] = {}
    latencies = []
    for batch in (None, *batches):
        sets |= {} if batch is None else {change.group: change.after for change in batch.changes}
        takes = read_probabilities(case.cluster, with_sets(case.cluster, sets))
        if (latency := estimate(case, service, takes)) is None:
            return []
        latencies.append(latency)
    return latencies


def columns_of(case: Case, planned: Planned, settings: Settings, within: float) -> dict[str, Any]:
    """What of a plan has columns in ``runs``."""
    plan, roles, cluster, service = planned.plan, planned.plan.roles, case.cluster, settings.service
    mean = mean_load(plan, planned.shared)
    before, after = ratio(plan.before, mean), ratio(plan.after, mean)
    bound = roles.bound / mean if mean > 0 else 1.0
    commands = sum(len(change.commands) for batch in planned.batches for change in batch.changes)
    # for latencies slow OSDs have less to do on purpose
    parts = parts_of(cluster, case.demand, settings.tolerance) if settings.timed is None else []
    columns = {
        "fsid": cluster.fsid,
        "epoch": cluster.epoch,
        "min_client": cluster.min_client,
        "pool_count": len(cluster.pools),
        "group_count": len(cluster.groups.ids),
        "osd_count": len(cluster.osds),
        "counted_osds": int(planned.shared.counted.sum()),
        "max_over_mean_before": before,
        "max_over_mean": after,
        "lower_bound": bound,
        "gap": after / bound - 1 if bound > 0 else 0.0,
        "changed_groups": len(plan.sets),
        "moved_chunks": plan.shards,
        "least_moved_chunks": None if math.isnan(roles.copies_bound) else int(roles.copies_bound),
        "moved_bytes": plan.bytes,
        "batch_count": len(planned.batches),
        "command_count": commands,
        "notes": "\n".join(
            (
                *case.notes,
                *note_uncounted(cluster, plan, planned.shared),
                *notes_apart(cluster, plan, parts, within),
                *(() if service is None else service.notes),
            )
        ),
    }
    if service is not None:
        columns["service_source"] = service.source
    least = None if service is None else least_latency(case, service, settings.tolerance is None)
    if planned.latencies and least is not None:
        first, last = planned.latencies[0], planned.latencies[-1]
        columns |= {
            "estimated_mean_before_s": first.mean,
            "estimated_p99_before_s": first.p99,
            "estimated_mean_s": last.mean,
            "estimated_p99_s": last.p99,
            "least_mean_s": least.mean,
            "least_p99_s": least.p99,
        }
    return columns


def datasets_of(case: Case, planned: Planned, settings: Settings, within: float) -> dict[str, Rows]:
    """Rows of the datasets besides ``runs``."""
    plan, batches = planned.plan, planned.batches
    batch = batch_rows(plan, batches, planned.shared)
    for row, latency in zip(batch, planned.latencies, strict=False):
        row |= {"estimated_mean_s": latency.mean, "estimated_p99_s": latency.p99}
    return {
        "plan": plan_rows(batches),
        "commands": command_rows(batches),
        "batches": batch,
        "osds": osd_rows(case.cluster, plan, planned.shared),
        "scenarios": scenario_rows(case, plan, batches, settings.what_if, settings.service, within),
    }
