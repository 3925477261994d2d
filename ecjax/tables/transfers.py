"""Transfers over a network: tables of flows, put in order coflow by coflow."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.tables.formats import CSV
from ecjax.tables.place import Place
from ecjax.tables.read import read_input
from ecjax.tables.schemas import TRANSFERS

COLUMNS = [column.name for column in TRANSFERS]


class Transfers(NamedTuple):
    """Flows grouped by coflow, coflows in order of arrival; those that arrive together as they came."""

    table: pa.Table  # (F,) rows, the columns of the transfers table
    first_flow: (
        np.ndarray
    )  # (C + 1,) int64, the flows of coflow c are rows first_flow[c] to first_flow[c + 1] - 1
    ports: pa.Array  # ids of the ports, all different

    @property
    def coflow_ids(self) -> pa.Array:
        """Ids of the coflows, (C,)."""
        return self.table["coflow_id"].take(pa.array(self.first_flow[:-1])).combine_chunks()

    @property
    def arrival_s(self) -> np.ndarray:
        """Arrivals of the coflows, (C,) s."""
        return self.table["arrival_s"].to_numpy()[self.first_flow[:-1]]


def read_transfers(source: Any, sort: bool = False) -> Transfers:
    """Read a ``transfers`` table.

    The rows of a coflow need not follow each other. Ports are in ascending order of their ids.

    Args:
        source: as for ``read.read_input``.
        sort: sort coflows by arrival instead of refusing unsorted ones.

    Raises:
        UserError: the table is malformed, a coflow has two arrivals, src and dst differ in type, or, without ``sort``,
            a coflow whose first row comes after that of another arrives before it.
    """
    table = read_input(source, "transfers").select(COLUMNS)
    path = str(source) if isinstance(source, str | Path) else None
    place = Place(table, "transfers", path)
    src, dst = table.schema.field("src").type, table.schema.field("dst").type
    if src != dst:
        if path is None or not path.lower().endswith(CSV):
            raise place.error(f"found {src} in src and {dst} in dst; allowed: one type, as both name ports")
        # a CSV file has no types: integers were told from what one of the columns happens to hold
        for name in ("src", "dst"):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return grouped(table, place, sort, ascending_ids(table["src"], table["dst"]))


def grouped(table: pa.Table, place: Place, sort: bool, ports: pa.Array) -> Transfers:
    """Flows grouped by coflow, in the order of their rows.

    Args:
        table: checked, the columns of the transfers table.
        place: of the table, for messages.
        sort: as for ``read_transfers``.
        ports: ids of all ports.

    Raises:
        UserError: as ``read_transfers``.
    """
    coflow = table["coflow_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    arrivals = table["arrival_s"].to_numpy()
    # numbered in order of appearance: the first row of each is where a new number turns up
    first_row = np.flatnonzero(np.diff(np.maximum.accumulate(coflow), prepend=-1))
    arrival = arrivals[first_row]
    wrong = arrivals != arrival[coflow]
    if wrong.any():
        row = int(np.argmax(wrong))
        first = int(first_row[coflow[row]])
        message = f"found {arrivals[row].item()!r}; allowed: {arrivals[first].item()!r} as in row {first}"
        raise place.error(f"{message}, since a coflow arrives once", column="arrival_s", row=row)
    falls = np.flatnonzero(np.diff(arrival) < 0)
    if falls.size and not sort:
        later, earlier = arrival[falls[0] : falls[0] + 2].tolist()
        message = (
            f"found {earlier!r} after {later!r}; allowed: coflows in order of arrival (or give sort=true)"
        )
        raise place.error(message, column="arrival_s", row=int(first_row[falls[0] + 1]))
    order = np.argsort(arrival, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    flows = np.argsort(rank[coflow], kind="stable")
    if np.any(flows[1:] < flows[:-1]):
        table = table.take(pa.array(flows))
    counts = np.bincount(coflow, minlength=len(order))[order]
    return Transfers(table, np.concatenate([[0], np.cumsum(counts)]), ports)


def ascending_ids(*columns: pa.ChunkedArray) -> pa.Array:
    """The different ids of columns of one type, in ascending order."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    ids = pa.chunked_array(chunks, columns[0].type).unique()
    return ids.take(pc.array_sort_indices(ids))
