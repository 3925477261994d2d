"""Sections as one page of HTML that opens from disk and asks nothing of a network.

Charts are Plotly's (MIT; a wheel in pure Python that carries its script, 4.8 MB, inlined once): hovering, zooming and
pictures come with it. Vega's script is a fourth of that, but to inline it takes a wheel of 30 MB with a
JavaScript engine in it; Bokeh's is as large and its charts need objects of its own for each kind of mark.
"""

import base64
import html
import io
import json
from collections.abc import Sequence
from importlib.resources import files
from itertools import count

import pyarrow as pa
import pyarrow.csv

from ecjax.display import displayed
from ecjax.report.parts import Chart, Json, Listing, Section

_ROWS_SHOWN, _ROWS_IN_CSV = 200, 5000
_CELL, _LINES = 1000, 20  # characters of a line of a cell, and its lines
_WIDE = 50  # characters that take a wide column
_MARKUP = "hovertemplate"  # a template of our own, which Plotly fills in


def document(title: str, rows: Sequence[Sequence[Section]], version: str) -> str:
    """The page.

    Args:
        title: of the page.
        rows: sections in order; those of a row stand beside each other where there is room.
        version: of ecjax.
    """
    charts, places = count(), count()
    contents, bodies = [], []
    for row in rows:
        parts = []
        for section in row:
            place = next(places)
            contents.append(f'<li><a href="#s{place}">{html.escape(section.title)}</a></li>')
            parts.append(_section(section, place, charts))
        bodies.append("".join(parts) if len(parts) == 1 else f'<div class="row">{"".join(parts)}</div>')
    several = any(len(row) > 1 for row in rows)
    return _text("page.html").format(
        title=html.escape(title),
        style=_text("page.css"),
        contents="".join(contents),
        kind=' class="several"' if several else "",
        sections="".join(bodies),
        version=html.escape(version),
        plotly=_plotly() if any(section.charts for row in rows for section in row) else "",
        script=_text("page.js"),
    )


def _text(name: str) -> str:
    return (files("ecjax.report") / name).read_text("utf-8")


def _plotly() -> str:
    return (files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


def _section(section: Section, place: int, numbers: "count[int]") -> str:
    parts = [
        f'<section id="s{place}" aria-labelledby="h{place}"><h2 id="h{place}">{html.escape(section.title)}</h2>'
    ]
    parts += [f'<p class="warning" role="note">{html.escape(text)}</p>' for text in section.warnings]
    parts += [f"<p>{html.escape(text)}</p>" for text in section.sentences]
    parts += [_chart(chart, next(numbers)) for chart in section.charts]
    parts += [_table(listing, False) for listing in section.listings]
    return "".join(parts) + "</section>\n"


def _chart(chart: Chart, number: int) -> str:
    layout = {**chart.layout}
    for axis, title in (("xaxis", chart.x), ("yaxis", chart.y)):
        properties = layout.get(axis)
        layout[axis] = {**(properties if isinstance(properties, dict) else {}), "title": {"text": title}}
    figure = embedded({"data": [plain(trace) for trace in chart.traces], "layout": plain(layout)})
    label = html.escape(f"{chart.title}; arrow keys go through the points, the table is below")
    return (
        f"<figure><figcaption>{html.escape(chart.title)}</figcaption>"
        f'<div class="chart" id="c{number}" tabindex="0" role="group" aria-label="{label}"></div>'
        f'<script type="application/json" id="f{number}">{figure}</script>'
        f"{_table(Listing(f'Table: {chart.title}', chart.table), True)}</figure>"
    )


def embedded(value: Json) -> str:
    """JSON that may stand inside of a script element: no text in it ends the element or a line of it."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Json, key: str = "") -> Json:
    """A trace or layout whose texts Plotly shows as they are: it takes some tags, and entities, for markup."""
    if isinstance(value, str):
        return value if key == _MARKUP else html.escape(value)
    if isinstance(value, dict):
        return {name: plain(each, name) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each, key) for each in value]
    return value


def _table(listing: Listing, folded: bool) -> str:
    table = listing.table
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.column_names)
    rows = "".join(
        f"<tr>{''.join(_cell(value) for value in row.values())}</tr>"
        for row in table.slice(0, _ROWS_SHOWN).to_pylist()
    )
    more = f"<p>{_ROWS_SHOWN} of {len(table)} rows.</p>" if len(table) > _ROWS_SHOWN else ""
    title = html.escape(listing.title)
    return (
        f"<details{'' if folded else ' open'}><summary>{title}</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}{_download(table)}</details>"
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.5g}</td>'
    kind = ' class="number"' if isinstance(value, int) and not isinstance(value, bool) else ""
    if isinstance(value, str) and len(value) > _WIDE:
        kind = ' class="wide"'
    # of its own direction: names may be written from the right
    return f"<td{kind}>{'' if value is None else f'<bdi>{html.escape(_shown(str(value)))}</bdi>'}</td>"


def _shown(text: str) -> str:
    """A text as a cell has it: on its lines, none of them endless; the CSV has it whole."""
    return "\n".join(displayed(line, _CELL) for line in text.split("\n")[:_LINES])


def _download(table: pa.Table) -> str:
    """A link that holds the table as CSV."""
    part = table.slice(0, _ROWS_IN_CSV)
    columns = [
        pa.array(
            [None if each is None else json.dumps(each, default=str) for each in column.to_pylist()],
            pa.string(),
        )
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type)
        else column
        for column in part.columns
    ]
    sink = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(columns, names=part.column_names), sink)
    data = base64.b64encode(sink.getvalue()).decode()
    first = f", the first {_ROWS_IN_CSV} rows" if len(table) > _ROWS_IN_CSV else ""
    return f'<p><a download="table.csv" href="data:text/csv;base64,{data}">CSV{first}</a></p>'
