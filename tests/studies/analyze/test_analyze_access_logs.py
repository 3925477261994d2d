"""An access log end to end: files, rejects, notices, and the guide of every source."""

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sample_logs

import ecjax
from ecjax.cli import main
from ecjax.problem.arrays import check_together
from ecjax.problem.described_nodes import read_nodes
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.logs import log_reading, open_reading
from ecjax.tables.importers.access_logs import PROFILES
from ecjax.tables.importers.access_logs.profile import NODE
from ecjax.tables.importers.trace import RATES
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results

TRACES = Path(__file__).parents[3] / "traces"
DAY = sample_logs.hour(requests=150, objects=20)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    lines = list(sample_logs.s3(DAY))
    lines[7:7] = [
        "a line that was cut",
        lines[9].replace("GET", "HEAD"),
        lines[3].replace(" 200 ", " 503 ", 1),
    ]
    for part in range(2):
        sample_logs.write_log(folder / f"2026-11-02-{part}.gz", iter(lines[part::2]))
    return folder


def test_a_folder_of_logs_becomes_files_and_rejects(logs, tmp_path, capsys):
    assert (
        main(["analyze", str(logs), f"out={tmp_path / 'out'}", "figures=[]", "k=4"]) == 2
    )  # a misspelt option
    words = ["analyze", str(logs), "k=4", "figures=false"]
    assert main([*words, f"out={tmp_path / 'none'}", "max_rejects=0"]) == 2
    assert "max_rejects=0" in capsys.readouterr().err and not (tmp_path / "none" / "files").exists()
    assert main([*words, f"out={tmp_path / 'out'}", "keep_ids=true"]) == 0
    files = read_input(tmp_path / "out" / "files", "files").to_pandas().set_index("file_id")
    span = DAY[-1].second - DAY[0].second
    for name, rate in files["rate_per_s"].items():
        reads = sum(f"{each.bucket}/{each.key}" == name and not each.write for each in DAY)
        assert rate == reads / span
    np.testing.assert_array_equal(files["k"], 4)
    rejects = read_results(tmp_path / "out", "rejects")
    assert rejects["text"].tolist() == ["a line that was cut"] and rejects["lines"].tolist() == [1]
    assert rejects["line"].tolist() == [4] and rejects["file"].tolist() == ["2026-11-02-1.gz"]
    (row,) = read_results(tmp_path / "out", "traces").to_dict("records")
    assert row["format"] == "s3" and row["rows"] == len(DAY)
    assert json.loads(row["reading"])["keep_ids"] is True
    assert "Malformed and left out: 1 of 153 lines" in row["notices"] and "REST.HEAD.OBJECT" in row["notices"]
    assert "1 request without success" in row["notices"]
    reading = log_reading(LogOptions(trace=str(tmp_path / "out")))
    assert reading.options["keep_ids"] and set(files.index) <= {
        name for batch in open_reading(reading).batches() for name in batch["file_id"].to_pylist()
    }


def test_nodes_beside_a_log_without_service_times_are_said_to_be_of_no_use(logs, tmp_path):
    words = ["analyze", str(logs), "k=4", "figures=false", f"nodes={TRACES / 'nodes_racks.csv'}"]
    assert main([*words, f"out={tmp_path / 'out'}", "--quiet"]) == 0
    (row,) = read_results(tmp_path / "out", "traces").to_dict("records")
    assert "The nodes table is left aside: it adds to the service times" in row["notices"]
    assert not (tmp_path / "out" / "nodes").exists()


def test_nobody_is_named_unless_asked(logs, tmp_path):
    out = tmp_path / "out"
    ecjax.analyze(str(logs), out=str(out), k=4, figures=False)
    content = b"".join(path.read_bytes() for path in out.rglob("*.parquet"))
    for secret in (b"photo", b"192.0.2.3", b"abab", b"client/1.0"):
        assert secret not in content
    assert read_results(out, "rejects")["text"].isna().all()
    assert read_results(out, "files")["file_id"].dtype == np.int64


def test_a_log_of_one_disk_is_planned_on_others(tmp_path):
    out = tmp_path / "out"
    result = ecjax.analyze(str(TRACES / "logs" / "thesios.csv.gz"), k=4, figures=False, out=str(out))
    words = dict(word.split("=", 1) for word in shlex.split(result.sentence.partition("optimize ")[2]))
    assert words["files"] == str(out / "files") and words["nodes"].startswith("{count: 12")
    nodes, files = read_nodes({"count": 12, "seek_ms": 8, "MBps": 180}), read_input(words["files"], "files")
    extra = pa.array([int(words["min_extra_chunks"])] * len(files))
    check_together(nodes, files.append_column("min_extra_chunks", extra))


def has_times(profile):
    return NODE in profile.roles and profile.provides > {RATES}


def test_every_source_has_a_guide(capsys):
    for name, profile in PROFILES.items():
        assert main(["analyze", "--guide", name]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"# {profile.title}\n") and text.count("\n    ecjax ") == 3
        assert ("Public data: " in text) == bool(profile.source)
        # the only node of a log, or none, is nothing to plan on
        assert ("/files nodes='{count: 12" in text) == (not has_times(profile))
    assert main(["guide", "logs"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in PROFILES)
    assert main(["analyze", "--guide", "minoi"]) == 2
    assert "did you mean minio" in capsys.readouterr().err
