"""Claims of papers: what they consist of, how they are judged, and what the command writes."""

import inspect
import json
import pickle
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ecjax import cli
from ecjax.errors import UserError
from ecjax.studies.reproduce import run as running
from ecjax.studies.reproduce import study as reproduce_study
from ecjax.studies.reproduce.claim import Claim, Finding, Kind, Paper, Study, Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.evidence import Made
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.workers import Here
from ecjax.tables.results import read_results


@pytest.mark.parametrize("name", PAPERS)
def test_claims_are_of_their_paper(name):
    one = paper(name)
    assert one.name == name
    assert one.claims
    for claim in one.claims:
        assert claim.id.startswith(f"{name}-")
        assert claim.where
        assert claim.text.endswith(".")
        assert pickle.loads(pickle.dumps(claim)) == claim  # another process may judge it
    assert {study.name for study in one.studies} == {study for claim in one.claims for study in claim.studies}


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_judged_by_seconds_is_timed(name):
    """So that it runs alone, and another verdict on a busy machine is no failure of a test."""
    for claim in paper(name).claims:
        source = inspect.getsource(claim.rule)
        if claim.kind is not Kind.TESTBED and ("solve_s" in source or "perf_counter" in source):
            assert claim.timed, claim.id


def _holds(evidence):
    return Finding(Verdict.HOLDS, 1.0)


def _paper(*claims, studies=()):
    return Paper("jlcm", "a title", studies, claims)


@pytest.fixture
def setting(tmp_path):
    return running.Setting(tmp_path, "small", True, lambda name, words: None, Here(), 1)


def test_papers_know_the_studies_of_their_claims():
    with pytest.raises(ValueError, match="fig9"):
        _paper(Claim("jlcm-a", "Fig. 9", "It is.", _holds, ("fig9",)))


def test_a_study_that_fails_leaves_its_claims_unjudged(setting):
    def failing(name, words):
        raise UserError("theta: found -1")

    study, claim = Study("fig9", ("replay",)), Claim("jlcm-a", "Fig. 9", "It is.", _holds, ("fig9",))
    other = Claim("jlcm-b", "eq. 1", "It is.", _holds)
    one = _paper(claim, other, studies=(study,))
    (first, second), _ = running.judged(one, one.claims, replace(setting, options_of=failing))
    assert first.finding.verdict == Verdict.NOT_JUDGED
    assert "theta: found -1" in first.finding.why
    assert second.finding.verdict == Verdict.HOLDS
    assert second.command == "ecjax reproduce jlcm claims=jlcm-b"


def test_what_replays_plans_that_could_not_be_made_is_not_judged(setting):
    """Although the folder of the plans may have some of another time."""

    def failing(name, words):
        if name == "optimize":
            raise UserError("theta: found -1")
        raise AssertionError("replayed")

    plans, replays = Study("plans", ("optimize",)), Study("fig9", ("replay",), replays="plans")
    one = _paper(Claim("jlcm-a", "Fig. 9", "It is.", _holds, ("fig9",)), studies=(plans, replays))
    (judged,), _ = running.judged(one, one.claims, replace(setting, options_of=failing))
    assert judged.finding.verdict == Verdict.NOT_JUDGED
    assert judged.finding.why == "study fig9: study plans: theta: found -1"


class _Failed(Executor):
    """Runs of which the second failed."""

    def submit(self, function, /, *arguments):
        if not isinstance(arguments[0], str):
            return Here().submit(function, *arguments)
        rows = {"run_id": ["a", "b"], "status": ["ok", "failed"], "error": [None, "out of memory"]}
        future = Future()
        future.set_result((Made(arguments[2], pd.DataFrame(rows)), 0.0))
        return future


def test_a_run_that_failed_is_no_evidence(setting):
    study, claim = Study("fig9", ("replay",)), Claim("jlcm-a", "Fig. 9", "It is.", _holds, ("fig9",))
    one = _paper(claim, studies=(study,))
    (judged,), _ = running.judged(one, one.claims, replace(setting, executor=_Failed()))
    assert judged.finding.verdict == Verdict.NOT_JUDGED
    assert judged.finding.why == "study fig9: run b of 2 failed: out of memory"


def test_a_rule_that_meets_a_null_leaves_its_claim_unjudged(setting):
    def rule(evidence):
        return json.loads(None)

    one = _paper(Claim("jlcm-a", "eq. 1", "It is.", rule), Claim("jlcm-b", "eq. 2", "It is.", _holds))
    (first, second), _ = running.judged(one, one.claims, setting)
    assert first.finding.verdict == Verdict.NOT_JUDGED and "TypeError" in first.finding.why
    assert second.finding.verdict == Verdict.HOLDS


class _Folders(Executor):
    """Makes a plan, named by the place of its study's command, in a folder, and replays every plan of a folder."""

    def __init__(self):
        self.plans = {}

    def submit(self, function, /, *arguments):
        if not isinstance(arguments[0], str):
            return Here().submit(function, *arguments)
        job, words, out = arguments
        if job == "optimize":
            self.plans.setdefault(out, {})[words[0]] = None
            runs = pd.DataFrame({"run_id": [words[0]], "status": "ok"})
        else:
            (plans,) = (word.removeprefix("plan=") for word in words if word.startswith("plan="))
            runs = pd.DataFrame({"plan_run": list(self.plans[plans])}).assign(status="ok")
        future = Future()
        future.set_result((Made(out, runs), 0.0))
        return future


