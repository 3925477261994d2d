"""The result store: what is committed is whole, is there once, and survives a kill at any point."""

import contextlib
import errno
import hashlib
import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.status import Status
from ecjax.studies.analyze.tables import TABLES as ANALYSIS
from ecjax.studies.optimize.tables import TABLES as PLANS
from ecjax.tables import fitting, result_schemas
from ecjax.tables import store as store_module
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.checks import check
from ecjax.tables.datasets import dataset_files, written_by, written_datasets
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.read import read_input
from ecjax.tables.result_schemas import JobTables, job_tables
from ecjax.tables.results import read_results, read_run
from ecjax.tables.run_ids import ALGORITHM_VERSION, run_id
from ecjax.tables.schemas import FLOAT, INPUTS, Column
from ecjax.tables.store import ResultStore, batch_id, check_out
from ecjax.tables.verify import verify

# those of plans, and the nodes of an analysis, which serve as inputs
TABLES = JobTables("optimize", {**PLANS.datasets, "nodes": ANALYSIS.datasets["nodes"]})
IDS = {"file_id": pa.int64(), "node_id": pa.string()}
BATCH_COLUMNS = ["batch_id", "batch_runs", "batch_files"]


def run_row(run: str, status: str = "ok", **more) -> dict:
    return {"run_id": run, "job": "optimize", "status": status, **more}


def placements(*runs: str, files: int = 3) -> pa.Table:
    """Rows that tell which run wrote them."""
    rows = [(run, i, f"node-{i}", int(run, 16) + i / 8, 1) for run in runs for i in range(files)]
    names = ["run_id", "file_id", "node_id", "probability", "chunks"]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def history(run: str) -> pa.Table:
    return pa.table({"run_id": [run] * 2, "iteration": [0, 1], "objective": [2.0, int(run, 16)]})


def run_name(number: int) -> str:
    return f"{number:016x}"


def sorted_rows(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.drop(columns=BATCH_COLUMNS, errors="ignore")
    return frame.sort_values([*frame.columns]).reset_index(drop=True)


# Run ids


def test_run_id_is_what_it_says():
    content = {
        "algorithm_version": 7,
        "dtype": "float64",
        "input_id": "abc",
        "job": "optimize",
        "parameters": {"a": [1, 2.5, None, True], "theta": 0.1},
        "seed": 3,
    }
    text = json.dumps(content, separators=(",", ":"))
    expected = hashlib.sha256(text.encode()).hexdigest()[:16]
    parameters = {"theta": np.float64(0.1), "a": (1, 2.5, None, True)}
    assert run_id("optimize", parameters, "abc", 3, "float64", algorithm_version=7) == expected


def test_run_id_depends_on_everything():
    base = {"job": "optimize", "parameters": {"theta": 1.0}, "input_id": "x", "seed": 0, "dtype": "float64"}
    changes = [
        {"job": "replay"},
        {"parameters": {"theta": float(np.nextafter(1.0, 2.0))}},
        {"parameters": {"theta": 1.0, "k": None}},
        {"input_id": "y"},
        {"seed": 1},
        {"seed": None},
        {"dtype": "float32"},
        {"algorithm_version": ALGORITHM_VERSION + 1},
    ]
    names = [run_id(**base)] + [run_id(**{**base, **change}) for change in changes]
    assert len(set(names)) == len(names)
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("nan")])
def test_run_id_takes_no_nan(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        run_id("optimize", {"theta": value}, "x", 0, "float64")


def test_run_id_takes_plain_values_only():
    with pytest.raises(TypeError, match="type object has no canonical form"):
        run_id("optimize", {"theta": object()}, "x", 0, "float64")


def test_batch_id_ignores_the_order():
    assert batch_id(["b", "a"]) == batch_id(["a", "b"]) != batch_id(["a"])


# Commit and read back


def test_commit_and_read(tmp_path):
    a, b = run_name(1), run_name(2)
    out = tmp_path / "deep" / "out"
    with ResultStore(out, TABLES, IDS) as results:
        assert results.finished([a, b]) == set()
        rows = [
            run_row(a, Status.OK, theta=np.float32(0.5), seed=np.int64(3)),
            run_row(b, "not_converged", theta=2),
        ]
        results.commit(rows, {"placements": placements(a, b), "history": (history(r) for r in (a, b))})
        assert results.finished([a, b, "other"]) == {a, b}
    runs = read_results(out, "runs").set_index("run_id")
    assert runs.loc[a, ["status", "theta", "seed"]].tolist() == ["ok", 0.5, 3]
    assert set(runs["batch_id"]) == {batch_id([a, b])}
    assert set(runs["batch_runs"]) == {2}
    assert len(read_results(out, "placements")) == 6
    assert read_results(out, "history")["objective"].tolist() == [2.0, 1.0, 2.0, 2.0]
    with ResultStore(out, TABLES, IDS) as results:
        assert results.finished([a, b]) == {a, b}


def has_checksums(path: Path) -> bool:
    """Whether damage in the first page is told by its checksum (pyarrow does not list checksums)."""
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(path.read_bytes())
    for position in range(start, start + column.total_compressed_size):
        content[position] ^= 1
        (path.parent / ".damaged").write_bytes(content)
        content[position] ^= 1
        try:
            with pq.ParquetFile(path.parent / ".damaged", page_checksum_verification=True) as file:
                file.read()
        except (OSError, pa.ArrowException) as error:
            if "CRC checksum verification failed" in str(error):
                return True
    return False


def test_files_are_named_by_batch_and_run_and_checksummed(tmp_path):
    a, b = run_name(1), run_name(2)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a), run_row(b)], {"placements": [placements(a), placements(b)]})
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    assert found == [f"placements/{batch_id([a, b])}.parquet", f"runs/{a}.parquet", f"runs/{b}.parquet"]
    assert all(has_checksums(tmp_path / name) for name in found)
    assert pq.read_metadata(tmp_path / found[0]).num_row_groups == 2


