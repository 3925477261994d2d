"""Plans for one cluster, and their rows."""

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.ceph.batches import Batch, Limits, batches_of
from ecjax.ceph.commands import changes
from ecjax.ceph.plan import Plan, plan_of
from ecjax.engine import Worker
from ecjax.status import Status
from ecjax.studies.ceph.inputs import Case
from ecjax.studies.ceph.rows import batch_rows, command_rows, osd_rows, plan_rows, ratio
from ecjax.studies.ceph.tables import TABLES
from ecjax.studies.spine.batches import Rows
from ecjax.studies.spine.run import Run


@dataclass(frozen=True)
class Item:
    """One plan."""

    run: Run
    within: float


class Settings(NamedTuple):
    """What all plans of a study have in common."""

    limits: Limits
    tolerance: int | None  # of counts, where shards move; None: roles only


class Planned(NamedTuple):
    """A plan and its batches."""

    plan: Plan
    batches: list[Batch]


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
        began = time.perf_counter()
        planned = planned_of(case, item.within, settings)
        row = item.run.row() | columns_of(case, planned)
        row |= {"status": str(Status.OK), "solve_s": time.perf_counter() - began}
        rows.append(row)
        for dataset, each in datasets_of(case, planned).items():
            if each:
                datasets[dataset].append(pa.Table.from_pylist([{"run_id": name} | row for row in each]))
        worker.advance(1.0)
    return rows, datasets


def planned_of(case: Case, within: float, settings: Settings) -> Planned:
    """A plan, and the batches that bring it about."""
    cluster, demand = case.cluster, case.demand
    plan = plan_of(cluster, demand, within, settings.tolerance)
    listed = changes(cluster, plan.sets)
    start = plan.before * demand.speed, demand.speed
    return Planned(plan, batches_of(cluster, listed, demand.work, start, settings.limits))


def columns_of(case: Case, planned: Planned) -> dict[str, Any]:
    """What of a plan has columns in ``runs``."""
    plan, roles, cluster = planned.plan, planned.plan.roles, case.cluster
    before, after = ratio(plan.before), ratio(plan.after)
    # roles move load between OSDs of different speed: the bound is of the load, relative to the mean by the plan
    mean = float(plan.after.mean())
    bound = roles.bound / mean if mean > 0 else 1.0
    commands = sum(len(change.commands) for batch in planned.batches for change in batch.changes)
    return {
        "fsid": cluster.fsid,
        "epoch": cluster.epoch,
        "pool_count": len(cluster.pools),
        "group_count": len(cluster.groups.ids),
        "osd_count": len(cluster.osds),
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
        "notes": "\n".join(case.notes),
    }


def datasets_of(case: Case, planned: Planned) -> dict[str, Rows]:
    """Rows of the datasets besides ``runs``."""
    return {
        "plan": plan_rows(planned.batches),
        "commands": command_rows(planned.batches),
        "batches": batch_rows(planned.plan, planned.batches),
        "osds": osd_rows(case.cluster, planned.plan, case.demand.speed),
        "scenarios": [],
    }
