"""Files of a folder of dumps: what ``ceph ... -f json`` printed, told by content, whatever the files are called."""

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ecjax.errors import UserError

_OSD = re.compile(r"osd\.(\d+)")
_INFINITE = re.compile(rb":\s*(-?inf|-?nan)(?=[,}\]\s])")  # Reef prints infinity as no JSON has it
_STATE_VERSION = 1
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ"
_SUFFIXES = (".json", ".xz", ".gz", ".txt")
_HEAD = 4096  # bytes within which a dump begins, of a file that may be anything
# kinds of which one dump counts, and what prints it
_SINGLE = {
    "osd": "ceph osd dump",
    "crush": "ceph osd crush dump",
    "tree": "ceph osd df tree",
    "pools": "ceph osd pool ls detail",
    "raw": "osdmaptool --test-map-pgs-dump-all",
}

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
    notes: tuple[str, ...]  # on files that are none of these, and on which of several counts, a line each


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
    files = [path] if path.is_file() else sorted(each for each in path.iterdir() if _is_plain(each))
    dumps: dict[str, list[tuple[str, Any]]] = {}
    operations, counters = dict[int, Any](), dict[int, list[Any]]()
    notes, digest = list[str](), sha256()
    for file in files:
        content = _json(file, digest, needed=file == path or file.name.endswith(_SUFFIXES))
        for kind, value in _kinds(content):
            osd = _OSD.search(file.name)
            if kind in ("operations", "counters") and osd is None:
                kind = "unknown"
            if kind == "unknown":
                notes.append(f"{file.name}: not a dump that is known")
            elif kind == "operations" and osd is not None:
                # of several histories of an OSD the longest says most
                before = operations.get(int(osd[1]))
                if before is None or len(before["ops"]) < len(value["ops"]):
                    operations[int(osd[1])] = value
            elif kind == "counters" and osd is not None:
                counters.setdefault(int(osd[1]), []).append(value)
            else:
                dumps.setdefault(kind, []).append((file.name, value))
    with as_printed(str(path), "unknown"):
        return _checked(path, digest.hexdigest(), dumps, operations, counters, notes)


def parsed(data: bytes) -> Any:
    """JSON as ceph prints it: after other lines, and with infinity and nan, which are null here.

    Raises:
        ValueError: it is none.
    """
    data = _INFINITE.sub(b":null", data)
    begin = min((place for place in (data.find(b"{"), data.find(b"[")) if place >= 0), default=0)
    return json.loads(data[begin:])


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def _json(path: Path, digest: Any, needed: bool) -> Any:
    """The content of a file, decompressed; its bytes go into the digest where they are JSON.

    Args:
        path: of the file.
        digest: of all that was read.
        needed: whether it must be JSON; else it may be anything, for which None stands.

    Raises:
        UserError: it cannot be read, or is no JSON and must be.
    """
    try:
        if not needed and not _begins_as_dump(path):
            return None
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        elif data.startswith(_XZ):
            data = lzma.decompress(data)
        content = parsed(data)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        if not needed:
            return None
        raise UserError(f"{path}: found {_short(error)}; allowed: JSON of ceph ... -f json") from error
    digest.update(data)
    return content


def _begins_as_dump(path: Path) -> bool:
    """Whether a file may be a dump by how it begins, so that no large file of another kind is read."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith((_GZIP, _XZ)):
        with gzip.open(path) if head.startswith(_GZIP) else lzma.open(path) as unpacked:
            head = unpacked.read(_HEAD)
    return b"\0" not in head and (b"{" in head or b"[" in head)


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
    dumps: dict[str, list[tuple[str, Any]]],
    operations: dict[int, Any],
    counters: dict[int, list[Any]],
    notes: list[str],
) -> Dumps:
    for kind, what in (("osd", "osd dump"), ("groups", "pg dump")):
        if kind not in dumps:
            raise UserError(f"{path}: found no ceph {what} -f json; allowed: {', '.join(COMMANDS.values())}")
    fsids = sorted({str(each.get("fsid")) for _, each in dumps["osd"]})
    if len(fsids) > 1:
        raise UserError(f"{path}: found osd dumps of several clusters, {', '.join(fsids)}; allowed: of one")
    newest = dict[str, Any]()
    for kind, printed_by in _SINGLE.items():
        if kind in dumps:
            name, newest[kind] = _newest(dumps[kind])
            if len(dumps[kind]) > 1:
                notes.append(f"{len(dumps[kind])} outputs of {printed_by}: that in {name} counts")
    raw = {name: tuple(int(osd) for osd in sets["raw"]) for name, sets in newest.get("raw", {}).items()}
    groups = _by_time(dumps["groups"], notes)
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
        tuple(notes),
    )


def _by_time(named: Sequence[tuple[str, Any]], notes: list[str]) -> list[Mapping[str, Any]]:
    """Dumps of groups in the order of their times, without copies that were put aside under names such as .json.bak.

    Args:
        named: with their files.
        notes: gets a line for what is left out.
    """
    usual = [each for each in named if each[0].endswith(_SUFFIXES)]
    if 2 <= len(usual) < len(named):
        others = ", ".join(name for name, _ in named if not name.endswith(_SUFFIXES))
        notes.append(
            f"{others}: left out, as {len(usual)} outputs of ceph pg dump end in {', '.join(_SUFFIXES)}"
        )
        named = usual
    return sorted((each for _, each in named), key=lambda each: str(each.get("stamp", "")))


def _newest(named: Sequence[tuple[str, Any]]) -> tuple[str, Any]:
    """Of several dumps, with their files: that of the latest epoch; where none has one, the last by name."""
    # of equal ones max takes the first
    return max(reversed(named), key=lambda each: each[1].get("epoch", 0) if isinstance(each[1], dict) else 0)
