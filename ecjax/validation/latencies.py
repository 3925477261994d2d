"""Latencies of reads by group: all, class, file, node."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import special

from ecjax.predict.latencies import Latencies, histogram_rows, latency_rows
from ecjax.simulation import summary
from ecjax.simulation.summary import LEVELS
from ecjax.simulation.tally import BATCHES
from ecjax.validation.replay import Counted

_NAMED = 5


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

    @property
    def kinds(self) -> list[tuple[str, pa.Array | list[str] | None, slice]]:
        """Kinds of groups, their ids and their places."""
        of_class, file, node, count = self.first
        return [
            ("all", None, slice(0, 1)),
            ("class", self.classes, slice(of_class, file)),
            ("file", self.files, slice(file, node)),
            ("node", self.nodes, slice(node, count)),
        ]


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
    times: list[np.ndarray], group: list[np.ndarray], groups: int, batched: np.ndarray
) -> Statistics:
    """Statistics of what was seen, once.

    Args:
        times: s, in order of arrival; one array per way of grouping.
        group: group of each time, -1: none.
        groups: number of groups G.
        batched: (G,) bool, groups whose interval comes from batch means; that of the others takes their times for
            independent.
    """
    statistics = unknown(groups)
    for all_times, all_places in zip(times, group, strict=True):
        grouped = all_places >= 0
        batch = (np.arange(len(all_times)) * BATCHES // len(all_times))[grouped]
        x, place = all_times[grouped], all_places[grouped]
        order = np.lexsort((x, place))
        counts = np.bincount(place, minlength=groups)
        for number, ordered in enumerate(np.split(x[order], np.cumsum(counts)[:-1])):
            if not ordered.size:
                continue
            statistics.requests[number] = len(ordered)
            statistics.mean[number] = ordered.mean()
            statistics.deviation[number] = ordered.std()
            statistics.quantiles[number] = np.quantile(ordered, LEVELS)
            statistics.half_width[number] = _independent(ordered)
        cell = place * BATCHES + batch
        sums = [np.bincount(cell, w, groups * BATCHES).reshape(groups, BATCHES) for w in (None, x)]
        for number in np.flatnonzero(batched & (counts > 0)).tolist():
            batches = np.stack([values[number] for values in sums], axis=1)
            statistics.half_width[number] = summary.interval([batches])
    return statistics


def _independent(values: np.ndarray) -> float:
    if len(values) < 2:
        return math.nan
    return float(special.ndtri(0.975) * values.std(ddof=1) / math.sqrt(len(values)))


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
        factor = special.stdtrit(replications - 1, 0.975) / math.sqrt(replications)
        half_width = factor * means.std(axis=0, ddof=1)
    return Statistics(
        np.where(count > 0, count / replications, np.nan),
        mean,
        half_width,
        deviation,
        summary.quantiles(counted.bins),
    )


def table(groups: Groups, sources: dict[str, Statistics]) -> pa.Table:
    """Rows of ``latencies`` without ``run_id``, of every source, of the groups whose mean is known and finite."""
    parts = []
    for source, statistics in sources.items():
        for kind, ids, place in groups.kinds:
            latencies = Latencies(
                source,
                statistics.mean[place],
                statistics.quantiles[place],
                statistics.deviation[place],
                statistics.half_width[place],
                statistics.requests[place],
            )
            parts.append(latency_rows(kind, ids, latencies))
    return pa.concat_tables(parts, promote_options="default")


def histograms(groups: Groups, sources: dict[str, np.ndarray]) -> pa.Table:
    """Rows of ``latency_bins`` without ``run_id``: reads by latency, all together and by class.

    Args:
        groups: what latencies are reported of.
        sources: (G, bins) counts by source.
    """
    files = groups.first[1]
    parts = [histogram_rows(source, groups.classes, counts[:files]) for source, counts in sources.items()]
    return pa.concat_tables(parts)


def seconds(value: float) -> str:
    """A time in words."""
    return f"{value:#.3g} s".replace(". s", " s") if 1e-3 <= value < 1000 else f"{value:,.4g} s"


def listed(names: list, places: np.ndarray) -> str:
    """The first few of the chosen names."""
    first = ", ".join(str(names[int(i)]) for i in places[:_NAMED])
    return first + (", ..." if len(places) > _NAMED else "")
