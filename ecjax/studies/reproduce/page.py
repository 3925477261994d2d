"""The page "what became of the papers' claims": a section per paper, written from the dataset ``claims``."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.options import PAPERS
from ecjax.studies.reproduce.summary import ours
from ecjax.studies.spine.sentences import listed

_WIDTH = 78
_NO_BREAK = chr(160)
_FULL = "size=full: "
_HEAD = """# What became of the papers' claims

Numbers, orders and trends that the implemented papers state, 183 of them, and
what `ecjax reproduce` decided about each (verdicts: `ecjax guide reproduce`).
The page is written from the dataset `claims` of the size in each heading:
`python traces/make/claims_page.py results/reproduce`. "Paper" is the printed
value, "here" ours with its 95 % interval or the range of several. What
`size=full` decided otherwise stands below the heading where it has run.
"""


def sections(claims: pd.DataFrame, sizes: Mapping[str, str]) -> dict[str, str]:
    """The sections of the papers in a dataset ``claims``.

    Args:
        claims: its rows, one per claim.
        sizes: size of the studies by paper.
    """
    made = {}
    for name, rows in claims.groupby("paper", sort=False):
        counts = rows["verdict"].value_counts()
        counted = listed([f"{verdict} {counts[verdict]}" for verdict in Verdict if verdict in counts])
        lines = [f"## {name}: {paper(str(name)).title}", "", f"size={sizes[str(name)]}: {counted}.", ""]
        lines += [_wrapped(row) for row in rows.to_dict("records")]
        made[str(name)] = "\n".join(lines) + "\n"
    return made


def full_line(claims: pd.DataFrame, small: Mapping[str, str]) -> str:
    """The line of a section that says which verdicts of ``size=full`` are others.

    Args:
        claims: rows of a paper at that size.
        small: verdicts of the section by id.
    """
    others = [row for row in claims.to_dict("records") if small.get(row["id"]) != row["verdict"]]
    words = "the same verdicts"
    if others:
        words = "other verdicts for " + listed([f"`{row['id']}`: {row['verdict']}" for row in others])
    text = f"{_FULL}{words} ({len(claims)} claims)."
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def with_full_line(section: str, line: str) -> str:
    """The section with another such line; without one where it is empty."""
    head, *rest = [part for part in section.split("\n\n") if not part.startswith(_FULL)]
    # the counts, then the line, then the claims
    return "\n\n".join([head, rest[0], *([line] if line else []), *rest[1:]])


def full_line_of(section: str) -> str:
    """The line of a section as it stands; empty where it has none."""
    return next((part for part in section.split("\n\n") if part.startswith(_FULL)), "")


def page(parts: Mapping[str, str]) -> str:
    """The page from its sections, in the order of the papers."""
    return "\n".join([_HEAD, *(parts[name] for name in PAPERS if name in parts)])


def read_sections(text: str) -> dict[str, str]:
    """The sections of a page by paper."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {part.partition(":")[0]: f"## {part.rstrip()}\n" for part in parts}


def read_verdicts(text: str) -> dict[str, str]:
    """The verdicts of a page by id of the claim, in its order."""
    return dict(re.findall(r"^- `(\S+)`:\s+\*\*(.+?)\*\*", text, flags=re.MULTILINE))


def _wrapped(row: Mapping[str, Any]) -> str:
    words = [
        f"- `{row['id']}`: **{str(row['verdict']).replace(' ', _NO_BREAK)}**, {row['where']}: {row['claim']}"
    ]
    if not pd.isna(row["paper_value"]):
        words.append(f"Paper: {row['paper_value']}.")
    if not pd.isna(row["ours"]):
        quantity = "" if pd.isna(row["quantity"]) else f" ({row['quantity']})"
        words.append(f"Here: {ours(row)}{quantity}.")
    if not pd.isna(row["why"]):
        words.append(f"{_sentence(str(row['why']))}")
    text = " ".join(words).replace("< ", f"<{_NO_BREAK}")
    wrapped = textwrap.fill(
        text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return wrapped.replace(_NO_BREAK, " ")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")