def test_schema_is_explicit_and_complete(tmp_path):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a), "file_plans": pa.table({"run_id": [a]})})
    for dataset in ("runs", "placements", "file_plans"):
        (path,) = dataset_files(tmp_path, dataset)
        schema = pq.read_schema(path)
        assert schema.equals(dataset_schema(TABLES, dataset, IDS))
        assert (
            schema.field("run_id").metadata == dataset_schema(TABLES, dataset, IDS).field("run_id").metadata
        )
        assert schema.metadata[b"ecjax_schema_version"] == str(result_schemas.SCHEMA_VERSION).encode()


def test_ids_keep_their_types(tmp_path):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, {"file_id": pa.string(), "node_id": pa.int64()}) as results:
        rows = {
            "run_id": [a],
            "file_id": ["007"],
            "node_id": [2**62 + 1],
            "probability": [1],
            "chunks": [1.0],
        }
        results.commit([run_row(a)], {"placements": pa.table(rows)})
    assert read_results(tmp_path, "placements")[["file_id", "node_id"]].values.tolist() == [
        ["007", 2**62 + 1]
    ]


def test_write_limits_the_datasets(tmp_path):
    a = run_name(1)

    def never():
        raise AssertionError("a dataset that is left out is not computed")
        yield

    with ResultStore(tmp_path, TABLES, IDS, write=["history"]) as results:
        assert results.writes("history")
        assert results.writes("runs")
        assert not results.writes("placements")
        results.commit([run_row(a)], {"placements": never(), "history": history(a)})
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["history", "runs"]


def test_write_of_unknown_datasets(tmp_path):
    with pytest.raises(
        UserError, match=r"write: found 'placement', 'x'; allowed: runs, placements, read_kinds, node_loads"
    ):
        ResultStore(tmp_path, TABLES, IDS, write=["placement", "runs", "x"])


