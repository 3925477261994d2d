"""The page of the papers' claims: its sections, and what it says of size=full."""

import re
import runpy
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.page import (
    full_line,
    full_line_of,
    page,
    read_sections,
    read_verdicts,
    with_full_line,
)

PAGE = (files("ecjax.guides") / "claims.md").read_text(encoding="utf-8")


def test_sections_make_up_the_page():
    assert page(read_sections(PAGE)) == PAGE


@pytest.mark.parametrize("name", PAPERS)
def test_counts_of_a_section_are_those_of_its_claims(name):
    section = read_sections(PAGE)[name]
    (line,) = (part for part in section.split("\n\n") if part.startswith("size=small: "))
    told = re.findall(r"(holds in shape|does not hold|holds|testbed) (\d+)", line)
    verdicts = list(read_verdicts(section).values())
    assert dict(told) == {verdict: str(verdicts.count(verdict)) for verdict in set(verdicts)}


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


def test_a_paper_that_several_folders_have_stands_on_the_page_once(tmp_path):
    """Run ids are those of the claims and the size, whatever the folder; the last of those with the most counts."""
    script = runpy.run_path(str(Path(__file__).parents[3] / "traces" / "make" / "claims_page.py"))
    main, written = script["main"], tmp_path / "claims.md"
    verdicts = {("one", "a"): "holds", ("one", "b"): "does not hold", ("two", "b"): "holds in shape"}

    def results(folder, dataset):
        rows = [
            {
                "run_id": run,
                "paper": "jlcm",
                "size": "small",
                "verdict": verdict,
                "claim_count": 2 if run == "b" else 1,
            }
            for (place, run), verdict in verdicts.items()
            if place == folder
        ]
        claim = {"where": "eq. 1", "claim": "It is.", "why": "it is"}
        unsaid = dict.fromkeys(("paper_value", "ours", "quantity"))
        told = [
            [row] if dataset == "runs" else [row | {"id": f"jlcm-{name}"} for name in "xy"] for row in rows
        ]
        return pd.DataFrame([row | claim | unsaid for part in told for row in part])

    main.__globals__.update(read_results=results, PAGE=written)
    for folders, verdict in (
        (["one", "two"], "holds in shape"),
        (["two", "one", "two"], "does not hold"),
        (["one"], "does not hold"),
    ):
        main(folders)
        text = written.read_text(encoding="utf-8")
        assert [text.count(f"`jlcm-{name}`") for name in "xy"] == [1, 1]
        assert read_verdicts(text) == {"jlcm-x": verdict, "jlcm-y": verdict}
