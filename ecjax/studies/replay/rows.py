"""Rows of the datasets of ``ecjax replay`` besides ``runs``."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ecjax.predict import node_loads as predict
from ecjax.predict.latencies import Latencies, histogram_rows, latency_rows
from ecjax.simulation.summary import Summary
from ecjax.studies.replay.operating_point import OperatingPoint
from ecjax.studies.replay.plans import Plan


def with_run_id(run_id: str, table: pa.Table) -> pa.Table:
    """The table with the column ``run_id``."""
    return table.append_column("run_id", pa.repeat(pa.scalar(run_id), len(table)))


def latencies(
    run_id: str, plan: Plan, summary: Summary, predicted: dict[str, list[Latencies]]
) -> Iterator[pa.Table]:
    """Rows of ``latencies``: as replayed, then as predicted, of all reads, classes, nodes and files.

    Args:
        run_id: of the run.
        plan: that was replayed.
        summary: of the replay.
        predicted: by kind of group.
    """
    ids = {"all": None, "class": plan.classes.names, "node": plan.names.nodes, "file": plan.names.files}
    for kind, each in ids.items():
        for source in (_replayed(summary, kind, plan), *predicted.get(kind, [])):
            yield with_run_id(run_id, latency_rows(kind, each, source))


def _replayed(summary: Summary, kind: str, plan: Plan) -> Latencies:
    """Latencies of a replay for one kind of group; a summary has classes, then nodes, then files."""
    classes, nodes = len(plan.classes.names), len(plan.nodes)
    places = {"class": (0, classes), "node": (classes, classes + nodes), "file": (classes + nodes, None)}
    part, cut = (summary.all, slice(None)) if kind == "all" else (summary, slice(*places[kind]))
    assert part is not None
    return Latencies(
        "replayed",
        part.mean[cut],
        part.quantiles[cut],
        part.deviation[cut],
        part.half_width[cut],
        part.count[cut],
        summary.utilisation if kind == "node" else None,
        part.quantile_half_width[cut],
    )


def latency_bins(run_id: str, plan: Plan, summary: Summary) -> pa.Table:
    """Rows of ``latency_bins``."""
    counts = np.concatenate([summary.bins.sum(axis=0, keepdims=True), summary.bins])
    return with_run_id(run_id, histogram_rows("replayed", plan.classes.names, counts))


def node_loads(run_id: str, at: OperatingPoint, summary: Summary | None = None) -> pa.Table:
    """Rows of ``node_loads``.

    Args:
        run_id: of the run.
        at: what was replayed.
        summary: of its replay, which tells loads and reads where the policy decides by the state of the queues.
    """
    plan = at.plan
    table = predict.node_loads(run_id, at.problem, at.probabilities, plan.stored, plan.names)
    if at.static or summary is None:
        return table
    first = len(plan.classes.names)
    reads = summary.count[first : first + len(plan.nodes)]
    measured = {"load": summary.utilisation, "read_share": reads / reads.sum()}
    for name, values in measured.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table
