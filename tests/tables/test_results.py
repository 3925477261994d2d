"""Reading result datasets, and finding the run to build on."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ecjax
from ecjax.errors import UserError
from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.arrow_schemas import dataset_schema
from ecjax.tables.datasets import dataset_files
from ecjax.tables.results import find_run, read_results, read_run
from ecjax.tables.store import ResultStore

IDS = {"file_id": pa.int64(), "node_id": pa.int64()}
BIG = 2**62 + 1


def row(run: str, **more) -> dict:
    return {"run_id": run, "job": "optimize", "status": "ok", **more}


def commit(out, *rows: dict, **datasets) -> None:
    with ResultStore(out, TABLES, IDS) as results:
        results.commit(list(rows), datasets)


@pytest.fixture
def sweep(tmp_path):
    """Runs of two methods and three thetas; one failed, one of another job."""
    rows = [
        row("aa", method="published", theta=0.1),
        row("ab", method="published", theta=10.0, seed=7),
        row("ac", method="published", theta=10.0, seed=8, status="not_converged"),
        row("ba", method="certified", theta=0.1),
        row("bb", method="certified", theta=10.0, status="failed", error="x"),
    ]
    commit(tmp_path, *rows)
    commit(tmp_path, row("ca", method="trace") | {"job": "analyze"})
    return tmp_path


# Reading


def test_public_name():
    assert ecjax.read_results is read_results


def test_ids_stay_exact_beside_empty_cells(tmp_path):
    table = pa.table(
        {"run_id": ["a", "a"], "file_id": [BIG, None], "node_id": [BIG, BIG], "chunks": [1, None]}
    )
    commit(tmp_path, row("a"), placements=table)
    frame = read_results(tmp_path, "placements")
    assert frame["file_id"].tolist() == [BIG, pd.NA]
    assert frame["file_id"].dtype == pd.Int64Dtype()
    assert frame["node_id"].dtype == np.int64
    assert frame["chunks"].dtype == np.float64


def test_plain_pandas_reads_every_dataset(tmp_path):
    """Columns that are empty in one file and not in the next keep their type."""
    commit(tmp_path, row("a"), placements=pa.table({"run_id": ["a"], "node_id": [1]}))
    commit(
        tmp_path,
        row("b", theta=1, method="m", iterations=3),
        placements=pa.table({"run_id": ["b"], "node_id": [2], "probability": [0.5], "group": ["g"]}),
    )
    runs = pd.read_parquet(f"{tmp_path}/runs").set_index("run_id")
    assert runs["theta"].dtype == np.float64
    assert runs.loc["b", ["theta", "method", "iterations"]].tolist() == [1.0, "m", 3.0]
    assert runs.loc["a", ["theta", "method", "iterations"]].isna().all()
    placements = pd.read_parquet(tmp_path / "placements")
    assert placements["probability"].dtype == np.float64
    assert placements["node_id"].tolist() == [1, 2]
    for dataset in ("runs", "placements"):
        plain = pd.read_parquet(tmp_path / dataset)
        assert list(plain.columns) == [column.name for column in TABLES.datasets[dataset]]
        ours = read_results(tmp_path, dataset).astype({"file_id": float} if dataset == "placements" else {})
        pd.testing.assert_frame_equal(
            ours.sort_values("run_id", ignore_index=True), plain.sort_values("run_id", ignore_index=True)
        )


def test_all_null_columns_keep_their_type_in_the_file(tmp_path):
    commit(tmp_path, row("a"))
    assert pq.read_table(tmp_path / "runs").schema.equals(dataset_schema(TABLES, "runs", IDS))


def test_missing_folder_and_dataset(tmp_path):
    with pytest.raises(UserError, match=f"out={tmp_path}/none: no such folder"):
        read_results(tmp_path / "none", "runs")
    with pytest.raises(UserError, match="File name too long"):
        read_results(tmp_path / ("x" * 300), "runs")
    with pytest.raises(UserError, match=f"out={tmp_path}: has no dataset 'runs'; it has none"):
        read_results(tmp_path, "runs")
    commit(tmp_path, row("a"), history=pa.table({"run_id": ["a"]}))
    for name in ("placements", "inputs/nodes", "nonsense", "../x"):
        with pytest.raises(UserError, match=f"has no dataset '{name}'; it has runs, history$"):
            read_results(tmp_path, name)


@pytest.mark.parametrize("dataset", ["runs", "placements"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_damaged_file_is_named(tmp_path, dataset, damage):
    commit(tmp_path, row("a"), placements=pa.table({"run_id": ["a"] * 9, "node_id": range(9)}))
    (path,) = dataset_files(tmp_path, dataset)
    if damage == "flip":
        content = bytearray(path.read_bytes())
        column = pq.read_metadata(path).row_group(0).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        content[start + column.total_compressed_size - 1] ^= 1
        path.write_bytes(content)
    else:
        os.truncate(path, 0 if damage == "empty" else path.stat().st_size - 9)
    with pytest.raises(UserError, match=f"{path}: damaged or of another format"):
        read_results(tmp_path, dataset)


def test_rows_of_uncommitted_runs_are_not_seen(tmp_path):
    """As between the writing of a batch's datasets and of its runs."""
    for batch in (["a", "b"], ["c"]):
        commit(
            tmp_path, *map(row, batch), placements=pa.table({"run_id": batch, "node_id": [1] * len(batch)})
        )
    for run in ("b", "c"):
        (tmp_path / "runs" / f"{run}.parquet").unlink()
    assert read_results(tmp_path, "placements")["run_id"].tolist() == ["a"]
    assert read_run(tmp_path, "placements", "a").column("run_id").to_pylist() == ["a"]
    with pytest.raises(UserError, match="has no placements of run b"):
        read_run(tmp_path, "placements", "b")
    (tmp_path / "runs" / "a.parquet").unlink()
    (tmp_path / "runs" / ".keep").touch()
    nothing = read_results(tmp_path, "placements")
    assert len(nothing) == 0
    assert list(nothing.columns) == [column.name for column in TABLES.datasets["placements"]]


