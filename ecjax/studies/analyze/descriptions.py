"""What a log does not tell of its nodes, from a table that does: prices, sites, capacities."""

import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.tables.rules import AFFINE_COLUMNS, HIGH_MOMENTS, LOW_MOMENTS, MOMENT_COLUMNS, STALL_COLUMNS
from ecjax.units import count_text

_OF_RESULTS = ("run_id", "input_id")  # of tables that a job wrote
_PRICES = ("cost_per_chunk_dollars", "cost_per_byte_dollars")


def described(learned: pa.Table, nodes: pa.Table | None, notices: list[str]) -> pa.Table:
    """The ``nodes`` table of a log with the further columns of another one, whose service law is left aside.

    Args:
        learned: of the log.
        nodes: checked table, or None.
        notices: what is lacking is added.

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
        law = {
            "node_id",
            "channels",
            *_OF_RESULTS,
            *MOMENT_COLUMNS,
            *AFFINE_COLUMNS,
            *STALL_COLUMNS,
            *LOW_MOMENTS,
            *HIGH_MOMENTS,
        }
        for name in nodes.column_names:
            if name not in law and name not in learned.column_names:
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
