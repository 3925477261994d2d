"""Rows of the ``latencies`` and ``latency_bins`` datasets of a replay."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.predict.latencies import Latencies
from ecjax.problem.classes import Classes
from ecjax.replay import tally
from ecjax.replay.summary import Summary
from ecjax.studies.replay.plans import PlanCase

QUANTILES = ("p50_s", "p90_s", "p99_s", "p999_s")


def replayed(found: Summary, group: str, names: Classes, nodes: int) -> Latencies:
    """Latencies of a replay for one kind of group: all, class, node or file."""
    classes = len(names.names)
    if group == "all":
        own, cut = found.all, slice(None)
    else:
        places = {"class": (0, classes), "node": (classes, classes + nodes), "file": (classes + nodes, None)}
        own, cut = found, slice(*places[group])
    assert own is not None
    return Latencies(
        "replayed",
        own.count[cut],
        own.mean[cut],
        own.half_width[cut],
        own.deviation[cut],
        own.quantiles[cut],
        found.utilisation if group == "node" else None,
    )


def rows(run_id: str, group: str, found: Latencies, case: PlanCase, names: Classes) -> pa.Table:
    """Rows of ``latencies`` for one source and kind of group; groups without a mean are left out."""
    number = len(found.mean)
    columns: dict[str, Any] = {
        "run_id": pa.repeat(pa.scalar(run_id), number),
        "group": pa.repeat(pa.scalar(group), number),
        "source": pa.repeat(pa.scalar(found.source), number),
        "mean_s": _floats(found.mean),
    }
    if group == "class":
        columns["class"] = pa.array(names.names)
    if group == "file":
        columns["file_id"] = case.names.files
    if group == "node":
        columns["node_id"] = case.names.nodes
    if found.requests is not None:
        columns["requests"] = pa.array(np.rint(found.requests).astype(np.int64))
    for name, values in (
        ("ci_s", found.half_width),
        ("std_s", found.deviation),
        ("utilisation", found.utilisation),
    ):
        if values is not None:
            columns[name] = _floats(values)
    if found.quantiles is not None:
        columns |= {name: _floats(found.quantiles[:, i]) for i, name in enumerate(QUANTILES)}
    table = pa.table(columns)
    return table.filter(pa.array(~np.isnan(found.mean)))


def _floats(values: np.ndarray) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)


def histograms(run_id: str, found: Summary, names: Classes) -> Iterator[pa.Table]:
    """Rows of ``latency_bins``: reads by latency, all together and by class."""
    edges = tally.bin_edges()
    for name, counts in (None, found.bins.sum(axis=0)), *zip(names.names, found.bins, strict=True):
        held = np.flatnonzero(counts)
        yield pa.table(
            {
                "run_id": pa.repeat(pa.scalar(run_id), len(held)),
                "group": pa.repeat(pa.scalar("all" if name is None else "class"), len(held)),
                "class": pa.repeat(pa.scalar(name, pa.string()), len(held)),
                "source": pa.repeat(pa.scalar("replayed"), len(held)),
                "lower_s": edges[held],
                "upper_s": edges[held + 1],
                "count": counts[held].astype(np.int64),
            }
        )
