"""Where chunks lie: nodes by groups, or by parts of the files in their order, as a heat map."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.natural_order import natural_key
from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import Results, distinct, words

_MOST_COLUMNS = 60


def section(results: Results) -> Section | None:
    """Heat maps of chunks by group, and by file where files stand alone; of many files a column stands for many."""
    table = results.of_run("placements", ("file_id", "group", "node_id", "chunks"))
    if table is None:
        return None
    charts = [chart for name in ("group", "file_id") if (chart := _heat_map(table, name)) is not None]
    return Section("Placement", charts=charts) if charts else None


def _heat_map(table: pa.Table, name: str) -> Chart | None:
    """Chunks by node and by the values of one column; None where it has none."""
    table = table.filter(pc.and_(pc.is_valid(table.column(name)), pc.is_valid(table.column("node_id"))))
    if not len(table):
        return None
    files, nodes = (table.column(each).combine_chunks().dictionary_encode() for each in (name, "node_id"))
    count = len(files.dictionary)
    width = -(-count // _MOST_COLUMNS)
    sums = (
        pa.table(
            {
                "column": pc.divide(files.indices.cast(pa.int64()), width),
                "row": nodes.indices,
                "chunks": table.column("chunks"),
            }
        )
        .group_by(["column", "row"])
        .aggregate([("chunks", "sum")])
        .sort_by([("column", "ascending"), ("row", "ascending")])
    )
    what = "group" if name == "group" else "file"
    firsts = pa.table({name: files.dictionary.take(pa.array(range(0, count, width)))})
    columns = distinct([f"{label} ..." if width > 1 else label for label in words(firsts, name)])
    labels = distinct(words(pa.table({"node_id": nodes.dictionary}), "node_id"))
    ids = nodes.dictionary.to_pylist()
    order = sorted(range(len(ids)), key=lambda place: natural_key(ids[place]))
    cells: list[list[int | None]] = [[None] * len(columns) for _ in labels]
    column_of, row_of, chunks_of = (sums.column(each).to_pylist() for each in ("column", "row", "chunks_sum"))
    for column, row, chunks in zip(column_of, row_of, chunks_of, strict=True):
        cells[row][column] = chunks
    behind = pa.table(
        {
            what: pa.array([columns[column] for column in column_of]),
            "node_id": pa.array([labels[row] for row in row_of]),
            "chunks": sums.column("chunks_sum"),
        }
    )
    trace: dict[str, Json] = {
        "type": "heatmap",
        "x": columns,
        "y": [labels[row] for row in order],
        "z": [cells[row] for row in order],
        "colorscale": "Cividis",
        "zmin": 0,
        "zmax": max((chunks for chunks in chunks_of if chunks is not None), default=0),
        "colorbar": {"title": {"text": "chunks"}, "thickness": 12},
        "hovertemplate": f"{what} %{{x}}, node %{{y}}: %{{z}} chunks<extra></extra>",
    }
    each = f"; a column stands for {width} {what}s" if width > 1 else ""
    layout: dict[str, Json] = {"xaxis": {"type": "category"}, "yaxis": {"type": "category"}}
    return Chart(f"Chunks by node and {what}{each}", [trace], what, "node", behind, layout)
