"""What of dumps is doubtful, a line each for who reads the plan; and numbers that may be wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.rados.crush import breaking
from ecjax.rados.files import Dumps
from ecjax.rados.raw import with_items
from ecjax.rados.records import Cluster, Entries, Items
from ecjax.units import count_text

_NAMED = 3
_FULL = {"backfillfull", "full"}  # states of an OSD to which nothing is backfilled
_BACKFILLFULL = 0.9  # Ceph's default of backfillfull_ratio


def note_moving(listed: Sequence[Mapping[str, Any]], movable: np.ndarray, notes: list[str]) -> None:
    """A line on groups that are not clean, or not where they should be."""
    moving = [each for each, still in zip(listed, movable, strict=True) if not still]
    if moving:
        states = Counter(
            each["state"] if each["up"] == each["acting"] else f"{each['state']}, up is not acting"
            for each in moving
        )
        few = _few([each["pgid"] for each in moving])
        notes.append(
            f"{count_text(len(moving), 'group moves or is', 'groups move or are')} degraded ({few}: "
            f"{states.most_common(1)[0][0]}): planned around, not "
            "changed; better wait until all are active+clean"
        )


def note_recovered(listed: Sequence[Mapping[str, Any]], notes: list[str]) -> None:
    """A line on groups whose log reaches back over all objects: they are recovered and not backfilled."""
    short = sum(0 < each["stat_sum"].get("num_objects", 0) <= each.get("log_size", 0) for each in listed)
    if short:
        notes.append(
            f"the logs of {count_text(short, 'group')} reach back over all their objects: where such a group changes "
            "it is recovered, not backfilled: a swap of roles leaves two shards of each object to be recovered, and "
            "until they are there is less redundancy, and reads of the object may wait"
        )


def note_stale(entries: Entries, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for upmap entries that are without effect."""
    sets = {each["pgid"]: tuple(each["up"]) for each in listed}
    stale = [
        name
        for name, items in entries.items.items()
        if name in sets and name not in entries.upmap and not _in_effect(sets[name], items)
    ]
    stale += [
        name
        for name, upmap in entries.upmap.items()
        if name in sets and with_items(upmap, entries.items.get(name, ())) != sets[name]
    ]
    stale = list(dict.fromkeys(stale))
    if not stale:
        return []
    return [
        f"{count_text(len(stale), 'group has', 'groups have')} upmap entries that are not, or not wholly, in effect "
        f"({_few(stale)})"
    ]


def _in_effect(osds: tuple[int, ...], items: Items) -> bool:
    """Whether a set in force has taken each of some items: looked at backwards, as one may go on from another."""
    held = list(osds)
    for a, b in reversed(items):
        if b not in held or a in held:
            return False
        held[held.index(b)] = a
    return True


def stored_bytes(listed: Sequence[Mapping[str, Any]], notes: list[str]) -> np.ndarray:
    """Bytes of the objects of each group, (G,).

    Raises:
        UserError: they are no number.
    """
    size = np.array([float(each["stat_sum"]["num_bytes"]) for each in listed])
    wrong = np.flatnonzero(~np.isfinite(size))
    if wrong.size:
        place = int(wrong[0])
        raise UserError(
            f"group {listed[place]['pgid']}: found num_bytes {size[place]:g}; allowed: a number of bytes"
        )
    below = np.flatnonzero(size < 0)
    if below.size:
        few = _few([listed[place]["pgid"] for place in below.tolist()])
        notes.append(
            f"{count_text(below.size, 'group counts', 'groups count')} fewer than 0 bytes ({few}): taken for 0, a "
            "deep scrub counts anew"
        )
    return np.maximum(size, 0.0)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def room_of(dumps: Dumps, by_id: Mapping[int, Mapping[str, Any]], osds: np.ndarray) -> np.ndarray:
    """(m,) bytes until Ceph backfills no more to an OSD: 0 where it is there, infinite where no dump says it."""
    ratio = float(dumps.osd.get("backfillfull_ratio", 0.0)) or _BACKFILLFULL
    listed = {each["id"]: each for each in (dumps.tree or {}).get("nodes", [])}
    room = np.full(len(osds), np.inf)
    for place, osd in enumerate(osds.tolist()):
        node = listed.get(osd, {})
        if node.get("kb") and "kb_used" in node:
            room[place] = max(1024 * (ratio * float(node["kb"]) - float(node["kb_used"])), 0.0)
        if float(node.get("utilization") or 0.0) >= 100 * ratio or _FULL & set(by_id[osd].get("state", ())):
            room[place] = 0.0
    return room


def note_full(osds: np.ndarray, room: np.ndarray, notes: list[str]) -> None:
    """A line on OSDs without room."""
    full = osds[room <= 0].tolist()
    if full:
        few = _few([f"osd.{osd}" for osd in full])
        notes.append(
            f"{count_text(len(full), 'OSD is', 'OSDs are')} so full that Ceph backfills no more to them ({few}): no "
            "shard is moved to them, and "
            "groups that have one there stay as they are"
        )


def note_affinity(by_id: Mapping[int, Mapping[str, Any]], notes: list[str]) -> None:
    """A line on OSDs that Ceph prefers not to make primaries."""
    other = [osd for osd, each in sorted(by_id.items()) if float(each.get("primary_affinity", 1.0)) != 1.0]
    if other:
        few = _few([f"osd.{osd}" for osd in other])
        notes.append(
            f"primary_affinity of {count_text(len(other), 'OSD')} is not 1 ({few}): primaries of their groups may be "
            "others than "
            "position 0, which primary_work counts"
        )


def note_breaking(cluster: Cluster, notes: list[str]) -> None:
    """A line on groups whose set breaks the CRUSH rule of their pool."""
    wrong = breaking(cluster)
    if wrong:
        name, why = next(iter(wrong.items()))
        notes.append(
            f"{count_text(len(wrong), 'group breaks', 'groups break')} the CRUSH rule of the pool "
            f"({_few(list(wrong))}; {name}: {why}): planned "
            "around, not changed"
        )


def note_unusable(cluster: Cluster, notes: list[str]) -> None:
    """A line on groups that are clean and have OSDs that no plan uses, as of dumps that were not taken together."""
    groups = cluster.groups
    there = groups.osd >= 0
    able = cluster.usable[groups.osd] | ~there
    wrong = np.flatnonzero(groups.movable & ~np.logical_and.reduceat(able, groups.first[:-1]))
    if wrong.size:
        osds = np.unique(groups.osd[there & ~cluster.usable[groups.osd]])
        notes.append(
            f"{count_text(wrong.size, 'group has', 'groups have')} OSDs that are down, out or of weight 0 "
            f"({_few([f'osd.{osd}' for osd in cluster.osds[osds].tolist()])}): planned around, not changed"
        )
