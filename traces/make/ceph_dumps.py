"""Dumps of a cluster that does not exist, as ``ceph ... -f json`` prints them: what ``ecjax.rados`` reads of them."""

import gzip
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

Parts = dict[str, Any]  # JSON

FSID = "00000000-1111-2222-3333-444444444444"
FIRST, SECOND = "2026-01-01T00:00:00.000000+0000", "2026-01-01T00:10:00.000000+0000"
SECONDS = 600.0


def made(
    hosts: int = 4,
    per_host: int = 2,
    pools: tuple[tuple[int, int, int], ...] = ((2, 2, 16),),
    seed: int = 0,
    items: int = 0,
    equal: bool = False,
) -> Parts:
    """Parts of a cluster: osd, crush, tree, pools, groups (two of them), raw sets by group.

    Args:
        hosts: buckets below the root.
        per_host: OSDs of each.
        pools: k, m, groups of each.
        seed: of sets and rates.
        items: groups with an upmap item each, the first of every pool.
        equal: whether all groups are read alike.
    """
    rng = np.random.default_rng(seed)
    count = hosts * per_host
    sets, raw, entries = dict[str, list[int]](), dict[str, tuple[int, ...]](), list[Parts]()
    for pool, (k, m, groups) in enumerate(pools, 1):
        for number in range(groups):
            name = f"{pool}.{number:x}"
            chosen = rng.permutation(hosts)[: k + m]
            osds = [int(host * per_host + rng.integers(per_host)) for host in chosen]
            raw[name] = tuple(osds)
            if number < items:
                a = osds[0]
                host = next((h for h in range(hosts) if h not in chosen), a // per_host)
                b = host * per_host + (a + 1) % per_host
                entries.append({"pgid": name, "mappings": [{"from": a, "to": b}]})
                osds = [b, *osds[1:]]
            sets[name] = osds
    profiles = {
        f"p{pool}": {"k": str(k), "m": str(m), "plugin": "jerasure"}
        for pool, (k, m, _) in enumerate(pools, 1)
    }
    listed = [
        {
            "pool": pool,
            "pool_name": f"e{k}{m}" if pool == 1 else f"e{k}{m}-{pool}",
            "type": 3,
            "size": k + m,
            "min_size": k + min(1, m - 1),  # as Ceph gives it to a new pool
            "crush_rule": 1,
            "pg_num": groups,
            "flags_names": "hashpspool",
            "fast_read": False,
            "erasure_code_profile": f"p{pool}",
        }
        for pool, (k, m, groups) in enumerate(pools, 1)
    ]
    osd = {
        "epoch": 50,
        "fsid": FSID,
        "require_osd_release": "pacific",
        "pools": listed,
        "osds": [{"osd": each, "up": 1, "in": 1, "weight": 1} for each in range(count)],
        "pg_upmap": [],
        "pg_upmap_items": entries,
        "erasure_code_profiles": profiles,
    }
    buckets = [_bucket(-1, "default", "root", [-2 - host for host in range(hosts)])]
    buckets += [
        _bucket(-2 - host, f"h{host}", "host", range(host * per_host, (host + 1) * per_host))
        for host in range(hosts)
    ]
    steps = [
        {"op": "set_chooseleaf_tries", "num": 5},
        {"op": "take", "item": -1, "item_name": "default"},
        {"op": "chooseleaf_indep", "num": 0, "type": "host"},
        {"op": "emit"},
    ]
    crush = {
        "devices": [{"id": each, "name": f"osd.{each}", "class": "hdd"} for each in range(count)],
        "buckets": buckets,
        "rules": [{"rule_id": 1, "rule_name": "r", "steps": steps}],
    }
    nodes = [
        {"id": each, "type": "osd", "crush_weight": 1.0, "reweight": 1.0, "kb": 2**30, "pgs": 0}
        for each in range(count)
    ]
    before = {name: int(rng.integers(10**6)) for name in sets}
    reads = {name: 600 if equal else int(6000 * rng.lognormal(0, 0.6)) for name in sets}
    dumps = [
        {
            "pg_map": {
                "stamp": stamp,
                "pg_stats": [
                    _group(name, osds, before[name] + later * reads[name]) for name, osds in sets.items()
                ],
            }
        }
        for later, stamp in enumerate((FIRST, SECOND))
    ]
    return {
        "osd": osd,
        "crush": crush,
        "tree": {"nodes": nodes, "stray": [], "summary": {}},
        "pools": [{"pool_id": each["pool"], "pool_name": each["pool_name"]} for each in listed],
        "groups": dumps,
        "raw": raw,
    }


def _bucket(number: int, name: str, kind: str, items: Iterable[int]) -> Parts:
    listed = [{"id": int(each), "weight": 65536, "pos": place} for place, each in enumerate(items)]
    return {"id": number, "name": name, "type_name": kind, "items": listed}


def _group(name: str, osds: list[int], reads: int) -> Parts:
    return {
        "pgid": name,
        "state": "active+clean",
        "up": list(osds),
        "acting": list(osds),
        "reported_epoch": 50,
        "log_size": 10,
        "stat_sum": {"num_bytes": 2**30, "num_objects": 256, "num_read": reads, "num_read_kb": 1024 * reads},
    }


def write(folder: Path, parts: Parts, leave_out: Collection[str] = (), zipped: bool = False) -> Path:
    """Write parts to a folder; its path.

    Args:
        folder: made where it is not there.
        parts: of a cluster.
        leave_out: names of files that are missing: osd, crush, tree, pools, pg.0, pg.1.
        zipped: whether files are compressed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: parts[name] for name in ("osd", "crush", "tree", "pools")}
    files |= {f"pg.{place}": each for place, each in enumerate(parts["groups"])}
    for name, content in files.items():
        text = json.dumps(content)
        if name not in leave_out and zipped:
            (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        elif name not in leave_out:
            (folder / f"{name}.json").write_text(text)
    return folder


def sample() -> Parts:
    """What traces/ceph holds: 24 OSDs on 12 hosts, pools 4+2 and 3+2, some groups moved by a balancer."""
    return made(hosts=12, per_host=2, pools=((4, 2, 96), (3, 2, 64)), items=6)


if __name__ == "__main__":
    write(Path(__file__).parents[1] / "ceph", sample(), zipped=True)
