"""Nodes without a log: a nodes table from a few numbers of the hardware, or from what fio measured of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.console import log, say_once
from ecjax.errors import UserError
from ecjax.problem.node_options import (
    CHANNELS,
    CHUNK,
    COUNT,
    FIO,
    HISTOGRAM,
    METRIC,
    MOMENTS,
    PER_RACK,
    PRICE,
    RATE,
    SEEK,
    Description,
)
from ecjax.tables.fio import fio_nodes, is_fio
from ecjax.tables.folder import location
from ecjax.tables.histograms import HIGH, histogram_nodes
from ecjax.tables.read import read_input

_BYTES_PER_TB, _BYTES_PER_MB = 1e12, 1e6
_WHOLE_READS = "op_"  # of Ceph's OSDs


def read_nodes(source: str | Description) -> pa.Table:
    """The checked nodes table that the option ``nodes`` names or describes.

    Raises:
        UserError: a file is missing or damaged, or the numbers of a description do not go together.
    """
    if isinstance(source, dict):
        return read_input(described_nodes(source), "nodes", name="nodes")
    if is_fio(location(source)):
        return read_input(_measured(source), "nodes", name=source)
    return read_input(source, "nodes")


def described_nodes(description: Description) -> pa.Table:
    """The nodes table of a description; what it assumes is said in a log line.

    The service time of a chunk of B bytes is positioning, exponential of mean ``seek_ms``, then transfer, which always
    takes B / ``MBps``: the affine law (delta 0, delta per byte 1 / MBps, psi seek_ms, psi per byte 0) with mean
    s + t, variance s^2 and third central moment 2 s^3, s for the positioning and t for the transfer. A disk's own
    seek and rotation vary less (standard deviation about s / 2), but retries, caches and other work on the
    node vary more; the waiting time grows with the second moment, so that the exponential errs towards longer waits.
    A log, or fio, tells the moments of the hardware itself.

    Args:
        description: as ``node_options.nodes`` checks it: ``count`` nodes in racks of ``per_rack`` (which are sites),
            ``channels`` requests served at once, prices of ``dollars_per_TB`` per 30 days; or ``fio``, or
            ``histogram``, ``metric`` and ``chunk_bytes``, instead of ``count``, ``seek_ms`` and ``MBps``; beside
            ``fio`` of one job, ``count`` nodes are like it.

    Raises:
        UserError: racks do not add up to the nodes, a list has a number neither per node nor per rack, or ``count`` is
            beside several jobs of fio.
    """
    measured = FIO in description or HISTOGRAM in description
    columns: dict[str, Any] = {}
    if measured:
        table = _measured(description[FIO]) if FIO in description else _counted(description)
        if COUNT in description:
            table = _alike(table, description)
        columns |= {name: table[name] for name in table.column_names}
    if COUNT in description:
        columns["node_id"] = [f"node{number + 1}" for number in range(description[COUNT])]
    count = len(columns["node_id"])
    rack = _racks(description.get(PER_RACK), count)
    if rack is not None:
        columns["site"] = [f"rack{number + 1}" for number in rack]
        if COUNT in description:
            within = np.arange(count) - np.searchsorted(rack, rack)
            columns["node_id"] = [
                f"rack{number + 1}-{place + 1}" for number, place in zip(rack, within, strict=True)
            ]
    if PRICE in description:
        columns["cost_per_byte_dollars"] = _each(description, PRICE, count, rack) / _BYTES_PER_TB
    at_once = "one at a time"
    if CHANNELS in description:
        columns["channels"] = _each(description, CHANNELS, count, rack).astype(np.int64)
        at_once = "channels of them at a time"
    if not measured:
        columns["delta_s"] = np.zeros(count)
        columns["delta_s_per_byte"] = 1 / (_each(description, RATE, count, rack) * _BYTES_PER_MB)
        columns["psi_s"] = _each(description, SEEK, count, rack) / 1000
        columns["psi_s_per_byte"] = np.zeros(count)
        say_once(
            f"nodes: {count} described{'' if rack is None else f' in {rack[-1] + 1} racks, which are sites'}; assumed: "
            f"a chunk takes positioning (exponential, mean seek_ms) and transfer (bytes / MBps), {at_once}, "
            "no network delay; dollars_per_TB per 30 days"
        )
    return pa.table(columns)


def _alike(table: pa.Table, description: Description) -> pa.Table:
    """As many nodes as are described, all like the only one that was measured.

    Raises:
        UserError: several were measured.
    """
    if len(table) > 1:
        raise UserError(
            f"nodes: found {COUNT}={description[COUNT]} beside fio of {len(table)} jobs; allowed: beside that of one, "
            "which so many nodes are like"
        )
    return table.take([0] * description[COUNT])


def _racks(per_rack: int | list[int] | None, count: int) -> np.ndarray | None:
    """Rack of every node, (count,) int; None without racks."""
    if per_rack is None:
        return None
    sizes = per_rack if isinstance(per_rack, list) else [per_rack] * -(-count // per_rack)
    if sum(sizes) != count:
        what = f"{count} nodes" if isinstance(per_rack, list) else f"{count} nodes, or a list"
        raise UserError(f"nodes: found per_rack={per_rack}; allowed: racks that add up to {what}")
    return np.repeat(np.arange(len(sizes)), sizes)


def _each(description: Description, key: str, count: int, rack: np.ndarray | None) -> np.ndarray:
    """A number of every node, (count,).

    Raises:
        UserError: a list has another length than there are nodes or racks.
    """
    values = np.atleast_1d(np.asarray(description[key], float))
    if not isinstance(description[key], list):
        return np.repeat(values, count)
    if len(values) == count:
        return values
    racks = 0 if rack is None else int(rack[-1]) + 1
    if rack is None or len(values) != racks:
        per_rack = f", or {racks}, one per rack" if racks else ""
        raise UserError(
            f"nodes: {key}: found {len(values)} numbers; allowed: {count}, one per node{per_rack}"
        )
    return values[rack]


def _measured(path: str) -> pa.Table:
    """What fio measured, and a log line of what it does not tell."""
    table = fio_nodes(location(path))
    sizes = sorted(set(table["reference_bytes"].to_pylist()))
    say_once(
        f"nodes={path}: {len(table)} measured by fio with reads of {', '.join(f'{size:.0f}' for size in sizes)} bytes; "
        "assumed: moments of other sizes as size_scaling says, no network delay"
    )
    return table


def _counted(description: Description) -> pa.Table:
    """What histograms tell, and a log line of what they do not."""
    path, metric, size = description[HISTOGRAM], description[METRIC], description[CHUNK]
    end = description.get(MOMENTS, HIGH)
    table = histogram_nodes(location(path), metric, size, end)
    apart = pc.max(pc.divide(table["service_second_high_s2"], table["service_second_low_s2"])).as_py()
    mean = pc.min_max(table["service_mean_s"]).as_py()
    say_once(
        f"nodes={path}: {len(table)} with means of {mean['min']:.3g} to {mean['max']:.3g} s, and the "
        f"{'largest' if end == HIGH else 'least'} moments of service that the "
        f"buckets of {metric} allow; second moments of the largest and the least are up to {apart:.3g} times apart "
        "(moments: high, low). Assumed: it counts the service of one chunk of chunk_bytes, without time in a queue"
    )
    if metric.partition(".")[2].startswith(_WHOLE_READS):
        log.warning(
            "nodes=%s: %s counts whole reads with their time in the queue, of an idle cluster only about the service "
            "of a chunk; otherwise loads and latencies come out too high",
            path,
            metric,
        )
    return table
