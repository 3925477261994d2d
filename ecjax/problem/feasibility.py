"""Whether any placement keeps all constraints, and which of them a placement breaks: one line that names the first."""

import numpy as np
import pyarrow as pa
from scipy import sparse
from scipy.sparse import csgraph

from ecjax.errors import UserError
from ecjax.planning import Problem
from ecjax.planning.limits import violations
from ecjax.problem.arrays import Rows
from ecjax.problem.constraints import of_file

_MOST_FLOW = 2**31 - 1  # SciPy counts in 32 bits
_MOST_EDGES = 2 * 10**7  # of classes to nodes: seconds, and 4 GB
_NAMED = 5  # nodes named in a message


def check_feasible(
    problem: Problem,
    nodes: pa.Table,
    files: pa.Table,
    per_node: int = 1,
    max_chunks_per_site: int | None = None,
) -> None:
    """Whether every row can have its least code length within all constraints together.

    Exact for files without groups (a maximum flow from classes of rows with equal masks and lengths to the nodes);
    of groups, whose chunks go to a node all or none, only whether enough nodes have room for each alone is checked,
    and what splitting them among these nodes would allow. Beyond 2^31
    chunks, or where so many files have masks of their own that the flow would take gigabytes, only the sum of the
    capacities is.

    Args:
        problem: with its constraints (``constraints.constrained``).
        nodes: checked nodes table.
        files: checked files table.
        per_node: chunks of a file that each of its nodes keeps; the problem counts them as one, messages do not.
        max_chunks_per_site: as it was set, of which the problem keeps whole nodes; None: what these come to. Only
            messages have it.

    Raises:
        UserError: the constraint and the first file or node that fails.
    """
    floor = np.asarray(problem.floor).round().astype(np.int64)
    row = None if problem.row is None else np.asarray(problem.row)
    m = problem.nodes.count
    mask = None if problem.allowed is None else np.asarray(problem.allowed)

    def first_file(rows: np.ndarray) -> int:
        return int(np.argmax(rows if row is None else rows[row]))

    def least(file: int) -> int:
        return int(floor[file if row is None else row[file]])

    if mask is not None:
        count = mask.sum(axis=1)
        if np.any(count < floor):
            file = first_file(count < floor)
            number = count[file if row is None else row[file]]
            raise UserError(
                f"{of_file(files, file, 'forbidden_nodes')}: leaves {number} of {m} nodes; at least {least(file)} are "
                f"needed, {_least_length(per_node)}"
            )
    if problem.per_site is not None:
        room = _room_at_sites(np.ones((1, m), bool) if mask is None else mask, problem)
        short = np.broadcast_to(room, floor.shape) < floor
        if short.any():
            file = first_file(short)
            most = room[0 if mask is None else file if row is None else row[file]]
            limit = problem.per_site * per_node if max_chunks_per_site is None else max_chunks_per_site
            raise UserError(
                f"{of_file(files, file)}: max_chunks_per_site={limit} leaves room for {most * per_node} chunks at the "
                f"sites of its nodes; at least {least(file) * per_node} are needed, {_least_length(per_node)}"
            )
    if problem.capacity is not None:
        _check_capacity(problem, floor, mask, nodes, files, first_file, per_node)


def _least_length(per_node: int) -> str:
    """What a number of nodes or chunks that a file needs comes from."""
    least = "max(k + min_extra_chunks, d)"
    return least if per_node == 1 else f"for {least} chunks, {per_node} to a node"


def _room_at_sites(mask: np.ndarray, problem: Problem) -> np.ndarray:
    """Chunks of a row that the sites have room for, (rows,)."""
    site, most = np.asarray(problem.site), problem.per_site
    assert most is not None
    room = np.zeros(len(mask), np.int64)
    for each in np.unique(site):
        room += np.minimum(mask[:, site == each].sum(axis=1), most)
    return room


