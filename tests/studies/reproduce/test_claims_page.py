"""The page of the papers' claims: every claim is on it, with the verdict that the studies give now."""

from importlib.resources import files

import pandas as pd
import pytest

from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.page import (
    full_line,
    full_line_of,
    page,
    read_sections,
    read_verdicts,
    sections,
    with_full_line,
)

PAGE = (files("ecjax.guides") / "claims.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_is_on_the_page(name):
    verdicts = read_verdicts(read_sections(PAGE)[name])
    assert list(verdicts) == [claim.id for claim in paper(name).claims]
    assert set(verdicts.values()) <= set(Verdict) - {Verdict.NOT_JUDGED}


def test_sections_make_up_the_page():
    assert page(read_sections(PAGE)) == PAGE


def test_what_full_size_decides_otherwise_has_a_line():
    section = read_sections(PAGE)["tofec"]
    verdicts = read_verdicts(section)
    first, second, *_ = verdicts
    rows = [{"id": name, "verdict": verdict} for name, verdict in verdicts.items()]
    same = full_line(pd.DataFrame(rows), verdicts)
    assert same == f"size=full: the same verdicts ({len(rows)} claims)."
    rows[1] = {"id": second, "verdict": "testbed"}
    line = full_line(pd.DataFrame(rows), verdicts)
    assert f"`{second}`: testbed" in line and first not in line
    written = with_full_line(with_full_line(section, same), line)
    assert full_line_of(written) == line and read_verdicts(written) == verdicts
    assert with_full_line(written, full_line_of(section)) == section


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_are_those_of_the_page(name, reproduced):
    code, claims = reproduced(name)
    assert code == 0
    found = dict(zip(claims["id"], claims["verdict"], strict=True))
    listed = read_verdicts(read_sections(PAGE)[name])
    assert found.keys() == listed.keys()
    # those of times may be others on a busy machine
    same = [claim.id for claim in paper(name).claims if not claim.timed]
    assert {claim: found[claim] for claim in same} == {claim: listed[claim] for claim in same}
    assert sections(claims, {name: "small"})[name].startswith(f"## {name}: ")
