"""How ``ecjax adapt`` reads logs: whole accesses of block traces, and what an analysis of the log said."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt.inputs import read_cases
from ecjax.studies.adapt.logs import reading_of
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.analyze.tables import TABLES
from ecjax.studies.spine.logs import open_reading
from ecjax.tables.store import ResultStore

MAPPED = {"arrival_s": "at", "file_id": "key", "bytes": "size", "start_s": "begin", "finish_s": "end"}


def cases(**options):
    return read_cases(checked(AdaptOptions(**options)))


@pytest.fixture
def disk(tmp_path):
    """A block trace; its second access touches four extents of 65536 bytes: 62976 to 202976."""
    rows = ["version,time,op,size,lbn", "1,10,28,4096,7", "1,11,2a,140000,123", "1,13,28,4096,900000000000"]
    (tmp_path / "disk.csv").write_text("\n".join(rows) + "\n")
    return str(tmp_path / "disk.csv")


@pytest.fixture
def mapped(tmp_path):
    """A log with columns of its own."""
    random = np.random.default_rng(1)
    start = np.cumsum(random.exponential(1.0, 300))
    columns = {"at": start, "key": np.arange(300), "size": np.full(300, 1e6), "begin": start}
    pq.write_table(
        pa.table(columns | {"end": start + random.exponential(0.1, 300)}), tmp_path / "log.parquet"
    )
    return str(tmp_path / "log.parquet")


def analysis(folder, log, fingerprint=None, **values):
    """A folder of an analysis of a log that was read with these options."""
    options = checked(AdaptOptions(trace=log, **values))
    trace = open_reading(reading_of(log, options))
    reading = {"format": "auto", "columns": None, "extent_bytes": None, "sort": False} | values
    with ResultStore(folder, TABLES, {"file_id": pa.int64(), "node_id": pa.int64()}) as store:
        run = {"run_id": "a", "job": "analyze", "status": "ok", "input_id": fingerprint or trace.fingerprint}
        row = {"run_id": ["a"], "path": [log], "reading": [json.dumps(reading)]}
        store.commit([run], {"traces": pa.table(row)})
    return str(folder)


def test_accesses_of_a_block_trace_are_cut_where_extents_are_set(disk):
    whole, cut = cases(trace=disk)[0], cases(trace=disk, extent_bytes=65536)[0]
    assert len(whole.point.requests(0).arrival_s) == 3 and len(cut.point.requests(0).arrival_s) == 6
    assert whole.proxy.input_id != cut.proxy.input_id


def test_extents_are_those_of_the_trace(disk, mapped, tmp_path):
    table = pq.read_table(mapped).rename_columns(["arrival_s", "file_id", "bytes", "start_s", "finish_s"])
    table = table.append_column("request_id", table["file_id"]).append_column("op", pa.array(["read"] * 300))
    pq.write_table(table, tmp_path / "table.parquet")
    (case,) = cases(trace=disk, extent_bytes=65536, delays=str(tmp_path / "table.parquet"))
    assert len(case.point.requests(0).arrival_s) == 6 and case.proxy.delays == "table.parquet"


def test_a_log_is_read_as_its_analysis_was(disk, mapped, tmp_path):
    folder = analysis(tmp_path / "blocks", disk, extent_bytes=65536)
    (given, found), (whole,) = cases(trace=disk, extent_bytes=65536) + cases(trace=folder), cases(trace=disk)
    assert found.proxy.input_id == given.proxy.input_id != whole.proxy.input_id
    assert len(found.point.requests(0).arrival_s) == 6
    folder = analysis(tmp_path / "mapping", mapped, columns=MAPPED)
    given, found = cases(trace=mapped, columns=MAPPED) + cases(trace=folder)
    assert found.proxy.input_id == given.proxy.input_id and found.point.rate_per_s == given.point.rate_per_s


def test_delays_of_a_log_are_read_as_its_analysis_was(mapped, tmp_path):
    folder = analysis(tmp_path / "mapping", mapped, columns=MAPPED)
    (given,) = cases(delays=mapped, columns=MAPPED, load=0.5)
    (found,) = cases(delays=mapped, trace=folder)
    np.testing.assert_array_equal(found.proxy.models[0].quantiles, given.proxy.models[0].quantiles)


def test_a_log_that_has_changed_is_refused(mapped, tmp_path):
    folder = analysis(tmp_path / "mapping", mapped, "another", columns=MAPPED)
    with pytest.raises(UserError, match="has changed since its analysis; allowed: trace=.*, or a new"):
        cases(trace=folder)
