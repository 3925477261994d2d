"""What the plan delivers while a node or a site is down."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.report.drawing import bars
from ecjax.report.parts import Section
from ecjax.report.results import Results, labelled

_SERVED = ("ok", "not_converged")


def section(results: Results) -> Section | None:
    """Bars of the plan's scenarios."""
    table = results.of_run("scenarios") if results.job == "optimize" else None
    run = results.run
    if table is None or run is None:
        return None
    bad = table.filter(pc.invert(pc.is_in(table.column("status"), value_set=pa.array(_SERVED))))
    warnings = [
        f"{row['kind']} {row['scenario']} down: {row['status']}." for row in bad.slice(0, 20).to_pylist()
    ]
    if len(bad) > 20:
        warnings.append(f"{len(bad) - 20} more scenarios are not served.")
    named = labelled(table, ("kind", "scenario"), "down")
    charts = [
        bars(
            "Mean latency with something down",
            named,
            "down",
            [("latency_s", "bound")],
            ("down", "mean latency, bound (s)"),
        ),
        bars(
            "Largest load with something down", named, "down", [("max_load", "load")], ("down", "load (of 1)")
        ),
        bars(
            "Reads that cannot be served",
            named,
            "down",
            [("unavailable_share", "share")],
            ("down", "share of reads (of 1)"),
        ),
    ]
    usual = run.get("latency_s")
    sentences = [] if usual is None else [f"With all nodes up the bound on the mean is {usual:.4g} s."]
    if pc.max(table.column("unavailable_share")).as_py() == 0:
        sentences.append("Every file keeps the chunks that rebuild it in all of them.")
        charts.pop()
    return Section("Failures", sentences, [chart for chart in charts if chart is not None], (), warnings)
