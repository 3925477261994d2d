"""Rows of the datasets of ``ecjax ceph`` besides ``runs``."""

import json
from collections.abc import Sequence

import numpy as np

from ecjax.rados.batches import Batch
from ecjax.rados.plan import Plan, with_sets
from ecjax.rados.records import Cluster, is_read
from ecjax.rados.shared import Part, Shared
from ecjax.studies.spine.batches import Rows
from ecjax.units import count_text

_NAMED = 3
_UNEVEN = 0.05  # relatively, above the least load of the busiest OSD: worth a plan of some pools alone


def ratio(load: np.ndarray, mean: float | None = None) -> float:
    """Load of the busiest OSD / mean load; 1 where there is none.

    Args:
        load: (m,) relative to speed.
        mean: that counts; default: of these loads. Where load goes to faster OSDs their mean falls, so that loads
            before and after are compared by one of them.
    """
    mean = float(load.mean()) if mean is None else mean
    return float(load.max()) / mean if mean > 0 else 1.0


def mean_load(plan: Plan, shared: Shared) -> float:
    """Mean load before, relative to speed, of the OSDs whose load plans can share out."""
    return float(plan.before[shared.counted].mean())


def note_uncounted(cluster: Cluster, plan: Plan, shared: Shared) -> list[str]:
    """A line on OSDs whose load plans cannot share out."""
    others, mean = np.flatnonzero(~shared.counted), mean_load(plan, shared)
    if not len(others):
        return []
    load = plan.before + shared.beyond
    busiest = int(others[np.argmax(load[others])])
    names = [f"osd.{osd}" for osd in cluster.osds[others[:_NAMED]].tolist()]
    few = ", ".join(names) + (", ..." if len(others) > _NAMED else "")
    times = f", with {load[busiest] / mean:.3g} times that mean" if mean > 0 else ""
    return [
        f"busiest OSD and mean load are those of {count_text(int(shared.counted.sum()), 'OSD')}, not of "
        f"{count_text(len(others), 'other')} ({few}; busiest: osd.{cluster.osds[busiest]}{times}), where nothing may "
        "change, or more stays than these have at least"
    ]


def notes_apart(cluster: Cluster, plan: Plan, parts: Sequence[Part], within: float) -> list[str]:
    """A line on pools that share no OSD with others and stay uneven, as these have more to do.

    Args:
        cluster: as it is.
        plan: of all pools.
        parts: that these are divided into.
        within: of the plan.
    """
    # what a plan of all pools is made for
    most = max((part.least for part in parts), default=0.0)
    lines = []
    for part in parts:
        times = float(plan.after[part.counted].max()) / part.least
        if part.least == most or times <= (1 + within) * (1 + _UNEVEN):
            continue
        names = [cluster.pools[pool].name for pool in part.pools]
        its, it = ("its", "it") if len(names) == 1 else ("their", "them")
        lines.append(
            f"pool{'' if len(names) == 1 else 's'} {', '.join(names)}: the busiest of {its} OSDs keeps {times:.3g} "
            f"times the load of reads that are spread there at will, and OSDs of other pools have more to do: "
            f"pools={','.join(names)} plans {it} alone"
        )
    return lines


def plan_rows(batches: Sequence[Batch]) -> Rows:
    """A row per position of the groups that change; of a group that changes twice, from its first set to its last."""
    first: dict[str, tuple[int, ...]] = {}
    last: dict[str, tuple[int, ...]] = {}
    for batch in batches:
        for change in batch.changes:
            first.setdefault(change.group, change.before)
            last[change.group] = change.after
    return [
        {"group": group, "position": position, "osd": osd, "before": before}
        for group, osds in last.items()
        for position, (osd, before) in enumerate(zip(osds, first[group], strict=True))
    ]


def command_rows(batches: Sequence[Batch]) -> Rows:
    """A row per group and batch: commands, how to take them back, and the set expected."""
    return [
        {
            "batch": number,
            "group": change.group,
            "command": "\n".join(change.commands),
            "undo": "\n".join(change.undo),
            "expected": json.dumps(change.after),
        }
        for number, batch in enumerate(batches, 1)
        for change in batch.changes
    ]


def batch_rows(plan: Plan, batches: Sequence[Batch], shared: Shared) -> Rows:
    """A row for the cluster as it is, and one per batch."""
    nothing = {"changed_groups": 0, "moved_chunks": 0, "moved_bytes": 0.0, "misplaced_share": 0.0}
    mean = mean_load(plan, shared)
    rows: Rows = [{"batch": 0, **nothing, "max_over_mean": ratio(plan.before, mean)}]
    for number, batch in enumerate(batches, 1):
        rows.append(
            {
                "batch": number,
                "changed_groups": len(batch.changes),
                "moved_chunks": batch.shards,
                "moved_bytes": batch.bytes,
                "misplaced_share": batch.misplaced,
                "max_over_mean": ratio(batch.load, mean),
            }
        )
    return rows


def osd_rows(cluster: Cluster, plan: Plan, shared: Shared) -> Rows:
    """A row per OSD: its loads, its shares of the reads, and its shards, before and by the plan."""
    after = with_sets(cluster, plan.sets)
    count, rate = np.diff(cluster.groups.first), cluster.groups.rate
    columns = []
    for osd in (cluster.groups.osd, after):
        use = is_read(cluster) & (osd >= 0)
        reads = np.bincount(osd[use], np.repeat(rate, count)[use], len(cluster.osds))
        columns.append((reads / reads.sum(), np.bincount(osd[osd >= 0], minlength=len(cluster.osds))))
    mean = mean_load(plan, shared) or 1.0
    before, by_plan = ((load + shared.beyond) / mean for load in (plan.before, plan.after))
    return [
        {
            "osd": int(osd),
            "host": cluster.host[place],
            "device_class": cluster.device_class[place],
            "speed": float(shared.demand.speed[place]),
            "load_before": float(before[place]),
            "load": float(by_plan[place]),
            "read_share_before": float(columns[0][0][place]),
            "read_share": float(columns[1][0][place]),
            "shards_before": int(columns[0][1][place]),
            "shards": int(columns[1][1][place]),
        }
        for place, osd in enumerate(cluster.osds.tolist())
    ]