def _check_capacity(
    problem: Problem, floor, mask, nodes: pa.Table, files: pa.Table, first_file, per_node: int
) -> None:
    weight = np.asarray(problem.price_chunks).round().astype(np.int64)
    needed, held = int(floor @ weight), float(np.sum(np.asarray(problem.capacity)))
    capacity = np.minimum(np.asarray(problem.capacity), needed).astype(np.int64)
    if held < needed:
        raise UserError(
            f"nodes: column capacity_chunks: found room for {held * per_node:.0f} chunks in all; the files need at "
            f"least {needed * per_node}"
        )
    grouped = weight > 1
    if np.any(weight[grouped] > capacity.min()):
        fits = ~grouped[:, None] | (weight[:, None] <= capacity)
        mask = fits if mask is None else mask & fits
        room = mask.sum(axis=1) if problem.per_site is None else _room_at_sites(mask, problem)
        short = grouped & (room < floor)
        if short.any():
            file = first_file(short)
            row = int(np.argmax(short)) if problem.row is None else int(np.asarray(problem.row)[file])
            held_of_each = "a chunk" if per_node == 1 else f"{per_node} chunks"
            raise UserError(
                f"{of_file(files, file)}: its group has {weight[row]} files, and {room[row]} of its nodes can hold "
                f"{held_of_each} of each (capacity_chunks); at least {floor[row]} are needed, {_least_length(per_node)}"
            )
    most = weight.sum() if mask is None else weight @ mask
    if np.all(capacity >= most) or needed > _MOST_FLOW:
        return
    of_class, representative = _classes(floor, mask)
    weights = np.bincount(of_class, weight).astype(np.int64)
    if len(representative) * len(capacity) > _MOST_EDGES:
        return
    lengths = floor[representative]
    masks = np.ones((len(representative), len(capacity)), bool) if mask is None else mask[representative]
    full, crowded, short = _bottleneck(weights, lengths, masks, capacity, problem)
    if short == 0:
        return
    file = first_file(crowded[of_class])
    names = [repr(name) for name in nodes["node_id"].filter(pa.array(full)).to_pylist()]
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    held = int(capacity[full].sum())
    raise UserError(
        f"nodes: column capacity_chunks: {listed} have room for {held * per_node} chunks in all; at least "
        f"{(held + short) * per_node} can only go there; first of their files: row {file} "
        f"(file_id={files['file_id'][file].as_py()})"
    )


def _classes(floor: np.ndarray, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Class of every row, those of equal length and mask being alike, and the first row of each class."""
    key = floor.astype(np.int32)[:, None].view(np.uint8)
    if mask is not None:
        key = np.concatenate([key, np.packbits(mask, axis=1)], axis=1)
    key = np.pad(key, ((0, 0), (0, -key.shape[1] % 8)))
    words = np.ascontiguousarray(key).view(np.uint64)
    order = np.lexsort(words.T)
    changed = np.any(np.diff(words[order], axis=0) != 0, axis=1)
    of_class = np.empty(len(floor), np.int64)
    of_class[order] = np.concatenate([[0], np.cumsum(changed)])
    return of_class, order[np.concatenate([[True], changed])]


def _bottleneck(
    weights: np.ndarray, lengths: np.ndarray, masks: np.ndarray, capacity: np.ndarray, problem: Problem
) -> tuple[np.ndarray, np.ndarray, int]:
    """A minimum cut between classes of rows and nodes: full nodes (m,), classes that crowd them (C,), missing chunks.

    Rows of a class share what flows from it by taking turns, so that none needs a node twice or a site too often.
    """
    classes, m = masks.shape
    of, node = np.nonzero(masks)
    limits = weights[of]
    edges = [(np.zeros(classes, np.int64), 1 + np.arange(classes), weights * lengths)]
    count = 1 + classes
    if problem.per_site is None:
        edges.append((1 + of, count + node, limits))
    else:
        _, site = np.unique(np.asarray(problem.site), return_inverse=True)
        sites = site.max() + 1
        place = of * sites + site[node]
        pairs = np.unique(place)
        edges.append((1 + pairs // sites, count + pairs, weights[pairs // sites] * problem.per_site))
        edges.append((count + place, count + classes * sites + node, limits))
        count += classes * sites
    sink = count + m
    edges.append((count + np.arange(m), np.full(m, sink), capacity))
    start, end, room = (np.concatenate(part) for part in zip(*edges, strict=True))
    room = np.minimum(room, _MOST_FLOW).astype(np.int32)
    graph = sparse.csr_array((room, (start, end)), shape=(sink + 1, sink + 1), dtype=np.int32)
    flow = csgraph.maximum_flow(graph, 0, sink)
    short = int((weights * lengths).sum() - flow.flow_value)
    residual = sparse.csr_array(graph - flow.flow)
    residual.eliminate_zeros()
    reached = np.zeros(sink + 1, bool)
    reached[csgraph.breadth_first_order(residual, 0, return_predecessors=False)] = True
    return reached[count : count + m], reached[1 : 1 + classes], short


_WORDS = {
    "floor": "{times} of {rows} rows have fewer chunks than max(k + min_extra_chunks, d), first {first}",
    "allowed": "{times} chunks are on forbidden nodes, first of {first}",
    "per_site": "{times} of {rows} rows have more chunks at a site than max_chunks_per_site, first {first}",
    "capacity": "{times} nodes hold more chunks than their capacity_chunks, first {first}",
}


def broken(problem: Problem, stored: np.ndarray, nodes: pa.Table, rows: Rows) -> list[str]:
    """One line for every constraint that a placement breaks.

    Args:
        problem: with its constraints.
        stored: (R, m) bool.
        nodes: checked nodes table.
        rows: placement rows.
    """
    lines = []
    for name, (times, first) in violations(problem, stored).items():
        if not times:
            continue
        if name == "capacity":
            where = f"node_id={nodes['node_id'][first].as_py()}"
        elif rows.file[first].is_valid:
            where = f"file_id={rows.file[first].as_py()}"
        else:
            assert rows.group is not None
            where = f"group={rows.group[first].as_py()}"
        lines.append(_WORDS[name].format(times=times, rows=problem.rows, first=where))
    return lines
