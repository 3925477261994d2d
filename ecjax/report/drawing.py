"""Traces of charts from Arrow tables: colours and signs that do not rest on colour alone."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.display import displayed
from ecjax.report.parts import Chart, Json
from ecjax.report.results import NAME, WHOLE, distinct, pick, words

# Okabe and Ito's colours, which colour-blind people tell apart, those that show on white and on black
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
OUTLINE = "#767676"  # of marks: the lighter colours have too little contrast with white, this has with both
MOST_BARS = 60
MOST_SERIES = 12
_LONG = 14  # characters of a name that stands below its bar; longer ones are beside bars that lie
_BAR, _THIN, _AROUND = 18, 9, 150  # pixels: of a lying bar, of one of many, of axis and legend
_MANY = 12


def look(number: int) -> dict[str, Json]:
    """Colour, dash and symbol of the series with a number."""
    place = number % len(COLOURS)
    turn = (number + number // len(COLOURS)) % len(SYMBOLS)
    return {
        "line": {"color": COLOURS[place], "dash": DASHES[turn], "width": 2},
        "marker": {
            "color": COLOURS[place],
            "symbol": SYMBOLS[turn],
            "size": 9,
            "line": {"width": 1, "color": OUTLINE},
        },
    }


def numbers(table: pa.Table, name: str) -> list[float | None]:
    """A column of numbers; None where there is no value or it is not finite."""
    column = table.column(name).cast(pa.float64())
    return pc.if_else(pc.is_finite(column), column, None).to_pylist()


def series(
    table: pa.Table, x: str, y: str, label: str, number: int, mode: str = "lines+markers"
) -> dict[str, Json]:
    """A line of two columns of numbers."""
    return {
        "type": "scatter",
        "mode": mode,
        "name": label,
        "x": numbers(table, x),
        "y": numbers(table, y),
        "hovertemplate": "%{x:.5g}, %{y:.5g}",
        **look(number),
    }


def bars(
    title: str,
    table: pa.Table,
    labels: str,
    values: Sequence[tuple[str, str]],
    axes: tuple[str, str],
    log: bool = False,
) -> Chart | None:
    """Bars of some columns side by side; of many rows those with the largest first value.

    Args:
        title: of the chart.
        table: a row per bar.
        labels: column with what a bar is called.
        values: columns and what they are called.
        axes: titles of names and of values, with units.
        log: whether values go by powers of ten.
    """
    present = _present(table, values)
    if not present or not len(table):
        return None
    if len(table) > MOST_BARS:
        table = table.sort_by([(present[0][0], "descending")]).slice(0, MOST_BARS)
        present = _present(table, values)  # the largest may all lack another value
        title = f"{title}: the {MOST_BARS} largest"
    elif pa.types.is_integer(table.column(labels).type):
        table = table.sort_by(labels)
    table = pick(table, [labels, *(name for name, _ in present)])
    names = distinct(words(table, labels) if labels in table.column_names else [""] * len(table))
    lying = max(map(len, names)) > _LONG
    traces: list[dict[str, Json]] = [
        {
            "type": "bar",
            "name": label,
            "orientation": "h" if lying else "v",
            "x": numbers(table, name) if lying else names,
            "y": names if lying else numbers(table, name),
            "hovertemplate": "%{y}: %{x:.5g}" if lying else "%{x}: %{y:.5g}",
            "marker": {
                "color": COLOURS[place % len(COLOURS)],
                "line": {"width": 1, "color": OUTLINE},
                "pattern": {"shape": ("", "/", "x", ".")[place % 4]},
            },
        }
        for place, (name, label) in enumerate(present)
    ]
    ordinal: dict[str, Json] = {"type": "category"}
    measure: dict[str, Json] = {"type": "log"} if log else {}
    if lying:
        thickness = _BAR if len(table) <= _MANY else _THIN
        height = _AROUND + thickness * (len(present) + 1) * len(table)
        layout: dict[str, Json] = {
            "xaxis": measure,
            "yaxis": {**ordinal, "autorange": "reversed"},
            "height": height,
        }
        return Chart(title, traces, axes[1], axes[0], table, {**layout, "barmode": "group"})
    return Chart(title, traces, *axes, table, {"xaxis": ordinal, "yaxis": measure, "barmode": "group"})


def _present(table: pa.Table, values: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the columns, and what they are called, that have a value in any row."""
    return [(name, label) for name, label in values if name in pick(table, [name]).column_names]


def lines(
    title: str, table: pa.Table, x: str, y: str, by: Sequence[str], axes: tuple[str, str], log: bool = False
) -> Chart | None:
    """Lines of one column over another, a line for each combination of the columns ``by``, the first dozen.

    ``log``: whether the horizontal axis goes by powers of ten.
    """
    table = pick(table, [*by, x, y]) if len(table) else table
    if x not in table.column_names or y not in table.column_names:
        return None
    by = [name for name in by if name in table.column_names]
    groups: dict[tuple[str, ...], list[int]] = {}
    keys = [words(table, name, WHOLE) for name in by]
    for row in range(len(table)):
        groups.setdefault(tuple(column[row] for column in keys), []).append(row)
    traces = []
    labels = distinct([", ".join(displayed(text, NAME) for text in key if text) or y for key in groups])
    if len(groups) > MOST_SERIES:
        title = f"{title}: {MOST_SERIES} of {len(groups)} lines, all in the table"
    for number, rows in enumerate(list(groups.values())[:MOST_SERIES]):
        part = table.take(rows).sort_by(x)
        mode = "lines" if len(part) > MOST_BARS else "lines+markers"
        traces.append(series(part, x, y, labels[number], number, mode))
    axis: dict[str, Json] = {"type": "log"} if log else {}
    return Chart(title, traces, *axes, table, {"xaxis": axis})
