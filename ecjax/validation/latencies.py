"""Latencies of reads by group (all, class, file, node), as rows of the ``latencies`` dataset."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import stats

from ecjax.replay import summary
from ecjax.replay.summary import LEVELS
from ecjax.replay.tally import BATCHES, bin_edges
from ecjax.tables.nulls import empty_to_null
from ecjax.validation.replay import Counted

_NAMED = 5
_QUANTILES = ("p50_s", "p90_s", "p99_s", "p999_s")


@dataclass(frozen=True)
class Groups:
    """What latencies are reported of, G groups: all reads, C classes, F files, m nodes, in this order.

    Attributes:
        classes: (C,) names.
        files: (F,) ids.
        nodes: (m,) ids.
    """

    classes: list[str]
    files: pa.Array
    nodes: pa.Array

    @property
    def first(self) -> tuple[int, int, int, int]:
        """First class, file and node, and the number of groups."""
        file = 1 + len(self.classes)
        node = file + len(self.files)
        return 1, file, node, node + len(self.nodes)


@dataclass(frozen=True)
class Statistics:
    """Of every group, NaN where something is not known."""

    requests: np.ndarray  # (G,) reads, or chunks read from a node
    mean: np.ndarray  # (G,) s
    half_width: np.ndarray  # (G,) s, of the 95 % interval of the mean
    deviation: np.ndarray  # (G,) s
    quantiles: np.ndarray  # (G, 4) s, p50, p90, p99, p99.9


def unknown(groups: int) -> Statistics:
    """Nothing known of any group."""
    requests, mean, half_width, deviation = np.full((4, groups), np.nan)
    return Statistics(requests, mean, half_width, deviation, np.full((groups, len(LEVELS)), np.nan))


def observed(
    values: list[np.ndarray], group: list[np.ndarray], groups: int, batched: np.ndarray
) -> Statistics:
    """Statistics of what was seen, once.

    Args:
        values: s, in order of time; one array per way of grouping.
        group: group of each value, -1: none.
        groups: number of groups G.
        batched: (G,) bool, groups whose interval comes from batch means; that of the others takes their values for
            independent.
    """
    found = unknown(groups)
    for x, own in zip(values, group, strict=True):
        x, own, batch = x[own >= 0], own[own >= 0], (np.arange(len(x)) * BATCHES // len(x))[own >= 0]
        order = np.lexsort((x, own))
        counts = np.bincount(own, minlength=groups)
        for number, sorted_values in enumerate(np.split(x[order], np.cumsum(counts)[:-1])):
            if not sorted_values.size:
                continue
            found.requests[number] = len(sorted_values)
            found.mean[number] = sorted_values.mean()
            found.deviation[number] = sorted_values.std()
            found.quantiles[number] = np.quantile(sorted_values, LEVELS)
            found.half_width[number] = _independent(sorted_values)
        place = own * BATCHES + batch
        cells = [np.bincount(place, w, groups * BATCHES).reshape(groups, BATCHES) for w in (None, x)]
        for number in np.flatnonzero(batched & (counts > 0)).tolist():
            found.half_width[number] = summary.interval([np.stack([c[number] for c in cells], axis=1)])
    return found


def _independent(values: np.ndarray) -> float:
    if len(values) < 2:
        return math.nan
    return float(stats.norm.ppf(0.975) * values.std(ddof=1) / math.sqrt(len(values)))


def replayed(counted: Counted) -> Statistics:
    """Statistics over replications with the same arrivals; intervals are those of the mean over service times."""
    count, total, square = counted.sums.sum(axis=0).T
    replications = len(counted.sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        means = counted.sums[..., 1] / counted.sums[..., 0]
        deviation = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    half_width = np.full(len(mean), np.nan)
    if replications > 1:
        factor = stats.t.ppf(0.975, replications - 1) / math.sqrt(replications)
        half_width = factor * means.std(axis=0, ddof=1)
    return Statistics(
        np.where(count > 0, count / replications, np.nan),
        mean,
        half_width,
        deviation,
        summary.quantiles(counted.bins),
    )


def table(groups: Groups, found: dict[str, Statistics]) -> pa.Table:
    """Rows of every source, of the groups whose mean is known.

    Columns: ``group`` (all, class, file, node), ``class``, ``file_id`` and ``node_id`` (the one that the group has),
    ``source``, ``requests``, ``mean_s``, ``ci_s``, ``std_s``, ``p50_s``, ``p90_s``, ``p99_s``, ``p999_s``.
    """
    first_class, first_file, first_node, count = groups.first
    kinds = np.repeat(
        ["all", "class", "file", "node"], np.diff([0, first_class, first_file, first_node, count])
    )
    ids = {
        "class": _placed(pa.array(groups.classes, pa.string()), first_class, count),
        "file_id": _placed(groups.files, first_file, count),
        "node_id": _placed(groups.nodes, first_node, count),
    }
    means = np.concatenate([own.mean for own in found.values()] or [np.zeros(0)])
    rows = np.flatnonzero(~np.isnan(means))
    source, group = np.divmod(rows, count)

    def column(name: str) -> np.ndarray:
        values = [getattr(own, name) for own in (*found.values(), unknown(count))]
        return np.concatenate(values)[rows]

    requests = column("requests")
    quantiles = column("quantiles")
    return pa.table(
        {
            "group": pa.array(kinds[group].tolist(), pa.string()),
            **{name: values.take(pa.array(group)) for name, values in ids.items()},
            "source": pa.array(list(found), pa.string()).take(pa.array(source)),
            "requests": pa.array(np.nan_to_num(requests).astype(np.int64), mask=np.isnan(requests)),
            "mean_s": empty_to_null(means[rows]),
            "ci_s": empty_to_null(column("half_width")),
            "std_s": empty_to_null(column("deviation")),
            **{name: empty_to_null(quantiles[:, place]) for place, name in enumerate(_QUANTILES)},
        }
    )


def histograms(groups: Groups, found: dict[str, np.ndarray]) -> pa.Table:
    """Rows of the ``latency_bins`` dataset without run_id: reads by latency, all together and by class.

    Args:
        groups: what latencies are reported of.
        found: (G, BINS) counts by source.
    """
    edges = bin_edges()
    first_class, first_file, _, _ = groups.first
    names = pa.array([None, *groups.classes], pa.string())
    counts = np.concatenate([bins[:first_file] for bins in found.values()] or [np.zeros((0, 1), np.int64)])
    row, place = np.nonzero(counts)
    source, group = np.divmod(row, first_file)
    return pa.table(
        {
            "group": pa.array(np.where(group < first_class, "all", "class").tolist(), pa.string()),
            "class": names.take(pa.array(group)),
            "source": pa.array(list(found), pa.string()).take(pa.array(source)),
            "lower_s": edges[place],
            "upper_s": edges[place + 1],
            "count": counts[row, place],
        }
    )


def _placed(ids: pa.Array, first: int, count: int) -> pa.Array:
    """The ids at their groups, null elsewhere."""
    return pa.concat_arrays([pa.nulls(first, ids.type), ids, pa.nulls(count - first - len(ids), ids.type)])


def seconds(value: float) -> str:
    """A time in words."""
    return f"{value:#.3g} s".replace(". s", " s") if 1e-3 <= value < 1000 else f"{value:,.4g} s"


def listed(names: list, chosen: np.ndarray) -> str:
    """The first few of the chosen names."""
    listed = ", ".join(str(names[int(i)]) for i in chosen[:_NAMED])
    return listed + (", ..." if len(chosen) > _NAMED else "")
