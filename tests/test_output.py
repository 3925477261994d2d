"""``--json`` and ``--quiet``: what goes to standard output, and what does not."""

import json
from io import StringIO
from pathlib import Path

import pytest

from ecjax import cli
from ecjax.console import MESSAGES, OUTPUT, OutputMode, conclude, log, output_mode, say
from ecjax.jobs_index import JOBS
from ecjax.progress import progress
from ecjax.studies.spine import study
from ecjax.tables.recommendation import Recommendation

LOG = Path(__file__).parents[1] / "traces" / "requests_objects.parquet"


@pytest.fixture
def streams(monkeypatch):
    """The consoles write to what pytest has put in place of the streams."""
    monkeypatch.setattr(OUTPUT, "_file", None)
    monkeypatch.setattr(MESSAGES, "_file", None)


def analyzed(out, *words):
    return cli.main(["analyze", str(LOG), *words, "figures=false", f"out={out}"])


def test_json_is_one_object_and_nothing_else(tmp_path, capsys, streams):
    code = analyzed(tmp_path / "out", "--json")
    out, _ = capsys.readouterr()
    printed = json.loads(out, parse_constant=pytest.fail)
    assert code == printed["exit_code"] == 0
    assert printed["job"] == "analyze" and printed["out"] == str(tmp_path / "out")
    (run,) = printed["runs"]
    assert run["status"] == "ok" and run["error"] is None and isinstance(run["batch_runs"], int)
    assert "Next: ecjax optimize files=" in printed["recommendation"]["sentence"]
    assert output_mode() is OutputMode.ALL and not OUTPUT.quiet


def test_quiet_leaves_warnings_errors_and_the_recommendation(tmp_path, capsys, streams, monkeypatch):
    whole = study.run_study

    def recommending(tables, options, prepare, present, console, accelerated=False):
        def presented(runs):
            present(runs)
            log.info("not this")
            log.warning("but this")
            say(console, "this too", "yellow")
            with progress("counting", 10) as advance:
                advance(10)
            return Recommendation("Do nothing.", runs["run_id"][0], "the only one")

        return whole(tables, options, prepare, presented, console, accelerated)

    monkeypatch.setattr("ecjax.studies.analyze.study.run_study", recommending)
    level = log.level
    assert analyzed(tmp_path / "out", "--quiet") == 0
    out, err = capsys.readouterr()
    assert out == "Do nothing.\n"
    assert "but this" in err and "this too" in err and "not this" not in err and "counting" not in err
    assert log.level == level

    assert analyzed(tmp_path / "out", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["recommendation"]["sentence"] == "Do nothing." and "not this" in err


def test_the_next_command_is_one_line_for_the_shell(capsys, streams, monkeypatch):
    monkeypatch.setattr(OUTPUT, "_width", 80)
    command = (
        "Next: ecjax optimize files=results/files nodes='{count: 12, per_rack: 4, seek_ms: 8, MBps: 180}' k=4"
    )
    conclude(OUTPUT, f"{'Some words about the log. ' * 4}{command}")
    *words, last = capsys.readouterr().out.splitlines()
    assert last == command and len(words) == 2


def test_verify_speaks_json_too(tmp_path, capsys, streams):
    analyzed(tmp_path / "out", "--quiet")
    assert "describe yours" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["verify", "--json", str(tmp_path / "out")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["findings"] == [] and printed["exit_code"] == 0
    assert {"dataset": "runs", "wrong": 0}.items() <= printed["datasets"][0].items() or len(
        printed["datasets"]
    ) > 1
    assert [source["state"] for source in printed["inputs"]] != []


HYDRAS = [["--quiet", "-m"], ["--cfg", "job", "--json"]]


@pytest.mark.parametrize(
    ("job", "words"),
    [(job, ["--json", "--quiet"]) for job in (*JOBS, "verify")]
    + [(job, words) for job in JOBS for words in HYDRAS],
)
def test_what_contradicts_is_refused(job, words, capsys):
    assert cli.main([job, *words]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("ecjax: found --") and "allowed: one of them" in err


def test_a_mistake_prints_no_object(capsys):
    assert cli.main(["optimize", "--json", "thetta=3"]) == 2
    assert capsys.readouterr().out == ""


def test_a_console_without_a_reader_prints_no_more():
    class Gone(StringIO):
        def write(self, text):
            raise BrokenPipeError

    console = type(OUTPUT)(file=Gone())
    console.print("nobody reads this")
    assert console.quiet
    console.print("nor this")


def test_a_folder_may_be_named_as_jobs_name_it(tmp_path, capsys, streams):
    analyzed(tmp_path / "out", "--quiet")
    capsys.readouterr()
    assert cli.main(["verify", f"out={tmp_path / 'out'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == str(tmp_path / "out")
    assert cli.main(["verify", f"out={tmp_path / 'out'}"]) == 0
    assert "out=" not in capsys.readouterr().out
