"""A plan applied to a real Ceph, read back, measured, and undone."""

import json
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import numpy as np
import pytest
from ceph_lab import Lab, Missing

from ecjax.rados.files import read_dumps
from ecjax.rados.plan import with_sets
from ecjax.rados.read import read_cluster
from ecjax.rados.records import reads_per_osd
from ecjax.tables.results import read_results

_ERRORS = 4  # standard errors


@pytest.fixture(scope="module")
def lab():
    with tempfile.TemporaryDirectory(prefix="cl") as folder:  # a short path: sockets lie in it
        started = None
        try:
            started = Lab(folder)
            yield started
        except Missing as reason:
            pytest.skip(str(reason))
        finally:
            if started is not None:
                started.end()


def ecjax(lab, *words):
    # the libraries of the packages are for their programs only
    script = lab.folder / "ceph.sh"
    names = ("LD_LIBRARY_PATH", "PYTHONPATH", "CEPH_CONF")
    values = " ".join(f"{name}={shlex.quote(lab.environment[name])}" for name in names)
    script.write_text(f'#!/bin/sh\nexec env {values} {shlex.join(lab.command)} "$@"\n')
    line = [sys.executable, "-m", "ecjax", "ceph", *map(str, words), f"ceph=sh {script}"]
    return subprocess.run(line, capture_output=True, text=True, timeout=900)


def seconds(folder):
    """Time between the pg dumps of a folder."""
    first, last = (
        datetime.fromisoformat(dump["stamp"][:19]).timestamp() + float(dump["stamp"][19:26])
        for dump in read_dumps(folder).groups
    )
    return last - first


def entries(lab):
    dump = json.loads(lab.ceph("osd", "dump", "-f", "json"))
    return dump["pg_upmap"], dump["pg_upmap_items"]


def collected_around_reads(lab, folder):
    """Dumps around half a minute of reads; OSDs report every 5 s, so that reads begin later and end earlier."""
    words = ["rados", "bench", "-p", "e22", "30", "rand", "-t", "8"]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(ecjax, lab, f"collect={folder}", "wait_s=60")
        time.sleep(12)
        subprocess.run(words, env=lab.environment, stdout=subprocess.DEVNULL)
        result = done.result()
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_a_plan_comes_about_on_a_real_cluster(lab, tmp_path):
    lab.pool("e22", 2, 2, 64)
    lab.run(
        "rados",
        "bench",
        "-p",
        "e22",
        "8",
        "write",
        "-b",
        "131072",
        "-t",
        "8",
        "--max-objects",
        "1500",
        "--no-cleanup",
    )
    lab.wait(lambda: all_clean(lab))
    before = entries(lab)
    collected = tmp_path / "dumps"
    collected_around_reads(lab, collected)
    out = tmp_path / "out"
    done = ecjax(lab, collected, f"out={out}", "within=0.05", "figures=[]", "apply=true", "apply_wait_s=300")
    assert done.returncode == 0, done.stdout + done.stderr
    run = read_results(out, "runs").iloc[0]
    assert run["max_over_mean"] < run["max_over_mean_before"]
    # shard reads of the planned sets are those that the rates of the groups say
    later = tmp_path / "later"
    reads_before = np.array(lab.shard_reads())
    collected_around_reads(lab, later)
    shard_reads = np.array(lab.shard_reads()) - reads_before
    assert ecjax(lab, later, f"verify={out}").returncode == 0
    old, new = (read_cluster(read_dumps(folder)) for folder in (collected, later))
    plan = read_results(out, "plan").sort_values(["group", "position"])
    sets = {name: tuple(rows["osd"]) for name, rows in plan.groupby("group")}
    assert with_sets(old, sets).tolist() == new.groups.osd.tolist()
    predicted, seen = reads_per_osd(old, with_sets(old, sets)), reads_per_osd(new)
    # what the groups count are the shard reads that the OSDs have seen, to the last one
    assert shard_reads.tolist() == np.rint(seen * seconds(later)).astype(int).tolist()
    expected, count = (
        predicted / predicted.sum(),
        np.array([predicted.sum() * seconds(collected), shard_reads.sum()]),
    )
    errors = np.sqrt(expected * (1 - expected) * (1 / count).sum() * 2)  # a read is two shard reads
    assert np.all(np.abs(shard_reads / shard_reads.sum() - expected) < _ERRORS * errors)
    (scripts,) = (out / "scripts").iterdir()
    for line in (scripts / "undo.sh").read_text().splitlines():
        if line.startswith("ceph "):
            lab.ceph(*line.split()[1:])
    lab.wait(lambda: all_clean(lab))
    assert entries(lab) == before


def all_clean(lab):
    dumps = {name: json.loads(lab.ceph(*name.split(), "-f", "json")) for name in ("osd dump", "pg dump")}
    groups = dumps["pg dump"]["pg_map"]["pg_stats"]
    count = sum(pool["pg_num"] for pool in dumps["osd dump"]["pools"])
    return len(groups) == count and all(
        each["state"] == "active+clean" and each["up"] == each["acting"] for each in groups
    )