@pytest.mark.parametrize(
    ("runs", "datasets", "message"),
    [
        ([], {}, "one or more runs"),
        ([run_row("1"), run_row("1")], {}, "each once"),
        ([run_row("1", thetta=1)], {}, "schema lacks: .'thetta'"),
        ([run_row("1", status="fine")], {}, "not a valid Status"),
        ([run_row("1")], {"history": pa.table({"run_id": ["1"], "x": [1]})}, "schema lacks: .'x'"),
        ([run_row("1")], {"history": pa.table({"run_id": ["2"]})}, "runs that are not in the batch"),
        ([run_row("1")], {"history": pa.table({"iteration": [2]})}, "column run_id has empty cells"),
        (
            [run_row("1")],
            {"placements": pa.table({"run_id": ["1"], "file_id": ["7"]})},
            "the schema says int64",
        ),
        (
            [run_row("1")],
            {"placements": pa.table({"run_id": ["1"], "node_id": [7]})},
            "the schema says string",
        ),
        ([run_row("1")], {"history": pa.table({"run_id": ["1"], "iteration": [1.5]})}, "truncated"),
    ],
)
def test_mistakes_of_the_program(tmp_path, runs, datasets, message):
    with ResultStore(tmp_path, TABLES, IDS) as results, pytest.raises(ValueError, match=message) as caught:
        results.commit(runs, datasets)
    assert not isinstance(caught.value, UserError)
    assert list(tmp_path.rglob("*.parquet*")) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_of_runs_that_are_ok_are_numbers(tmp_path, value):
    a, b = run_name(1), run_name(2)
    values = pa.table({"run_id": [a, b], "iteration": [0, 0], "objective": [value, 1.0]})
    with ResultStore(tmp_path, TABLES, IDS) as results:
        for rows, datasets, column in (
            ([run_row(a, theta=value)], {}, "runs.theta"),
            ([run_row(a), run_row(b, "failed")], {"history": values}, "history.objective"),
        ):
            with pytest.raises(
                ValueError, match=f"{column} of a run that is ok: found {value}; allowed: finite"
            ):
                results.commit(rows, datasets)
        assert results.finished([a, b]) == set() and list(tmp_path.rglob("*.parquet")) == []
        results.commit([run_row(a, "failed", theta=value), run_row(b)], {"history": values})
    assert len(read_results(tmp_path, "history")) == 2


def test_columns_that_may_be_infinite_say_so(tmp_path):
    columns = (Column("below", FLOAT, "", "", infinite=True),)
    tables = job_tables("bench", (), history=columns)
    with ResultStore(tmp_path, tables, {}) as results:
        row = {"run_id": "a", "job": "bench", "status": "ok"}
        with pytest.raises(ValueError, match="history.below of a run that is ok: found nan"):
            results.commit([row], {"history": pa.table({"run_id": ["a"], "below": [float("nan")]})})
        results.commit([row], {"history": pa.table({"run_id": ["a"], "below": [float("inf")]})})


# Inputs


def test_inputs_are_kept_once_with_standard_columns(tmp_path):
    files = pa.table(
        {"file_id": [1, 2], "bytes": [1.0, 2.0], "k": [1, 1], "rate_per_s": [1.0, 1.0], "note": [1, 2]}
    )
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.write_input("files", "abc", files)
        (path,) = dataset_files(tmp_path, "inputs/files")
        before = path.stat().st_mtime_ns
        results.write_input("files", "abc", files)
        assert path.stat().st_mtime_ns == before
        results.write_input("files", "def", files.slice(1))
        results.write_input("nodes", "abc", pa.table({"node_id": ["x"]}))
    read = read_results(tmp_path, "inputs/files")
    assert list(read.columns) == ["input_id", *(column.name for column in INPUTS["files"])]
    assert read["input_id"].tolist() == ["abc", "abc", "def"]
    assert read["file_id"].tolist() == [1, 2, 2]
    assert pq.read_schema(path).field("nodes").type == pa.list_(pa.string())
    assert pq.read_schema(path).field("n").type == pa.int64()
    assert len(read_results(tmp_path, "inputs/nodes")) == 1


def test_inputs_of_other_id_types_are_a_mistake_of_the_program(tmp_path):
    with (
        ResultStore(tmp_path, TABLES, IDS) as results,
        pytest.raises(ValueError, match="column file_id has type string"),
    ):
        results.write_input("files", "abc", pa.table({"file_id": ["1"]}))


# Replacing runs


def test_failed_run_is_replaced_in_every_dataset(tmp_path):
    a, b = run_name(1), run_name(2)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        datasets = {"placements": placements(a, b), "history": [history(a), history(b)]}
        results.commit([run_row(a), run_row(b, "failed")], datasets)
        assert results.finished([a, b]) == {a}
        results.commit([run_row(b)], {"placements": placements(b, files=1)})
        assert results.finished([a, b]) == {a, b}
    assert read_results(tmp_path, "placements").groupby("run_id").size().to_dict() == {a: 3, b: 1}
    assert pd.read_parquet(tmp_path / "placements").groupby("run_id").size().to_dict() == {a: 3, b: 1}
    assert set(read_results(tmp_path, "history")["run_id"]) == {a}
    assert read_results(tmp_path, "runs")["status"].tolist() == ["ok", "ok"]


