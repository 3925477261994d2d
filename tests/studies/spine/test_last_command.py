"""What a study leaves of its last command: rows that are there, its recommendation, options that had no effect."""

import pytest
from rich.console import Console

from ecjax.engine import EngineOptions
from ecjax.errors import UserError
from ecjax.studies.schedule import study as schedule
from ecjax.studies.schedule.options import GenerateOptions, ScheduleOptions
from ecjax.studies.spine.study import runs_of
from ecjax.tables.recommendation import read_recommendation
from ecjax.tables.results import read_results


def replayed(out, **options) -> int:
    few = {
        "scheduler": ["fair"],
        "seeds": 1,
        "sources": ["random"],
        "figures": [],
        "generate": GenerateOptions(requests=20),
    }
    return schedule.schedule_study(ScheduleOptions(out=str(out), **(few | options)), Console(quiet=True))


def test_a_recommendation_goes_where_the_last_command_has_none(tmp_path, monkeypatch):
    assert replayed(tmp_path) == 0
    assert read_recommendation(tmp_path) is not None
    monkeypatch.setattr(schedule, "recommend", lambda runs: None)
    assert replayed(tmp_path) == 0 and read_recommendation(tmp_path) is None
    assert replayed(tmp_path) == 0  # there is none to remove


def test_rows_that_are_not_there_are_a_line(tmp_path):
    assert replayed(tmp_path) == 0
    (name,) = read_results(tmp_path, "runs")["run_id"]
    assert runs_of(str(tmp_path), [name])["run_id"].tolist() == [name]
    with pytest.raises(UserError, match=r"found no rows of 1 of 2 runs, as other; allowed: a folder where"):
        runs_of(str(tmp_path), [name, "other"])


def test_options_of_worker_processes_say_nothing_to_this_process(tmp_path, caplog):
    assert replayed(tmp_path) == 0 and "no effect" not in caplog.text
    assert replayed(tmp_path, engine=EngineOptions(cpus_per_actor=4, retries=1)) == 0
    for said in ("engine.cpus_per_actor=4", "engine.retries=1"):
        assert f"{said} has no effect beside engine=serial" in caplog.text
