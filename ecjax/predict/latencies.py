"""Latencies of groups of reads, from whichever source, and their rows of ``latencies`` and ``latency_bins``."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ecjax.simulation.tally import bin_edges

QUANTILES = ("p50_s", "p90_s", "p99_s", "p999_s")
HALF_WIDTHS = ("p50_ci_s", "p90_ci_s", "p99_ci_s", "p999_ci_s")
_ID_COLUMNS = {"class": "class", "file": "file_id", "node": "node_id"}  # by kind of group


class Latencies(NamedTuple):
    """Latencies from one source: one value per group, G of them.

    It is nan where it is not known, and infinite where a bound or an estimate promises nothing.
    """

    source: str
    mean: np.ndarray  # (G,) s
    quantiles: np.ndarray | None = None  # (G, 4) s, of QUANTILES
    deviation: np.ndarray | None = None  # (G,) s
    half_width: np.ndarray | None = None  # (G,) s, of the 95 % interval of the mean
    requests: np.ndarray | None = None  # (G,) reads; of a node, chunks read
    utilisation: np.ndarray | None = None  # (G,) of nodes
    quantile_half_width: np.ndarray | None = None  # (G, 4) s, of the 95 % intervals of the quantiles


def latency_rows(kind: str, ids: pa.Array | list[str] | None, latencies: Latencies) -> pa.Table:
    """Rows of ``latencies`` without ``run_id``, of groups with a finite mean; what else is not finite is null.

    Args:
        kind: of the groups: all, class, file or node.
        ids: (G,) of the classes, files or nodes; None: all reads.
        latencies: of the groups.
    """
    count = len(latencies.mean)
    quantiles = (
        np.full((count, len(QUANTILES)), np.nan) if latencies.quantiles is None else latencies.quantiles
    )
    sure = latencies.quantile_half_width
    requests = np.full(count, np.nan) if latencies.requests is None else latencies.requests.astype(float)
    columns = {
        "group": pa.repeat(pa.scalar(kind), count),
        **{name: pa.nulls(count) for name in _ID_COLUMNS.values()},
        "source": pa.repeat(pa.scalar(latencies.source), count),
        "requests": pa.array(np.rint(np.nan_to_num(requests)).astype(np.int64), mask=np.isnan(requests)),
        "mean_s": _floats(latencies.mean, count),
        "ci_s": _floats(latencies.half_width, count),
        "std_s": _floats(latencies.deviation, count),
        **{name: _floats(quantiles[:, place], count) for place, name in enumerate(QUANTILES)},
        **{
            name: _floats(None if sure is None else sure[:, place], count)
            for place, name in enumerate(HALF_WIDTHS)
        },
        "utilisation": _floats(latencies.utilisation, count),
    }
    if ids is not None:
        columns[_ID_COLUMNS[kind]] = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())
    return pa.table(columns).filter(pa.array(np.isfinite(latencies.mean)))


def histogram_rows(source: str, classes: list[str], counts: np.ndarray) -> pa.Table:
    """Rows of ``latency_bins`` without ``run_id``: reads by latency, all together and by class.

    Args:
        source: observed or replayed.
        classes: (K,) names.
        counts: (1 + K, bins) of all reads, then of each class; bins as in ``replay.tally``.
    """
    group, place = np.nonzero(counts)
    edges = bin_edges()
    return pa.table(
        {
            "group": pa.array(np.where(group == 0, "all", "class").tolist(), pa.string()),
            "class": pa.array([None, *classes], pa.string()).take(pa.array(group)),
            "source": pa.repeat(pa.scalar(source), len(group)),
            "lower_s": edges[place],
            "upper_s": edges[place + 1],
            "count": counts[group, place].astype(np.int64),
        }
    )


def _floats(values: np.ndarray | None, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, pa.float64())
    return pa.array(values, pa.float64(), mask=~np.isfinite(values))