def _replayed_plans(evidence):
    return Finding(Verdict.HOLDS, why=", ".join(evidence["fig9"].runs["plan_run"]))


@pytest.mark.parametrize("first", ["small", "full"])
def test_sizes_do_not_take_each_other_s_plans(setting, first):
    def inputs(folder, size):
        table = Path(folder) / "files"
        table.write_text(size, encoding="utf-8")
        return (f"files={table}",)

    plans = Study("plans", ("optimize",), ("of small",), ("of full",), inputs=inputs)
    studies = plans, Study("fig9", ("replay", "plan_run=all"), replays="plans")
    one = _paper(Claim("jlcm-a", "Fig. 9", "It is.", _replayed_plans, ("fig9",)), studies=studies)
    setting = replace(setting, options_of=lambda name, words: words, executor=_Folders())
    second = "full" if first == "small" else "small"
    commands = {}
    for size in (first, second, first):
        (judged,), _ = running.judged(one, one.claims, replace(setting, size=size))
        assert judged.finding.why == f"of {size}"
        commands[size] = judged.command
    for size, command in commands.items():
        (table,) = (word.partition("=")[2] for word in command.replace(";", " ").split() if "files=" in word)
        assert Path(table).read_text(encoding="utf-8") == size


def test_plans_of_another_version_in_a_folder_are_not_judged(setting):
    studies = (
        Study("plans", ("optimize",), ("new",)),
        Study("fig9", ("replay", "plan_run=all"), replays="plans"),
    )
    one = _paper(Claim("jlcm-a", "Fig. 9", "It is.", _replayed_plans, ("fig9",)), studies=studies)
    folders = _Folders()
    setting = replace(setting, options_of=lambda name, words: words, executor=folders)
    folders.plans[setting.folder(one, "plans")] = {"old": None}
    (judged,), _ = running.judged(one, one.claims, setting)
    assert judged.finding.why == "new"


def test_plans_of_replays_are_those_that_they_replayed(tmp_path):
    """Beside plans of other rates in their folder."""
    words = [
        "theta=[0]",
        "method=[max_ec]",
        "cluster.files=4",
        "rate_scale=[0.5,1]",
        "estimate=false",
        "figures=[]",
    ]
    assert cli.main(["optimize", *words, f"out={tmp_path / 'planning'}", "--quiet"]) == 0
    plans = read_results(tmp_path / "planning", "runs").set_index("rate_scale")["run_id"]
    made = Made(str(tmp_path), pd.DataFrame({"run_id": ["a", "b"], "plan_run": plans[1.0]}))
    rows = made.of_plans("placements")
    assert set(rows["run_id"]) == {plans[1.0]} and len(plans) == 2
    assert (
        rows.groupby("file_id")["probability"].sum().between(1, 12).all() and rows["file_id"].nunique() == 4
    )


def test_what_does_not_hold_says_why(setting):
    one = _paper(Claim("jlcm-a", "Fig. 9", "It is.", lambda evidence: Finding(Verdict.FAILS, 2.0)))
    with pytest.raises(ValueError, match="without a reason"):
        running.judged(one, one.claims, setting)


def test_the_command_writes_a_row_per_claim(tmp_path, capsys):
    words = ["reproduce", "jlcm", "claims=jlcm-rates-stable,jlcm-fig6-moments", f"out={tmp_path / 'out'}"]
    assert cli.main(words) == 0
    claims = read_results(tmp_path / "out", "claims").set_index("id")
    assert claims["verdict"].to_dict() == {
        "jlcm-rates-stable": "does not hold",
        "jlcm-fig6-moments": "holds",
    }
    assert claims.loc["jlcm-rates-stable", "ours"] == pytest.approx(0.118 * 12 * 13.9 / 12)
    assert "1 hold and 1 do not hold" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 0


def test_claims_that_there_are_not(capsys):
    assert cli.main(["reproduce", "claims=jlcm-fig99"]) == 2
    assert "claims: found jlcm-fig99" in capsys.readouterr().err


@pytest.mark.slow
def test_two_processes_find_what_one_does(tmp_path):
    ids = "jlcm-remark-d-nodes,jlcm-remark1-even-split"
    for processes in (1, 2):
        words = [f"processes={processes}", f"claims={ids}", f"out={tmp_path / str(processes)}"]
        assert cli.main(["reproduce", "jlcm", *words]) == 0
    one, two = (read_results(tmp_path / name, "claims") for name in ("1", "2"))
    columns = ["id", "verdict"]
    assert one[columns].equals(two[columns])
    for column in ("ours", "ours_low", "ours_high"):
        np.testing.assert_allclose(one[column].astype(float), two[column].astype(float), rtol=1e-9)


def test_studies_write_where_the_verdicts_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    seen = []

    def judged(one, claims, setting):
        seen.append(setting.folder(one, "a_study"))
        raise UserError("seen")

    monkeypatch.setattr(reproduce_study, "judged", judged)
    assert cli.main(["reproduce", "papers=jlcm", f"out=file://{tmp_path}/far"]) == 2
    assert seen == [f"{tmp_path}/far/studies/jlcm/a_study"]
    capsys.readouterr()
    assert cli.main(["reproduce", "papers=jlcm", "out=memory://bucket/claims"]) == 2
    said = capsys.readouterr().err
    assert "out=memory://bucket/claims: found an object store; allowed: a folder of this machine" in said
    assert len(seen) == 1 and [path.name for path in tmp_path.iterdir() if ":" in path.name] == []
