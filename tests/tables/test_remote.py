"""Results and inputs in an object store: the same tables as in a folder, objects that are whole or absent."""

import pickle
import sys
from pathlib import Path
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from pyarrow import fs

from ecjax.errors import UserError
from ecjax.plotting.saving import save_png
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables import remote
from ecjax.tables.datasets import dataset_files
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.folder import absolute, location, public, publishing
from ecjax.tables.read import open_batches, read_input
from ecjax.tables.results import find_run, read_results, read_run
from ecjax.tables.store import ResultStore

IDS = {"file_id": pa.int64(), "node_id": pa.string()}
NODES = pa.table(
    {
        "node_id": ["x", "y"],
        "service_mean_s": [1.0, 2.0],
        "service_second_s2": [2.0, 8.0],
        "service_third_s3": [6.0, 48.0],
        "reference_bytes": [10.0, 10.0],
    }
)


def row(run: str, status: str = "ok", **more) -> dict:
    return {"run_id": run, "job": "optimize", "status": status, **more}


def history(run: str, count: int = 3) -> pa.Table:
    return pa.table({"run_id": [run] * count, "iteration": list(range(count)), "objective": [1.0] * count})


@pytest.fixture(params=["mock", "memory"])
def out(request) -> str:
    """An address that is empty still."""
    if request.param == "memory":
        pytest.importorskip("fsspec", reason="fsspec is not installed: its stores cannot be tested")
    return f"{request.param}:///bucket/{uuid4().hex}"


def names(out: str) -> list[str]:
    """All objects under an address."""

    def under(folder: Path) -> list[Path]:
        return [f for e in folder.iterdir() for f in (under(e) if e.is_dir() else [e])]

    return sorted(str(path.relative_to(location(out))) for path in under(location(out)))


# Addresses


@pytest.mark.parametrize("address", ["results/x", "/a/b=c,d", "C:x", "a://"[:2]])
def test_paths_stay_paths(address):
    assert location(address) == Path(address)
    assert location(Path(address)) == Path(address)


def test_file_addresses_are_paths(tmp_path):
    assert location(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert location("file://localhost/a") == Path("/a")
    for wrong in ("file://server/a", "file://"):
        with pytest.raises(UserError, match=f"^{wrong}: malformed; allowed: file:///path$"):
            location(wrong)
    with ResultStore(f"file://{tmp_path}/out", TABLES, IDS) as store:
        store.commit([row("a")], {"history": history("a")})
    assert len(read_results(f"file://{tmp_path}/out", "history")) == 3
    assert len(read_results(tmp_path / "out", "history")) == 3


def test_unknown_and_malformed_addresses():
    with pytest.raises(UserError, match="^s3://: Missing bucket name|^s3://.*: "):
        location("s3:///x?region=here")
    with pytest.raises(UserError, match="^s3://bucket: Unexpected query parameter in S3 URI: 'endpoint'"):
        location("s3://bucket/x?endpoint=1")


def test_a_scheme_of_fsspec_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        UserError, match=r"^webdav://host: webdav:// needs the package fsspec \(pip install fsspec\)"
    ):
        location("webdav://host/x")


def test_a_scheme_that_fsspec_does_not_know():
    pytest.importorskip("fsspec", reason="fsspec is not installed: its stores cannot be tested")
    with pytest.raises(UserError, match="^nonsense://host: Protocol not known: nonsense"):
        location("nonsense://host/x")


def test_settings_of_a_store_stay_at_the_end_of_its_addresses():
    path = (
        location("s3://key:secret@bucket/a//b/?region=us-east-1&endpoint_override=127.0.0.1:1")
        / "runs/x.parquet"
    )
    settings = "?region=us-east-1&endpoint_override=127.0.0.1:1"
    assert path.address == f"s3://key:secret@bucket/a/b/runs/x.parquet{settings}"
    assert path.parent.address == f"s3://key:secret@bucket/a/b/runs{settings}"
    assert str(path) == public(path) == "s3://bucket/a/b/runs/x.parquet"
    assert repr(path) == "RemotePath('s3://bucket/a/b/runs/x.parquet')"
    assert (path.name, path.stem, path.suffix) == ("x.parquet", "x", ".parquet")
    assert path.relative_to(path.parent.parent).as_posix() == "runs/x.parquet"
    assert pickle.loads(pickle.dumps(path)) == path == location(path.address) == location(absolute(path))
    assert path._path == "bucket/a/b/runs/x.parquet"


