"""From dumps to a cluster: pools, OSDs, groups with their positions, rates, entries; and what is wrong with them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ecjax.errors import UserError
from ecjax.rados.crush import UnknownStep, rule_domains
from ecjax.rados.doubts import (
    note_affinity,
    note_breaking,
    note_full,
    note_moving,
    note_recovered,
    note_stale,
    note_unusable,
    room_of,
    stored_bytes,
)
from ecjax.rados.files import Dumps, as_printed
from ecjax.rados.pools import check_same_cluster, planned_pools
from ecjax.rados.rates import measured_rates, other_reads
from ecjax.rados.raw import listed_raw_agrees, own_sets
from ecjax.rados.records import NO_OSD, Cluster, Domains, Entries, Groups, Pool

# repair: before Quincy every deep scrub has it where osd_scrub_auto_repair is on; what is damaged is inconsistent, too
_CLEAN = {"active", "clean", "scrubbing", "deep", "repair", "snaptrim", "snaptrim_wait"}
_MOST_WEIGHT = 1e6  # TiB
EQUAL, MEASURED = "equal", "measured"


class Reading(NamedTuple):
    """How dumps are read."""

    rates: str = MEASURED  # MEASURED: by difference of two pg dumps; EQUAL: every group as often
    pools: tuple[str, ...] = ()  # names; empty: all erasure-coded ones
    moving: bool = False  # whether no group needs to be clean, as nothing is planned


_ALL = Reading()


def read_cluster(dumps: Dumps, reading: Reading = _ALL) -> Cluster:
    """The cluster that dumps describe.

    Args:
        dumps: of one cluster.
        reading: what of it is wanted.

    Raises:
        UserError: dumps are of different clusters, lack what a plan needs, or hold nothing that can be planned.
    """
    with as_printed(dumps.source, dumps.osd.get("require_osd_release", "unknown")):
        return _cluster(dumps, reading)


def _cluster(dumps: Dumps, reading: Reading) -> Cluster:
    notes = list(dumps.notes)
    pools = planned_pools(dumps, reading.pools, notes)
    osds = np.array(sorted(each["osd"] for each in dumps.osd["osds"]), np.int64)
    by_id = _by_id(dumps)
    weight = np.array([_weight(dumps, by_id[osd]) for osd in osds.tolist()])
    usable = np.array([_is_usable(by_id[osd]) for osd in osds.tolist()]) & (weight > 0)
    if not usable.any():
        raise UserError(f"{dumps.source}: found no OSD that is up, in and of a weight above 0; allowed: some")
    latest = dumps.groups[-1]["pg_stats"]
    check_same_cluster(dumps, pools, by_id, latest)
    entries = _entries(dumps.osd)
    listed = _listed(latest, {pool.pool_id: place for place, pool in enumerate(pools)})
    groups = _groups(dumps, reading, pools, listed, osds, notes)
    notes += note_stale(entries, listed)
    classes, hosts = _places(dumps, osds)
    sets = {each["pgid"]: tuple(each["up"]) for each in listed}
    out = frozenset(osd for osd, each in by_id.items() if not each["in"])
    raw = own_sets(sets, entries)
    if listed_raw_agrees(dumps.raw, sets, entries, out):
        raw |= {name: dumps.raw[name] for name in sets if name in dumps.raw}
    else:
        notes.append("CRUSH's own sets among the dumps are of another time: not used")
    background = _background(dumps, reading, pools, osds, notes)
    room = room_of(dumps, by_id, osds)
    note_full(osds, room, notes)
    note_affinity(by_id, notes)
    cluster = Cluster(
        str(dumps.osd.get("fsid", "")),
        int(dumps.osd["epoch"]),
        str(dumps.osd.get("require_osd_release", "unknown")),
        str(dumps.osd.get("require_min_compat_client", "")),
        osds,
        usable,
        weight,
        room,
        classes,
        hosts,
        tuple(pools),
        *_domains(dumps, pools, notes),
        groups,
        tuple(each["pgid"] for each in latest if not _is_clean(each)),
        entries,
        raw,
        *background,
        (),
    )
    note_breaking(cluster, notes)
    note_unusable(cluster, notes)
    return cluster._replace(notes=tuple(notes))


def _by_id(dumps: Dumps) -> dict[int, Mapping[str, Any]]:
    """Entries of the osd dump.

    Raises:
        UserError: an OSD has two.
    """
    by_id: dict[int, Mapping[str, Any]] = {}
    for each in dumps.osd["osds"]:
        if each["osd"] in by_id:
            raise UserError(f"{dumps.source}: found osd.{each['osd']} twice in the osd dump; allowed: once")
        by_id[each["osd"]] = each
    return by_id


def _is_usable(osd: Mapping[str, Any]) -> bool:
    return bool(osd["in"]) and bool(osd["up"]) and float(osd["weight"]) > 0


def _listed(latest: Iterable[Mapping[str, Any]], places: Mapping[int, int]) -> list[Mapping[str, Any]]:
    """Entries of a pg dump of some pools, in the order of pool and group."""
    chosen = [each for each in latest if _pool_of(each["pgid"]) in places]
    return sorted(chosen, key=lambda each: (_pool_of(each["pgid"]), int(each["pgid"].split(".")[1], 16)))


def _pool_of(pgid: str) -> int:
    return int(pgid.split(".")[0])


def _groups(
    dumps: Dumps,
    reading: Reading,
    pools: Sequence[Pool],
    listed: Sequence[Mapping[str, Any]],
    osds: np.ndarray,
    notes: list[str],
) -> Groups:
    place_of = {pool.pool_id: place for place, pool in enumerate(pools)}
    pool = np.array([place_of[_pool_of(each["pgid"])] for each in listed], np.int64)
    for number, each in enumerate(pools):
        count = int((pool == number).sum())
        if count != each.group_count:
            raise UserError(
                f"pool {each.name}: found {count} groups in the pg dump of {each.group_count}; allowed: all of them"
            )
    wrong = [
        each["pgid"] for each, place in zip(listed, pool, strict=True) if len(each["up"]) != pools[place].n
    ]
    if wrong:
        raise UserError(
            f"group {wrong[0]}: found a set of another length than its pool's size; allowed: equal ones"
        )
    movable = np.array([_is_clean(each) for each in listed])
    note_moving(listed, movable, notes)
    note_recovered(listed, notes)
    if not movable.any() and not reading.moving:
        raise UserError(
            f"{dumps.source}: found no group that is active+clean with up = acting; allowed: wait until data has moved"
        )
    up = np.concatenate([np.asarray(each["up"], np.int64) for each in listed])
    place = np.minimum(np.searchsorted(osds, up), len(osds) - 1)
    if reading.rates == EQUAL:
        rate, size = np.ones(len(listed)), np.full(len(listed), np.nan)
    else:
        rate, size = measured_rates(dumps, listed, pool, notes)
    k = np.array([each.k for each in pools])[pool]
    return Groups(
        tuple(each["pgid"] for each in listed),
        pool,
        np.concatenate([[0], np.cumsum([len(each["up"]) for each in listed])]).astype(np.int64),
        np.where(up == NO_OSD, -1, place),
        rate,
        stored_bytes(listed, notes),
        size / k,
        movable,
    )


def _background(
    dumps: Dumps, reading: Reading, pools: Sequence[Pool], osds: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Shard reads/s and bytes/s of the pools that are left as they are: none where no rates are measured."""
    planned = {pool.pool_id for pool in pools}
    if reading.rates == EQUAL:
        if len(planned) < len(dumps.osd["pools"]):
            notes.append("rates=equal: reads of pools that are not planned do not count")
        return np.zeros(len(osds)), np.zeros(len(osds))
    reads, size = other_reads(dumps, planned, osds)
    if reads.any():
        notes.append(
            f"pools that are not planned: their {reads.sum():.4g} reads/s count as load that stays where it is"
        )
    return reads, size


