"""Studies that other processes run: what they leave in ``out``, and what does not end well."""

import logging

import pytest

from ecjax.cores import VARIABLE
from ecjax.studies.reproduce import ahead
from ecjax.tables.results import read_results

SMALL = ("scheduler=fifo", "sources=random", "seeds=1", "generate.requests=20", "figures=[]", "--quiet")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")


def test_results_are_there_and_mistakes_stop_nothing(tmp_path, caplog):
    commands = [
        (name, ["schedule", *SMALL, *words, f"out={tmp_path / name}"])
        for name, words in (("one", ()), ("wrong", ("n=0",)), ("two", ("seed=5",)))
    ]
    with caplog.at_level(logging.INFO, "ecjax"):
        assert ahead.run_ahead(commands)
    assert [read_results(tmp_path / name, "runs")["seed"].tolist() for name in ("one", "two")] == [[0], [5]]
    assert not (tmp_path / "wrong").exists()
    assert sorted(record.getMessage().split(" took")[0] for record in caplog.records) == [
        "one",
        "two",
        "wrong",
    ]


def test_a_process_that_ends_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(ahead, "_SERVER", "ecjax.errors")  # a module that does nothing
    assert ahead.run_ahead([("one", ["schedule"]), ("two", ["schedule"])])


def test_one_study_or_one_core_needs_no_process(monkeypatch):
    monkeypatch.setattr(ahead, "_SERVER", "none")
    assert not ahead.run_ahead([("one", ["schedule"])])
    monkeypatch.setenv(VARIABLE, "1")
    assert not ahead.run_ahead([("one", ["schedule"]), ("two", ["schedule"])])
