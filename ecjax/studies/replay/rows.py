"""Rows of the datasets of ``ecjax replay`` besides ``runs``."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ecjax.predict import node_loads as predict
from ecjax.predict.latencies import Latencies, histogram_rows, latency_rows
from ecjax.simulation.summary import Summary
from ecjax.studies.replay.operating_point import OperatingPoint


def with_run_id(run_id: str, table: pa.Table) -> pa.Table:
    """The table with the column ``run_id``."""
    return table.append_column("run_id", pa.repeat(pa.scalar(run_id), len(table)))


def latencies(
    run_id: str, at: OperatingPoint, summary: Summary, predicted: dict[str, list[Latencies]]
) -> Iterator[pa.Table]:
    """Rows of ``latencies``: as replayed, then as predicted, of all reads, classes, nodes and files.

    Args:
        run_id: of the run.
        at: what was replayed.
        summary: of the replay.
        predicted: by kind of group.
    """
    names = at.plan.names
    ids = {"all": None, "class": at.class_names, "node": names.nodes, "file": names.files}
    for kind, each in ids.items():
        for source in (_replayed(summary, kind, at), *predicted.get(kind, [])):
            yield with_run_id(run_id, latency_rows(kind, each, source))


def _replayed(summary: Summary, kind: str, at: OperatingPoint) -> Latencies:
    """Latencies of a replay for one kind of group; a summary has classes, then nodes, then files, then small reads."""
    classes, nodes, files = len(at.class_names), len(at.plan.nodes), len(at.plan.files)
    first = classes + nodes
    places = {"class": (0, classes), "node": (classes, first), "file": (first, first + files)}
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


def latency_bins(run_id: str, at: OperatingPoint, summary: Summary) -> pa.Table:
    """Rows of ``latency_bins``."""
    counts = np.concatenate([summary.bins.sum(axis=0, keepdims=True), summary.bins])
    return with_run_id(run_id, histogram_rows("replayed", at.class_names, counts))


def node_loads(run_id: str, at: OperatingPoint, summary: Summary, known: bool) -> pa.Table:
    """Rows of ``node_loads``.

    Args:
        run_id: of the run.
        at: what was replayed.
        summary: of its replay, which tells loads and reads where the policy decides by the state of the queues.
        known: whether loads are known beforehand: no policy looks at the queues and no node fails.
    """
    plan = at.plan
    table = predict.node_loads(run_id, at.loaded, at.probabilities, plan.stored, plan.names)
    if known and at.kinds is None:
        return table
    first = len(at.class_names)
    reads = summary.count[first : first + len(plan.nodes)]
    measured = {"read_share": reads / reads.sum()} | ({} if known else {"load": summary.utilisation})
    for name, values in measured.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table
