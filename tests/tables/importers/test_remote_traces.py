from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.tables.folder import location, publishing
from ecjax.tables.importers import open_trace
from ecjax.tables.importers.oracle_general import RECORD

TRACES = Path(__file__).parents[3] / "traces"


@pytest.fixture(params=["mock", "memory"])
def store(request):
    """The address of a folder in a store."""
    if request.param == "memory":
        pytest.importorskip("fsspec", reason="fsspec is not installed: its stores cannot be tested")
    return f"{request.param}:///bucket/{uuid4().hex}"


def put(address, content):
    with publishing(location(address)) as file:
        file.write_bytes(content)


def rows(trace):
    return pa.Table.from_batches(list(trace.batches()))


def test_a_trace_in_an_object_store_is_read_as_its_copy(store, tmp_path):
    table = pq.read_table(TRACES / "requests_chunks.parquet")
    pq.write_table(table[:9000], tmp_path / "a.parquet", row_group_size=2000)
    pq.write_table(table[9000:], tmp_path / "b.parquet", row_group_size=2000)
    (tmp_path / "log.csv").write_text("ts,key,size\n1,a,5\n2,b,7\n")
    (tmp_path / "c.oracleGeneral").write_bytes(bytes(RECORD.itemsize * 3))
    for file in tmp_path.iterdir():
        put(f"{store}/{file.name}", file.read_bytes())
    whole = open_trace(store)
    assert rows(whole).equals(rows(open_trace(tmp_path)))
    pieces = whole.pieces(3)
    assert len(pieces) == 3 and whole.fingerprint == open_trace(tmp_path).fingerprint
    assert pa.Table.from_batches([b for piece in pieces for b in piece.batches()]).equals(rows(whole))
    mapping = {"arrival_s": "ts", "file_id": "key", "bytes": "size"}
    assert rows(open_trace(f"{store}/log.csv", columns=mapping))["file_id"].to_pylist() == ["a", "b"]
    assert rows(open_trace(f"{store}/c.oracleGeneral")).num_rows == 3


def test_a_trace_that_is_not_there(store):
    with pytest.raises(UserError, match="none.parquet: no such file or folder"):
        open_trace(f"{store}/none.parquet")


def test_a_pattern_of_an_object_store_is_a_folder_of_what_it_matches(store, tmp_path):
    table = pq.read_table(TRACES / "requests_chunks.parquet")
    for number, day in enumerate(("mon/a", "tue/b", "tue/c")):
        (tmp_path / day).parent.mkdir(exist_ok=True)
        pq.write_table(table[100 * number : 100 * (number + 1)], tmp_path / f"{day}.parquet")
        put(f"{store}/logs/{day}.parquet", (tmp_path / f"{day}.parquet").read_bytes())
    put(f"{store}/logs/tue/other.csv", b"a\n1\n")
    whole = open_trace(tmp_path)
    for pattern in ("logs/*/*.parquet", "logs/**/[abc].parquet", "{logs/mon/a,logs/tue/[bc]}.parquet"):
        trace = open_trace(f"{store}/{pattern}")
        assert trace.fingerprint == whole.fingerprint and rows(trace).equals(rows(whole))
    assert open_trace(f"{store}/logs/m*").fingerprint == open_trace(tmp_path / "mon").fingerprint
    with pytest.raises(UserError, match=r"/logs/\*.zst: no file matches"):
        open_trace(f"{store}/logs/*.zst")
