"""``catalog=``: objects that no request named, and sizes that do not fit together."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console

from ecjax.errors import UserError
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results

LOG = {
    "request_id": [0, 1, 2, 3],
    "arrival_s": [0.0, 1.0, 2.0, 4.0],
    "file_id": ["a", "b", "a", "new"],
    "op": ["read", "read", "read", "write"],
    "bytes": [10.0, 3.0, 6.0, 7.0],
}


def analysed(folder, catalog, log=LOG, **options):
    """The files table, and the sentences about it."""
    pd.DataFrame(log).to_parquet(folder / "log.parquet")
    pa.csv.write_csv(pa.table(catalog), folder / "catalog.csv")
    paths = {
        "trace": str(folder / "log.parquet"),
        "catalog": str(folder / "catalog.csv"),
        "out": str(folder / "out"),
    }
    console = Console(file=io.StringIO())
    assert analyze_study(AnalyzeOptions(**paths, figures=False, **options), console) == 0
    files = read_results(folder / "out", "files").set_index("file_id")
    return files, read_results(folder / "out", "traces")["notices"].iloc[0]


def test_objects_never_read_have_rate_0_and_their_size(tmp_path):
    catalog = {"file_id": ["cold", "b", "void", "a"], "bytes": [500.0, 30.0, 0.0, 10.0]}
    files, notices = analysed(tmp_path, catalog, k=2)
    assert list(files.index) == ["a", "b", "new", "cold"]
    np.testing.assert_array_equal(files["rate_per_s"], [0.5, 0.25, 0, 0])
    np.testing.assert_array_equal(files["write_rate_per_s"], [0, 0, 0.25, 0])
    np.testing.assert_array_equal(files["bytes"], [8, 3, 7, 500])  # what a read moves is the log's
    np.testing.assert_array_equal(files["stored_bytes"], [10, 30, 7, 500])
    np.testing.assert_array_equal(files["k"], 2)
    assert files.loc["cold", ["reads", "writes"]].tolist() == [0, 0] and pd.isna(
        files.loc["cold", "first_arrival_s"]
    )
    assert "1 object of the log not in the catalog" in notices
    assert "1 object of the catalog without a byte is left out" in notices and "moved more" not in notices
    assert read_input(tmp_path / "out" / "files", "files").num_rows == 4  # as optimize takes it
    run = read_results(tmp_path / "out", "runs").iloc[0]
    assert run["file_count"] == 4


def test_sizes_that_do_not_fit_are_told_in_one_line(tmp_path):
    catalog = {"file_id": ["a", "b", "new"], "bytes": [1000.0, 40.0, 1e6]}
    large = {**LOG, "bytes": [1500.0, 900.0, 6.0, 7.0]}
    files, notices = analysed(tmp_path, catalog, large)
    (line,) = [line for line in notices.splitlines() if "moved more bytes" in line]
    assert line.startswith(
        "2 objects moved more bytes at once than the catalog has of them ('b': 900 B in the log, 40 B"
    )
    np.testing.assert_array_equal(files["stored_bytes"], [1000, 40, 1e6])


def test_k_of_objects_never_read(tmp_path):
    catalog = {
        "file_id": ["a", "b", "new", "cold", "rare"],
        "bytes": [9.0] * 5,
        "k": [None, None, None, 3, None],
    }
    files, _ = analysed(tmp_path, catalog)
    assert files.loc["cold", "k"] == 3 and pd.isna(files.loc["rare", "k"])
    chunks = {**LOG, "op": "read", "node_id": ["x", "x", "x", "x"]}
    (tmp_path / "chunks").mkdir()
    files, _ = analysed(tmp_path / "chunks", catalog, chunks)
    assert files.loc["cold", "k"] == 3 and files.loc["rare", "k"] == 1  # that of all files read


def test_the_catalog_of_another_store_is_refused(tmp_path):
    for names in (["x", "y"], [1, 2]):
        with pytest.raises(UserError, match="catalog: names no object of the log .* keep_ids=true"):
            analysed(tmp_path, {"file_id": names, "bytes": [1.0, 1.0]})


def test_shrunk_rates_of_all_that_is_stored(tmp_path):
    random = np.random.default_rng(0)
    rates = random.gamma(0.5, 2 / 500, 400)
    reads = random.permutation(np.repeat(np.arange(400), random.poisson(rates * 500)))
    times = np.sort(random.uniform(0, 500, len(reads)))
    log = {"request_id": range(len(reads)), "arrival_s": times, "file_id": reads, "op": "read", "bytes": 8.0}
    catalog = {"file_id": np.arange(400), "bytes": np.full(400, 8.0)}
    files, notices = analysed(tmp_path, catalog, log, k=2, shrink="gamma")
    (line,) = [line for line in notices.splitlines() if "gamma law" in line]
    shape = float(line.split("of shape ")[1].split()[0])
    span = times[-1] - times[0]
    scale = shape * span / (len(reads) / 400)
    counts = files["reads"]
    np.testing.assert_allclose(files["rate_per_s"], (counts + shape) / (span + scale), rtol=0.01)
    np.testing.assert_allclose(
        files["rate_standard_error_per_s"], np.sqrt(counts + shape) / (span + scale), rtol=0.01
    )
    assert (files["rate_per_s"] > 0).all() and files["rate_per_s"].sum() == pytest.approx(len(reads) / span)
    # the same without the files that nobody read: their reads to come are told
    (tmp_path / "alone").mkdir()
    pd.DataFrame(log).to_parquet(tmp_path / "alone" / "log.parquet")
    paths = {"trace": str(tmp_path / "alone" / "log.parquet"), "out": str(tmp_path / "alone" / "out")}
    analyze_study(AnalyzeOptions(**paths, k=2, shrink="gamma", figures=False), Console(quiet=True))
    row = read_results(paths["out"], "traces").iloc[0]
    assert "of reads to come are of files that this log does not name" in row["notices"]
    alone = read_results(paths["out"], "files")
    assert alone["rate_per_s"].sum() == pytest.approx(len(reads) / span)
