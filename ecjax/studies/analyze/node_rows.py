"""Result tables of the delays in a trace: nodes as ``ecjax optimize`` takes them, delays by size, histograms."""

import numpy as np
import pyarrow as pa

from ecjax.studies.analyze.node_laws import affine_laws, warn_of_misfit, warn_of_proportion
from ecjax.tables.nulls import empty_to_null
from ecjax.tables.rules import AFFINE_COLUMNS
from ecjax.tables.schemas import MOST_NUMBER
from ecjax.tables.statistics.affine import LEAST_SAMPLES
from ecjax.tables.statistics.bins import DELAY_BINS_PER_OCTAVE, bin_edges
from ecjax.tables.statistics.delays import QUANTITIES, SERVICE, SOJOURN, Cells
from ecjax.tables.statistics.laws import Fits, exponential_distance, fit_cells, group_numbers, pooled_bins
from ecjax.tables.statistics.moments import pooled_rows, raw_moments, scaled_rows, weighted_rows
from ecjax.tables.statistics.scan import TraceStatistics
from ecjax.units import count_text

_OPERATIONS = np.array(["read", "write"])
_LEAST_WEIGHT = 1e-9  # of a chunk of no bytes, beside one of the mean size


def node_table(
    statistics: TraceStatistics,
    reference_bytes: float | None,
    notices: list[str],
    channels_given: bool = False,
) -> pa.Table | None:
    """The ``nodes`` table, or None where the trace has no nodes or no service times (a notice says why).

    The service law is that of the chunks read. Where all of them have one size, or ``reference_bytes`` is given, it is
    the empirical moments at that size (each service time scaled by reference size / own size); where sizes vary, the
    affine law, if every node shows two sizes or more; else the moments at the mean size.

    Args:
        statistics: of the log.
        reference_bytes: chunk size of the moments; None: as above.
        notices: what is doubtful is added.
        channels_given: whether those of another table will count instead.
    """
    if statistics.node_ids is None:
        notices.append(
            "The trace names no nodes: there are no service times by node; plan with a nodes table of your own."
        )
        return None
    if statistics.service_reason is not None:
        notices.append(
            f"Service moments are unavailable: {statistics.service_reason}; plan with a nodes table of your own."
        )
        return None
    count = len(statistics.node_ids)
    service = statistics.cells.choose(statistics.cells.quantity == SERVICE)
    cells = service.choose(_planned(service, count, statistics.node_ids, notices))
    observed = pooled_rows(cells.moments, cells.node, count)
    law = _law(cells, count, reference_bytes, statistics.node_ids, notices)
    moments, errors = raw_moments(observed)
    span = statistics.arrivals.span_s
    busy, sojourn = (_totals(statistics.cells, quantity, count) for quantity in (SERVICE, SOJOURN))
    channels = _channels(statistics, channels_given, notices)
    bytes_total = np.bincount(cells.node, cells.moments[:, 0] * cells.bytes, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        load = np.where(span > 0, busy[0] / span / np.maximum(channels, 1), np.nan)
        columns = {
            "mean_chunk_bytes": bytes_total / observed[:, 0],
            "load": load,
            "concurrency": np.where(span > 0, sojourn[0] / span, np.nan),
            "mean_sojourn_s": sojourn[0] / sojourn[1],
            "exponential_distance": _distances(cells, observed),
        }
    for place, name in enumerate(("mean", "second", "third")):
        unit = ("s", "s2", "s3")[place]
        columns[f"observed_{name}_{unit}"] = moments[:, place]
        columns[f"observed_{name}_error_{unit}"] = errors[:, place]
    table = pa.table(
        {
            "node_id": statistics.node_ids,
            **{name: empty_to_null(values) for name, values in {**law, **columns}.items()},
            **({"channels": pa.array(channels, mask=channels == 0)} if np.any(channels > 1) else {}),
            "service_source": ["inferred" if statistics.service_inferred else "logged"] * count,
            "service_samples": observed[:, 0].astype(np.int64),
            "chunk_reads": statistics.node_accesses[:, 0].copy(),
            "chunk_writes": statistics.node_accesses[:, 1].copy(),
        }
    )
    served = _without_unserved(table, observed[:, 0] > 0, notices)
    return None if served is None else served.sort_by("node_id")


def _channels(statistics: TraceStatistics, given: bool, notices: list[str]) -> np.ndarray:
    """Accesses that each node serves at once, (nodes,) int64; 0 where the log does not tell, which counts as 1."""
    servers, at_once, inferred, doubtful = statistics.channels
    names = statistics.node_ids
    assert names is not None

    def listed(nodes: np.ndarray) -> str:
        shown = [str(names[int(i)].as_py()) for i in nodes[:3]] + ["..."] * (nodes.size > 3)
        return f"{count_text(nodes.size, 'node')} ({', '.join(shown)})"

    several = np.flatnonzero(servers > 1)
    if several.size:
        least, most = servers[several].min(), servers[several].max()
        how = (
            "accesses that waited took as long as those to an idle node with so many channels only, first-come "
            "first-served"
            if inferred
            else "so many were in service whenever one that had waited began"
        )
        notices.append(
            f"{listed(several)} serve {least if least == most else f'{least} to {most}'} accesses at once (channels): "
            f"{how}."
        )
    hidden = np.flatnonzero((servers == 0) & (at_once > 1))
    if hidden.size:
        notices.append(
            f"Channels of {listed(hidden)} cannot be told: up to {at_once[hidden].max()} accesses were in service at "
            "once, but hardly any access that waited began with all of them busy. "
            + (
                "Those of nodes= count."
                if given
                else "They serve as single servers; give channels in nodes=TABLE, and see that start_s is where "
                "service begins."
            )
        )
    lost = np.flatnonzero((servers == 0) & inferred) if np.any(servers > 0) else np.zeros(0, np.int64)
    if lost.size:
        notices.append(
            f"No number of channels explains the finish times of {listed(lost)}: they have no service times."
        )
    unsure = np.flatnonzero(doubtful)
    if unsure.size:
        notices.append(
            f"{listed(unsure)} finish in order of arrival, as single servers do, but accesses that waited would have "
            "taken another time than those to an idle node: nodes with several channels and services that hardly "
            "vary, or faster while they are busy, look like that. How many channels cannot be told; "
            + (
                "services are those of single servers, channels those of nodes=."
                if given
                else "they serve as single servers."
            )
        )
    return servers


def _planned(service: Cells, count: int, names: pa.Array, notices: list[str]) -> np.ndarray:
    """Which cells the service law is taken from: reads, or writes on nodes that were only written to."""
    reads = np.bincount(service.node[~service.write], minlength=count) > 0
    only = np.flatnonzero(~reads & (np.bincount(service.node[service.write], minlength=count) > 0))
    if only.size:
        listed = ", ".join(str(names[int(i)].as_py()) for i in only[:5])
        notices.append(
            f"{count_text(only.size, 'node was', 'nodes were')} only written to ({listed}): the service law is that "
            "of writes there."
        )
    return ~service.write | ~reads[service.node]


def _law(
    cells: Cells, count: int, reference_bytes: float | None, names: pa.Array, notices: list[str]
) -> dict[str, np.ndarray]:
    """Columns of the service law, (nodes,) each."""
    sizes, counts = cells.bytes, cells.moments[:, 0]
    if not sizes.size:
        return {}
    one_size = sizes.min() == sizes.max()
    if reference_bytes is None and not one_size:
        said: list[str] = []
        laws, fitted = affine_laws(cells, count, names, said)
        present = np.bincount(cells.node, counts, count) > 0
        if not any(np.isnan(values[present]).any() for values in laws.values()):
            notices += said
            warn_of_misfit(cells, fitted, names, notices)
            return laws | {"law_mean_s": fitted[0], "law_second_s2": fitted[1]}
        notices.append(
            "Chunk sizes vary, but not on every node in two sizes of 20 reads or more: service moments are given at "
            "the mean size and taken to be proportional to it."
        )
    mean = float(sizes[0]) if one_size else float(counts @ sizes / counts.sum())
    reference = mean if reference_bytes is None else float(reference_bytes)
    # less than the least size that other tables allow is as good as nothing, and its cube must be a number
    sized = sizes >= 1 / MOST_NUMBER
    factors = np.where(sized, reference / np.where(sized, sizes, 1.0), 1.0)
    # by bytes, so that the log's chunks are as much work as they were, whatever the services of small ones are
    weights = np.maximum(sizes / mean, _LEAST_WEIGHT) if mean > 0 and not one_size else np.ones_like(sizes)
    scaled = pooled_rows(weighted_rows(scaled_rows(cells.moments, factors), weights), cells.node, count)
    moments, _ = raw_moments(scaled)
    names_of = ("service_mean_s", "service_second_s2", "service_third_s3")
    columns = dict(zip(names_of, moments.T, strict=True))
    warn_of_proportion(cells, moments[:, 1], reference, names, notices)
    return {**columns, "reference_bytes": np.where(scaled[:, 0] > 0, reference, np.nan)}


def _totals(cells: Cells, quantity: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum (s) and number of the delays of reads and writes at each node."""
    delays = cells.choose(cells.quantity == quantity)
    number = delays.moments[:, 0]
    return np.bincount(delays.node, number * delays.moments[:, 1], count), np.bincount(
        delays.node, number, count
    )


def _distances(cells: Cells, observed: np.ndarray) -> np.ndarray:
    distances = np.full(len(observed), np.nan)
    node, bins, counts = pooled_bins(cells, cells.node)
    for number in np.unique(node):
        at_node = node == number
        distances[number] = exponential_distance(bins[at_node], counts[at_node], float(observed[number, 1]))
    return distances


def warn_of_overload(nodes: pa.Table, notices: list[str]) -> None:
    """Say which nodes have a load of 1 or more, with their channels and all work that they bear."""
    load, names = nodes["load"].to_numpy(), nodes["node_id"]
    over = np.flatnonzero(load >= 1)
    if over.size:
        worst = int(over[np.argmax(load[over])])
        notices.append(
            f"{count_text(over.size, 'node has', 'nodes have')} a load of 1 or more (node {names[worst].as_py()}: rho "
            f"= {load[worst]:.3g}): "
            "start_s must be the start of service after queueing, not the arrival, and nodes that serve several "
            "accesses at once need their channels; no plan is stable with these rates on such nodes."
        )


def _without_unserved(table: pa.Table, served: np.ndarray, notices: list[str]) -> pa.Table | None:
    if served.all():
        return table
    notices.append(
        count_text(
            np.count_nonzero(~served), "node without service times is", "nodes without service times are"
        )
        + " left out of the nodes table."
    )
    return table.filter(pa.array(served)) if served.any() else None


def delay_tables(statistics: TraceStatistics) -> tuple[pa.Table, pa.Table]:
    """The ``delays`` table (by node, operation and chunk size) and ``delay_bins`` (histograms, all sizes together)."""
    cells = statistics.cells
    fits = fit_cells(cells)
    groups = group_numbers(cells)
    nodes = statistics.node_ids if statistics.node_ids is not None else pa.nulls(1, pa.string())
    moments = cells.moments
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt(np.where(moments[:, 0] > 1, moments[:, 2] / (moments[:, 0] - 1), np.nan))
    delays = pa.table(
        {
            **_names(cells.quantity, cells.node, cells.write, nodes),
            "chunk_bytes": pa.array(cells.bytes),
            "count": pa.array(moments[:, 0].astype(np.int64)),
            "mean_s": pa.array(moments[:, 1].copy()),
            "std_s": empty_to_null(deviation),
            "kept_mean_s": empty_to_null(fits.kept_mean),
            "kept_std_s": empty_to_null(fits.kept_std),
            **_law_columns(cells, fits),
        }
    )
    _, firsts = np.unique(groups, return_index=True)
    group, bins, counts = pooled_bins(cells, groups)
    first = firsts[group]
    lower, upper = bin_edges(bins, DELAY_BINS_PER_OCTAVE)
    histograms = pa.table(
        {
            **_names(cells.quantity[first], cells.node[first], cells.write[first], nodes),
            "lower_s": pa.array(lower),
            "upper_s": pa.array(upper),
            "count": pa.array(counts.astype(np.int64)),
        }
    )
    return delays, histograms


def _names(quantity: np.ndarray, node: np.ndarray, write: np.ndarray, nodes: pa.Array) -> dict[str, pa.Array]:
    return {
        "quantity": pa.array(np.array(QUANTITIES)[quantity].tolist(), pa.string()),
        "node_id": nodes.take(pa.array(node)),
        "op": pa.array(_OPERATIONS[write.astype(np.int64)].tolist(), pa.string()),
    }


def _law_columns(cells: Cells, fits: Fits) -> dict[str, pa.Array]:
    laws = np.array([*fits.laws, *np.empty((0, 4))]).reshape(-1, 4)[fits.group]
    # Where the slopes are not known, the law holds at the one size that it was fitted to.
    holds = ~np.isnan(laws[:, 1]) | (cells.moments[:, 0] >= LEAST_SAMPLES)
    delta = np.where(holds, laws[:, 0] + np.nan_to_num(laws[:, 1]) * cells.bytes, np.nan)
    psi = np.where(holds, laws[:, 2] + np.nan_to_num(laws[:, 3]) * cells.bytes, np.nan)
    columns = dict(zip(AFFINE_COLUMNS, laws.T, strict=True))
    return {
        name: empty_to_null(v) for name, v in {**columns, "fit_mean_s": delta + psi, "fit_std_s": psi}.items()
    }
