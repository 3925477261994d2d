"""The page ``ecjax guide claims``: ``python traces/make/claims_page.py results/reproduce`` writes it anew.

Sections of papers that the folders, each an ``out`` of ``ecjax reproduce``, do not have at size=small stay as they
are, and so do the lines on size=full. Of several runs of a paper and size the one with the most claims counts, and of
those the last.
"""

import sys
from pathlib import Path

import pandas as pd

import ecjax.guides
from ecjax.studies.reproduce.options import FULL, SMALL
from ecjax.studies.reproduce.page import (
    full_line,
    full_line_of,
    page,
    read_sections,
    read_verdicts,
    sections,
    with_full_line,
)
from ecjax.tables.results import read_results

PAGE = Path(ecjax.guides.__file__).parent / "claims.md"


def main(folders: list[str]) -> None:
    """Write the page with the sections of some folders in it."""
    # the same claims at the same size have one run id, whatever the folder
    runs, claims = (
        pd.concat([read_results(folder, name).assign(folder=folder) for folder in dict.fromkeys(folders)])
        for name in ("runs", "claims")
    )
    runs = runs.sort_values("claim_count", kind="stable").groupby(["paper", "size"]).tail(1)
    claims = claims.merge(runs[["folder", "run_id"]])
    parts = read_sections(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    small = claims[claims["size"] == SMALL]
    for name, section in sections(small, dict.fromkeys(small["paper"], SMALL)).items():
        parts[name] = with_full_line(section, full_line_of(parts.get(name, "")))
    full = claims[claims["size"] == FULL]
    for name, rows in full.groupby("paper"):
        parts[name] = with_full_line(parts[name], full_line(rows, read_verdicts(parts[name])))
    PAGE.write_text(page(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or ["results/reproduce"])
