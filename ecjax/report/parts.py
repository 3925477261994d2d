"""What a page is made of: sections of sentences, charts and tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

Json = None | bool | int | float | str | Sequence["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Chart:
    """A chart and the table behind it.

    Attributes:
        title: of the chart.
        traces: series as Plotly names their properties; texts in them are data, not markup.
        x: title of the horizontal axis, with its unit.
        y: title of the vertical axis, with its unit.
        table: the values that are drawn.
        layout: further properties of Plotly's layout.
    """

    title: str
    traces: Sequence[dict[str, Json]]
    x: str
    y: str
    table: pa.Table
    layout: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """A table that stands for itself."""

    title: str
    table: pa.Table


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading.

    Attributes:
        title: the heading.
        sentences: what it says first, a paragraph each.
        charts: with the tables behind them.
        listings: further tables.
        warnings: paragraphs that stand out.
    """

    title: str
    sentences: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    listings: Sequence[Listing] = ()
    warnings: Sequence[str] = ()
