import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.tables.importers import open_trace
from ecjax.tables.statistics.delays import SERVICE, SOJOURN
from ecjax.tables.statistics.scan import scan


def chunk_rows(seed=0, requests=400, strings=True):
    """A log of chunk accesses, each node first-come first-served, simulated plainly."""
    random = np.random.default_rng(seed)
    free, rows, clock = {}, [], 0.0
    for request in range(requests):
        clock += random.exponential(1.0)
        file, write = int(random.integers(12)), bool(random.random() < 0.2)
        for node in random.choice(6, 5 if write else 3, replace=False):
            start = max(clock, free.get(node, 0.0))
            free[node] = start + random.exponential(0.5)
            rows.append(
                (
                    request,
                    clock,
                    file,
                    "write" if write else "read",
                    100.0 * (1 + file % 3),
                    int(node),
                    start,
                    free[node],
                )
            )
    names = ("request_id", "arrival_s", "file_id", "op", "bytes", "node_id", "start_s", "finish_s")
    frame = pd.DataFrame(rows, columns=names)
    if strings:
        frame["request_id"] = "r" + frame["request_id"].astype(str)
        frame["file_id"] = "f" + frame["file_id"].astype(str)
        frame["node_id"] = "n" + frame["node_id"].astype(str)
    return frame


def traced(frame, folder, name="log.parquet"):
    frame.to_parquet(folder / name, index=False)
    return open_trace(folder / name)


def in_batches(trace, rows):
    def read():
        for batch in trace.batches():
            for begin in range(0, batch.num_rows, rows):
                yield batch.slice(begin, rows)

    return dataclasses.replace(trace, read=read)


@pytest.mark.parametrize(("strings", "rows"), [(True, 10**6), (True, 7), (False, 100)])
def test_one_pass_agrees_with_pandas(tmp_path, strings, rows):
    frame = chunk_rows(strings=strings)
    seen = []
    found = scan(in_batches(traced(frame, tmp_path), rows), progress=seen.append)
    requests = frame.groupby("request_id", sort=False).agg(
        file=("file_id", "first"), op=("op", "first"), bytes=("bytes", "sum"), chunks=("bytes", "size")
    )
    assert found.rows == len(frame) == seen[-1] and found.requests == len(requests)
    assert (
        found.reads == (requests["op"] == "read").sum() and found.writes == (requests["op"] == "write").sum()
    )
    assert found.bytes == frame["bytes"].sum()
    assert found.file_ids.to_pylist() == list(frame["file_id"].unique())
    assert found.node_ids.to_pylist() == list(frame["node_id"].unique())
    by_file = requests.groupby("file", sort=False)
    np.testing.assert_allclose(found.files[:, 0], by_file["op"].apply(lambda op: (op == "read").sum()))
    np.testing.assert_array_equal(found.chunks_read, 3)
    np.testing.assert_allclose(found.files[:, 4], frame.groupby("file_id", sort=False)["bytes"].max())
    accesses = (
        frame.groupby(["node_id", "op"], sort=False).size().unstack().reindex(found.node_ids.to_pylist())
    )
    np.testing.assert_array_equal(found.node_accesses, accesses[["read", "write"]])
    for quantity, begin in ((SERVICE, "start_s"), (SOJOURN, "arrival_s")):
        cells = found.cells.choose(found.cells.quantity == quantity)
        delays = (
            (frame["finish_s"] - frame[begin]).groupby([frame["node_id"], frame["op"], frame["bytes"]]).mean()
        )
        nodes = np.array(found.node_ids.to_pylist(), object)[cells.node]
        ops = np.where(cells.write, "write", "read")
        keys = pd.MultiIndex.from_arrays([nodes, ops, cells.bytes])
        np.testing.assert_allclose(cells.moments[:, 1], delays.loc[keys], rtol=1e-9)
        assert len(delays) == len(cells.bytes)
    assert found.service_reason is None and not found.service_inferred
    assert found.correlation.requests == len(requests)


def test_service_times_are_inferred_where_start_is_missing(tmp_path):
    frame = chunk_rows()
    logged = scan(traced(frame, tmp_path))
    inferred = scan(traced(frame.drop(columns="start_s"), tmp_path))
    assert inferred.service_inferred and inferred.service_reason is None
    np.testing.assert_allclose(inferred.cells.moments[:, :3], logged.cells.moments[:, :3], atol=1e-9)


def test_service_times_are_not_invented(tmp_path):
    frame = chunk_rows().drop(columns="start_s")
    frame.loc[100, "finish_s"] = np.nan
    found = scan(traced(frame, tmp_path))
    assert "row 100" in found.service_reason
    assert np.all(found.cells.quantity == SOJOURN) and found.cells.moments[:, 0].sum() == len(frame) - 1
    assert (
        scan(traced(frame.drop(columns="finish_s"), tmp_path)).service_reason
        == "the trace has no finish times"
    )


def test_objects_are_counted_row_by_row(tmp_path):
    frame = chunk_rows().drop(columns=["node_id", "start_s"])
    found = scan(traced(frame, tmp_path))
    assert found.requests == len(frame) and found.chunks_read is None and found.node_ids is None
    assert "neither start_s nor node_id" in found.service_reason


def test_a_request_of_two_files_is_named(tmp_path):
    frame = chunk_rows(strings=False)
    frame.loc[4, "file_id"] = 99
    with pytest.raises(UserError, match=r"row 4 \(request_id 0\): found another file or operation") as error:
        scan(in_batches(traced(frame, tmp_path), 3))
    assert "\n" not in str(error.value)


def test_errors_of_the_reading_thread_arrive(tmp_path):
    trace = traced(chunk_rows(), tmp_path)

    def read():
        yield next(trace.batches())
        raise UserError("broken")

    with pytest.raises(UserError, match="broken"):
        scan(dataclasses.replace(trace, read=read))


def test_stopping_early_stops_the_reading_thread(tmp_path):
    def stop(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(in_batches(traced(chunk_rows(), tmp_path), 5), progress=stop)


def test_ids_of_the_result_have_the_types_of_the_log(tmp_path):
    assert scan(traced(chunk_rows(strings=False), tmp_path)).file_ids.type == pa.int64()
    assert scan(traced(chunk_rows(), tmp_path)).file_ids.type == pa.string()


def test_an_access_over_two_extents_is_one_delay_of_all_its_bytes(tmp_path):
    line = "12816637200306{},u,0,Read,{},{},{}\n"
    (tmp_path / "log.csv").write_text(
        line.format(1000, 0, 4096, 50) + line.format(1010, 4096, 8192, 70) + line.format(1020, 4000, 200, 90)
    )
    found = scan(open_trace(tmp_path / "log.csv", extent_bytes=4096))
    assert found.rows == 5 and found.requests == 3
    assert found.cells.bytes.tolist() == [200, 4096, 8192]
    np.testing.assert_allclose(found.cells.moments[:, 1], [90e-7, 50e-7, 70e-7], rtol=1e-6)
    assert found.files[:, 0].tolist() == [2, 2, 1] and found.files[:, 2].sum() == 4096 + 8192 + 200