def _is_clean(group: Mapping[str, Any]) -> bool:
    state = set(group["state"].split("+"))
    clean = {"active", "clean"} <= state <= _CLEAN
    return clean and group["up"] == group["acting"] and NO_OSD not in group["up"]


def _entries(osd_dump: Mapping[str, Any]) -> Entries:
    return Entries(
        {each["pgid"]: tuple(int(osd) for osd in each["osds"]) for each in osd_dump.get("pg_upmap", [])},
        {
            each["pgid"]: tuple((int(pair["from"]), int(pair["to"])) for pair in each["mappings"])
            for each in osd_dump.get("pg_upmap_items", [])
        },
    )


def _places(dumps: Dumps, osds: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Device class and host of each OSD."""
    if dumps.crush is None:
        return ("",) * len(osds), ("",) * len(osds)
    classes = {each["id"]: each.get("class", "") for each in dumps.crush["devices"]}
    hosts = {
        item["id"]: each["name"]
        for each in dumps.crush["buckets"]
        if "~" not in each["name"]
        for item in each["items"]
        if item["id"] >= 0
    }
    listed = osds.tolist()
    return tuple(classes.get(osd, "") for osd in listed), tuple(hosts.get(osd, "") for osd in listed)


def _weight(dumps: Dumps, osd: Mapping[str, Any]) -> float:
    """CRUSH weight times reweight of an OSD; 1 for the former where there is no crush dump, 0 where it is not in it.

    Raises:
        UserError: it is no weight.
    """
    weight = _listed_weight(dumps, osd)
    if not 0 <= weight <= _MOST_WEIGHT:
        raise UserError(
            f"osd.{osd['osd']}: found weight {weight:g}; allowed: 0 to {_MOST_WEIGHT:g}, as CRUSH has them"
        )
    return weight


def _listed_weight(dumps: Dumps, osd: Mapping[str, Any]) -> float:
    reweight = float(osd["weight"])
    for each in (dumps.tree or {}).get("nodes", []):
        if each["id"] == osd["osd"] and "crush_weight" in each:
            return float(each["crush_weight"]) * reweight
    for each in (dumps.crush or {}).get("buckets", []):
        for item in each["items"]:
            if item["id"] == osd["osd"]:
                return float(item["weight"]) / 0x10000 * reweight
    return reweight if dumps.crush is None else 0.0


def _domains(
    dumps: Dumps, pools: Sequence[Pool], notes: list[str]
) -> tuple[tuple[Domains | None, ...], tuple[bool, ...]]:
    """What the rules of the pools demand, where that is known, and whether it may be that positions are bound."""
    if dumps.crush is None:
        notes.append("no crush dump: shards stay on their OSDs (roles_only)")
        return (None,) * len(pools), (False,) * len(pools)
    rules = {each["rule_id"] for each in dumps.crush["rules"]}
    listed: list[Domains | None] = []
    for pool in pools:
        try:
            listed.append(rule_domains(dumps.crush, pool.rule))
        except UnknownStep as error:
            # of a rule with several take ... emit the monitor asks that positions stay below their own root
            stays = "planned around, not changed" if pool.rule in rules else "its shards stay on their OSDs"
            notes.append(f"pool {pool.name}: its CRUSH rule is not understood ({error}): {stays}")
            listed.append(None)
    bound = [each is None and pool.rule in rules for each, pool in zip(listed, pools, strict=True)]
    return tuple(listed), tuple(bound)


def targets(cluster: Cluster, pool: int) -> np.ndarray:
    """(m,) shards that a pool should keep on every OSD: its positions, shared by weight below its rule's root."""
    domains = cluster.domains[pool]
    allowed = (
        np.ones(len(cluster.osds), bool) if domains is None else np.isin(cluster.osds, list(domains.allowed))
    )
    weight = np.where(allowed & cluster.usable, cluster.weight, 0.0)
    each = cluster.pools[pool]
    return each.group_count * each.n * weight / weight.sum()
