"""Rows of the result tables of ``ecjax cache``, from what became of the reads."""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.caching.system import Outcome, Reads
from ecjax.intervals import LEVELS, NAMES, half_width_of, statistics

Rows = list[dict[str, Any]]
_LEVELS = LEVELS | {"p999_s": 0.999}
_COLUMNS = (*NAMES, "p999_s", *(half_width_of(name) for name in ("mean_s", *_LEVELS)))


def served(latency: np.ndarray) -> dict[str, Any]:
    """Statistics of the reads that did not fail, with half widths; nothing where all did.

    Args:
        latency: (Q,) s, inf where the read failed.
    """
    finite = latency[np.isfinite(latency)]
    if not finite.size:
        return {}
    return statistics(finite, _LEVELS)


def run_values(outcome: Outcome, k: int, first: int, seconds: float) -> dict[str, Any]:
    """What a replay adds to its row of ``runs``.

    Args:
        outcome: of Q reads.
        k: data chunks of an item.
        first: reads before this one are not counted.
        seconds: that the replay took.
    """
    latency, hits = outcome.latency_s[first:], outcome.hit_chunks[first:]
    decision = outcome.decision_s[first:]
    slow, slowest = np.quantile(decision, [0.99, 0.9999])
    return served(latency) | {
        "requests": len(latency),
        "failed_reads": int(np.sum(~np.isfinite(latency))),
        "warm_up_share": first / len(outcome.latency_s),
        "chunk_hit_ratio": float(hits.sum(dtype=np.int64)) / (k * len(hits)),
        "full_hit_ratio": float(np.mean(hits == k)),
        "filled_chunks": int(outcome.filled),
        "decision_mean_s": float(decision.mean()),
        "decision_p99_s": float(slow),
        "decision_p9999_s": float(slowest),
        "requests_per_s": len(outcome.latency_s) / seconds,
        "solve_s": seconds,
    }


def latencies(name: str, outcome: Outcome, reads: Reads, edge_ids: list[str], first: int) -> Rows:
    """Statistics of all reads and, where there are several edges, of each.

    Args:
        name: run id.
        outcome: of Q reads.
        reads: Q.
        edge_ids: (E,).
        first: reads before this one are not counted.
    """
    latency, edge = outcome.latency_s[first:], reads.edge[first:]
    parts: list[tuple[str, str | None, np.ndarray]] = [("all", None, latency)]
    if len(edge_ids) > 1:
        parts += [("edge", each, latency[edge == number]) for number, each in enumerate(edge_ids)]
    rows = []
    for group, each, part in parts:
        values = served(part)
        if values:
            row = {"run_id": name, "group": group, "edge": each, "requests": len(part), "source": "replayed"}
            rows.append(row | {column: values[column] for column in _COLUMNS})
    return rows


def cached(name: str, outcome: Outcome, edge_ids: list[str], item_ids: pa.Array) -> pa.Table:
    """What edges keep at the end: a row per edge and item with chunks there.

    Args:
        name: run id.
        outcome: of a replay.
        edge_ids: (E,).
        item_ids: (M,).
    """
    edge, item = np.nonzero(outcome.contents)
    return pa.table(
        {
            "run_id": pa.repeat(pa.scalar(name), len(edge)),
            "edge": pa.array(edge_ids).take(pa.array(edge)),
            "file_id": item_ids.take(pa.array(item)),
            "chunks": np.bitwise_count(outcome.contents[edge, item]).astype(np.int64),
        }
    )
