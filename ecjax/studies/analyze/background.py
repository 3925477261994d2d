"""Work of nodes that is no reads of users, as the background load that plans, bounds and replays know."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.background import WRITES
from ecjax.tables.importers import Trace
from ecjax.tables.statistics.delays import SERVICE
from ecjax.tables.statistics.moments import merge_rows, pooled_rows, raw_moments
from ecjax.tables.statistics.scan import TraceStatistics

_COLUMNS = ("background_load", "background_second", "background_third")
_SLOWER = 1.1  # mean service of writes to that of reads, or the other way round, from which on it is said
_LEAST = 100  # services behind a mean that is compared
_CLASSES_SHOWN = 5


def check_background(classes: frozenset[str], trace: Trace) -> None:
    """Refuse classes of background work of a log that has none.

    Raises:
        UserError: it lacks a column.
    """
    missing = [name for name in ("node_id", "service_class") if name not in trace.schema.names]
    if classes and missing:
        raise UserError(
            f"background={','.join(sorted(classes))}: {trace.name} has no {' and no '.join(missing)}; allowed: "
            f"{WRITES}, or classes of a log with node_id and service_class"
        )


def check_found(classes: frozenset[str], statistics: TraceStatistics, trace: Trace) -> None:
    """Refuse classes of background work that a log has nothing of, or nothing but.

    Raises:
        UserError: none of them occurs, or there is no access that is of none of them.
    """
    if not classes:
        return
    given = f"background={','.join(sorted(classes))}"
    if not statistics.background_classes:
        names = [str(name) for name in statistics.times.classes]
        listed = (
            f" ({', '.join(names[:_CLASSES_SHOWN])}{', ...' * (len(names) > _CLASSES_SHOWN)})"
            if names
            else ""
        )
        raise UserError(
            f"{given}: found no such access in {trace.name}; allowed: {WRITES}, or classes of its "
            f"service_class{listed}"
        )
    if not statistics.requests:
        raise UserError(
            f"{given}: found no other access among the {statistics.rows:,} of {trace.name}; allowed: classes that "
            "leave requests of users"
        )


def say_missing(classes: frozenset[str], statistics: TraceStatistics, notices: list[str]) -> None:
    """Say which classes of background work a log has no access of."""
    missing = sorted(classes - statistics.background_classes)
    if missing:
        notices.append(f"The log has no access of background class {', '.join(missing)}.")


def with_background(nodes: pa.Table, statistics: TraceStatistics, writes: bool) -> pa.Table:
    """The ``nodes`` table with sum S^p / span, p = 1..3, over the services S of background work at each node.

    A log without a span tells no loads: the table is as it was.

    Args:
        nodes: of these statistics.
        statistics: of the log.
        writes: whether all writes are such work, too.
    """
    span = statistics.arrivals.span_s
    if not span > 0:
        return nodes
    rows = statistics.background.copy()
    if writes:
        cells = statistics.cells.choose((statistics.cells.quantity == SERVICE) & statistics.cells.write)
        merge_rows(rows, pooled_rows(cells.moments, cells.node, len(rows)), np.arange(len(rows)))
    moments, _ = raw_moments(rows)
    load = np.nan_to_num(moments) * rows[:, :1] / span
    assert statistics.node_ids is not None
    place = {name: number for number, name in enumerate(statistics.node_ids.to_pylist())}
    order = [place[name] for name in nodes["node_id"].to_pylist()]
    for power, name in enumerate(_COLUMNS):
        nodes = nodes.append_column(name, pa.array(load[order, power]))
    share = pc.fill_null(nodes["channels"], 1) if "channels" in nodes.column_names else 1
    others = statistics.background[order]
    busy = pa.array(others[:, 0] * others[:, 1] / span)
    total = pc.add(nodes["load"], pc.divide(busy, pc.cast(share, pa.float64())))
    return nodes.set_column(nodes.column_names.index("load"), "load", total)


def without_writes(files: pa.Table) -> pa.Table:
    """The ``files`` table without rates of writes, which are work of the nodes."""
    name = "write_rate_per_s"
    return files.set_column(files.column_names.index(name), name, pa.nulls(len(files), pa.float64()))


def warn_of_writes(statistics: TraceStatistics, counted: bool, notices: list[str]) -> None:
    """Say where the law of reads, by which plans serve writes of files, is not that of writes."""
    cells = statistics.cells.choose(statistics.cells.quantity == SERVICE)
    means, mean_bytes = [], []
    for write in (False, True):
        rows = cells.write == write
        count = cells.moments[rows, 0].sum()
        if count < _LEAST:
            return
        means.append(cells.moments[rows, 0] @ cells.moments[rows, 1] / count)
        mean_bytes.append(cells.moments[rows, 0] @ cells.bytes[rows] / count)
    ratio = means[1] / means[0] if means[0] > 0 else 1.0
    alike = abs(mean_bytes[1] - mean_bytes[0]) <= 0.01 * mean_bytes[0]
    if not counted and alike and not 1 / _SLOWER < ratio < _SLOWER:
        notices.append(
            f"Writes of chunks take {ratio:.3g} times as long as reads of the same size. Plans serve writes by the law "
            "of reads; background=writes takes their measured services as load that stays at its nodes."
        )
