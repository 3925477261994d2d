import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.importers import blocks, open_trace
from ecjax.tables.importers.blocks import split_extents

RANGES = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 5000)), min_size=1, max_size=20)


@given(RANGES, st.integers(1, 700))
def test_pieces_are_exactly_the_bytes_asked_for(ranges, extent):
    offsets, sizes = (np.array(column, np.int64) for column in zip(*ranges, strict=True))
    access, number, part = split_extents(offsets, sizes, extent)
    place = 0
    for row, (offset, size) in enumerate(ranges):
        pieces = []
        while True:  # byte by byte would do; extent by extent is quicker
            end = min(offset + size, (offset // extent + 1) * extent) if size else offset
            pieces.append((row, offset // extent, end - offset))
            size, offset = size - (end - offset), end
            if not size:
                break
        found = list(zip(access[place:], number[place:], part[place:], strict=True))[: len(pieces)]
        assert found == pieces
        place += len(pieces)
    assert place == len(access)


@pytest.mark.parametrize("rows", [2, 1 << 17])
def test_an_access_over_extents_is_one_request_of_several_rows(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(blocks, "BATCH_ROWS", rows)
    (tmp_path / "a.csv").write_text(
        "version,time,op,size,lbn\n1,100,28,1000,1\n1,100,2a,512,8\n1,103,2A,3000,0\n1,104,28,0,3\n"
    )
    trace = open_trace(tmp_path / "a.csv", extent_bytes=1024)
    found = pa.Table.from_batches(list(trace.batches())).to_pandas()
    assert found["request_id"].tolist() == [0, 0, 1, 2, 2, 2, 3]
    assert found["file_id"].tolist() == [0, 1, 4, 0, 1, 2, 1]
    assert found["bytes"].tolist() == [512, 488, 512, 1024, 1024, 952, 0]
    assert found["arrival_s"].tolist() == [0, 0, 0, 3, 3, 3, 4]
    assert found["op"].tolist() == ["read", "read", *["write"] * 4, "read"]


def test_volumes_are_files_of_their_own(tmp_path):
    line = "12816637200306{},{},{},Read,{},10,5\n"
    (tmp_path / "a.csv").write_text(
        line.format(10, "usr", 0, 0) + line.format(11, "usr", 1, 0) + line.format(11, "src", 0, 4096)
    )
    trace = open_trace(tmp_path / "a.csv", extent_bytes=4096)
    found = pa.Table.from_batches(list(trace.batches())).to_pandas()
    assert found["file_id"].tolist() == ["usr.0/0", "usr.1/0", "src.0/1"]
    np.testing.assert_allclose(found["arrival_s"], [0, 1e-7, 1e-7], atol=1e-15)


@pytest.mark.parametrize("sort", [False, True])
def test_a_header_alone_is_no_log(tmp_path, sort):
    (tmp_path / "a.csv").write_text("version,time,op,size,lbn\n")
    with pytest.raises(UserError, match="a.csv: found no accesses; allowed: at least one"):
        list(open_trace(tmp_path / "a.csv", extent_bytes=4096, sort=sort).batches())


def test_damaged_numbers_of_alibaba_take_no_memory(tmp_path):
    lines = [f"1,R,{row},2,157780814436076{row}" for row in range(9)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines, "1,R,9223372036854775807,2,1577808144360770"]))
    trace = open_trace(path, extent_bytes=4096)
    assert sum(batch.num_rows for batch in trace.batches()) == 9 and trace.tally.reasons == {"offset": 1}
    path.write_text("\n".join([*lines, "1,R,0,9999999999999999,1577808144360770"]))
    with pytest.raises(
        UserError,
        match="a.csv: found size 10000000000000000 bytes, .* extents of .*allowed: at most 1048576 extents",
    ):
        list(open_trace(path, extent_bytes=4096).batches())
