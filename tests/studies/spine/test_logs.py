"""A log is read by every job as its analysis read it, unless options say otherwise."""

import io
import shlex
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from rich.console import Console

from ecjax.errors import UserError
from ecjax.options import checked, option
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.studies.optimize.tables import TABLES as PLANS
from ecjax.studies.schedule.inputs import read_cases
from ecjax.studies.schedule.options import ScheduleOptions
from ecjax.studies.spine.log_options import FORMATS, LogOptions
from ecjax.studies.spine.logs import log_reading, open_log, options_in_command
from ecjax.tables import importers
from ecjax.tables.folder import location, publishing
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

MAPPING = {"arrival_s": "ts", "arrival_s_scale": 0.001, "file_id": "key", "bytes": "size", "op": "verb"}
MAPPED = "ts,key,size,verb\n0,a,8,read\n500,b,4,read\n2000,a,8,read\n"
BLOCKS = "version,time,op,size,lbn\n1,100,28,1000,1\n1,101,2a,512,8\n1,103,28,3000,0\n"
LATE = "request_id,arrival_s,file_id,op,bytes\n0,5.0,a,read,8\n1,2.0,b,read,4\n2,9.0,a,write,8\n"
# text of a log, and the options that it needs to be read
LOGS = {
    "columns": (MAPPED, {"columns": MAPPING}),
    "extent_bytes": (BLOCKS, {"extent_bytes": 1024}),
    "format": (BLOCKS, {"extent_bytes": 2048, "format": "cloudphysics"}),
    "sort": (LATE, {"sort": True}),
}


@dataclass(frozen=True)
class Options(LogOptions):
    """Those of a job that reads a log beside a table of files."""

    files: str | None = option(None, "files table")


def analysed(trace, out, **options):
    options = AnalyzeOptions(trace=str(trace), out=str(out), k=1, figures=False, **options)
    assert analyze_study(options, Console(file=io.StringIO())) == 0


def rows(trace):
    return pa.Table.from_batches(list(trace.batches())).to_pandas()


def opened(trace, files=None, **options):
    options = checked(Options(trace=str(trace), files=None if files is None else str(files), **options))
    return open_log(options, inputs=[options.files])


