"""Where chunks lie: nodes by groups, or by parts of the files in their order, as a heat map."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.parts import Chart, Json, Section
from ecjax.report.results import Results, words

_MOST_COLUMNS = 60


def section(results: Results) -> Section | None:
    """A heat map of chunks; of many files a column stands for many."""
    table = results.of_run("placements", ("file_id", "group", "node_id", "chunks"))
    if table is None:
        return None
    name = "group" if table.column("group").null_count < len(table) else "file_id"
    codes = table.column(name).combine_chunks().dictionary_encode()
    found = len(codes.dictionary)
    width = -(-found // _MOST_COLUMNS)
    bins = pc.divide(codes.indices.cast(pa.int64()), width)
    sums = (
        pa.table({"column": bins, "node_id": table.column("node_id"), "chunks": table.column("chunks")})
        .group_by(["column", "node_id"])
        .aggregate([("chunks", "sum")])
        .sort_by([("column", "ascending"), ("node_id", "ascending")])
    )
    what = "group" if name == "group" else "file"
    labels = [str(value) for value in codes.dictionary.take(pa.array(range(0, found, width))).to_pylist()]
    columns = [f"{label} ..." if width > 1 else label for label in labels]
    nodes = [str(node) for node in pc.unique(sums.column("node_id")).to_pylist()]
    rows = {node: place for place, node in enumerate(nodes)}
    cells: list[list[int | None]] = [[None] * len(columns) for _ in nodes]
    for column, node, chunks in zip(
        sums.column("column").to_pylist(),
        words(sums, "node_id"),
        sums.column("chunks_sum").to_pylist(),
        strict=True,
    ):
        cells[rows[node]][column] = chunks
    behind = pa.table(
        {
            what: pa.array([columns[column] for column in sums.column("column").to_pylist()]),
            "node_id": sums.column("node_id"),
            "chunks": sums.column("chunks_sum"),
        }
    )
    trace: dict[str, Json] = {
        "type": "heatmap",
        "x": columns,
        "y": nodes,
        "z": cells,
        "colorscale": "Cividis",
        "zmin": 0,
        "zmax": max(sums.column("chunks_sum").to_pylist()),
        "colorbar": {"title": {"text": "chunks"}, "thickness": 12},
        "hovertemplate": f"{what} %{{x}}, node %{{y}}: %{{z}} chunks<extra></extra>",
    }
    each = f"; a column stands for {width} {what}s" if width > 1 else ""
    layout: dict[str, Json] = {"xaxis": {"type": "category"}, "yaxis": {"type": "category"}}
    chart = Chart(f"Chunks by node and {what}{each}", [trace], what, "node", behind, layout)
    return Section("Placement", charts=[chart])
