"""From dumps to a cluster: pools, OSDs, groups with their positions, rates, entries; and what is wrong with them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ecjax.ceph.crush import UnknownStep, rule_domains
from ecjax.ceph.files import Dumps
from ecjax.ceph.raw import own_sets
from ecjax.ceph.records import NO_OSD, Cluster, Domains, Entries, Groups, Pool
from ecjax.errors import UserError

_ERASURE = 3
_PLUGINS = ("jerasure", "isa")
_CLEAN = {"active", "clean", "scrubbing", "deep", "snaptrim", "snaptrim_wait"}
_LEAST_S = 30.0  # between two pg dumps: OSDs report every 5 s
_NAMED = 3
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
    try:
        return _cluster(dumps, reading)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        release = dumps.osd.get("require_osd_release", "unknown")
        raise UserError(
            f"{dumps.source}: found {what} in a dump of release {release}; allowed: dumps as Nautilus to Tentacle "
            "print them"
        ) from error


def _cluster(dumps: Dumps, reading: Reading) -> Cluster:
    notes: list[str] = [f"{name}: not a dump that is known" for name in dumps.unknown]
    pools = _pools(dumps, reading, notes)
    osds = np.array(sorted(each["osd"] for each in dumps.osd["osds"]), np.int64)
    by_id = {each["osd"]: each for each in dumps.osd["osds"]}
    usable = np.array([_is_usable(by_id[osd]) for osd in osds.tolist()])
    latest = dumps.groups[-1]["pg_stats"]
    _check_same_cluster(dumps, pools, by_id, latest)
    entries = _entries(dumps.osd)
    listed = _listed(latest, {pool.pool_id: place for place, pool in enumerate(pools)})
    groups = _groups(dumps, reading, pools, listed, osds, notes)
    notes += _stale(entries, listed)
    classes, hosts = _places(dumps, osds)
    sets = {each["pgid"]: tuple(each["up"]) for each in listed}
    raw = own_sets(sets, entries) | {name: dumps.raw[name] for name in sets if name in dumps.raw}
    return Cluster(
        str(dumps.osd.get("fsid", "")),
        int(dumps.osd["epoch"]),
        str(dumps.osd.get("require_osd_release", "unknown")),
        osds,
        usable,
        np.array([_weight(dumps, by_id[osd]) for osd in osds.tolist()]),
        classes,
        hosts,
        tuple(pools),
        _domains(dumps, pools, notes),
        groups,
        entries,
        raw,
        np.zeros(len(osds)),
        tuple(notes),
    )


def _is_usable(osd: Mapping[str, Any]) -> bool:
    return bool(osd["in"]) and bool(osd["up"]) and float(osd["weight"]) > 0


def _pools(dumps: Dumps, reading: Reading, notes: list[str]) -> list[Pool]:
    """The erasure-coded pools that are to be planned."""
    pools, replicated = [], []
    profiles = dumps.osd["erasure_code_profiles"]
    for each in dumps.osd["pools"]:
        name = each["pool_name"]
        if reading.pools and name not in reading.pools:
            continue
        if each["type"] != _ERASURE:
            replicated.append(name)
            continue
        profile = profiles[each["erasure_code_profile"]]
        plugin = profile.get("plugin", "")
        if plugin not in _PLUGINS:
            line = f"pool {name}: found plugin {plugin}, which places and reads otherwise"
            if reading.pools:
                raise UserError(f"{line}; allowed: {', '.join(_PLUGINS)}")
            notes.append(f"{line}: left as it is")
            continue
        if "ec_optimizations" in each.get("flags_names", ""):
            notes.append(
                f"pool {name}: has allow_ec_optimizations, reads shorter than a stripe take fewer than k shards; "
                "planned as if all took k"
            )
        k = int(profile["k"])
        pools.append(
            Pool(
                each["pool"],
                name,
                k,
                each["size"],
                each["min_size"],
                each["crush_rule"],
                bool(each.get("fast_read", False)),
                each["pg_num"],
            )
        )
    missing = set(reading.pools) - {each["pool_name"] for each in dumps.osd["pools"]}
    if missing:
        names = ", ".join(each["pool_name"] for each in dumps.osd["pools"] if each["type"] == _ERASURE)
        raise UserError(
            f"pools: found {', '.join(sorted(missing))}; allowed: {names or 'none is erasure-coded'}"
        )
    if not pools:
        names = ", ".join(replicated) or "none"
        raise UserError(
            f"{dumps.source}: found no erasure-coded pool that can be planned (replicated: {names}); allowed: pools "
            "of plugin jerasure or isa; for replicated ones Ceph has its own read balancer (pg-upmap-primary)"
        )
    if replicated:
        notes.append(f"pools {', '.join(replicated)}: replicated, left out; their reads are not counted")
    fast = [pool.name for pool in pools if pool.fast_read]
    if fast:
        notes.append(f"pools {', '.join(fast)}: fast_read reads all n positions, their roles change nothing")
    return pools


def _check_same_cluster(
    dumps: Dumps, pools: Sequence[Pool], by_id: Mapping[int, Any], latest: Iterable[Mapping[str, Any]]
) -> None:
    """Refuse dumps that do not belong together.

    Raises:
        UserError: they are of different clusters or times.
    """

    def refuse(what: str) -> None:
        raise UserError(f"{dumps.source}: found {what}; allowed: dumps of one cluster, taken together")

    osds = set(by_id)
    named = {osd for each in latest for osd in each["up"] if osd != NO_OSD}
    if not named <= osds:
        refuse(f"osd.{min(named - osds)} in the pg dump and not in the osd dump")
    if dumps.crush is not None:
        devices = {each["id"] for each in dumps.crush["devices"]}
        if not osds <= devices:
            refuse(f"osd.{min(osds - devices)} in the osd dump and not in the crush dump")
    if dumps.pools is not None:
        names = {each.get("pool_id", each.get("pool")): each["pool_name"] for each in dumps.pools}
        for pool in pools:
            if names.get(pool.pool_id) != pool.name:
                refuse(f"pool {pool.pool_id} as {pool.name} and as {names.get(pool.pool_id)}")
    epoch = max((each.get("reported_epoch", 0) for each in latest), key=int, default=0)
    if int(epoch) > int(dumps.osd["epoch"]):
        refuse(f"a pg dump of epoch {epoch} beside an osd dump of epoch {dumps.osd['epoch']}")


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
    _note_moving(listed, movable, notes)
    if not movable.any() and not reading.moving:
        raise UserError(
            f"{dumps.source}: found no group that is active+clean with up = acting; allowed: wait until data has moved"
        )
    up = np.concatenate([np.asarray(each["up"], np.int64) for each in listed])
    place = np.minimum(np.searchsorted(osds, up), len(osds) - 1)
    rate, size = _rates(dumps, reading, listed, pool, notes)
    k = np.array([each.k for each in pools])[pool]
    return Groups(
        tuple(each["pgid"] for each in listed),
        pool,
        np.concatenate([[0], np.cumsum([len(each["up"]) for each in listed])]).astype(np.int64),
        np.where(up == NO_OSD, -1, place),
        rate,
        np.array([float(each["stat_sum"]["num_bytes"]) for each in listed]),
        size / k,
        movable,
    )


def _is_clean(group: Mapping[str, Any]) -> bool:
    state = set(group["state"].split("+"))
    clean = {"active", "clean"} <= state <= _CLEAN
    return clean and group["up"] == group["acting"] and NO_OSD not in group["up"]


def _note_moving(listed: Sequence[Mapping[str, Any]], movable: np.ndarray, notes: list[str]) -> None:
    moving = [each for each, still in zip(listed, movable, strict=True) if not still]
    if moving:
        states = Counter(
            each["state"] if each["up"] == each["acting"] else f"{each['state']}, up is not acting"
            for each in moving
        )
        few = ", ".join(each["pgid"] for each in moving[:_NAMED]) + (", ..." if len(moving) > _NAMED else "")
        notes.append(
            f"{len(moving)} groups move or are degraded ({few}: {states.most_common(1)[0][0]}): planned around, not "
            "changed; better wait until all are active+clean"
        )


def _rates(
    dumps: Dumps,
    reading: Reading,
    listed: Sequence[Mapping[str, Any]],
    pool: np.ndarray,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Client reads/s of every group, and bytes of one; nan bytes where there were none."""
    if reading.rates == EQUAL:
        return np.ones(len(listed)), np.full(len(listed), np.nan)
    if len(dumps.groups) < 2:
        raise UserError(
            f"{dumps.source}: found one pg dump; allowed: two, {_LEAST_S:g} s or more apart, for rates; rates=equal "
            "plans for equal ones"
        )
    first, last = dumps.groups[0], dumps.groups[-1]
    seconds = (_time(last["stamp"]) - _time(first["stamp"])).total_seconds()
    if seconds <= 0:
        raise UserError(f"{dumps.source}: found two pg dumps of {last['stamp']}; allowed: of different times")
    if seconds < _LEAST_S:
        notes.append(
            f"the pg dumps are {seconds:.0f} s apart: OSDs report every 5 s, rates are rough below 30 s"
        )
    before = {each["pgid"]: each["stat_sum"] for each in first["pg_stats"]}
    after = [each["stat_sum"] for each in listed]
    counted = np.array([each["pgid"] in before for each in listed])
    earlier = [before.get(each["pgid"], each["stat_sum"]) for each in listed]
    reads, kilobytes = (
        np.array([float(late[key]) - float(early[key]) for late, early in zip(after, earlier, strict=True)])
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
            f"{len(refused)} groups count fewer reads than before, or are new ({few}: a split, a new primary): they "
            "get the mean rate of their pool"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(counted & (reads > 0), 1024 * kilobytes / reads, np.nan)
    return rate, size


def _time(stamp: str) -> datetime:
    """A time as releases write it: ``2026-11-22T13:50:33.676758+0000``, before Octopus with a space and no zone."""
    text = stamp.replace(" ", "T")
    time = datetime.fromisoformat(text[:-2] + ":" + text[-2:] if text[-5] in "+-" else text)
    return time.replace(tzinfo=None) if time.tzinfo is None else time


def _entries(osd_dump: Mapping[str, Any]) -> Entries:
    return Entries(
        {each["pgid"]: tuple(each["osds"]) for each in osd_dump.get("pg_upmap", [])},
        {
            each["pgid"]: tuple((pair["from"], pair["to"]) for pair in each["mappings"])
            for each in osd_dump.get("pg_upmap_items", [])
        },
    )


def _stale(entries: Entries, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for upmap entries that are without effect."""
    sets = {each["pgid"]: tuple(each["up"]) for each in listed}
    stale = [
        name
        for name, items in entries.items.items()
        if name in sets and any(b not in sets[name] for _, b in items)
    ]
    stale += [name for name, upmap in entries.upmap.items() if name in sets and upmap != sets[name]]
    if not stale:
        return []
    few = ", ".join(stale[:_NAMED]) + (", ..." if len(stale) > _NAMED else "")
    return [f"{len(stale)} groups have upmap entries that are not, or not wholly, in effect ({few})"]


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
    """CRUSH weight times reweight of an OSD; 1 for the former where no dump has it."""
    reweight = float(osd["weight"])
    for each in (dumps.tree or {}).get("nodes", []):
        if each["id"] == osd["osd"] and "crush_weight" in each:
            return float(each["crush_weight"]) * reweight
    for each in (dumps.crush or {}).get("buckets", []):
        for item in each["items"]:
            if item["id"] == osd["osd"]:
                return float(item["weight"]) / 0x10000 * reweight
    return reweight


def _domains(dumps: Dumps, pools: Sequence[Pool], notes: list[str]) -> tuple[Domains | None, ...]:
    if dumps.crush is None:
        notes.append("no crush dump: shards stay on their OSDs (roles_only)")
        return (None,) * len(pools)
    listed: list[Domains | None] = []
    for pool in pools:
        try:
            listed.append(rule_domains(dumps.crush, pool.rule))
        except UnknownStep as error:
            notes.append(
                f"pool {pool.name}: {error} in its CRUSH rule is not known: its shards stay on their OSDs"
            )
            listed.append(None)
    return tuple(listed)


def targets(cluster: Cluster, pool: int) -> np.ndarray:
    """(m,) shards that a pool should keep on every OSD: its positions, shared by weight below its rule's root."""
    domains = cluster.domains[pool]
    allowed = (
        np.ones(len(cluster.osds), bool) if domains is None else np.isin(cluster.osds, list(domains.allowed))
    )
    weight = np.where(allowed & cluster.usable, cluster.weight, 0.0)
    each = cluster.pools[pool]
    return each.group_count * each.n * weight / weight.sum()
