"""A power cut at any moment: what was not synced is lost, in any order, and the committed runs that are left are whole.

The calls that write are traced. Of a directory a power cut leaves the entries of its last fsync, and any of those made
since; of a file what its last fsync found, or nothing, or a part.
"""

import os
import stat
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

CALLS = ("fsync", "replace", "rename", "unlink", "mkdir", "rmdir")
RUNS = {name: number for number, name in enumerate(("aa", "bb", "cc", "dd"))}


class Moment(NamedTuple):
    """What the disk holds for sure, and what the operating system shows."""

    synced_entries: dict[int, dict[str, int]]  # of a directory's inode: name -> inode
    synced_bytes: dict[int, bytes]  # of a file's inode
    entries: dict[int, dict[str, int]]
    bytes: dict[int, bytes]
    root: int
    committed: tuple[str, ...]  # runs whose commit had returned, and been synced


class Disk:
    """Traces the calls of this process below a folder."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root, self._lock = root, threading.RLock()
        self._entries: dict[int, dict[str, int]] = {}
        self._bytes: dict[int, bytes] = {}
        self.moments: list[Moment] = []
        self.committed: tuple[str, ...] = ()
        self._open: dict[int, int] = {}  # files by inode, so that no inode is used twice
        for name in CALLS:
            patch.setattr(os, name, self._traced(name, getattr(os, name)))

    def _traced(self, name, call):
        def traced(*arguments, **options):
            with self._lock:
                answer = call(*arguments, **options)
                if name == "fsync":
                    self._sync(arguments[0])
                self.look()
                return answer

        return traced

    def _sync(self, descriptor: int) -> None:
        about = os.fstat(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if stat.S_ISDIR(about.st_mode):
            self._entries[about.st_ino] = {one.name: one.stat().st_ino for one in path.iterdir()}
        else:
            self._bytes[about.st_ino] = path.read_bytes()

    def look(self) -> None:
        """Remember this moment."""
        entries, data = {}, {}
        for folder in [self._root, *(path for path in self._root.rglob("*") if path.is_dir())]:
            entries[folder.stat().st_ino] = {one.name: one.stat().st_ino for one in folder.iterdir()}
            for path in folder.iterdir():
                if path.is_file():
                    if path.stat().st_ino not in self._open:
                        self._open[path.stat().st_ino] = os.open(path, os.O_RDONLY)
                    data[path.stat().st_ino] = path.read_bytes()
        self.moments.append(
            Moment(
                dict(self._entries),
                dict(self._bytes),
                entries,
                data,
                self._root.stat().st_ino,
                self.committed,
            )
        )

    def close(self) -> None:
        """Let the files go."""
        for descriptor in self._open.values():
            os.close(descriptor)


def after_power_cut(moment: Moment, place: Path, random: np.random.Generator) -> None:
    """Write what a power cut may leave of a moment."""
    keep = random.choice([0.0, 0.5, 1.0])  # of what was not synced

    def write(inode: int, folder: Path) -> None:
        folder.mkdir()
        sure, now = moment.synced_entries.get(inode, {}), moment.entries.get(inode, {})
        for name in sorted(sure.keys() | now.keys()):
            before, after = sure.get(name), now.get(name)
            one = after if before == after or random.random() < keep else before
            if one is None:
                continue
            if one in moment.entries:
                write(one, folder / name)
            elif one in moment.bytes or one in moment.synced_bytes:
                synced = moment.synced_bytes.get(one)
                whole = moment.bytes.get(one, b"") if synced is None else synced
                length = len(whole) if synced is not None else int(random.integers(len(whole) + 1))
                (folder / name).write_bytes(whole[:length])

    write(moment.root, place)


def contents(place: Path) -> list[tuple[str, bytes | None]]:
    """All that is below a folder."""
    found = sorted(place.rglob("*"))
    return [(str(path.relative_to(place)), path.read_bytes() if path.is_file() else None) for path in found]


def row(run: str) -> dict:
    return {"run_id": run, "job": "optimize", "status": "ok"}


def history(*runs: str) -> pa.Table:
    rows = [(run, i, RUNS[run] + i / 8) for run in runs for i in range(3)]
    return pa.table(
        dict(zip(("run_id", "iteration", "objective"), map(list, zip(*rows, strict=True)), strict=True))
    )


def commit(store: ResultStore, *runs: str) -> None:
    store.commit([row(run) for run in runs], {"history": history(*runs)})


def rows(out: Path) -> dict[str, list[float]]:
    if not any((out / "history").glob("[!.]*.parquet")):
        return {}
    return read_results(out, "history").groupby("run_id")["objective"].apply(sorted).to_dict()


def test_what_is_committed_outlives_power_cuts(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(out, patch)
        with ResultStore(out, TABLES, {}) as store:
            commit(store, "aa", "bb")
            disk.look()
            commit(store, "cc")
        # the store is closed: from here on all of it is on the disk
        disk.committed = ("aa", "bb", "cc")
        disk.look()
        with ResultStore(out, TABLES, {}) as store:
            commit(store, "bb", "dd")  # bb again, with another
        disk.close()
    expected = {run: [RUNS[run] + i / 8 for i in range(3)] for run in RUNS}
    assert rows(out) == expected
    random = np.random.default_rng(5)
    cuts, seen = 0, set()
    for number, moment in enumerate(disk.moments):
        for turn in range(3):
            place = tmp_path / f"{number}-{turn}"
            after_power_cut(moment, place, random)
            cuts += 1
            # many leave what another has left
            left = (moment.committed, *contents(place))
            if left in seen:
                continue
            seen.add(left)
            with ResultStore(place, TABLES, {}) as store:
                finished = store.finished(RUNS)
                assert finished >= set(moment.committed), (number, turn)
                found = rows(place)
                assert {run: found.get(run) for run in finished} == {run: expected[run] for run in finished}
                if finished != RUNS.keys():
                    commit(store, *sorted(RUNS.keys() - finished))
            assert rows(place) == expected, (number, turn)
    assert cuts > 100 and len(seen) > 30
