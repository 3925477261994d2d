"""The fabric of ``ecjax schedule``: capacities of the ports that send and receive."""

from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.coflow.workload import Fabric
from ecjax.console import log
from ecjax.problem.arrays import column, index_in
from ecjax.studies.schedule.options import TRANSFERS, ScheduleOptions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.place import Place
from ecjax.tables.read import read_input

READS = "reads"
# of every port unless options say otherwise: 8 ms per MB; Table I of the D-Target paper
PORT_BYTES_PER_S = {TRANSFERS: 125e6, READS: 1e9}


def fabric_of(
    options: ScheduleOptions, kind: str, ports: tuple[pa.Array, pa.Array]
) -> tuple[Fabric, dict[str, Any]]:
    """The fabric between ports, and what names its capacities.

    Args:
        options: capacities, of all ports and of those in a table.
        kind: TRANSFERS or READS, which differ in the usual capacity.
        ports: ids of the sending and of the receiving ports.

    Raises:
        UserError: the table of ports is malformed, or names no port that is there.
    """
    usual = float(options.port_bytes_per_s or PORT_BYTES_PER_S[kind])
    capacity = [np.full(len(ids), usual) for ids in ports]
    names: dict[str, Any] = {"port_bytes_per_s": usual}
    if options.ports is not None:
        table = read_input(options.ports, "ports")
        names["ports"] = fingerprint(table, "ports")
        _set_capacities(table, Place(table, "ports", options.ports), ports, capacity)
    return Fabric(*capacity), names


def _set_capacities(
    table: pa.Table, place: Place, ports: tuple[pa.Array, pa.Array], capacity: list[np.ndarray]
) -> None:
    """Change the capacities of the ports that a ports table names.

    Raises:
        UserError: it has no capacities, or names no port that is there.
    """
    columns = ("send_bytes_per_s", "receive_bytes_per_s")
    if not set(columns) & set(table.column_names):
        raise place.error(f"found no capacities; allowed: {' or '.join(columns)}")
    named = np.zeros(len(table), bool)
    for name, ids, values in zip(columns, ports, capacity, strict=True):
        port = index_in(table["port_id"], ids)
        named |= port >= 0
        if name in table.column_names:
            bytes_per_s = column(table, name, np.nan)
            is_set = (port >= 0) & np.isfinite(bytes_per_s)
            values[port[is_set]] = bytes_per_s[is_set]
    if not named.any():
        first, examples = table["port_id"][0].as_py(), [ids[0].as_py() for ids in ports]
        raise place.error(
            f"found {first!r} and no other port that sends or receives here; allowed: ports such as "
            f"{examples[0]!r} (sends) and {examples[1]!r} (receives)",
            column="port_id",
        )
    if not named.all():
        log.info("ports: %d ports that neither send nor receive here are left aside", np.sum(~named))
