from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.folder import location, publishing
from ecjax.tables.importers import Trace, open_trace
from ecjax.tables.requests import Edges, requests

TRACES = Path(__file__).parents[2] / "traces"
CLOUDPHYSICS = Path(__file__).parents[3] / "shared" / "data" / "cloudphysics-a.csv"
ROWS = {
    "request_id": [7, 7, 8, 9, 9, 9, 4],
    "arrival_s": [5.0, 5.0, 5.5, 6.0, 6.0, 6.25, 7.0],
    "file_id": ["b", "b", "a", "b", "b", "b", "c"],
    "op": ["read", "read", "write", "read", "read", "read", "read"],
    "bytes": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0],
    "node_id": ["x", "y", "x", "z", "y", "x", "z"],
    "start_s": [5.0, None, 6.0, 6.5, 6.0, 7.0, None],
    "finish_s": [6.0, 5.5, 7.0, 7.0, 6.5, 8.0, None],
}


def opened(tmp_path, rows, **options):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows), path)
    return open_trace(path, **options)


def test_rows_become_requests_and_accesses(tmp_path):
    found = requests(opened(tmp_path, ROWS))
    assert found.count == 4 and found.dropped == 0
    assert found.file_ids.to_pylist() == ["b", "a", "c"]
    np.testing.assert_array_equal(found.arrival, [0.0, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(found.file, [0, 1, 0, 2])
    np.testing.assert_array_equal(found.write, [False, True, False, False])
    np.testing.assert_array_equal(found.bytes, [3.0, 4.0, 56.0, 64.0])
    own = found.accesses
    assert own.node_ids.to_pylist() == ["x", "y", "z"]
    np.testing.assert_array_equal(own.begin, [0, 2, 3, 6, 7])
    np.testing.assert_array_equal(own.request, [0, 0, 1, 2, 2, 2, 3])
    np.testing.assert_array_equal(own.node, [0, 1, 0, 2, 1, 0, 2])
    np.testing.assert_array_equal(own.arrival, np.array(ROWS["arrival_s"]) - 5)
    np.testing.assert_array_equal(own.bytes, ROWS["bytes"])
    np.testing.assert_array_equal(own.start, [0.0, np.nan, 1.0, 1.5, 1.0, 2.0, np.nan])
    np.testing.assert_array_equal(own.finish, [1.0, 0.5, 2.0, 2.0, 1.5, 3.0, np.nan])


def test_times_of_a_clock_of_64_ticks_a_second_in_milliseconds(tmp_path):
    ticks = np.sort(np.random.default_rng(0).integers(0, 6400, 20_000))
    rows = {"arrival_s": np.round(ticks / 64, 3), "file_id": [1] * 20_000, "op": ["read"] * 20_000}
    rows |= {"request_id": np.arange(20_000), "bytes": [1.0] * 20_000}
    found = requests(opened(tmp_path, rows))
    assert found.clock_resolution_s == 0.001 and found.tick_s == pytest.approx(1 / 64, rel=1e-4)
    np.testing.assert_allclose(found.arrival, rows["arrival_s"] - rows["arrival_s"][0], atol=1e-12)
    np.testing.assert_array_equal(np.rint(found.on_ticks(found.arrival) / found.tick_s), ticks - ticks[0])
    rows["arrival_s"] = np.round(np.sort(np.random.default_rng(1).uniform(0, 100, 20_000)), 3)
    even = requests(opened(tmp_path, rows))
    assert even.tick_s == 0.001 and even.on_ticks(even.arrival) is even.arrival


def test_sample_trace_as_pandas_sees_it():
    rows = pq.read_table(TRACES / "requests_chunks.parquet").to_pandas()
    found = requests(open_trace(TRACES / "requests_chunks.parquet"))
    first = rows.drop_duplicates("request_id")
    np.testing.assert_allclose(found.arrival, first["arrival_s"] - rows["arrival_s"][0], atol=1e-12)
    assert found.file_ids.take(pa.array(found.file)).to_pylist() == first["file_id"].tolist()
    np.testing.assert_array_equal(found.write, first["op"] == "write")
    np.testing.assert_allclose(found.bytes, rows.groupby("request_id", sort=False)["bytes"].sum())
    own = found.accesses
    assert own.node_ids.take(pa.array(own.node)).to_pylist() == rows["node_id"].tolist()
    np.testing.assert_allclose(own.finish - own.start, rows["finish_s"] - rows["start_s"], atol=1e-9)


@given(st.lists(st.integers(0, 7), max_size=4), st.booleans(), st.sampled_from([None, 1, 2, 3, 4, 9]))
def test_batches_may_end_anywhere(cuts, text_ids, limit):
    ids = [f"r{v}" for v in ROWS["request_id"]] if text_ids else ROWS["request_id"]
    operations = pa.array(ROWS["op"]).dictionary_encode()
    table = pa.table({**ROWS, "request_id": ids, "op": operations})
    ends = [0, *sorted(cuts), 7]

    def read():
        for begin, end in zip(ends[:-1], ends[1:], strict=True):
            yield from table.slice(begin, end - begin).combine_chunks().to_batches()

    trace = Trace(Path("log"), "table", table.schema, read, frozenset(), (), 0.0, "")
    found = requests(trace, pa.array(["c", "b"]), unknown="drop", limit=limit)
    count = min(limit or 3, 3)
    np.testing.assert_array_equal(found.arrival, [0.0, 1.0, 2.0][:count])
    np.testing.assert_array_equal(found.file, [1, 1, 0][:count])
    np.testing.assert_array_equal(found.accesses.begin, [0, 2, 5, 6][: count + 1])
    kept = np.array([1.0, 2.0, 8.0, 16.0, 32.0, 64.0])
    np.testing.assert_array_equal(found.accesses.bytes, kept[: found.accesses.begin[-1]])
    if limit is None:
        assert found.dropped == 1


def test_files_that_are_not_given(tmp_path):
    trace = opened(tmp_path, ROWS)
    with pytest.raises(
        UserError, match=r"column file_id, row 2: found 'a'; allowed: files of the files table"
    ) as e:
        requests(trace, pa.array(["b", "c"]))
    assert "\n" not in str(e.value)
    found = requests(trace, pa.array(["c", "b", "unread"]), unknown="drop")
    assert found.dropped == 1 and found.file_ids.to_pylist() == ["c", "b", "unread"]
    np.testing.assert_array_equal(found.file, [1, 1, 0])
    with pytest.raises(UserError, match="found 4 requests, none for a file of the files table"):
        requests(trace, pa.array(["other"]), unknown="drop")
    with pytest.raises(UserError, match="found ids of type string; allowed: int64"):
        requests(trace, pa.array([1, 2]))


def test_a_limit_stops_reading(tmp_path):
    rows = {**ROWS, "arrival_s": [5.0, 5.0, 5.5, 6.0, 6.0, 6.25, 1.0]}
    trace = opened(tmp_path, rows)
    with pytest.raises(UserError, match=r"column arrival_s, row 6 .*non-decreasing"):
        requests(trace)

    def read():
        for batch in pa.table(ROWS).to_batches(max_chunksize=3):
            assert batch["request_id"][0].as_py() == 7, "read on"
            yield batch.set_column(3, "op", batch["op"].dictionary_encode())

    lazy = Trace(Path("log"), "table", trace.schema, read, frozenset(), (), 0.0, "")
    assert requests(lazy, limit=1).count == 1


def test_sorted_on_request(tmp_path):
    rows = {name: values[::-1] for name, values in ROWS.items()}
    found = requests(opened(tmp_path, rows, sort=True))
    assert found.count == 4
    np.testing.assert_array_equal(found.bytes, [3.0, 4.0, 56.0, 64.0])


def test_one_request_has_one_file(tmp_path):
    rows = {**ROWS, "file_id": ["b", "a", *ROWS["file_id"][2:]]}
    with pytest.raises(UserError, match=r"row 1 \(request_id 7\): found another file or operation"):
        requests(opened(tmp_path, rows))


def test_without_nodes_every_row_is_a_request():
    found = requests(open_trace(TRACES / "requests_objects.parquet"), limit=100)
    rows = pq.read_table(TRACES / "requests_objects.parquet").slice(0, 100)
    assert found.accesses is None and found.count == 100
    assert found.file_ids.take(pa.array(found.file)).to_pylist() == rows["file_id"].to_pylist()
    np.testing.assert_array_equal(found.bytes, rows["bytes"].to_numpy())


@pytest.mark.skipif(not CLOUDPHYSICS.exists(), reason="needs ../shared/data")
def test_a_block_trace_has_arrivals_only():
    found = requests(open_trace(CLOUDPHYSICS, extent_bytes=1 << 20))
    assert found.accesses is None and found.count > 10_000
    assert np.all(np.diff(found.arrival) >= 0) and found.arrival[0] == 0
    assert found.file.max() + 1 == len(found.file_ids)


def edges_of(address, **options):
    """Names of the edges of the rows of a log, and the bytes of its requests."""
    edges = Edges(open_trace(address, **options), sort=False)
    found = requests(edges.trace)
    return edges.index and edges.index.ids.take(
        pa.array(np.concatenate(edges.numbers))
    ).to_pylist(), found.bytes


def test_edges_are_those_of_all_files_of_a_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["oslo", "oslo", "rome", "oslo", "rome", "rome", "kyiv"]
    whole = pa.table({**ROWS, "edge": names})
    pq.write_table(whole[:3], "p1.parquet")
    pq.write_table(whole[3:], "p2.parquet")
    store = f"mock:///bucket/{tmp_path.name}"
    for part in ("p1", "p2"):
        with publishing(location(f"{store}/{part}.parquet")) as file:
            file.write_bytes(Path(f"{part}.parquet").read_bytes())
    for address in ("p*.parquet", "./{p2.parquet,p1.parquet}", ".", f"{store}/p*.parquet"):
        edges, sizes = edges_of(address)
        assert edges == names
        np.testing.assert_array_equal(sizes, [3.0, 4.0, 56.0, 64.0])


def test_columns_of_the_logs_own_have_no_edges_which_is_said(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    for part in range(2):
        rows = {"t": [float(part)], "f": ["a"], "b": [1.0], "edge": ["oslo"]}
        pq.write_table(pa.table(rows), f"p{part}.parquet")
    edges, sizes = edges_of("p*.parquet", columns={"arrival_s": "t", "file_id": "f", "bytes": "b"})
    assert edges is None and sizes.tolist() == [1.0, 1.0]
    assert "trace=p*.parquet: column edge is not read with columns=" in caplog.text


def test_edges_of_a_log_with_arrivals_rounded_above_the_begin_of_service(tmp_path):
    """As other columns are read: arrivals in whole milliseconds, the nearest, services by a finer clock."""
    exact = np.sort(np.random.default_rng(1).uniform(0, 1, 200))
    names = [f"e{number % 3}" for number in range(200)]
    rows = {"request_id": np.arange(200), "arrival_s": np.round(exact, 3), "start_s": exact}
    rows |= {"finish_s": exact + 3e-4, "file_id": np.arange(200), "node_id": np.arange(200) % 7}
    rows |= {"op": ["read"] * 200, "bytes": np.arange(200.0), "edge": names}
    assert np.any(exact < rows["arrival_s"])
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    edges, sizes = edges_of(tmp_path / "log.parquet")
    assert edges == names
    np.testing.assert_array_equal(sizes, rows["bytes"])
