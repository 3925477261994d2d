"""Tables as they would be: nodes more, lost or slow, other traffic. Each is planned for like the tables themselves."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.studies.optimize.what_if_rules import EVERY, Change, changes
from ecjax.tables.rules import HIGH_MOMENTS, LOW_MOMENTS, MOMENT_COLUMNS

# powers of a factor on service times, by column
_SLOWER = {
    **{
        name: power
        for names in (MOMENT_COLUMNS[:3], LOW_MOMENTS, HIGH_MOMENTS)
        for power, name in enumerate(names, start=1)
    },
    "delta_s": 1,
    "delta_s_per_byte": 1,
    "psi_s": 1,
    "psi_s_per_byte": 1,
    "stall_s": 1,
    "background_load": 1,
    "background_second": 2,
    "background_third": 3,
}
_RATES = ("rate_per_s", "rate_standard_error_per_s", "write_rate_per_s", "small_rate_per_s")
_ID_LISTS = ("nodes", "forbidden_nodes")
_LIKE = "row as it is"  # beside the columns of the nodes while a scenario is made of them


def each_scenario(nodes: pa.Table, scenarios: Sequence[str]) -> list[str]:
    """The scenarios, those of every node or site in turn written out.

    Args:
        nodes: checked nodes table.
        scenarios: as the option has them.

    Raises:
        UserError: one is of every site, and the nodes have none.
    """
    ids = {"slow": "node_id", "node": "node_id", "site": "site"}
    written: list[str] = []
    for text in scenarios:
        several = next(
            (change for change in changes(text) if change.name == EVERY and change.kind in ids), None
        )
        if several is None:
            written.append(text)
            continue
        column, before = ids[several.kind], f"{several.kind}:{EVERY}"
        if column not in nodes.column_names:
            raise UserError(f"what_if={text}: found no column {column} in nodes; it names that of every node")
        names = dict.fromkeys(map(str, nodes[column].to_pylist()))
        written += [text.replace(before, f"{several.kind}:{name}") for name in names]
    return list(dict.fromkeys(written))


def as_if(nodes: pa.Table, files: pa.Table, scenario: str) -> tuple[pa.Table, pa.Table]:
    """The tables as they would be in a scenario.

    Nodes that are added keep no chunk before; files forget what lost nodes keep.

    Args:
        nodes: checked nodes table.
        files: checked files table.
        scenario: as ``each_scenario`` writes it.

    Raises:
        UserError: it names a node or site that the table has not, or loses all nodes.
    """
    for change in changes(scenario):
        if change.kind == "nodes":
            nodes = _more(nodes, change, scenario)
        elif change.kind == "traffic":
            files = _multiplied(files, {name: change.times for name in _RATES})
        elif change.kind == "slow":
            factor = np.where(_which(nodes, "node_id", change.name, scenario), change.times, 1.0)
            nodes = _multiplied(nodes, {name: factor**power for name, power in _SLOWER.items()})
        else:
            column = "node_id" if change.kind == "node" else "site"
            nodes, files = _without(nodes, files, _which(nodes, column, change.name, scenario), scenario)
    return nodes, files


def _which(nodes: pa.Table, column: str, name: str, scenario: str) -> np.ndarray:
    """(m,) bool: the rows with this id."""
    if column not in nodes.column_names:
        raise UserError(f"what_if={scenario}: found no column {column} in nodes; it names that of every node")
    ids = list(map(str, nodes[column].to_pylist()))
    if name not in ids:
        some = ", ".join(list(dict.fromkeys(ids))[:5])
        raise UserError(f"what_if={scenario}: found {name}; allowed: {column} of the nodes table, as {some}")
    return np.array([each == name for each in ids])


def _more(nodes: pa.Table, change: Change, scenario: str) -> pa.Table:
    """Copies of one node, or of the table's rows in turn, under ids of their own."""
    count, rows = int(change.times), np.arange(nodes.num_rows)
    if change.name:
        rows = np.flatnonzero(_which(nodes, "node_id", change.name, scenario))
    copies = nodes.take(pa.array(np.resize(rows, count)))
    ids, kind = nodes["node_id"].to_pylist(), nodes.schema.field("node_id").type
    if pa.types.is_integer(kind):
        fresh = [max(ids) + 1 + each for each in range(count)]
    else:
        unused = (name for at in range(1, len(ids) + count + 1) if (name := f"new.{at}") not in set(ids))
        fresh = [name for name, _ in zip(unused, range(count), strict=False)]
    place = copies.column_names.index("node_id")
    copies = copies.set_column(place, nodes.schema.field("node_id"), pa.array(fresh, kind))
    return pa.concat_tables([nodes, copies]).combine_chunks()


def _without(nodes: pa.Table, files: pa.Table, lost: np.ndarray, scenario: str) -> tuple[pa.Table, pa.Table]:
    if lost.all():
        raise UserError(f"what_if={scenario}: no node is left; allowed: losses that leave some")
    gone = set(nodes["node_id"].filter(pa.array(lost)).to_pylist())
    for name in _ID_LISTS:
        if name in files.column_names:
            place, field = files.column_names.index(name), files.schema.field(name)
            lists = [_left(ids, gone) for ids in files[name].to_pylist()]
            files = files.set_column(place, field, pa.array(lists, field.type))
    return nodes.filter(pa.array(~lost)).combine_chunks(), files


def _left(ids: list[object] | None, gone: set[object]) -> list[object] | None:
    return None if ids is None else [each for each in ids if each not in gone] or None


def _multiplied(table: pa.Table, factors: dict[str, float | np.ndarray]) -> pa.Table:
    for name, factor in factors.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            by = pa.array(np.broadcast_to(np.asarray(factor, float), table.num_rows))
            table = table.set_column(place, table.schema.field(name), pc.multiply(table[name], by))
    return table


class Scenario(NamedTuple):
    """Tables as they are, or as they would be.

    Attributes:
        name: as the option has it; None: as they are.
        nodes: their table.
        files: theirs.
        like: (m,) the row of each node, or of the one that it is like, in the nodes table as it is.
    """

    name: str | None
    nodes: pa.Table
    files: pa.Table
    like: np.ndarray


def scenarios_of(nodes: pa.Table, files: pa.Table, scenarios: Sequence[str]) -> Iterator[Scenario]:
    """The tables as they are, under no name, then as they would be in every scenario.

    Raises:
        UserError: a scenario names what the tables have not.
    """
    rows = np.arange(nodes.num_rows)
    yield Scenario(None, nodes, files, rows)
    for scenario in each_scenario(nodes, scenarios):
        changed, others = as_if(nodes.append_column(_LIKE, pa.array(rows)), files, scenario)
        yield Scenario(scenario, changed.drop_columns(_LIKE), others, changed[_LIKE].to_numpy())
