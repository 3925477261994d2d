"""Claims of papers: what they consist of, how they are judged, and what the command writes."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from ecjax import cli
from ecjax.errors import UserError
from ecjax.studies.reproduce import run as running
from ecjax.studies.reproduce.claim import Claim, Finding, Paper, Study, Verdict
from ecjax.studies.reproduce.claims import paper
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
