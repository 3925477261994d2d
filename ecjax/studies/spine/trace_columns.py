"""Columns of ``runs`` with latencies under the arrivals of a log, for the jobs that estimate them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ecjax.predict.trace_estimates import LEVELS, TraceEstimate

_P99 = LEVELS.index(0.99)


def trace_columns(estimate: TraceEstimate, remarks: Sequence[str]) -> dict[str, Any]:
    """Values of ``TRACE_ESTIMATED``.

    Args:
        estimate: of the reads of a plan.
        remarks: sentences, what else to know about it.
    """
    row: dict[str, Any] = {}
    for name, value, place in (
        ("mean", estimate.mean[0], 0),
        ("p99", estimate.quantiles[0, _P99], 1 + _P99),
    ):
        low, high = estimate.interval(place)
        row[f"trace_estimated_{name}_s"] = float(value)
        if np.isfinite(high):
            row |= {f"trace_estimated_{name}_low_s": low, f"trace_estimated_{name}_high_s": high}
    return row | {"trace_branch": estimate.branch} | remark_column(remarks)


def remark_column(remarks: Sequence[str]) -> dict[str, Any]:
    """The column of sentences; nothing where there are none."""
    return {"trace_remarks": " ".join(remarks)} if remarks else {}
