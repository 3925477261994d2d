"""Loads of the nodes under the plan."""

from ecjax.report.drawing import bars
from ecjax.report.parts import Section
from ecjax.report.results import Results


def section(results: Results) -> Section | None:
    """Bars of load and read share by node."""
    if results.job == "analyze":
        table = results.of_run("nodes")
    else:
        table = results.of_run("node_loads")
    if table is None:
        return None
    charts = [
        bars(
            "Load of nodes",
            table,
            "node_id",
            [("load", "load"), ("read_share", "share of reads")],
            ("node", "load (of 1)"),
        ),
        bars(
            "Bytes stored by node",
            table,
            "node_id",
            [("bytes_stored", "bytes stored")],
            ("node", "stored (B)"),
        ),
    ]
    drawn = [chart for chart in charts if chart is not None]
    return Section("Nodes", charts=drawn) if drawn else None
