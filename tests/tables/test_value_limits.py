"""What tables and files may be at most: each limit is told in one line, and nothing is waited for."""

import errno
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables import formats
from ecjax.tables.datasets import read_file
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.importers import blocks, open_trace
from ecjax.tables.importers.blocks import split_extents
from ecjax.tables.importers.detect import read_head
from ecjax.tables.read import read_input

REQUESTS = {
    "request_id": [0, 1, 2],
    "arrival_s": [0.0, 1.0, 2.0],
    "file_id": ["a", "b", "c"],
    "op": ["read", "read", "read"],
    "bytes": [1.0, 1.0, 1.0],
}
NODES = {
    "node_id": ["x", "y"],
    "service_mean_s": [1.0, 2.0],
    "service_second_s2": [2.0, 8.0],
    "service_third_s3": [6.0, 48.0],
    "reference_bytes": [10.0, 10.0],
}


def log(path: Path, **columns) -> Path:
    pq.write_table(pa.table({**REQUESTS, **columns}), path)
    return path


def refused_log(path: Path, **options) -> str:
    with pytest.raises(UserError) as error:
        list(open_trace(path, **options).batches())
    return str(error.value)


@pytest.mark.parametrize("name", ["arrival_s", "finish_s"])
def test_times_of_a_log(tmp_path, name):
    times = [0.0, 1.0, 1e308]
    message = refused_log(log(tmp_path / "log.parquet", **{name: times}))
    assert f"column {name}, row 2" in message
    assert "found 1e+308; allowed: finite numbers, up to 1e+12 s" in message


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (
            "nodes",
            {"cost_per_chunk_dollars": [1.0, 1e308]},
            "row 1 (node_id 'y'): found 1e+308; allowed: finite numbers >= 0, up to 1e+30",
        ),
        (
            "nodes",
            {"reference_bytes": [1e-308, 1.0]},
            "found 1e-308; allowed: finite numbers > 0, from 1e-30",
        ),
        (
            "nodes",
            {"channels": [2**62, 1]},
            "found 4611686018427387904; allowed: integers >= 1, up to 2147483647",
        ),
        (
            "requests",
            {"start_s": [0.0, 1.0, -1e13]},
            "found -10000000000000.0; allowed: finite numbers, up to 1e+12 s",
        ),
    ],
)
def test_numbers_of_a_table(table, columns, message):
    rows = NODES if table == "nodes" else REQUESTS
    with pytest.raises(UserError) as error:
        read_input(pa.table({**rows, **columns}), table)
    assert message in str(error.value)


def test_a_null_among_the_words_of_a_dictionary_is_an_empty_cell(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array([None, "read"]))
    files = pa.DictionaryArray.from_arrays(pa.array([1, 1, 0], pa.int8()), pa.array([None, "a"]))
    for name, values, row in (("op", words, 1), ("file_id", files, 2)):
        path = tmp_path / f"{name}.arrow"
        pyarrow.feather.write_feather(pa.table({**REQUESTS, name: values}), path, compression="uncompressed")
        assert f"column {name}, row {row} (request_id {row}): found an empty cell" in refused_log(path)
        with pytest.raises(UserError, match=f"column {name}, row {row} .*found an empty cell"):
            read_input(str(path), "requests")


def test_an_access_of_many_extents(tmp_path, monkeypatch):
    path = tmp_path / "msr.csv"
    path.write_text(
        "128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061700,hm,1,Read,0,1000000000000000000,413\n"
    )
    message = refused_log(path, format="msr", extent_bytes=4096)
    assert (
        "line 2: found size 1000000000000000000 bytes, 244140625000000 extents of extent_bytes=4096"
        in message
    )
    path.write_text(
        "".join(f"{128166372003061629 + i},hm,1,Read,{5000 * i},{4096 * i},1\n" for i in range(30))
    )
    whole = pa.Table.from_batches(open_trace(path, "msr", extent_bytes=4096).batches())
    monkeypatch.setattr(blocks, "_MOST_PIECES", 40)
    parts = list(open_trace(path, "msr", extent_bytes=4096).batches())
    assert len(parts) > 5
    assert max(part.num_rows for part in parts) <= 40
    assert pa.Table.from_batches(parts).equals(whole)


def test_extents_are_counted_as_they_are_cut():
    generator = np.random.default_rng(0)
    offset, size = generator.integers(0, 1000, 200), generator.integers(0, 300, 200)
    batch = blocks.Accesses(offset, offset > 0, offset, size)
    counts = np.bincount(split_extents(offset, size, 64)[0], minlength=200)
    np.testing.assert_array_equal(blocks._pieces(batch, 64), counts)


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    os.mkfifo(tmp_path / "pipe.csv")
    pipe = "pipe.parquet: a pipe, socket or device; allowed: a file, or a folder of Parquet files"
    for of in (tmp_path / "pipe.parquet", tmp_path):
        for opens in (read_head, trace_fingerprint, open_trace, lambda path: read_input(path, "files")):
            with pytest.raises(UserError, match="a pipe, socket or device"):
                opens(of)
    with pytest.raises(UserError, match=pipe):
        read_input(tmp_path / "pipe.parquet", "files")


def test_a_folder_that_links_to_itself(tmp_path):
    log(tmp_path / "log.parquet")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "self").symlink_to(tmp_path)
    for opens in (open_trace, trace_fingerprint, lambda path: read_input(path, "requests")):
        with pytest.raises(UserError, match="deeper/self: links to a folder that it is in"):
            opens(tmp_path)
    (tmp_path / "deeper" / "self").unlink()
    (tmp_path / "deeper" / "self").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    assert open_trace(tmp_path).rows == 3


def test_a_folder_that_cannot_be_looked_into(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir()
    log(tmp_path / "log.parquet")
    listed = Path.iterdir

    def iterdir(folder):
        if folder == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    for opens in (read_head, open_trace, trace_fingerprint, lambda path: read_input(path, "requests")):
        with pytest.raises(UserError, match=f"^{closed}: Permission denied"):
            opens(tmp_path)


def test_memory_that_ends_is_not_a_damaged_file():
    with pytest.raises(pa.ArrowMemoryError), formats.user_errors("x.parquet"):
        raise pa.ArrowMemoryError("malloc failed")


def test_a_damaged_file_of_results_says_how_to_mend_it(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text("hello")
    with pytest.raises(UserError, match=r"move it away and run the same command again"):
        read_file(path)
