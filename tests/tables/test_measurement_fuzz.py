"""Histograms of monitoring and output of fio, changed or cut: a nodes table, or a line for the user."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.fio import fio_nodes
from ecjax.tables.histograms import MOMENTS, histogram_nodes

SAMPLES = Path(__file__).parents[2] / "traces" / "histograms"
CEPH = json.loads((SAMPLES / "ceph" / "osd.0.json").read_text())
TEXT = (SAMPLES / "disks.prom").read_text()
LATENCY = {
    **{"min": 4e6, "max": 3e7, "mean": 1e7, "stddev": 4e6, "N": 1000},
    "percentile": {"1.000000": 5_000_000, "50.000000": 9_000_000, "99.000000": 25_000_000},
}
FIO = {
    "fio version": "fio-3.36",
    "global options": {"bs": "1M", "iodepth": "1"},
    "jobs": [
        {
            "jobname": "sda",
            "job options": {"rw": "randread", "bs": "1M"},
            "read": {"io_bytes": 1000 << 20, "total_ios": 1000, "clat_ns": LATENCY, "lat_ns": LATENCY},
            "iodepth_level": {"1": 100.0, "2": 0.0},
        }
    ],
}
RESULT = [
    {"metric": {"__name__": f"t_{kind}", "device": "a", **labels}, "value": [0, value]}
    for kind, labels, value in (
        ("bucket", {"le": "0.01"}, "5"),
        ("bucket", {"le": "0.1"}, "9"),
        ("bucket", {"le": "+Inf"}, "9"),
        ("sum", {}, "0.2"),
        ("count", {}, "9"),
    )
]
PROMETHEUS = {"status": "success", "data": {"resultType": "vector", "result": RESULT}}
METRIC = "osd.op_r_latency_out_bytes_histogram"
KINDS = {
    "ceph": (CEPH, lambda path: histogram_nodes(path, METRIC, 1e6)),
    "prometheus": (PROMETHEUS, lambda path: histogram_nodes(path, "t", 1e6)),
    "fio": (FIO, fio_nodes),
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1e308, float("nan"), float("inf"), -1e-9, "", "x", "NaN", [], {}, [1], {"a": 1}]),
)
OFTEN = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def places(value, path=()):
    """Paths of all values in a tree."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def read(path, reader):
    """The moments, if the file has a table."""
    try:
        table = reader(path)
    except UserError as error:
        assert "\n" not in str(error)
        return
    moments = np.array([table[name].to_numpy() for name in MOMENTS])
    assert table.num_rows and np.all(np.isfinite(moments)) and np.all(moments >= 0)


@pytest.mark.parametrize("kind", KINDS)
@OFTEN
@given(data=st.data())
def test_changed_values(kind, data, tmp_path):
    content, reader = KINDS[kind]
    changed = copy.deepcopy(content)
    for _ in range(data.draw(st.integers(1, 2))):
        every = list(places(changed))
        path = every[data.draw(st.integers(0, len(every) - 1))]
        parent = changed
        for key in path[:-1]:
            parent = parent[key]
        if data.draw(st.booleans()):
            del parent[path[-1]]
        else:
            parent[path[-1]] = copy.deepcopy(data.draw(ODD))
        if not any(True for _ in places(changed)):
            break
    file = tmp_path / "osd.0.json"
    file.write_text(json.dumps(changed))
    read(file, reader)


@pytest.mark.parametrize("kind", KINDS)
@OFTEN
@given(share=st.floats(0, 1))
def test_cut_files(kind, share, tmp_path):
    content, reader = KINDS[kind]
    text = json.dumps(content)
    file = tmp_path / "osd.0.json"
    file.write_text(text[: int(share * len(text))])
    read(file, reader)


@OFTEN
@given(
    line=st.integers(0, TEXT.count("\n") - 1),
    junk=st.text(alphabet='{}[]",=le\\ +-eInfNa01_disk', max_size=40),
    keep=st.booleans(),
)
def test_changed_lines_of_an_exporter(line, junk, keep, tmp_path):
    lines = TEXT.splitlines()
    lines[line] = lines[line][: len(junk)] + junk if keep else junk
    file = tmp_path / "disks.prom"
    file.write_text("\n".join(lines))
    read(file, lambda path: histogram_nodes(path, "disk_read_seconds", 1e6))
