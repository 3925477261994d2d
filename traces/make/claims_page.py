"""The page ``ecjax guide claims``: ``python traces/make/claims_page.py results/reproduce`` writes it anew.

Sections of papers that the folder, an ``out`` of ``ecjax reproduce``, does not have stay as they are. Of several runs
of a paper the one with the most claims counts, and of those the last.
"""

import sys
from pathlib import Path

import ecjax.guides
from ecjax.studies.reproduce.page import page, read_sections, sections
from ecjax.tables.results import read_results

PAGE = Path(ecjax.guides.__file__).parent / "claims.md"


def main(folder: str) -> None:
    """Write the page with the sections of a folder in it."""
    runs = read_results(folder, "runs").sort_values("claim_count", kind="stable").groupby("paper").tail(1)
    claims = read_results(folder, "claims")
    claims = claims[claims["run_id"].isin(runs["run_id"])]
    old = read_sections(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    new = sections(claims, dict(zip(runs["paper"], runs["size"], strict=True)))
    PAGE.write_text(page(old | new), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results/reproduce")
