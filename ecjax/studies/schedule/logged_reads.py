"""Reads of an access log as coflows, from the nodes that keep the chunks of a file to the client that asked for it."""

import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.coflow.workload import Workload, reads
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.problem.arrays import code_k, column, index_in
from ecjax.problem.earlier_plan import plan_arrays
from ecjax.problem.identity import identity
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.folder import location
from ecjax.tables.importers import Trace
from ecjax.tables.place import Place
from ecjax.tables.ranges import ranges
from ecjax.tables.read import open_batches, read_input
from ecjax.tables.requests import Edges, requests
from ecjax.tables.results import find_run
from ecjax.tables.transfers import ascending_ids
from ecjax.units import count_text


class Placement(NamedTuple):
    """Where the chunks of files are."""

    source: str  # of the placement, for messages
    input_id: str
    file_ids: pa.Array  # (r,)
    need: np.ndarray  # (r,) int64, nodes that a read takes
    first: np.ndarray  # (r + 1,) int64
    node: np.ndarray  # (N,) int64: those of file i are node[first[i]] to node[first[i + 1] - 1]
    node_ids: pa.Array  # (m,)


class LoggedReads(NamedTuple):
    """Reads of a log, ready to be replayed."""

    workload: Workload
    ids: pa.Array  # (C,) place of each among the requests of the log, in order of arrival, from 0
    client_ids: pa.Array  # of the receiving ports
    named: bool  # whether the log names the clients


def placement_of_plan(folder: str, plan_run: str | None, plan_where: str | None) -> Placement:
    """Where a run of ``ecjax optimize`` keeps its files, cold chunks (of probability 0) included.

    A read takes d chunks (k without a d); of nodes that keep several chunks of a file and serve them together, it takes
    all of a node's, as one transfer.

    Args:
        folder: its results.
        plan_run: which run, by run_id.
        plan_where: which run, by values of its columns.

    Raises:
        UserError: there is no such folder, or no or several runs fit.
    """
    path = location(folder)
    if not path.is_dir():
        raise UserError(f"plan={folder}: no such folder")
    run = find_run(path, plan_run, plan_where)
    nodes, files = (
        read_input(path / "inputs" / name / f"{run['input_id']}.parquet", name) for name in ("nodes", "files")
    )
    per_node = json.loads(run["params"]).get("max_chunks_per_node", 1)
    names = identity(nodes, files, per_node)
    _, stored, _ = plan_arrays(path, run["run_id"], names)
    row, node = np.nonzero(stored)
    first = np.searchsorted(row, np.arange(names.rows.count + 1))
    if names.rows.of_file is not None:
        begin, count = first[names.rows.of_file], np.diff(first)[names.rows.of_file]
        node = node[ranges(begin, count)]
        first = np.concatenate([[0], np.cumsum(count)])
    return Placement(
        f"plan={folder}, run {run['run_id']}",
        run["run_id"],
        names.files,
        _chunks_read(files) // per_node,
        first,
        node,
        names.nodes,
    )


def placement_in_table(path: str, k: int | None) -> Placement:
    """Where a files table says its files are kept, in column ``nodes``; nodes in ascending order of their ids.

    Args:
        path: files table.
        k: chunks that every read takes; None: those of the table.

    Raises:
        UserError: the table is malformed, has no column ``nodes`` or no placement in it, or names a node twice for a
            file.
    """
    files = read_input(path, "files", constants={} if k is None else {"k": k})
    place = Place(files, "files", path)
    if "nodes" not in files.column_names:
        raise place.error(
            "found no placements in column nodes; allowed: lists of the nodes that keep a chunk"
        )
    lists = files["nodes"].combine_chunks()
    count = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = pa.chunked_array([lists.flatten()])
    node_ids = ascending_ids(flat)
    node = index_in(flat, node_ids)
    file = np.repeat(np.arange(len(files)), count)
    order = np.lexsort((node, file))
    twice = np.flatnonzero((np.diff(file[order]) == 0) & (np.diff(node[order]) == 0))
    if twice.size:
        row, name = int(file[order[twice[0]]]), node_ids[int(node[order[twice[0]]])].as_py()
        raise place.error(f"found node {name!r} twice; allowed: every node once", column="nodes", row=row)
    first = np.concatenate([[0], np.cumsum(count)])
    return Placement(
        f"files table ({path})",
        fingerprint(files, "files"),
        files["file_id"].combine_chunks(),
        _chunks_read(files),
        first,
        node,
        node_ids,
    )


def has_k(path: str) -> bool:
    """Whether a files table has a column k."""
    return "k" in open_batches(path).schema.names


def _chunks_read(files: pa.Table) -> np.ndarray:
    """Chunks that a read of each file takes, (r,) int64: d, or k where the table has no d."""
    return np.maximum(code_k(files), column(files, "d")).astype(np.int64)


def logged_reads(trace: Trace, placement: Placement, clients: int, sort: bool) -> LoggedReads:
    """The reads of a log, of files whose chunks are kept somewhere.

    A read of b bytes that takes chunks from d nodes moves b / d bytes from each: what was asked for, not what the file
    has. Its candidates are all nodes that keep a chunk, as ``placement`` lists them. It goes to the client that column
    ``edge`` names (that of its first row; such clients are in order of appearance); in a log without that column reads
    go to ``clients`` clients, 0, 1, ..., in turn. Writes, and reads of 0 bytes, are left out, and a log line says so.

    Args:
        trace: of requests.
        placement: of the files.
        clients: their number, for a log without ``edge``.
        sort: as the trace was opened with.

    Raises:
        UserError: the log is malformed, has a file that is kept nowhere, or no read; a file that is read is on fewer
            nodes than a read takes.
    """
    edges = Edges(trace, sort)
    try:
        logged = requests(edges.trace, placement.file_ids)
    except UserError as error:
        raise UserError(
            str(error).replace("files of the files table", f"files of {placement.source}")
        ) from None
    moved = logged.bytes > 0
    places = np.flatnonzero(~logged.write & moved)
    if not places.size:
        raise UserError(f"trace={trace.name}: found no reads of a byte or more; allowed: at least one")
    for count, what, several in (
        (np.sum(logged.write), "write", "writes"),
        (np.sum(~logged.write & ~moved), "read of 0 bytes", "reads of 0 bytes"),
    ):
        if count:
            log.info(
                "trace: reads of a byte or more are scheduled; left out: %s", count_text(count, what, several)
            )
    file = logged.file[places]
    need, counts = placement.need[file], np.diff(placement.first)[file]
    short = np.flatnonzero(counts < need)
    if short.size:
        which = int(file[short[0]])
        raise UserError(
            f"{placement.source}: file_id {placement.file_ids[which].as_py()!r}: found {counts[short[0]]} nodes with "
            f"a chunk; allowed: at least the {need[short[0]]} that a read takes"
        )
    client, client_ids = np.arange(len(places)) % clients, pa.array(np.arange(clients))
    if edges.index is not None:
        rows = places if logged.accesses is None else logged.accesses.begin[places]
        client, client_ids = np.concatenate(edges.numbers)[rows], edges.index.ids
    workload = reads(
        logged.arrival[places],
        client,
        logged.bytes[places] / need,
        need,
        np.concatenate([[0], np.cumsum(counts)]),
        placement.node[ranges(placement.first[file], counts)],
    )
    return LoggedReads(workload, pa.array(places), client_ids, edges.index is not None)