def message(trace, **options):
    with pytest.raises(UserError) as error:
        opened(trace, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(scope="module", params=LOGS)
def study(request, tmp_path_factory):
    """A log, its analysis, the options of that, and the log as these options read it."""
    text, options = LOGS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    log, out = folder / "log.csv", folder / "out"
    log.write_text(text)
    analysed(log, out, **options)
    return log, out, options, opened(log, **options)


def test_words_are_those_of_the_importers():
    assert tuple(importers.FORMATS) == FORMATS


def test_the_folder_of_an_analysis_is_its_log_as_it_was_read(study, monkeypatch):
    log, out, _, expected = study
    monkeypatch.chdir(out.parent)
    for trace in (out, "out", f"file://{out}"):
        found = opened(trace)
        assert (found.format, found.fingerprint, found.name) == (
            expected.format,
            expected.fingerprint,
            str(log),
        )
        pd.testing.assert_frame_equal(rows(found), rows(expected))
    # and may be analysed again: it is the same run
    analysed(out, out)
    assert len(read_results(out, "runs")) == 1


def test_tables_of_an_analysis_say_how_its_log_was_read(study, monkeypatch, caplog):
    log, out, _, expected = study
    (batch,) = (out / "files").iterdir()
    monkeypatch.chdir(out.parent)
    for trace, files in ((log, out / "files"), (log, batch), ("log.csv", out), ("./log.csv", "out/files")):
        caplog.clear()
        with caplog.at_level("INFO", "ecjax"):
            pd.testing.assert_frame_equal(rows(opened(trace, files)), rows(expected))
        assert f"trace={trace}: as for {files}: " in caplog.text
    # of another log it says nothing
    other = log.with_name("other.csv")
    other.write_text("request_id,arrival_s,file_id,op,bytes\n0,1.0,a,read,8\n")
    assert opened(other, out / "files").format == "table"


def test_options_that_are_set_win(tmp_path):
    for name, text in (("a", MAPPED), ("b", BLOCKS)):
        (tmp_path / f"{name}.csv").write_text(text)
    analysed(tmp_path / "a.csv", tmp_path / "a", columns=MAPPING)
    analysed(tmp_path / "b.csv", tmp_path / "b", extent_bytes=1024, format="cloudphysics")
    faster = MAPPING | {"arrival_s_scale": 1.0}
    for trace, files in ((tmp_path / "a", None), (tmp_path / "a.csv", tmp_path / "a" / "files")):
        assert rows(opened(trace, files, columns=faster))["arrival_s"].max() == 2000.0
        with pytest.raises(UserError, match="a block trace has no files"):  # a mapping belongs to its format
            opened(trace, files, format="msr")
    for trace, files in ((tmp_path / "b", None), (tmp_path / "b.csv", tmp_path / "b" / "files")):
        assert opened(trace, files, extent_bytes=512).extent_bytes == 512
        assert opened(trace, files).extent_bytes == 1024
        columns = {"arrival_s": "time", "file_id": "lbn", "bytes": "size", "op": "op"}
        columns |= {"op_read": ["28"], "op_write": ["2a"]}
        assert opened(trace, files, columns=columns).format == "columns"


def test_a_log_that_has_changed_is_refused(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "out"
    log.write_text(MAPPED)
    analysed(log, out, columns=MAPPING)
    log.write_text(MAPPED + "3000,b,4,read\n")
    assert message(out) == (
        f"{log}: has changed since its analysis; allowed: trace={log}, or a new ecjax analyze"
    )
    # a longer log that is named itself is read in the same way
    assert len(rows(opened(log, out / "files"))) == 4
    analysed(log, out, columns=MAPPING)
    assert len(rows(opened(out))) == 4
    log.unlink()
    assert message(out) == f"{log}: no such file or folder"


def test_several_logs_in_a_folder_are_refused_with_the_list(tmp_path):
    out = tmp_path / "out"
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(MAPPED.replace("a,8", f"{name},8"))
        analysed(tmp_path / f"{name}.csv", out, columns=MAPPING)
    paths = f"{tmp_path / 'a.csv'}, {tmp_path / 'b.csv'}"
    assert message(out) == f"trace={out}: is the analysis of several logs; allowed: one of {paths}"
    assert rows(opened(tmp_path / "b.csv", out / "files"))["file_id"].tolist() == ["b", "b", "b"]


def test_one_log_that_was_read_in_several_ways(tmp_path, caplog):
    log, out = tmp_path / "log.csv", tmp_path / "out"
    log.write_text(MAPPED)
    slow = MAPPING | {"arrival_s_scale": 1.0}
    for columns in (MAPPING, slow):
        analysed(log, out, columns=columns)
    analysed(log, out, columns=slow, seed=1)  # another analysis, the same way
    text = message(out)
    ways = [f"columns={{arrival_s: ts, arrival_s_scale: {scale}, bytes: size, " for scale in ("0.001", "1.0")]
    assert f"the log was read in several ways; allowed: trace={log} {ways[0]}" in text
    assert f"; or {ways[1]}" in text
    runs = read_results(out, "runs").set_index("run_id")
    reading = read_results(out, "traces").set_index("run_id")["reading"]
    for run, batch in runs["batch_id"].items():
        scale = 1.0 if "1.0" in reading[run] else 0.001
        assert rows(opened(log, out / "files" / f"{batch}.parquet"))["arrival_s"].max() == 2000 * scale
    # a whole folder does not say which: what options say counts
    with caplog.at_level("INFO", "ecjax"), pytest.raises(UserError, match="cannot tell its format"):
        opened(log, out / "files")
    assert "was read in several ways" in caplog.text
    assert rows(opened(log, out / "files", columns=slow))["arrival_s"].max() == 2000


def table():
    return pa.table(
        {
            "request_id": np.arange(4),
            "arrival_s": np.arange(4.0),
            "file_id": [0, 1, 0, 1],
            "op": ["read"] * 4,
            "bytes": np.ones(4),
        }
    )


def test_a_folder_of_parquet_files_stays_a_trace(tmp_path, monkeypatch):
    log = tmp_path / "log"
    for name in ("runs", "traces", "files"):  # as the folders of an analysis are called
        (log / name).mkdir(parents=True)
    for place, part in enumerate(("runs/a", "runs/b", "traces/c", "z")):
        pq.write_table(table()[place : place + 1], log / f"{part}.parquet")
    assert rows(opened(log))["arrival_s"].tolist() == [0, 1, 2, 3]
    # nothing more is read of it than the footer of one file
    monkeypatch.setattr("ecjax.studies.spine.logs.read_results", None)
    assert log_reading(
        Options(trace=str(log)), inputs=[str(log / "files"), str(log / "z.parquet")]
    ).path == str(log)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "damaged.parquet").write_text("no Parquet")
    assert opened(log / "z.parquet", tmp_path / "nodes.csv").rows == 1


def test_folders_of_results_that_name_no_log(tmp_path):
    log, out = tmp_path / "log.parquet", tmp_path / "out"
    pq.write_table(table(), log)
    analysed(log, out, write=["files"])
    assert message(out) == f"trace={out}: does not say which log was read (dataset traces); allowed: the log"
    assert opened(log, out / "files").format == "table"
    with ResultStore(tmp_path / "plans", PLANS, {}) as store:
        store.commit([{"run_id": "a", "job": "optimize", "status": "ok"}], {})
    assert message(tmp_path / "plans") == (
        f"trace={tmp_path / 'plans'}: holds results of ecjax optimize; allowed: a log, or the folder of an ecjax "
        "analyze"
    )


@pytest.mark.parametrize("scheme", ["mock", "memory"])
def test_logs_and_analyses_in_an_object_store(tmp_path, scheme):
    if scheme == "memory":
        pytest.importorskip("fsspec", reason="fsspec is not installed: its stores cannot be tested")
    place = f"{scheme}:///bucket/{uuid4().hex}"
    log, out = f"{place}/log.csv", f"{place}/out"
    with publishing(location(log)) as file:
        file.write_text(MAPPED)
    expected = opened(log, columns=MAPPING)
    assert expected.name == log and log_reading(Options(trace=log)).path == log
    analysed(log, out, columns=MAPPING)
    assert read_results(out, "traces")["path"].tolist() == [log]
    for found in (opened(out), opened(log, f"{out}/files"), opened(log, out)):
        assert found.name == log
        pd.testing.assert_frame_equal(rows(found), rows(expected))
    assert opened(log, f"{place}/nowhere/files.csv", columns=MAPPING).name == log


def test_schedule_reads_the_log_of_an_analysis(tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "out"
    log.write_text(MAPPED)
    analysed(log, out, columns=MAPPING)
    files = {
        "file_id": ["a", "b"],
        "bytes": [8.0, 4.0],
        "k": [1, 1],
        "rate_per_s": [1.0, 1.0],
        "nodes": [["x", "y"], ["y", "z"]],
    }
    pq.write_table(pa.table(files), tmp_path / "files.parquet")

    def cases(**options):
        options = ScheduleOptions(files=str(tmp_path / "files.parquet"), clients=2, **options)
        return [(case.input_id, case.workload(0)) for case in read_cases(checked(options))]

    ((expected_id, expected),) = cases(trace=str(log), columns=MAPPING)
    ((input_id, workload),) = cases(trace=str(out))
    assert input_id == expected_id  # finished replays are found again
    for one, other in zip(workload, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(UserError, match="cannot tell its format"):
        cases(trace=str(log))


WORDS = ["ts", "object key", 'a "key"', "it's", "true", "Größe", "1e3", "x:y,z", "{a}", ""]


@pytest.mark.parametrize(
    "options",
    [
        *(options for _, options in LOGS.values()),
        *({"columns": {"file_id": text, "arrival_s_scale": 0.001}} for text in WORDS),
        {"keep_ids": True, "max_rejects": 3.0},
        {"columns": {"op": {"GET": "read", "sizes": [1, 2.5, None, False]}}},
    ],
)
def test_options_of_a_log_are_read_again_from_a_command(options):
    command = options_in_command(LogOptions(**options))
    overrides = OverridesParser.create().parse_overrides(shlex.split(command))
    assert {each.key_or_group: each.value() for each in overrides} == options
    assert options_in_command(LogOptions()) == ""
