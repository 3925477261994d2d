"""Logs of several files, named by words or by a pattern, are read as a folder of them is."""

import glob
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_logs import LOGS, hour, write_log

from ecjax.cli import main
from ecjax.errors import UserError
from ecjax.hydra_run import options_of_words
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.logs import log_reading, open_log
from ecjax.tables.fingerprint import trace_fingerprint
from ecjax.tables.folder import absolute
from ecjax.tables.importers import open_trace
from ecjax.tables.patterns import as_option, log_location
from ecjax.tables.results import read_results
from ecjax.tables.several import Several

DAY = hour(requests=90, objects=9)


def touched(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def found(pattern):
    place = log_location(pattern)
    return [str(file) for file in place.iterdir()] if isinstance(place, Several) else [str(place)]


def of_words(*words):
    """What the files of several bare words are."""
    return found(as_option("trace", words).removeprefix("trace='").removesuffix("'").replace("\\'", "'"))


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Three files of a log, one in a folder below, and what a folder is read without."""
    monkeypatch.chdir(tmp_path)
    lines = list(LOGS["s3"][1](DAY))
    for number, name in enumerate(("b.log", "a.log.gz", "day/c.log")):
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        write_log(tmp_path / "logs" / name, lines[number::3])
    touched(tmp_path / "logs", "_x.log", ".y.log", "_old/z.log")
    return tmp_path / "logs"


def test_patterns_find_what_the_files_of_a_shell_are(tmp_path, monkeypatch):
    """Held against Python's glob, for names without "_" and "." at their beginning."""
    monkeypatch.chdir(tmp_path)
    names = ["a", "ab", "ba", "bb1", "-b", "1", "a1b"]
    touched(tmp_path, *(f"{folder}{name}.x" for folder in ("", "d/", "d/e/", "f/g/h/") for name in names))
    patterns = "* *.x a* ?b*.x [ab]* [!ab]*.x */*.x d/* **/*.x d/**/a*.x **/e/* **"
    for pattern in patterns.split():
        files = {
            os.path.normpath(file)
            for match in glob.glob(pattern, recursive=True)
            for file in ([match] if os.path.isfile(match) else glob.glob(f"{match}/**/*.x", recursive=True))
        }
        assert found(pattern) == sorted(files, key=Path), pattern
    alike = {"{a,b}*.x": ("a*.x", "b*.x"), "{d/{e,.},f/**}/*a*": ("d/e/*a*", "d/*a*", "f/**/*a*")}
    for pattern, parts in alike.items():
        files = {file for part in parts for file in found(part)}
        assert found(pattern) == sorted(files, key=Path)


NAMES = [
    "a*.log",
    "a?.log",
    "a[1].log",
    "a1.log",
    "ab.log",
    "{a,b}.log",
    "b.log",
    "it's, é: 1.log",
    "[!a]",
    "-",
]


def test_files_whose_names_look_like_patterns_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touched(tmp_path, *NAMES)
    for name in NAMES:
        assert found(name) == [name] == of_words(name)
    draw = random.Random(2)
    for _ in range(100):
        words = draw.sample(NAMES, draw.randint(2, len(NAMES)))
        assert of_words(*words) == sorted(words)
        pattern = as_option("trace", words).removeprefix("trace='").removesuffix("'").replace("\\'", "'")
        # from elsewhere, too
        (tmp_path / "else").mkdir(exist_ok=True)
        again = absolute(log_location(pattern))
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir(tmp_path / "else")
            assert found(again) == [str(tmp_path / name) for name in sorted(words)]
    assert found("a[1]*.log") == ["a1.log"] and of_words("a[1]*.log", "b.log") == ["a1.log", "b.log"]


def test_names_that_folders_are_read_without_have_to_be_asked_for(logs):
    assert found("logs/*.log") == ["logs/b.log"] and found("logs/_*.log") == ["logs/_x.log"]
    assert found("logs/*") == found("logs/**") == ["logs/a.log.gz", "logs/b.log", "logs/day/c.log"]
    assert found("logs/_old/*") == ["logs/_old/z.log"] and of_words("logs/_x.log", "logs/b.log") == [
        "logs/_x.log",
        "logs/b.log",
    ]


def test_what_is_read_is_what_the_folder_holds_under_its_hash(logs):
    whole = open_trace("logs")
    rows = pa.Table.from_batches(list(whole.batches()))
    assert len(rows) == len(DAY)
    ways = [
        "logs/**/*.log*",
        "logs/*",
        "./logs/{b.log,a*,day}",
        f"{{{logs}/b*,logs/a.log.gz,logs/../logs/day/c.log}}",
    ]
    for way in ways:
        trace = open_trace(way)
        assert trace.fingerprint == whole.fingerprint == trace_fingerprint(way), way
        assert pa.Table.from_batches(list(trace.batches())).equals(rows)  # the names' salt is the same, too
    assert {sample.file for sample in whole.tally.samples} <= {"a.log.gz", "b.log", "day/c.log"}
    assert open_trace("logs/*.gz").fingerprint == open_trace("logs/a.log.gz").fingerprint
    assert trace_fingerprint("logs/*.log*") != whole.fingerprint


def test_parquet_files_are_one_table_in_the_order_of_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (2, 0, 1):
        table = {
            "request_id": [number],
            "arrival_s": [float(number)],
            "file_id": ["a"],
            "op": ["read"],
            "bytes": [1.0],
        }
        pq.write_table(pa.table(table), tmp_path / f"p{number}.parquet")
    trace = open_trace("p[02].parquet")
    assert pa.Table.from_batches(list(trace.batches()))["arrival_s"].to_pylist() == [0, 2]
    assert sum(piece.rows for piece in trace.pieces(2)) == 2 and len(trace.pieces(2)) == 2
    assert open_trace("{p2,p1,p0}.parquet").fingerprint == open_trace(tmp_path).fingerprint
    (tmp_path / "b.csv").write_text("arrival_s\n0\n")
    with pytest.raises(UserError, match="found p0.parquet and b.csv; allowed: Parquet files, or none"):
        open_trace("{p0,b}.*")
    (tmp_path / "a.csv").write_text("arrival_s\n0\n")
    with pytest.raises(UserError, match=r"none of the files is Parquet"):
        open_trace("?.csv", columns={"arrival_s": "arrival_s", "file_id": "f", "bytes": "b"})
    with pytest.raises(UserError, match="several files; allowed with format=msr: one file"):
        open_trace("?.csv", format="msr", extent_bytes=1)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("logs/*.zst", r"logs/\*.zst: no file matches; allowed"),
        ("none/*.gz", r"none/\*.gz: no file matches; allowed"),
        ("logs/{b,c}.log", "logs/c.log: no such file or folder"),
        ("empty*", r"empty\*: no file matches"),
    ],
)
def test_what_matches_nothing_is_a_mistake(logs, pattern, message):
    (logs.parent / "empty" / "er").mkdir(parents=True)
    touched(logs.parent, "empty/_x", "empty2/.x")
    with pytest.raises(UserError, match=message) as error:
        open_trace(pattern)
    assert "\n" not in str(error.value)