def test_rows_of_one_run(tmp_path):
    table = pa.table({"run_id": ["a", "b", "a"], "node_id": [1, 2, 3]})
    commit(tmp_path, row("a"), row("b"), placements=table)
    assert read_run(tmp_path, "placements", "a").column("node_id").to_pylist() == [1, 3]
    for dataset, run in (("history", "a"), ("placements", "x")):
        with pytest.raises(UserError, match=f"has no {dataset} of run {run}"):
            read_run(tmp_path, dataset, run)


# Finding a run


def test_the_only_finished_run(tmp_path):
    commit(tmp_path, row("a", status="failed"), row("b", theta=2), row("c") | {"job": "analyze"})
    found = find_run(tmp_path)
    assert (found["run_id"], found["theta"], found["objective"]) == ("b", 2.0, None)
    assert find_run(tmp_path, job="analyze")["run_id"] == "c"


def test_named_run(sweep):
    assert find_run(sweep, plan_run="ab")["seed"] == 7
    assert find_run(sweep, plan_run="ac")["status"] == "not_converged"


@pytest.mark.parametrize(
    ("where", "run"),
    [
        ("theta=0.1,method=certified", "ba"),
        (" theta = 1e-1 , method = published ", "aa"),
        ("theta=10,method=published,seed=8", "ac"),
        ("theta=10.0,seed=7", "ab"),
        ("run_id=aa", "aa"),
    ],
)
def test_matching_run(sweep, where, run):
    assert find_run(sweep, plan_where=where)["run_id"] == run


def test_ambiguous_runs_are_listed(sweep):
    with pytest.raises(UserError) as caught:
        find_run(sweep, plan_where="theta=10")
    assert str(caught.value) == (
        f"plan={sweep}: 2 finished optimize runs fit plan_where='theta=10'; name one by plan_run=RUN_ID or plan_where: "
        "ab (method published, theta 10, ok), ac (method published, theta 10, not_converged)"
    )
    with pytest.raises(UserError, match="4 finished optimize runs found; name one by plan_run=RUN_ID"):
        find_run(sweep)


@pytest.mark.parametrize("options", [{"plan_run": "bb"}, {"plan_run": "zz"}, {"plan_where": "theta=0.2"}])
def test_no_run_fits(sweep, options):
    with pytest.raises(UserError) as caught:
        find_run(sweep, **options)
    message = str(caught.value)
    assert "no finished optimize run fits " in message
    assert message.count("method") == 5
    assert "bb (method certified, theta 10, failed)" in message


def test_no_run_of_that_job(sweep):
    with pytest.raises(UserError, match="no finished replay run found; runs there: none"):
        find_run(sweep, job="replay")


def test_long_lists_are_cut(tmp_path):
    commit(tmp_path, *(row(f"{i:02d}", theta=i, method="m") for i in range(20)))
    with pytest.raises(UserError) as caught:
        find_run(tmp_path)
    assert str(caught.value).count("method m") == 12
    assert str(caught.value).endswith("and 8 more")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("thet=1", "found column 'thet'; allowed: run_id, job, status"),
        ("theta", "found 'theta'; allowed: column=value"),
        ("theta=1,", "found ''; allowed: column=value"),
        ("=1", "found '=1'; allowed: column=value"),
        ("theta=high", "found theta=high; allowed: a number"),
    ],
)
def test_malformed_conditions(sweep, where, message):
    with pytest.raises(UserError, match=f"^plan_where: {message}"):
        find_run(sweep, plan_where=where)


def test_find_run_without_results(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        find_run(tmp_path / "none")
    with pytest.raises(UserError, match="has no dataset 'runs'"):
        find_run(tmp_path)