# Results


def test_commit_resume_and_read(out):
    with pytest.raises(UserError, match=f"out={out}: no such folder"):
        read_results(out, "runs")
    with ResultStore(out, TABLES, IDS) as store:
        store.write_input("nodes", "abc", NODES)
        store.commit([row("a", theta=0.1), row("b", "failed")], {"history": map(history, "ab")})
        writer = pickle.loads(pickle.dumps(store.writer))
        assert writer.reaches()
        written = writer.write("c", {"history": history("c")})
        assert set(read_results(out, "history")["run_id"]) == {"a", "b"}
        store.commit([row("c")], written)
    assert not writer._marker.exists()
    with ResultStore(out, TABLES, IDS) as store:
        assert store.finished("abcd") == {"a", "c"}
        store.commit([row("b")], {"history": history("b", 1)})
    assert read_results(out, "history").groupby("run_id").size().to_dict() == {"a": 3, "b": 1, "c": 3}
    assert set(read_results(out, "runs")["status"]) == {"ok"}
    assert find_run(out, plan_where="theta=0.1")["run_id"] == "a"
    assert len(read_run(out, "history", "b")) == 1
    assert len(read_results(out, "inputs/nodes")) == 2
    with pytest.raises(UserError, match=f"out={out}: has no history of run d"):
        read_run(out, "history", "d")
    with pytest.raises(
        UserError, match=f"out={out}: has no dataset 'latencies'; it has runs, history, inputs/nodes"
    ):
        read_results(out, "latencies")
    with pytest.raises(UserError, match=f"out={out}: inputs/nodes/abc.parquet has .* choose a new out"):
        ResultStore(out, TABLES, {"node_id": pa.int64()}).__enter__()


def test_the_same_tables_as_in_a_folder(out, tmp_path):
    for place in (out, tmp_path):
        with ResultStore(place, TABLES, IDS) as store:
            store.commit([row("a"), row("b")], {"history": map(history, "ab")})
    for dataset in ("runs", "history"):
        pd.testing.assert_frame_equal(read_results(out, dataset), read_results(tmp_path, dataset))
    objects = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")}
    assert objects == set(names(out))


def test_what_a_killed_job_left_goes(out):
    killed = ResultStore(out, TABLES, IDS)
    killed.__enter__()
    killed.commit([row("a")], {"history": history("a")})
    orphan = pickle.loads(pickle.dumps(killed.writer))
    written = orphan.write("b", {"history": history("b")})
    assert len(dataset_files(location(out), "history")) == 2
    with ResultStore(out, TABLES, IDS) as store:
        assert len(dataset_files(location(out), "history")) == 1
        for late in (
            lambda: orphan.write("b", {"history": history("b")}),
            lambda: killed.commit([row("b")], written),
        ):
            with pytest.raises(
                UserError, match=f"out={out}: the job .* has ended, or another ecjax job writes to it now"
            ):
                late()
        store.commit([row("b")], {"history": history("b")})
    assert read_results(out, "history").groupby("run_id").size().to_dict() == {"a": 3, "b": 3}


def test_a_job_that_was_shut_out_takes_nothing_from_the_one_that_did_so(out):
    first, second = ResultStore(out, TABLES, IDS), ResultStore(out, TABLES, IDS)
    first.__enter__()
    first.commit([row("a")], {"history": history("a")})
    second.__enter__()
    written = second.writer.write("b", {"history": history("b")})
    second.commit([row("c")], {"history": history("c")})
    for run in "bc":
        with pytest.raises(UserError, match="another ecjax job writes to it now"):
            first.commit([row(run)], {"history": history(run)})
    first.__exit__(None, None, None)
    second.commit([row("b")], written)
    second.__exit__(None, None, None)
    assert read_results(out, "history").groupby("run_id").size().to_dict() == {"a": 3, "b": 3, "c": 3}
    assert not [name for name in names(out) if name.startswith(".")]


def test_out_is_an_object(out):
    with publishing(location(out)) as file:
        file.write_bytes(b"x")
    with pytest.raises(UserError, match=f"out={out}: is a file; allowed: a folder"):
        ResultStore(out, TABLES, IDS).__enter__()


def test_figures(out):
    save_png(Figure(), location(out) / "figures" / "x.png")
    with (location(out) / "figures" / "x.png").open() as file:
        assert file.read(4) == b"\x89PNG"
    assert names(out) == ["figures/x.png"]


