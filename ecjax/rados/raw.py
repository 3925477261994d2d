"""CRUSH's own set of a group, from what is in force: the entries of the map undone."""

from collections.abc import Mapping

from ecjax.rados.records import NO_OSD, Entries, Items


def with_items(osds: tuple[int, ...], items: Items, out: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """A set after ``pg_upmap_items``: in order, the position of a becomes b, unless b is in the set or out.

    Args:
        osds: ids by position.
        items: pairs (a, b).
        out: OSDs that are out.
    """
    held = list(osds)
    for a, b in items:
        if a in held and b not in held and b not in out:
            held[held.index(a)] = b
    return tuple(held)


def without_items(osds: tuple[int, ...], items: Items) -> tuple[int, ...]:
    """The set before items, undone backwards; right unless an item was ignored."""
    held = list(osds)
    for a, b in reversed(items):
        if b in held and a not in held:
            held[held.index(b)] = a
    return tuple(held)


def own_sets(sets: Mapping[str, tuple[int, ...]], entries: Entries) -> dict[str, tuple[int, ...]]:
    """CRUSH's own set of every group of which it can be told: not under a pg_upmap, nor where positions are empty.

    Args:
        sets: in force, by group.
        entries: of the map.
    """
    return {
        name: without_items(osds, entries.items.get(name, ()))
        for name, osds in sets.items()
        if name not in entries.upmap and NO_OSD not in osds
    }


def listed_raw_agrees(
    raw: Mapping[str, tuple[int, ...]],
    sets: Mapping[str, tuple[int, ...]],
    entries: Entries,
    out: frozenset[int],
) -> bool:
    """Whether CRUSH's own sets, with the items on them, are the sets in force; groups with a pg_upmap tell nothing.

    Args:
        raw: CRUSH's own sets.
        sets: in force, by group.
        entries: of the map.
        out: OSDs that are out.
    """
    return all(
        with_items(raw[name], entries.items.get(name, ()), out) == osds
        for name, osds in sets.items()
        if name in raw and name not in entries.upmap and NO_OSD not in osds
    )
