"""What it takes to keep files so that a strategy can read them with all of its codes (TOFEC, Section II)."""

import math
from typing import Any

import numpy as np

from ecjax.adaptation.proxy import RequestClass, Strategy

_MOST_STRIPS = 2**63 - 1  # of a column of whole numbers; dimensions from 1 to 43 need more


def storage(classes: list[RequestClass], strategy: Strategy, dollars_per_byte: float) -> dict[str, Any]:
    """Bytes kept per byte of file, and what that costs, in two layouts.

    Shared Key keeps one coded file, cut into strips that every chunk size is a multiple of: as many as the most
    redundant code needs. Unique Key keeps a coded copy for every chunk size, with the most redundant code of that size.
    Classes count by the bytes that are requested of them. Strips that are more than 2^63 - 1 are None.

    Args:
        classes: C of them.
        strategy: its codes.
        dollars_per_byte: for a period.
    """
    weight = np.array([request_class.share * request_class.bytes for request_class in classes])
    shared, unique, strips = [], [], 1
    for lengths, dimensions in zip(strategy.n.tolist(), strategy.k.tolist(), strict=True):
        most: dict[int, float] = {}
        for n, k in zip(lengths, dimensions, strict=True):
            most[k] = max(most.get(k, 0.0), n / k)
        shared.append(max(most.values()))
        unique.append(sum(most.values()))
        strips = max(strips, math.lcm(*most))
    row: dict[str, Any] = {"strips": strips if strips <= _MOST_STRIPS else None}
    for name, ratios in (("storage_shared", shared), ("storage_unique", unique)):
        bytes_stored = float(weight @ np.array(ratios))  # bytes per mean file
        row |= {name: bytes_stored / float(weight.sum()), f"{name}_dollars": bytes_stored * dollars_per_byte}
    return row


def chunks_stored(classes: list[RequestClass], codes: list[dict[str, Any]]) -> float | None:
    """Chunks that a write stores per chunk needed: 1 where its other tasks are cancelled; None without writes.

    Args:
        classes: of requests.
        codes: rows of ``codes``.
    """
    background = {
        request_class.name: request_class.background
        for request_class in classes
        if request_class.op == "write"
    }
    written = [row for row in codes if row["class"] in background]
    if not written:
        return None
    ratios = [row["n"] / row["k"] if background[row["class"]] else 1.0 for row in written]
    return float(np.average(ratios, weights=[row["requests"] for row in written]))
