"""What a log does not tell of its nodes, from a table that does: prices, sites, capacities."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.studies.analyze.tables import TABLES
from ecjax.tables.rules import (
    AFFINE_COLUMNS,
    BACKGROUND_COLUMNS,
    HIGH_MOMENTS,
    LOW_MOMENTS,
    MOMENT_COLUMNS,
    STALL_COLUMNS,
)
from ecjax.tables.schemas import NODES
from ecjax.units import count_text

_LAW = (*MOMENT_COLUMNS, *AFFINE_COLUMNS, *STALL_COLUMNS, *LOW_MOMENTS, *HIGH_MOMENTS)
# columns that a log may leave to a table; channels are treated by themselves
_DESCRIBING = [column.name for column in NODES if column.name not in ("node_id", "channels", *_LAW)]
# columns that no notice is about: of inputs, and of results, where those of the log count
_KNOWN = {"input_id", *(column.name for column in TABLES.datasets["nodes"])}
_PRICES = ("cost_per_chunk_dollars", "cost_per_byte_dollars")


def described(learned: pa.Table, nodes: pa.Table | None, notices: list[str]) -> pa.Table:
    """The ``nodes`` table of a log with the further columns of another one, whose service law is left aside.

    Args:
        learned: of the log.
        nodes: checked table, or None.
        notices: what is lacking is added, and what is left out.

    Raises:
        UserError: the other table lacks a node of the log.
    """
    if nodes is not None:
        ids = learned["node_id"].combine_chunks()
        same = nodes["node_id"].type == ids.type
        rows = pc.index_in(ids, value_set=nodes["node_id"].combine_chunks()) if same else pa.nulls(len(ids))
        if rows.null_count:
            missing = ids.filter(pc.is_null(rows))[0].as_py()
            raise UserError(f"nodes: found no node_id {missing!r}; allowed: a row for every node of the log")
        for name in _columns_taken(learned, nodes, notices):
            learned = learned.append_column(name, nodes[name].take(rows))
        if "channels" in nodes.column_names:
            learned = _with_channels(learned, nodes["channels"].take(rows), notices)
        if len(nodes) > len(ids):
            notices.append(
                f"Left out: {count_text(len(nodes) - len(ids), 'node')} of nodes= that the log does not name."
            )
    if not set(_PRICES) & set(learned.column_names):
        notices.append(
            f"The trace has no prices: without {' or '.join(_PRICES)} in the nodes table (nodes=TABLE) every plan "
            "costs nothing."
        )
    return learned


def _columns_taken(learned: pa.Table, nodes: pa.Table, notices: list[str]) -> list[str]:
    """Columns of a table that say of the nodes what their log does not; others are said to be left out."""
    taken = [name for name in _DESCRIBING if name in nodes.column_names and name not in learned.column_names]
    foreign = [name for name in nodes.column_names if name not in _KNOWN]
    if foreign:
        notices.append(
            f"Left out: {count_text(len(foreign), 'column')} of nodes= that plans do not use ({', '.join(foreign)})."
        )
    if BACKGROUND_COLUMNS[0] not in nodes.column_names:
        return taken
    if BACKGROUND_COLUMNS[0] in learned.column_names:
        notices.append(f"{BACKGROUND_COLUMNS[0]} of nodes= gives way to that which background= measures.")
    elif "service_source" in nodes.column_names:
        # an analysis wrote it, and what was other work in its log may be rates of files in this one
        notices.append(
            f"Left out: {BACKGROUND_COLUMNS[0]} of nodes=, which an analysis with background= measured on its own log; "
            "background= measures that of this one."
        )
        taken = [name for name in taken if name not in BACKGROUND_COLUMNS]
    return taken


def _with_channels(learned: pa.Table, channels: pa.ChunkedArray, notices: list[str]) -> pa.Table:
    """The table with these channels instead of those that the log tells, and loads of so many."""
    name = "channels"
    before = pc.fill_null(learned[name], 1) if name in learned.column_names else pa.repeat(1, len(learned))
    after = pc.fill_null(channels, 1)
    differ = pc.sum(pc.not_equal(before, after)).as_py()
    if name in learned.column_names:
        if differ:
            notices.append(
                f"{count_text(differ, 'node has', 'nodes have')} other channels in nodes= than the log shows: those "
                "of nodes= count."
            )
        learned = learned.drop_columns([name])
    load = pc.divide(pc.multiply(learned["load"], before), pc.cast(after, pa.float64()))
    return learned.append_column(name, channels).set_column(learned.column_names.index("load"), "load", load)
