import io
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import PickledEngine, open_pickled, same_tables
from rich.console import Console

from ecjax.engine import Done, Failed
from ecjax.errors import UserError
from ecjax.studies.analyze import run as trace_pieces
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.studies.spine import batches, study
from ecjax.tables.results import read_results

TRACES = Path(__file__).parents[3] / "traces"


def run(trace, out, console=None, **options):
    options = AnalyzeOptions(trace=str(trace), out=str(out), **({"figures": False} | options))
    return analyze_study(options, console or Console(file=io.StringIO(), width=160))


def folder_of(name, where, groups=7):
    """A sample trace as a folder of two files with several row groups each."""
    where.mkdir()
    table = pq.read_table(TRACES / name)
    middle = table.num_rows * 2 // 5
    for number, part in enumerate((table[:middle], table[middle:])):
        pq.write_table(part, where / f"{number}.parquet", row_group_size=part.num_rows // groups)
    return where


@pytest.mark.parametrize("name", ["requests_chunks.parquet", "requests_objects.parquet"])
def test_pieces_give_the_tables_of_one_pass(tmp_path, monkeypatch, name):
    trace = folder_of(name, tmp_path / "log")
    assert run(trace, tmp_path / "one") == 0
    monkeypatch.setattr(study, "open_engine", open_pickled)
    monkeypatch.setattr(trace_pieces, "_PIECES_PER_WORKER", 5)
    assert run(trace, tmp_path / "several") == 0
    same_tables(tmp_path / "one", tmp_path / "several", rtol=1e-12)


def test_progress_counts_all_rows(tmp_path, monkeypatch):
    counted = []

    @contextmanager
    def progress(what, total):
        yield counted.append

    monkeypatch.setattr(batches, "progress", progress)
    trace = folder_of("requests_objects.parquet", tmp_path / "log")
    run(trace, tmp_path / "one")
    rows = pq.read_table(trace).num_rows
    assert sum(counted) == rows
    counted.clear()
    monkeypatch.setattr(study, "open_engine", open_pickled)
    run(trace, tmp_path / "several")
    assert sum(counted) == pytest.approx(rows)


def test_the_first_mistake_is_told_whatever_piece_is_done_first(tmp_path, monkeypatch):
    (tmp_path / "log").mkdir()
    operations = np.full(1000, "read", object)
    operations[[300, 900]] = ["scan", "delete"]
    table = pa.table(
        {
            "request_id": np.arange(1000),
            "arrival_s": np.arange(1000.0),
            "file_id": np.arange(1000) % 7,
            "op": operations,
            "bytes": np.ones(1000),
        }
    )
    pq.write_table(table, tmp_path / "log" / "a.parquet", row_group_size=100)
    monkeypatch.setattr(study, "open_engine", open_pickled)
    with pytest.raises(UserError, match=r"column op, row 300 \(request_id 300\): found 'scan'"):
        run(tmp_path / "log", tmp_path / "out")
    assert not (tmp_path / "out" / "runs").exists()


class Broken:
    workers, memory_bytes = 2, 1e9

    def map(self, function, tasks, advance, at_once=None):
        yield Done(tasks[0], error=Failed("MemoryError: no room"))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_that_fails_ends_the_run_as_a_row_and_is_done_again(tmp_path, monkeypatch, workers):
    @contextmanager
    def broken(options, accelerated):
        engine = Broken()
        engine.workers = workers
        yield engine

    def scan(*_):
        raise MemoryError("no room")

    trace = folder_of("requests_objects.parquet", tmp_path / "log")
    with monkeypatch.context() as patch:
        patch.setattr(study, "open_engine", broken)
        patch.setattr(trace_pieces, "scan", scan)
        console = Console(file=io.StringIO(), width=160)
        assert run(trace, tmp_path / "out", console) == 1
    assert console.file.getvalue() == "1 run: MemoryError: no room\n"
    [row] = read_results(tmp_path / "out", "runs").to_dict("records")
    assert row["status"] == "failed" and row["error"] == "MemoryError: no room"
    assert not (tmp_path / "out" / "files").exists()
    assert run(trace, tmp_path / "out") == 0
    assert read_results(tmp_path / "out", "runs")["status"].tolist() == ["ok"]


def test_what_cannot_be_cut_is_read_in_this_process(tmp_path, monkeypatch, caplog):
    table = pq.read_table(TRACES / "requests_objects.parquet")
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=500)
    monkeypatch.setattr(study, "open_engine", open_pickled)
    with caplog.at_level("INFO", "ecjax"):
        assert run(tmp_path / "log.parquet", tmp_path / "out", sort=True) == 0
    assert "can only be read from its beginning" in caplog.text


def test_a_file_that_only_the_driver_sees_is_told_with_what_helps(tmp_path, monkeypatch):
    trace = folder_of("requests_objects.parquet", tmp_path / "log")

    def map_elsewhere(self, *arguments):
        for file in trace.iterdir():
            file.rename(tmp_path / file.name)
        return PickledEngine._map(self, *arguments)

    monkeypatch.setattr(PickledEngine, "_map", PickledEngine.map, raising=False)
    monkeypatch.setattr(PickledEngine, "map", map_elsewhere)
    monkeypatch.setattr(study, "open_engine", open_pickled)
    with pytest.raises(
        UserError, match=r"0.parquet: No such file or directory, on .*; allowed: a path that all nodes"
    ):
        run(trace, tmp_path / "out")
