"""Files of a folder of dumps: what ``ceph ... -f json`` printed, told by content, whatever the files are called."""

import gzip
import json
import lzma
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ecjax.errors import UserError

_OSD = re.compile(r"osd\.(\d+)")
_INFINITE = re.compile(rb":\s*(-?inf|-?nan)(?=[,}\]\s])")  # Reef prints infinity as no JSON has it
_STATE_VERSION = 1
_READ = 1 << 20
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ"
_SUFFIXES = (".json", ".json.gz", ".json.xz", ".xz", ".gz", ".txt", "")

# what to run for a folder of dumps, the map last: epochs go on, and groups must not report a later one than it has
COMMANDS = {
    "pg_dump.0.json": "pg dump",
    "pg_dump.1.json": "pg dump",
    "osd_crush_dump.json": "osd crush dump",
    "osd_df_tree.json": "osd df tree",
    "osd_pool_ls_detail.json": "osd pool ls detail",
    "osd_dump.json": "osd dump",
}


class Dumps(NamedTuple):
    """What a folder of dumps holds; None or empty where it holds none."""

    source: str
    sha256: str  # of all that was read
    osd: Mapping[str, Any]  # ceph osd dump
    crush: Mapping[str, Any] | None  # ceph osd crush dump
    tree: Mapping[str, Any] | None  # ceph osd df tree
    pools: list[Mapping[str, Any]] | None  # ceph osd pool ls detail
    groups: list[Mapping[str, Any]]  # ceph pg dump, by time
    raw: Mapping[str, tuple[int, ...]]  # CRUSH's own set by group (osdmaptool --test-map-pgs-dump-all)
    operations: Mapping[int, Mapping[str, Any]]  # dump_historic_ops by OSD
    counters: Mapping[int, list[Mapping[str, Any]]]  # perf dumps by OSD, in the order of file names
    unknown: tuple[str, ...]  # files that are none of these


@contextmanager
def as_printed(source: str, release: str) -> Iterator[None]:
    """Say in a line where dumps have another form than ceph gives them.

    Raises:
        UserError: they have.
    """
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{source}: found {what} in a dump of release {release}; allowed: dumps as Nautilus to Tentacle print them"
        ) from error


def read_dumps(folder: str | Path) -> Dumps:
    """Read a folder of dumps, plain, gzipped or xz, or a state file that TheJJ's balancer gathered.

    Raises:
        UserError: there is no such folder, a file is no JSON, or something that every plan needs is missing.
    """
    path = Path(folder)
    if not path.exists():
        raise UserError(f"dumps: found {folder}, which is not there; allowed: a folder of ceph ... -f json")
    files = [path] if path.is_file() else sorted(each for each in path.iterdir() if _may_be_dump(each))
    found: dict[str, list[Any]] = {}
    operations, counters = dict[int, Any](), dict[int, list[Any]]()
    unknown, digest = list[str](), sha256()
    for file in files:
        content = _json(file, digest)
        for kind, value in _kinds(content):
            osd = _OSD.search(file.name)
            if kind in ("operations", "counters") and osd is None:
                kind = "unknown"
            if kind == "unknown":
                unknown.append(file.name)
            elif kind == "operations" and osd is not None:
                # of several histories of an OSD the longest says most
                before = operations.get(int(osd[1]))
                if before is None or len(before["ops"]) < len(value["ops"]):
                    operations[int(osd[1])] = value
            elif kind == "counters" and osd is not None:
                counters.setdefault(int(osd[1]), []).append(value)
            else:
                found.setdefault(kind, []).append(value)
    with as_printed(str(path), "unknown"):
        return _checked(path, digest.hexdigest(), found, operations, counters, tuple(unknown))


def _may_be_dump(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and path.name.endswith(_SUFFIXES[:-1])


def _json(path: Path, digest: Any) -> Any:
    """The content of a file, decompressed; its bytes go into the digest.

    Raises:
        UserError: it cannot be read or is no JSON.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        elif data.startswith(_XZ):
            data = lzma.decompress(data)
        digest.update(data)
        data = _INFINITE.sub(b":null", data)
        begin = min((place for place in (data.find(b"{"), data.find(b"[")) if place >= 0), default=0)
        return json.loads(data[begin:])
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise UserError(f"{path}: found {_short(error)}; allowed: JSON of ceph ... -f json") from error


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:100] or type(error).__name__


def _kinds(content: Any) -> list[tuple[str, Any]]:
    """What a file holds, by its keys."""
    if isinstance(content, list):
        pools = content and all(isinstance(each, dict) and "pool_name" in each for each in content)
        return [("pools" if pools else "unknown", content)]
    if not isinstance(content, dict):
        return [("unknown", content)]
    keys = set(content)
    if "stateversion" in keys:
        return _state(content)
    if {"osds", "pools", "epoch"} <= keys:
        return [("osd", content)]
    if "pg_map" in keys or "pg_stats" in keys:
        # before Nautilus there was no pg_map around it
        return [("groups", content.get("pg_map", content))]
    if {"buckets", "rules"} <= keys:
        return [("crush", content)]
    if {"nodes", "summary"} <= keys:
        return [("tree", content)]
    if {"ops", "size", "duration"} <= keys:
        return [("operations", content)]
    if "osd" in keys and isinstance(content["osd"], dict):
        return [("counters", content)]
    if keys and all(isinstance(each, dict) and {"raw", "up"} <= set(each) for each in content.values()):
        return [("raw", content)]
    if {"kind", "stamps"} <= keys:
        return []  # a note on how dumps were made
    return [("unknown", content)]


def _state(content: dict[str, Any]) -> list[tuple[str, Any]]:
    """The parts of a state file of TheJJ's ceph-balancer (``gather``), version 1."""
    if content["stateversion"] != _STATE_VERSION:
        raise UserError(
            f"stateversion: found {content['stateversion']}; allowed: {_STATE_VERSION}, or a folder of dumps"
        )
    names = {
        "osd_dump": "osd",
        "pg_dump": "groups",
        "crush_dump": "crush",
        "osd_df_tree_dump": "tree",
        "pool_dump": "pools",
    }
    parts = [(kind, content[name]) for name, kind in names.items() if content.get(name)]
    return [(kind, part.get("pg_map", part) if kind == "groups" else part) for kind, part in parts]


def _checked(
    path: Path,
    digest: str,
    found: dict[str, list[Any]],
    operations: dict[int, Any],
    counters: dict[int, list[Any]],
    unknown: tuple[str, ...],
) -> Dumps:
    for kind, what in (("osd", "osd dump"), ("groups", "pg dump")):
        if kind not in found:
            raise UserError(f"{path}: found no ceph {what} -f json; allowed: {', '.join(COMMANDS.values())}")
    if len({str(each.get("fsid")) for each in found["osd"]}) > 1:
        fsids = ", ".join(sorted({str(each.get("fsid")) for each in found["osd"]}))
        raise UserError(f"{path}: found osd dumps of several clusters, {fsids}; allowed: of one")
    # of several maps the newest one counts
    newest = {kind: _newest(values) for kind, values in found.items()}
    raw = {name: tuple(int(osd) for osd in sets["raw"]) for name, sets in newest.get("raw", {}).items()}
    groups = sorted(found["groups"], key=lambda each: str(each.get("stamp", "")))
    return Dumps(
        str(path),
        digest,
        newest["osd"],
        newest.get("crush"),
        newest.get("tree"),
        newest.get("pools"),
        groups,
        raw,
        operations,
        counters,
        unknown,
    )


def _newest(values: list[Any]) -> Any:
    return max(values, key=lambda each: each.get("epoch", 0) if isinstance(each, dict) else 0)
