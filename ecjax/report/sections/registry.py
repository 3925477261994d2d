"""Kinds of sections, in the order of a page. A new kind is a module here with a function ``section`` and a line."""

from collections.abc import Callable

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.report.parts import Section
from ecjax.report.results import Results
from ecjax.report.sections import (
    claims,
    durability,
    failures,
    inputs,
    jobs,
    latency,
    listed,
    loads,
    placement,
    recommendation,
    replay,
    trace,
    tradeoff,
)

Kind = Callable[[Results], Section | None]
KINDS: dict[str, Kind] = {
    "Recommendation": recommendation.section,
    "Latency against cost": tradeoff.section,
    "Codes and durability": durability.section,
    "Claims of the papers": claims.section,
    "Replays": replay.section,
    "The log": trace.section,
    "Results": jobs.section,
    "Nodes": loads.section,
    "Failures": failures.section,
    "Placement": placement.section,
    "Latency by class and file": latency.section,
    "Tables": listed.section,
    "What was asked": inputs.section,
}


def kinds_of(results: Results) -> dict[str, Section]:
    """The sections of a study by kind; of one that cannot be read, what is wrong."""
    sections = {}
    for title, kind in KINDS.items():
        try:
            section = kind(results)
        except UserError as error:
            section = Section(title, warnings=[f"This part cannot be shown: {error}"])
        except (KeyError, pa.ArrowException) as error:
            # tables of a version that had other columns, or other types in them
            section = Section(
                title, warnings=[f"This part cannot be shown, its tables are of another version: {error}"]
            )
        if section is not None:
            sections[title] = section
    return sections
