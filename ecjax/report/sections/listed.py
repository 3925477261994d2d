"""Datasets that a table shows best: commands of Ceph, thresholds of adaptive codes."""

from ecjax.report.parts import Listing, Section
from ecjax.report.results import Results, pick

_TITLES = {
    "commands": "Commands",
    "thresholds": "Thresholds",
}


def section(results: Results) -> Section | None:
    """Those of the datasets that the study has."""
    listings = []
    for name, title in _TITLES.items():
        table = results.table(name)
        if table is not None:
            listings.append(Listing(title, pick(table, table.column_names)))
    return Section("Tables", listings=listings) if listings else None