def test_same_batch_again_leaves_nothing_of_the_first(tmp_path):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a, "failed")], {"placements": placements(a), "history": history(a)})
        results.commit([run_row(a)], {"placements": placements(a, files=2)})
    assert len(read_results(tmp_path, "placements")) == 2
    assert dataset_files(tmp_path, "history") == []


def test_result_tables_serve_as_inputs(tmp_path):
    """Columns that a job left empty count as absent; rows of two runs are not mixed."""
    nodes = {
        "node_id": ["x", "y"],
        "service_mean_s": [1.0, 2.0],
        "service_second_s2": [2.0, 8.0],
        "service_third_s3": [6.0, 48.0],
        "reference_bytes": [10.0, 10.0],
    }
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row("a")], {"nodes": pa.table({"run_id": ["a"] * 2, **nodes})})
        results.write_input("nodes", "abc", pa.table(nodes))
    for folder in ("nodes", "inputs/nodes"):
        read = read_input(tmp_path / folder, "nodes")
        assert read.select(list(nodes)).to_pydict() == nodes
        assert fingerprint(read, "nodes") == fingerprint(check(pa.table(nodes), "nodes"), "nodes")
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row("b")], {"nodes": pa.table({"run_id": ["b"] * 2, **nodes})})
    with pytest.raises(UserError, match=r"nodes: found rows of 2 runs \(a, b\); name one file"):
        read_input(tmp_path / "nodes", "nodes")


# Who may write where


def test_one_writer(tmp_path):
    with ResultStore(tmp_path, TABLES, IDS):
        with pytest.raises(UserError, match=f"out={tmp_path}: another ecjax job writes to it"):
            ResultStore(tmp_path, TABLES, IDS).__enter__()
    with ResultStore(tmp_path, TABLES, IDS):
        pass


def test_lock_is_given_back_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), ResultStore(tmp_path, TABLES, IDS):
        raise RuntimeError
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run_name(1))], {"placements": placements(run_name(1))})
    with pytest.raises(UserError, match="choose a new out"):
        ResultStore(tmp_path, TABLES, {"file_id": pa.string()}).__enter__()
    with ResultStore(tmp_path, TABLES, IDS):
        pass


def test_out_is_a_file(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(UserError, match="out: is a file; allowed: a folder"):
        ResultStore(tmp_path / "out", TABLES, IDS).__enter__()
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        ResultStore(tmp_path / "out" / "deeper", TABLES, IDS).__enter__()


def test_other_id_type(tmp_path):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a)})
    message = r"placements/.*\.parquet has file_id of type int64, now it is string; choose a new out"
    with pytest.raises(UserError, match=message):
        ResultStore(tmp_path, TABLES, {**IDS, "file_id": pa.string()}).__enter__()


def test_other_schema_version(tmp_path, monkeypatch):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a)})
    version = result_schemas.SCHEMA_VERSION
    monkeypatch.setattr(fitting, "SCHEMA_VERSION", version + 1)
    with pytest.raises(
        UserError, match=f"is of schema version {version}, now it is {version + 1}; choose a new"
    ):
        ResultStore(tmp_path, TABLES, IDS).__enter__()
    monkeypatch.undo()
    fewer = JobTables(TABLES.job, {**TABLES.datasets, "placements": TABLES.datasets["placements"][:-1]})
    with pytest.raises(UserError, match=r"placements/.*\.parquet has other columns .*; choose a new out"):
        ResultStore(tmp_path, fewer, IDS).__enter__()


def refusals(out, tables: JobTables) -> set[str]:
    """What check_out and the store say of a folder that is not for these tables."""
    messages = set()
    for refuse in (lambda: check_out(out, tables), lambda: ResultStore(out, tables, IDS).__enter__()):
        with pytest.raises(UserError) as error:
            refuse()
        messages.add(str(error.value))
    return messages


