"""Pools that can be planned, and whether dumps belong together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecjax.errors import UserError
from ecjax.rados.files import Dumps
from ecjax.rados.records import NO_OSD, Pool

ERASURE = 3
_PLUGINS = ("jerasure", "isa")


def planned_pools(dumps: Dumps, chosen: Sequence[str], notes: list[str]) -> list[Pool]:
    """The erasure-coded pools that are to be planned.

    Args:
        dumps: with the osd dump.
        chosen: names; empty: all.
        notes: gets a line for what is left out or doubtful.

    Raises:
        UserError: a name is of no pool, or no pool can be planned.
    """
    pools, replicated = [], []
    profiles = dumps.osd["erasure_code_profiles"]
    for each in dumps.osd["pools"]:
        name = each["pool_name"]
        if chosen and name not in chosen:
            continue
        if each["type"] != ERASURE:
            replicated.append(name)
            continue
        profile = profiles[each["erasure_code_profile"]]
        plugin = profile.get("plugin", "")
        if plugin not in _PLUGINS:
            line = f"pool {name}: found plugin {plugin}, which places and reads otherwise"
            if chosen:
                raise UserError(f"{line}; allowed: {', '.join(_PLUGINS)}")
            notes.append(f"{line}: left as it is")
            continue
        if "ec_optimizations" in each.get("flags_names", ""):
            notes.append(
                f"pool {name}: has allow_ec_optimizations, reads shorter than a stripe take fewer than k shards; "
                "planned as if all took k"
            )
        if each.get("pg_num_target", each["pg_num"]) != each["pg_num"]:
            notes.append(f"pool {name}: its groups are being split or merged: plan again when that is done")
        k = int(profile["k"])
        if not 1 <= k < int(each["size"]):
            raise UserError(
                f"pool {name}: found k={k:.6g} of size {each['size']}; allowed: k from 1 to size - 1"
            )
        pools.append(
            Pool(
                int(each["pool"]),
                name,
                k,
                int(each["size"]),
                int(each["min_size"]),
                int(each["crush_rule"]),
                bool(each.get("fast_read", False)),
                int(each["pg_num"]),
            )
        )
    missing = set(chosen) - {each["pool_name"] for each in dumps.osd["pools"]}
    if missing:
        names = ", ".join(each["pool_name"] for each in dumps.osd["pools"] if each["type"] == ERASURE)
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
        notes.append(f"pools {', '.join(replicated)}: replicated, left as they are")
    fast = [pool.name for pool in pools if pool.fast_read]
    if fast:
        notes.append(f"pools {', '.join(fast)}: fast_read reads all n positions, their roles change nothing")
    return pools


def check_same_cluster(
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
        # an OSD that is in no CRUSH map yet holds nothing
        devices = {each["id"] for each in dumps.crush["devices"]}
        if not named <= devices:
            refuse(f"osd.{min(named - devices)} in the pg dump and not in the crush dump")
    if dumps.pools is not None:
        names = {each.get("pool_id", each.get("pool")): each["pool_name"] for each in dumps.pools}
        for pool in pools:
            if names.get(pool.pool_id) != pool.name:
                refuse(f"pool {pool.pool_id} as {pool.name} and as {names.get(pool.pool_id)}")
    epoch = max((each.get("reported_epoch", 0) for each in latest), key=int, default=0)
    if int(epoch) > int(dumps.osd["epoch"]):
        refuse(f"a pg dump of epoch {epoch} beside an osd dump of epoch {dumps.osd['epoch']}")
