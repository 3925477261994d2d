"""Kinds of sections, in the order of a page. A new kind is a module here with a function ``section`` and a line."""

from collections.abc import Callable

from ecjax.errors import UserError
from ecjax.report.parts import Section
from ecjax.report.results import Results
from ecjax.report.sections import (
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
    "Replays": replay.section,
    "The log": trace.section,
    "Results": jobs.section,
    "Nodes": loads.section,
    "Placement": placement.section,
    "Latency by class and file": latency.section,
    "Tables": listed.section,
    "What was asked": inputs.section,
}


def sections_of(results: Results) -> list[Section]:
    """The sections of a study; of one that cannot be read, what is wrong."""
    sections = []
    for title, kind in KINDS.items():
        try:
            section = kind(results)
        except UserError as error:
            section = Section(title, warnings=[f"This part cannot be shown: {error}"])
        if section is not None:
            sections.append(section)
    return sections