def test_results_of_another_job_are_refused_with_one_line(tmp_path):
    other = job_tables("replay", runs=(), history=PLANS.datasets["history"][1:])
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run_name(1))], {"history": history(run_name(1))})
    files = sorted(tmp_path.rglob("*"))
    assert refusals(tmp_path, other) == {
        f"out={tmp_path}: holds results of ecjax optimize; choose a new out for ecjax replay"
    }
    assert sorted(tmp_path.rglob("*")) == files
    check_out(tmp_path, TABLES)
    check_out(tmp_path / "new", other)
    assert not (tmp_path / "new").exists()
    # datasets of another job whose runs were lost
    (tmp_path / "runs" / f"{run_name(1)}.parquet").unlink()
    check_out(tmp_path, other)
    with pytest.raises(
        UserError, match="parquet is of ecjax optimize, this is ecjax replay; choose a new out"
    ):
        ResultStore(tmp_path, other, IDS).__enter__()


def test_results_of_version_8_are_refused(tmp_path):
    """Folders of that version do not say which job wrote them."""
    (tmp_path / "runs").mkdir()
    rows = pa.table({"run_id": ["a"], "job": ["optimize"], "status": ["ok"]})
    rows = rows.replace_schema_metadata({"ecjax_schema_version": "8"})
    pq.write_table(rows, tmp_path / "runs" / "a.parquet")
    version = result_schemas.SCHEMA_VERSION
    assert version > 8 and refusals(tmp_path, TABLES) == {
        f"out={tmp_path}: runs/a.parquet is of schema version 8, now it is {version}; choose a new out"
    }
    assert written_datasets(tmp_path) == ["runs"] and written_by(tmp_path) is None


def test_a_folder_that_ecjax_did_not_write_is_left_alone(tmp_path):
    for name in ("runs/mine.parquet", "figures/mine.parquet", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"run_id": ["a"]}), tmp_path / name)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert refusals(tmp_path, TABLES) == {
        f"out={tmp_path}: runs/mine.parquet was not written by ecjax; choose a new out"
    }
    assert written_datasets(tmp_path) == [] and written_by(tmp_path) is None
    (tmp_path / "runs" / "mine.parquet").rename(tmp_path / "mine.parquet")
    files[tmp_path / "mine.parquet"] = files.pop(tmp_path / "runs" / "mine.parquet")
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run_name(1))], {"placements": placements(run_name(1))})
    assert {path: path.read_bytes() for path in files} == files


def test_what_was_written_is_listed(tmp_path):
    assert written_datasets(tmp_path) == written_datasets(tmp_path / "none") == []
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.write_input("nodes", "abc", pa.table({"node_id": ["x"]}))
        results.commit([run_row(a)], {"placements": placements(a), "history": history(a)})
    (tmp_path / "figures").mkdir()
    (tmp_path / "mine").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "mine" / "x.parquet")
    assert written_datasets(tmp_path) == ["runs", "history", "placements", "inputs/nodes"]
    assert written_by(tmp_path) == "optimize"


def test_tables_of_the_user_are_neither_mixed_nor_removed(tmp_path):
    a = run_name(1)
    (tmp_path / "nodes").mkdir()
    mine = tmp_path / "nodes" / "mine.parquet"
    pq.write_table(pa.table({"node_id": [1]}), mine)
    with pytest.raises(UserError, match=r"nodes/mine.parquet was not written by ecjax; choose a new out"):
        ResultStore(tmp_path, TABLES, IDS).__enter__()
    mine.rename(tmp_path / "mine.parquet")
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a)})
    other = tmp_path / "placements" / "zzz.parquet"
    (tmp_path / "mine.parquet").rename(other)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a)})
    assert other.exists()
    assert len(read_results(tmp_path, "placements")) == 3


def test_damaged_run_is_named(tmp_path):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {})
    os.truncate(tmp_path / "runs" / f"{a}.parquet", 100)
    with pytest.raises(UserError, match=f"runs/{a}.parquet: damaged"):
        ResultStore(tmp_path, TABLES, IDS).__enter__()


# Files of ``runs`` that many runs share

MANY = [run_name(number) for number in range(1, store_module.SHARED_RUNS + 1)]


def commit_many(out: Path, *failed: str) -> None:
    with ResultStore(out, TABLES, IDS) as results:
        rows = [run_row(run, "failed" if run in failed else "ok", seed=int(run, 16)) for run in MANY]
        results.commit(rows, {"placements": placements(*(run for run in MANY if run not in failed), files=1)})


