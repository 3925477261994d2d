"""Constraints of real storage, from checked tables and plain option values to the arrays of a ``Problem``.

Nothing here loops over files: lists of nodes become (file, node) pairs in Arrow.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import Infeasible, UserError
from ecjax.planning import Problem
from ecjax.problem.arrays import Rows, column, index_in
from ecjax.tables.ids import id_types

PERIOD_S = 30 * 86400.0  # of the prices, where the nodes table has no cost_period_s


def constrained(
    problem: Problem,
    nodes: pa.Table,
    files: pa.Table,
    rows: Rows,
    *,
    max_chunks_per_site: int | None = None,
    migration_dollars_per_byte: float = 0.0,
    network: pa.Table | None = None,
    like: tuple[pa.Table, np.ndarray] | None = None,
    fixed_groups: bool = False,
    current: np.ndarray | None = None,
    per_node: int = 1,
) -> Problem:
    """The problem with the constraints that its tables and the options ask for.

    Args:
        problem: of the same tables, before scaling.
        nodes: checked nodes table; ``capacity_chunks`` and ``site`` count where they are.
        files: checked files table; ``forbidden_nodes`` count where they are.
        rows: placement rows of the files.
        max_chunks_per_site: most chunks of a file at one ``site``.
        migration_dollars_per_byte: what a chunk costs that is put on a node outside the file's current placement
            (``nodes``), for each stored byte: paid once, charged in full to the period. Files that have no current
            placement are new and pay nothing.
        network: checked network table; a read costs dollars_per_byte for each byte that it moves.
        like: the nodes table that the network table is about, where it is another, and the row in it that each node
            has its prices from, (m,).
        per_node: chunks of a file that each of its nodes keeps; the problem counts them as one.
        current: (R, m) bool, the current placement of the rows where the files table has no ``nodes``, or None.
        fixed_groups: rows whose files have ``nodes`` get a chunk on each of these and on no other; files of a group
            that have none follow those that have.

    Raises:
        UserError: an id is not in the nodes table, an option lacks the column it needs, or fixed nodes contradict
            each other, ``forbidden_nodes`` or the code length.
        Infeasible: a file has fewer fixed nodes than it needs.
    """
    id_types(*(table for table in (nodes, files, network) if table is not None))
    if max_chunks_per_site is not None and "site" not in nodes.column_names:
        raise UserError(
            f"max_chunks_per_site={max_chunks_per_site}: the nodes table has no column site, which it needs"
        )
    for used, option in (
        (
            migration_dollars_per_byte > 0 and current is None,
            f"migration_dollars_per_byte={migration_dollars_per_byte:g}",
        ),
        (fixed_groups, "fixed_groups=true"),
    ):
        if used and "nodes" not in files.column_names:
            raise UserError(
                f"{option}: the files table has no column nodes (the current placement), which it needs"
            )
    forbidden = _forbidden(nodes, files, rows)
    allowed = None if forbidden is None else ~forbidden
    floor, surcharge = problem.floor, None
    if migration_dollars_per_byte > 0 or fixed_groups:
        if "nodes" in files.column_names:
            listed = _listed(files, "nodes", nodes)
        else:
            assert current is not None
            listed = current if rows.of_file is None else current[rows.of_file]
        if migration_dollars_per_byte > 0:
            moved = listed.any(axis=1, keepdims=True) & ~listed
            stored_bytes = np.asarray(problem.files.stored_chunk_bytes)[:, None]
            surcharge = moved * (migration_dollars_per_byte * stored_bytes)
        if fixed_groups:
            fixed = _fixed(listed, files, rows, forbidden, nodes, np.asarray(problem.floor))
            others = np.ones_like(fixed) if allowed is None else allowed
            allowed = np.where(fixed.any(axis=1, keepdims=True), fixed, others)
            floor = jnp.maximum(floor, jnp.asarray(fixed.sum(axis=1), floor.dtype))
    capacity = None
    if "capacity_chunks" in nodes.column_names:
        capacity = jnp.asarray(np.floor(column(nodes, "capacity_chunks") / per_node))
    return replace(
        problem,
        floor=floor,
        surcharge=_array(surcharge),
        reading=None
        if network is None
        else _array(per_node * _reading(problem, nodes, files, network, like)),
        allowed=_array(allowed),
        site=None if "site" not in nodes.column_names else _array(_codes(nodes["site"])[0]),
        per_site=None if max_chunks_per_site is None else max_chunks_per_site // per_node,
        capacity=capacity,
    )


def _array(values: np.ndarray | None):
    return None if values is None else jax.device_put(values)


def _codes(values: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Number of each value in the order of first appearance, -1 where empty, and the values: int32."""
    encoded = values.combine_chunks().dictionary_encode()
    return pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(
        np.int32
    ), encoded.dictionary