# Inputs


def test_input_tables(out, tmp_path):
    place = location(out)
    with publishing(place / "nodes.parquet") as file:
        pq.write_table(NODES, file)
    with publishing(place / "nodes.csv.gz") as file, pa.CompressedOutputStream(str(file), "gzip") as packed:
        pyarrow.csv.write_csv(NODES, packed)
    with publishing(place / "nodes.arrow") as file:
        pyarrow.feather.write_feather(NODES, file)
    for part in range(2):
        with publishing(place / "parts" / f"{part}.parquet") as file:
            pq.write_table(NODES.slice(part, 1), file)
    for name in ("nodes.parquet", "nodes.csv.gz", "nodes.arrow", "parts"):
        assert read_input(f"{out}/{name}", "nodes").select(NODES.column_names).equals(NODES)
        opened = open_batches(f"{out}/{name}", ["node_id"])
        assert pa.Table.from_batches(opened.batches)["node_id"].to_pylist() == ["x", "y"]
    with pytest.raises(
        UserError, match=rf"^nodes table \({out}/none.csv\): no such file or folder; allowed: "
    ):
        read_input(f"{out}/none.csv", "nodes")
    with publishing(place / "bad.parquet") as file:
        file.write_bytes(b"PAR1")
    with pytest.raises(UserError, match=f"^{out}/bad.parquet: damaged or of another format"):
        read_input(f"{out}/bad.parquet", "nodes")


def test_fingerprint_of_a_trace_is_that_of_its_copy(out, tmp_path):
    for place in (location(out), tmp_path):
        for name in ("a.csv", "deeper/b.csv"):
            with publishing(place / name) as file:
                file.write_text(name)
    assert trace_fingerprint(out) == trace_fingerprint(tmp_path)
    assert trace_fingerprint(f"{out}/a.csv") == trace_fingerprint(tmp_path / "a.csv")


def test_large_objects_are_read_in_pieces(out, monkeypatch):
    monkeypatch.setattr(remote, "_WHOLE_BYTES", 100)
    with ResultStore(out, TABLES, IDS) as store:
        store.commit([row("a")], {"history": history("a", 1000)})
    assert len(read_results(out, "history")) == 1000
    assert not isinstance((location(out) / "runs" / "a.parquet").source(), pa.BufferReader)


# Failures


class Stream:
    """Keeps half of what it is given, and fails when it is written to or when it is closed."""

    def __init__(self, stream, at: str):
        self.stream, self.at = stream, at

    def write(self, data: bytes) -> None:
        self.stream.write(data[: len(data) // 2])
        if self.at == "write":
            raise OSError("the network is gone")

    def close(self) -> None:
        self.stream.close()
        if self.at == "close":
            raise RuntimeError("no write permission\nsecond line")


class Broken:
    """A store that takes no upload."""

    def __init__(self, store: fs.FileSystem, at: str):
        self.store, self.at = store, at

    def __getattr__(self, name: str):
        return getattr(self.store, name)

    def open_output_stream(self, path: str, compression: None) -> Stream:
        return Stream(self.store.open_output_stream(path), self.at)


@pytest.mark.parametrize(("at", "said"), [("write", "the network is gone"), ("close", "no write permission")])
def test_an_upload_that_fails_leaves_nothing(out, monkeypatch, at, said):
    resolve = remote._filesystem

    def broken(*root: str) -> tuple[Broken, str]:
        store, base = resolve(*root)
        return Broken(store, at), base

    with ResultStore(out, TABLES, IDS) as store:
        store.commit([row("a")], {"history": history("a")})
        before = names(out)
        with monkeypatch.context() as patch:
            patch.setattr(remote, "_filesystem", broken)
            for datasets in ({"history": history("b")}, {}):
                with pytest.raises(UserError, match=f"^out={out}: cannot be written: {said}$"):
                    store.commit([row("b")], datasets)
            with pytest.raises(UserError, match=f"^out={out}: cannot be written: {said}$"):
                save_png(Figure(), location(out) / "figures" / "x.png")
            with pytest.raises(UserError, match=f"^out={out}: cannot be written: {said}$"):
                ResultStore(out, TABLES, IDS).__enter__()
        assert [name for name in names(out) if not name.startswith(".")] == [
            name for name in before if not name.startswith(".")
        ]
        assert store.finished("ab") == {"a"}