def run_names(out: Path) -> set[str]:
    return {path.stem for path in dataset_files(out, "runs")}


def test_many_runs_share_a_file(tmp_path):
    commit_many(tmp_path)
    assert run_names(tmp_path) == {batch_id(MANY)}
    for read in (read_results(tmp_path, "runs"), pd.read_parquet(tmp_path / "runs")):
        assert read["run_id"].tolist() == MANY
        assert read["seed"].tolist() == [int(run, 16) for run in MANY]
    with ResultStore(tmp_path, TABLES, IDS) as results:
        assert results.finished([*MANY, "other"]) == set(MANY)
    assert len(read_run(tmp_path, "placements", MANY[3])) == 1
    assert verify(tmp_path).findings == []


def test_few_runs_and_those_that_are_to_be_done_again_have_files_of_their_own(tmp_path):
    commit_many(tmp_path, MANY[0])
    assert run_names(tmp_path) == set(MANY)
    more = [run_name(100 + number) for number in range(store_module.SHARED_RUNS)]
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run_name(99), "failed"), *map(run_row, more)], {})
    assert run_names(tmp_path) == {*MANY, run_name(99), batch_id([run_name(99), *more])}


def test_a_run_that_is_done_again_leaves_the_file_that_it_shared(tmp_path):
    commit_many(tmp_path)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(MANY[2], seed=99)], {"placements": placements(MANY[2], files=2)})
        assert results.finished(MANY) == set(MANY)
    assert run_names(tmp_path) == {batch_id(MANY), MANY[2]}
    runs = pd.read_parquet(tmp_path / "runs").set_index("run_id")["seed"]
    assert sorted(runs.index) == MANY and runs[MANY[2]] == 99
    sizes = pd.read_parquet(tmp_path / "placements").groupby("run_id").size().to_dict()
    assert sizes == dict.fromkeys(MANY, 1) | {MANY[2]: 2}
    assert verify(tmp_path).findings == []
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run) for run in MANY if run != MANY[2]], {})
    assert run_names(tmp_path) == set(MANY)


def test_the_row_of_a_run_that_was_done_again_counts(tmp_path):
    """A job that is killed between the new row and the removal of the old one leaves both."""
    commit_many(tmp_path)
    shared = tmp_path / "runs" / f"{batch_id(MANY)}.parquet"
    before = shared.read_bytes()
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(MANY[2], seed=99)], {"placements": placements(MANY[2], files=2)})
    shared.write_bytes(before)
    runs = read_results(tmp_path, "runs").set_index("run_id")["seed"]
    assert sorted(runs.index) == MANY and runs[MANY[2]] == 99
    assert len(read_run(tmp_path, "placements", MANY[2])) == 2
    (finding,) = verify(tmp_path).findings
    assert finding.what == "has rows of runs that were committed anew since"
    with ResultStore(tmp_path, TABLES, IDS):
        pass
    assert verify(tmp_path).findings == []
    assert len(pd.read_parquet(tmp_path / "runs")) == len(MANY)


def test_a_copy_of_a_shared_file_is_not_read(tmp_path):
    commit_many(tmp_path)
    shared = tmp_path / "runs" / f"{batch_id(MANY)}.parquet"
    shutil.copy(shared, shared.with_name("copy.parquet"))
    assert len(read_results(tmp_path, "runs")) == len(MANY)
    (finding,) = verify(tmp_path).findings
    assert finding.file == "runs/copy.parquet" and "copy" in finding.what


# Failures while writing


