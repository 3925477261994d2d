"""The page of the papers' claims: every claim is on it, with the verdict that the studies give now."""

from importlib.resources import files

import pytest

from ecjax import cli
from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.page import page, read_sections, read_verdicts, sections
from ecjax.tables.results import read_results

PAGE = (files("ecjax.guides") / "claims.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_is_on_the_page(name):
    verdicts = read_verdicts(read_sections(PAGE)[name])
    assert list(verdicts) == [claim.id for claim in paper(name).claims]
    assert set(verdicts.values()) <= set(Verdict) - {Verdict.NOT_JUDGED}


def test_sections_make_up_the_page():
    assert page(read_sections(PAGE)) == PAGE


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_are_those_of_the_page(name, tmp_path):
    assert cli.main(["reproduce", name, f"out={tmp_path / 'out'}", "--quiet"]) == 0
    claims = read_results(tmp_path / "out", "claims")
    found = dict(zip(claims["id"], claims["verdict"], strict=True))
    assert found == read_verdicts(read_sections(PAGE)[name])
    assert sections(claims, {name: "small"})[name].startswith(f"## {name}: ")