def _pairs(files: pa.Table, name: str, nodes: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """File and node of every item of a column of node lists."""
    lists = files[name].combine_chunks()
    file = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    items = pc.list_flatten(lists)
    node = pc.index_in(items, value_set=nodes["node_id"].combine_chunks())
    if node.null_count:
        item = int(np.argmax(np.asarray(node.is_null())))
        raise UserError(f"{of_file(files, int(file[item]), name)}: found {items[item].as_py()!r}; {_NODES}")
    return file, node.to_numpy(zero_copy_only=False)


_NODES = "allowed: a node_id of the nodes table"


def _listed(files: pa.Table, name: str, nodes: pa.Table) -> np.ndarray:
    """Whether each file's list holds each node: (r, m) bool."""
    listed = np.zeros((len(files), len(nodes)), bool)
    listed[_pairs(files, name, nodes)] = True
    return listed


def _forbidden(nodes: pa.Table, files: pa.Table, rows: Rows) -> np.ndarray | None:
    """Nodes that a file of the row forbids: (R, m) bool."""
    if "forbidden_nodes" not in files.column_names:
        return None
    file, node = _pairs(files, "forbidden_nodes", nodes)
    forbidden = np.zeros((rows.count, len(nodes)), bool)
    forbidden[file if rows.of_file is None else rows.of_file[file], node] = True
    return forbidden


def _fixed(
    current: np.ndarray,
    files: pa.Table,
    rows: Rows,
    forbidden: np.ndarray | None,
    nodes: pa.Table,
    floor: np.ndarray,
) -> np.ndarray:
    """The nodes that rows are fixed to, none where they are not: (R, m) bool."""
    row = rows.row_of_file
    fixed = np.zeros((rows.count, len(nodes)), bool)
    file, node = np.nonzero(current)
    fixed[row[file], node] = True
    length, size = current.sum(axis=1), fixed.sum(axis=1)[row]
    items = pc.fill_null(pc.list_value_length(files["nodes"].combine_chunks()), 0).to_numpy(
        zero_copy_only=False
    )

    def refuse(wrong: np.ndarray, message, kind: type[UserError] = UserError) -> None:
        if wrong.any():
            first = int(np.argmax(wrong))
            raise kind(f"{of_file(files, first, 'nodes')}: {message(first)} (fixed_groups=true)")

    refuse(items > length, lambda i: "found a node more than once; allowed: once")
    refuse(
        (length > 0) & (length < size),
        lambda i: (
            f"found {length[i]} of the {size[i]} nodes of group {files['group'][i].as_py()!r}; allowed: the same "
            "nodes in all files of a group"
        ),
    )
    refuse(
        (length > 0) & (size < floor[row]),
        lambda i: (
            f"found {size[i]} nodes; allowed: at least {floor[row[i]]:.0f}, max(k + min_extra_chunks, d)"
        ),
        Infeasible,
    )
    if forbidden is not None:
        both = (fixed & forbidden)[row]

        def name(i: int) -> str:
            return repr(nodes["node_id"][int(np.argmax(both[i]))].as_py())

        refuse(
            both.any(axis=1), lambda i: f"found {name(i)}, which forbidden_nodes excludes; allowed: others"
        )
    return fixed


def _reading(
    problem: Problem,
    nodes: pa.Table,
    files: pa.Table,
    network: pa.Table,
    like: tuple[pa.Table, np.ndarray] | None,
) -> np.ndarray:
    """Dollars per period if every read of a file used the node: (r, m)."""
    period = column(nodes, "cost_period_s", PERIOD_S)[0]
    known, rows = (nodes, np.arange(len(nodes))) if like is None else like
    prices, client = _byte_prices(known, files, network)
    moved = np.asarray(problem.files.rate) * period * np.asarray(problem.files.chunk_bytes)
    reading = prices[:, rows][client]
    reading *= moved[:, None]
    return reading


def _byte_prices(nodes: pa.Table, files: pa.Table, network: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Dollars per byte from every node to every client site and, in the last row, elsewhere; each file's row."""
    if "client_site" in network.column_names and "client_site" not in files.column_names:
        raise UserError(
            "network: column client_site needs a column client_site in the files table, which has none"
        )
    node, site, site_of_node = _targets(nodes, network)
    clients = pa.nulls(0)
    client = np.full(len(files), -1, np.int32)
    if "client_site" in files.column_names:
        client, clients = _codes(files["client_site"])
    count, price = len(clients), column(network, "dollars_per_byte")
    named, client_of_row = np.zeros(len(network), bool), np.zeros(len(network), np.int64)
    if "client_site" in network.column_names:
        named = np.asarray(network["client_site"].is_valid())
        client_of_row = index_in(network["client_site"], clients)
        unknown = (client >= 0) & ~np.isin(client, client_of_row)
        if named.all() and unknown.any():
            row = int(np.argmax(unknown))
            raise UserError(
                f"{of_file(files, row, 'client_site')}: found {files['client_site'][row].as_py()!r}; allowed: a "
                "client_site of the network table, or a row there that leaves client_site empty"
            )

    def resolved(some: np.ndarray, client: np.ndarray, clients: int) -> np.ndarray:
        """The most specific of some rows for each client and node, NaN where there is none."""
        client, target, place, dollars = client[some], node[some], site[some], price[some]
        by_node = np.full((clients, len(nodes)), np.nan)
        by_site = np.full((clients, site_of_node.max() + 1), np.nan)
        plain = np.full((clients, 1), np.nan)
        by_node[client[target >= 0], target[target >= 0]] = dollars[target >= 0]
        by_site[client[place >= 0], place[place >= 0]] = dollars[place >= 0]
        neither = (target < 0) & (place < 0)
        plain[client[neither], 0] = dollars[neither]
        general = by_site[:, site_of_node]
        general = np.where(np.isnan(general), plain, general)
        return np.where(np.isnan(by_node), general, by_node)

    elsewhere = np.nan_to_num(resolved(~named, np.zeros(len(network), np.int64), 1))
    of_client = resolved(named & (client_of_row >= 0), client_of_row, count)
    return np.concatenate([np.where(np.isnan(of_client), elsewhere, of_client), elsewhere]), client


def _targets(nodes: pa.Table, network: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node and site of each network row, -1 where it names none, and the site of each node."""
    node = site = np.full(len(network), -1)
    site_of_node, sites = np.zeros(len(nodes), np.int32), pa.nulls(0)
    if "site" in nodes.column_names:
        site_of_node, sites = _codes(nodes["site"])
    if "node_id" in network.column_names:
        node = _positions(network, "node_id", nodes["node_id"].combine_chunks(), _NODES)
    if "node_site" in network.column_names:
        if not len(sites):
            raise UserError(
                "network: column node_site needs a column site in the nodes table, which has none"
            )
        if network["node_site"].type != sites.type:
            raise UserError(
                f"node_site: found {network['node_site'].type} in the network table and {sites.type} in column site "
                "of the nodes table; allowed: the same type"
            )
        site = _positions(network, "node_site", sites, "allowed: a site of the nodes table")
    return node, site, site_of_node


def _positions(network: pa.Table, name: str, ids: pa.Array, allowed: str) -> np.ndarray:
    """Position of every id in ``ids``, -1 where the cell is empty."""
    position = index_in(network[name], ids)
    wrong = (position < 0) & np.asarray(network[name].is_valid())
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UserError(f"network: column {name}, row {row}: found {network[name][row].as_py()!r}; {allowed}")
    return position


def of_file(files: pa.Table, row: int, name: str | None = None) -> str:
    """A row of the files table, and a column, as messages name them."""
    where = "" if name is None else f"column {name}, "
    return f"files: {where}row {row} (file_id={files['file_id'][row].as_py()})"
