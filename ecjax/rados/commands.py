"""Commands that bring a cluster from its entries to a plan's sets, and back.

Per group: ``pg-upmap`` with the whole set, then ``rm-pg-upmap-items`` where it had items (they are without effect by
then; the other order would send the group home in between, and is taken only where items would act on the new set).
Where the new set is CRUSH's own, entries are only removed: the monitor drops a ``pg_upmap`` that equals it with all
entries of the group. No items are ever put on a group that has a ``pg_upmap``.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ecjax.rados.raw import with_items
from ecjax.rados.records import Cluster, Entries, Items

_LEAST_CLIENT = "luminous"  # knows upmap entries
PREPARE = f"ceph osd set-require-min-compat-client {_LEAST_CLIENT}"


def preparing(min_client: str) -> list[str]:
    """Commands after which a cluster accepts upmap entries: none where it does, as ``PREPARE`` would lower what is set.

    Args:
        min_client: oldest release of clients that may connect; empty, or ``unknown`` as Ceph prints it: not known.
    """
    # releases are named in the order of the alphabet
    return [] if min_client >= _LEAST_CLIENT and min_client != "unknown" else [PREPARE]


class Change(NamedTuple):
    """What becomes of one group."""

    group: str
    before: tuple[int, ...]  # ids by position
    after: tuple[int, ...]
    commands: tuple[str, ...]
    undo: tuple[str, ...]  # in this order


def changes(cluster: Cluster, sets: Mapping[str, tuple[int, ...]]) -> list[Change]:
    """The commands of every group that changes, in the order of the groups.

    Args:
        cluster: its sets, entries and CRUSH's own sets count.
        sets: new set of every group that changes.
    """
    held = cluster.sets
    return [
        Change(
            name,
            held[name],
            sets[name],
            commands_of(name, sets[name], cluster.entries, cluster.raw.get(name)),
            undo_of(name, sets[name], cluster.entries, cluster.raw.get(name)),
        )
        for name in cluster.groups.ids
        if name in sets and sets[name] != held[name]
    ]


def commands_of(
    name: str, osds: tuple[int, ...], entries: Entries, raw: tuple[int, ...] | None
) -> tuple[str, ...]:
    """Commands that give a group a set.

    Args:
        name: of the group.
        osds: ids by position.
        entries: of the map as it is.
        raw: CRUSH's own set, where it is known.
    """
    removals = []
    if name in entries.items:
        removals.append(f"ceph osd rm-pg-upmap-items {name}")
    if raw == osds:
        # first the items: under a pg_upmap they are without effect
        return (*removals, *([f"ceph osd rm-pg-upmap {name}"] if name in entries.upmap else []))
    items = entries.items.get(name)
    if items is not None and with_items(osds, items) != osds:
        # beside the new set they would move shards, and might break a failure domain
        return (*removals, _upmap(name, osds))
    return (_upmap(name, osds), *removals)


def undo_of(
    name: str, osds: tuple[int, ...], entries: Entries, raw: tuple[int, ...] | None
) -> tuple[str, ...]:
    """Commands that bring the entries of a group back to what they are, after those of ``commands_of``.

    Items come before the pg_upmap goes: beside it they are without effect as long as it holds the OSDs that they lead
    to, and in force once it is gone, so that the group does not go home in between.

    Args:
        name: of the group.
        osds: the set that it was given.
        entries: of the map as it is.
        raw: CRUSH's own set, where it is known.
    """
    items = entries.items.get(name)
    put = [] if items is None else [_items(name, items)]
    if name in entries.upmap:
        return (_upmap(name, entries.upmap[name]), *put)
    take = [] if raw == osds else [f"ceph osd rm-pg-upmap {name}"]
    if items is not None and with_items(osds, items) != osds:
        # beside this set they would move shards, and might break a failure domain
        return (*take, *put)
    return (*put, *take)


def _upmap(name: str, osds: tuple[int, ...]) -> str:
    return f"ceph osd pg-upmap {name} {' '.join(map(str, osds))}"


def _items(name: str, items: Items) -> str:
    return f"ceph osd pg-upmap-items {name} {' '.join(f'{a} {b}' for a, b in items)}"


def expected_entries(entries: Entries, listed: list[Change], raw: Mapping[str, tuple[int, ...]]) -> Entries:
    """The entries of the map after the commands of some groups."""
    upmap, items = dict(entries.upmap), dict(entries.items)
    for change in listed:
        items.pop(change.group, None)
        upmap.pop(change.group, None)
        if raw.get(change.group) != change.after:
            upmap[change.group] = change.after
    return Entries(upmap, items)