def test_folders_that_link_to_themselves_end(logs):
    (logs / "day" / "loop").symlink_to(logs)
    with pytest.raises(UserError, match="links to a folder that it is in"):
        found("logs/**/*.log")


def test_brackets_of_paths_are_no_lists_of_hydra(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    touched(tmp_path, *NAMES)
    for text in ("[ab]*.log", "{a,b}*.log", *NAMES):
        assert options_of_words("analyze", [f"trace={text}"]).trace == text
        assert options_of_words("analyze", [as_option("trace", [text])]).trace == text


def said(capsys, *words):
    code = main(list(words))
    return code, capsys.readouterr().err.strip().splitlines()[-1]


def test_commands_take_several_words_and_patterns(logs, capsys):
    """One run, however its log was named; a later job finds the log by the analysis."""
    words = "k=1", "figures=false", "out=out"
    assert main(["analyze", "logs", *words]) == 0
    files = ["logs/b.log", "logs/a.log.gz", "logs/day/c.log"]
    for log in (files, ["trace=logs/**/*.log*"]):
        assert main(["analyze", *log, *words]) == 0
        assert len(read_results("out", "runs")) == 1
    assert main(["analyze", *files, "k=1", "figures=false", "out=other"]) == 0
    assert read_results("other", "runs")["run_id"].tolist() == read_results("out", "runs")["run_id"].tolist()
    options = LogOptions(trace="other")
    assert open_log(options).fingerprint == open_trace("logs").fingerprint
    assert log_reading(options).path == f"{logs}/{{b.log,a.log.gz,day/c.log}}"
    code, line = said(capsys, "analyze", "out", "logs", "k=1", "out=more")
    assert code == 2 and "out holds results of ecjax analyze; allowed: files and folders of a log" in line


@pytest.mark.parametrize("job", ["analyze", "replay", "schedule", "cache", "adapt"])
def test_every_job_takes_a_log_of_several_files(logs, capsys, job):
    touched(logs.parent, "x.csv", "y.csv")  # no log: what is said of it is said of all of it
    for log in (["x.csv", "y.csv"], [f"{'delays' if job == 'adapt' else 'trace'}=?.csv"], ["?.csv"]):
        code, line = said(capsys, job, *log)
        assert code == 2 and "cannot tell its format; found several files" in line, (log, line)
    code, line = said(capsys, job, "x.csv", "z.csv")
    assert code == 2 and "z.csv: no such file or folder" in line
    code, line = said(capsys, job, "*.zst")
    assert code == 2 and "*.zst: no file matches" in line


def test_more_words_than_a_list_may_have_are_one_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [f"{number:04}.log" for number in range(2500)]
    touched(tmp_path, *words)
    text = options_of_words("analyze", [as_option("trace", words)]).trace
    assert found(text) == words and str(log_location(text)) == "0000.log and 2499 more files"
