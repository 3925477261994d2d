"""Rates of groups, and bytes of a read, by difference of two pg dumps."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.rados.files import Dumps
from ecjax.rados.pools import ERASURE
from ecjax.rados.records import NO_OSD
from ecjax.units import count_text, time_text

LEAST_S = 30.0  # between two pg dumps: OSDs report every 5 s
_NAMED = 3
_MOST = 2.0**63  # of a counter


def measured_rates(
    dumps: Dumps,
    listed: Sequence[Mapping[str, Any]],
    pool: np.ndarray,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Client reads/s of every group, (G,), and bytes of one, (G,); nan bytes where there were none.

    Args:
        dumps: with the pg dumps.
        listed: entries of the last of them, G.
        pool: (G,) pool of each group.
        notes: gets a line for what is doubtful.

    Raises:
        UserError: there is one pg dump, two of one time, or there were no reads.
    """
    if len(dumps.groups) < 2:
        raise UserError(
            f"{dumps.source}: found one pg dump; allowed: two, {LEAST_S:g} s or more apart, for rates; rates=equal "
            "plans for equal ones"
        )
    first, last = dumps.groups[0], dumps.groups[-1]
    seconds = (_time(last["stamp"]) - _time(first["stamp"])).total_seconds()
    if seconds <= 0:
        raise UserError(f"{dumps.source}: found two pg dumps of {last['stamp']}; allowed: of different times")
    if seconds < LEAST_S:
        notes.append(
            f"the pg dumps are {seconds:.0f} s apart: OSDs report every 5 s, rates are rough below 30 s"
        )
    if len(dumps.groups) > 2:
        notes.append(
            f"{len(dumps.groups)} outputs of ceph pg dump: rates are those of the {time_text(seconds)} between the "
            f"first, of {first['stamp']}, and the last, of {last['stamp']}"
        )
    before = {each["pgid"]: each["stat_sum"] for each in first["pg_stats"]}
    after = [each["stat_sum"] for each in listed]
    counted = np.array([each["pgid"] in before for each in listed])
    earlier = [before.get(each["pgid"], each["stat_sum"]) for each in listed]
    reads, kilobytes = (
        np.array([_count(late, key) - _count(early, key) for late, early in zip(after, earlier, strict=True)])
        for key in ("num_read", "num_read_kb")
    )
    counted &= (reads >= 0) & (kilobytes >= 0)
    if not (counted & (reads > 0)).any():
        raise UserError(
            f"{dumps.source}: found no reads between the two pg dumps; allowed: a time with reads, or rates=equal"
        )
    rate = np.where(counted, reads, 0.0) / seconds
    if not counted.all():
        refused = [each["pgid"] for each, good in zip(listed, counted, strict=True) if not good]
        for place in np.unique(pool):
            inside = pool == place
            rate[inside & ~counted] = rate[inside & counted].mean() if (inside & counted).any() else 0.0
        few = ", ".join(refused[:_NAMED]) + (", ..." if len(refused) > _NAMED else "")
        notes.append(
            f"{count_text(len(refused), 'group counts', 'groups count')} fewer reads than before, or "
            f"{'is' if len(refused) == 1 else 'are'} new ({few}: a split, a new primary): the mean rate of the pool "
            "is taken"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(counted & (reads > 0), 1024 * kilobytes / reads, np.nan)
    return rate, size


def other_reads(
    dumps: Dumps, planned: Iterable[int], osds: np.ndarray, down: Collection[int] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Shard reads/s, (m,), and their bytes/s, (m,), of pools that are not planned, by difference of the pg dumps.

    Replicated groups are read at their primary, erasure-coded ones at the first k that are there (all of them with
    ``fast_read``).

    Args:
        dumps: with two pg dumps.
        planned: ids of the pools that are planned.
        osds: (m,) ids, ascending.
        down: ids of OSDs that are taken to be down: others of the group serve, or nobody, where it has fewer left than
            min_size.
    """
    first, last = dumps.groups[0], dumps.groups[-1]
    seconds = (_time(last["stamp"]) - _time(first["stamp"])).total_seconds()
    before = {each["pgid"]: each["stat_sum"] for each in first["pg_stats"]}
    place_of = {int(osd): place for place, osd in enumerate(osds)}
    others = {each["pool"]: each for each in dumps.osd["pools"] if each["pool"] not in set(planned)}
    reads, size = np.zeros(len(osds)), np.zeros(len(osds))
    for group in last["pg_stats"]:
        pool, early = others.get(int(group["pgid"].split(".")[0])), before.get(group["pgid"])
        if pool is None or early is None:
            continue
        late = group["stat_sum"]
        count, kilobytes = (
            max(_count(late, key) - _count(early, key), 0.0) for key in ("num_read", "num_read_kb")
        )
        k = 1
        if pool["type"] == ERASURE:
            k = int(dumps.osd["erasure_code_profiles"][pool["erasure_code_profile"]].get("k", pool["size"]))
        for osd in _serving(group["acting"], pool, k, down):
            if osd in place_of:
                reads[place_of[osd]] += count / seconds
                size[place_of[osd]] += 1024 * kilobytes / k / seconds
    return reads, size


def _serving(acting: Sequence[int], pool: Mapping[str, Any], k: int, down: Collection[int]) -> list[int]:
    """Ids of the OSDs of a group that take part in a client read.

    Args:
        acting: ids by position.
        pool: its entry of the osd dump.
        k: positions that are read.
        down: ids of OSDs that are taken to be down.
    """
    held = [osd for osd in acting if osd != NO_OSD]
    there = [osd for osd in held if osd not in down]
    if len(there) < len(held) and len(there) < max(k, int(pool.get("min_size", k))):
        return []
    return there if pool["type"] == ERASURE and pool.get("fast_read") else there[:k]


def _count(statistics: Mapping[str, Any], key: str) -> float:
    """A counter of a group.

    Raises:
        ValueError: it is none.
    """
    value = float(statistics[key])
    if not abs(value) <= _MOST:
        raise ValueError(f"{key} {value:g}")
    return value


def _time(stamp: str) -> datetime:
    """A time as releases write it: ``2026-11-22T13:50:33.676758+0000``, before Octopus with a space and no zone."""
    text = stamp.replace(" ", "T")
    time = datetime.fromisoformat(text[:-2] + ":" + text[-2:] if text[-5] in "+-" else text)
    return time.replace(tzinfo=None) if time.tzinfo is None else time
