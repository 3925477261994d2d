"""What becomes of the claims at size=small: a verdict that is not that of the page fails."""

from importlib.resources import files

import pytest

from ecjax import cli
from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.evidence import Evidence
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.page import read_sections, read_verdicts, sections
from ecjax.tables.results import read_results

PAGE = read_sections((files("ecjax.guides") / "claims.md").read_text(encoding="utf-8"))
COUNTS = {
    "jlcm": 48,
    "differentiated": 28,
    "tofec": 34,
    "dtarget": 28,
    "samplex": 45,
}  # claims that are judged


@pytest.mark.parametrize("name", PAPERS)
def test_all_claims_are_there(name):
    verdicts = read_verdicts(PAGE[name])
    assert list(verdicts) == [claim.id for claim in paper(name).claims]
    assert len(verdicts) == COUNTS[name]
    assert set(verdicts.values()) <= set(Verdict) - {Verdict.NOT_JUDGED}


@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_that_need_no_study(name):
    evidence, expected = Evidence("small", {}), read_verdicts(PAGE[name])
    claims = [claim for claim in paper(name).claims if not claim.studies and not claim.timed]
    found = {claim.id: claim.rule(evidence).verdict for claim in claims}
    assert found == {claim: expected[claim] for claim in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_verdicts(name, tmp_path):
    """Minutes."""
    assert cli.main(["reproduce", name, f"out={tmp_path}", "--quiet"]) == 0
    claims = read_results(tmp_path, "claims")
    found = dict(zip(claims["id"], claims["verdict"], strict=True))
    expected = read_verdicts(PAGE[name])
    assert found.keys() == expected.keys()
    # those of times may be others on a busy machine
    timed = {claim.id for claim in paper(name).claims if claim.timed}
    assert {found[claim] for claim in timed} <= {Verdict.HOLDS, Verdict.IN_SHAPE, Verdict.FAILS}
    untimed = set(found) - timed
    assert {claim: found[claim] for claim in untimed} == {claim: expected[claim] for claim in untimed}
    assert sections(claims, {name: "small"})[name].startswith(f"## {name}: ")