@contextlib.contextmanager
def file_size_limit(size: int):
    """The system refuses to write more than this to a file, as a full disk does."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_disk_full_leaves_nothing(tmp_path):
    a, b = run_name(1), run_name(2)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(a)], {"placements": placements(a)})
        before = sorted(tmp_path.rglob("*"))
        with file_size_limit(40_000), pytest.raises(UserError, match="cannot be written: File too large"):
            many = (placements(b, files=1000) for _ in range(100))
            results.commit([run_row(b)], {"history": history(b), "placements": many})
        assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [
            p for p in before if p.is_file()
        ]
        assert results.finished([a, b]) == {a}
        results.commit([run_row(b)], {"placements": placements(b)})
    assert len(read_results(tmp_path, "placements")) == 6


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_system_errors_are_one_line(tmp_path, monkeypatch, code):
    a = run_name(1)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(code, "x")))
            with pytest.raises(UserError, match=f"^out={tmp_path}: cannot be written: {os.strerror(code)}$"):
                results.commit([run_row(a)], {"placements": placements(a)})
        assert list(tmp_path.rglob("*parquet*")) == []


def test_half_a_batch_of_runs_stays_when_the_disk_is_full(tmp_path, monkeypatch):
    """Runs that were committed before the error stay, with their rows; the others leave none."""
    a, b = run_name(1), run_name(2)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        with monkeypatch.context() as patch:
            write = results._write_run_file

            def once(part):
                if part[0] == b:
                    raise OSError(errno.ENOSPC, "x")
                write(part)

            patch.setattr(results, "_write_run_file", once)
            with pytest.raises(UserError, match="No space left"):
                results.commit([run_row(a), run_row(b)], {"placements": placements(a, b)})
        assert results.finished([a, b]) == {a}
    assert set(pd.read_parquet(tmp_path / "placements")["run_id"]) == {a}


# Killed at any point


class Killed(BaseException):
    """The process is gone: from then on, nothing it does reaches the disk."""


class Killer:
    """Lets the first ``calls`` operations that change the disk pass and fails all later ones."""

    OPERATIONS = (
        (os, "replace"),
        (os, "fsync"),
        (os, "unlink"),
        (os, "mkdir"),
        (pq.ParquetWriter, "write_table"),
    )

    def __init__(self, patch: pytest.MonkeyPatch, calls: float):
        self.left = calls
        self.done = 0
        for owner, name in self.OPERATIONS:
            patch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, operation):
        def wrapped(*arguments, **options):
            if self.left <= 0:
                raise Killed
            self.left -= 1
            self.done += 1
            return operation(*arguments, **options)

        return wrapped


RUNS = [run_name(i) for i in range(1, 5)]


def job(out: Path, fails: tuple[str, ...] = (), batch: int = 3) -> None:
    """What a job does: computes what is not finished, batch by batch."""
    with ResultStore(out, TABLES, IDS) as results:
        results.write_input("nodes", "abc", pa.table({"node_id": ["x", "y"]}))
        finished = results.finished(RUNS)
        todo = [run for run in RUNS if run not in finished]
        for start in range(0, len(todo), batch):
            runs = todo[start : start + batch]
            rows = [run_row(run, "failed" if run in fails else "ok", theta=int(run, 16)) for run in runs]
            datasets = {
                "placements": placements(*runs),
                "history": map(history, (r for r in runs if r not in fails)),
            }
            results.commit(rows, datasets)


def check_consistent(out: Path) -> None:
    """Every committed run has its rows, once; no other rows are seen."""
    if not dataset_files(out, "runs"):
        return
    runs = read_results(out, "runs").set_index("run_id")
    for dataset, count in (("placements", 3), ("history", 2)):
        rows = read_results(out, dataset).groupby("run_id").size()
        finished = set(runs.index[runs["status"] == "ok"])
        assert finished <= set(rows.index) <= set(runs.index)
        assert set(rows[list(finished)]) <= {count}


def run_killed(out: Path, kills: list[int]) -> None:
    """Run the job, killed after so many operations each time; then to its end."""
    fails = (RUNS[1], RUNS[3])
    for calls in kills:
        with pytest.MonkeyPatch.context() as patch:
            Killer(patch, calls)
            with contextlib.suppress(Killed):
                job(out, fails)
        check_consistent(out)
        fails = ()
    job(out)


@pytest.fixture(scope="module", params=[1, store_module.SHARED_RUNS], ids=["shared", "alone"])
def undisturbed(request, tmp_path_factory) -> Iterator[tuple[dict[str, pd.DataFrame], int]]:
    """The tables of a job, and how often it changes the disk; its runs share files, or have one each."""
    out = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "SHARED_RUNS", request.param)
        yield _undisturbed(out)


def _undisturbed(out: Path) -> tuple[dict[str, pd.DataFrame], int]:
    with pytest.MonkeyPatch.context() as patch:
        killer = Killer(patch, float("inf"))
        job(out, (RUNS[1], RUNS[3]))
        operations = killer.done
        job(out)
    datasets = ("runs", "placements", "history", "inputs/nodes")
    return {name: sorted_rows(read_results(out, name)) for name in datasets}, operations


def assert_as_undisturbed(out: Path, expected: dict[str, pd.DataFrame]) -> None:
    for name, frame in expected.items():
        pd.testing.assert_frame_equal(sorted_rows(read_results(out, name)), frame)
        pd.testing.assert_frame_equal(sorted_rows(pd.read_parquet(out / name)), frame)
    assert [path.name for path in out.rglob(".*")] == [".lock"]


@pytest.mark.slow
def test_killed_once_at_every_point(tmp_path, undisturbed):
    expected, operations = undisturbed
    assert operations > 30
    for calls in range(operations + 1):
        out = tmp_path / str(calls)
        run_killed(out, [calls])
        assert_as_undisturbed(out, expected)


def again(out: Path) -> None:
    """All runs done again, as without resume."""
    with ResultStore(out, TABLES, IDS) as results:
        for runs in ([RUNS[0], RUNS[1]], [RUNS[2], RUNS[3]]):
            rows = [run_row(run, theta=int(run, 16)) for run in runs]
            results.commit(rows, {"placements": placements(*runs), "history": map(history, runs)})


@pytest.mark.slow
def test_killed_at_every_point_while_runs_are_done_again(tmp_path, undisturbed):
    """Whether their rows were shared before or not."""
    for calls in range(100):
        out = tmp_path / str(calls)
        job(out)
        with pytest.MonkeyPatch.context() as patch:
            killer = Killer(patch, calls)
            with contextlib.suppress(Killed):
                again(out)
        check_consistent(out)
        job(out)
        assert_same_but_batches(out, undisturbed[0])
        assert verify(out).findings == []
        if killer.done < calls:
            break
    assert 15 < calls < 99


def assert_same_but_batches(out: Path, expected: dict[str, pd.DataFrame]) -> None:
    for name, frame in expected.items():
        columns = [column for column in frame if column not in BATCH_COLUMNS]
        for found in (read_results(out, name), pd.read_parquet(out / name)):
            pd.testing.assert_frame_equal(sorted_rows(found)[columns], frame[columns])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(kills=st.lists(st.integers(0, 40), min_size=2, max_size=4))
def test_killed_several_times(tmp_path_factory, undisturbed, kills):
    out = tmp_path_factory.mktemp("killed")
    run_killed(out, kills)
    assert_as_undisturbed(out, undisturbed[0])


def test_recovery_reads_no_finished_batch(tmp_path, monkeypatch):
    """Opening a folder where all is committed reads no dataset but runs."""
    with ResultStore(tmp_path, TABLES, IDS) as results:
        results.commit([run_row(run) for run in RUNS], {"placements": placements(*RUNS)})
    from ecjax.tables import datasets

    monkeypatch.setattr(datasets, "rows_of", None)
    monkeypatch.setattr(datasets, "file_run_ids", None)
    with ResultStore(tmp_path, TABLES, IDS) as results:
        assert results.finished(RUNS) == set(RUNS)


def test_rewriting_keeps_other_rows_as_they_are(tmp_path):
    """A batch of which one run was replaced keeps the rows, types and order of the others."""
    with ResultStore(tmp_path, TABLES, IDS) as results:
        rows = [run_row(run, "failed" if run == RUNS[2] else "ok") for run in RUNS]
        results.commit(rows, {"placements": [placements(*RUNS, files=50), placements(*RUNS, files=7)]})
        before = pq.read_table(dataset_files(tmp_path, "placements")[0])
        results.commit([run_row(RUNS[2])], {})
    after = pq.read_table(dataset_files(tmp_path, "placements")[0])
    assert after.equals(before.filter(pc.field("run_id") != RUNS[2]))
    assert after.schema.remove_metadata().equals(before.schema.remove_metadata())


def test_a_folder_that_was_made_for_nothing_goes(tmp_path):
    out, there = tmp_path / "made", tmp_path / "there"
    there.mkdir()
    for folder in (out, there):
        with pytest.raises(UserError), store_module.ResultStore(folder, ANALYSIS, {}):
            raise UserError("a mistake that shows late")
    assert not out.exists() and there.is_dir()
