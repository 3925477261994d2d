"""From checked tables to the arrays of ``ecjax.model``, with the mistakes that only both tables together show."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.model import CONSTANT, Files, Nodes, with_stalls
from ecjax.tables.rules import STALL_COLUMNS


@dataclass(frozen=True)
class Rows:
    """Placement rows: which row each file belongs to, and whether a row is a group.

    Attributes:
        of_file: (r,) row of each file, or None where row i is file i.
        count: number of rows.
        group: (count,) group id of the row, null for a file of its own.
        file: (count,) file id of the row, null for a group.
    """

    of_file: np.ndarray | None
    count: int
    group: pa.Array | None
    file: pa.Array

    @property
    def row_of_file(self) -> np.ndarray:
        """Row of each file, (r,), also where every file has its own."""
        return np.arange(self.count) if self.of_file is None else self.of_file


def column(table: pa.Table, name: str, default: float = 0.0) -> np.ndarray:
    """A column as float64, or the default everywhere; empty cells become the default."""
    if name not in table.column_names:
        return np.full(table.num_rows, default)
    filled = pc.fill_null(table[name].combine_chunks().cast(pa.float64()), default)
    return filled.to_numpy(zero_copy_only=False)


def nodes_arrays(table: pa.Table, size_scaling: str = "proportional") -> Nodes:
    """Service moments as polynomials in the chunk size, prices and connection delays.

    Args:
        table: checked nodes table.
        size_scaling: "proportional" (m_n (B/reference_bytes)^n) or "none"; the affine law gives every size its own.
    """
    count = table.num_rows
    service = np.zeros((3, 4, count))
    if "service_mean_s" in table.column_names:
        moments = [
            column(table, name) for name in ("service_mean_s", "service_second_s2", "service_third_s3")
        ]
        reference = column(table, "reference_bytes")
        for n, moment in enumerate(moments, start=1):
            power = n if size_scaling == "proportional" else 0
            service[n - 1, power] = moment / reference**power
    else:
        fixed = [column(table, "delta_s"), column(table, "delta_s_per_byte")]
        random = [column(table, "psi_s"), column(table, "psi_s_per_byte")]
        service[0, :2] = np.stack(fixed) + np.stack(random)
        # Delta + Exp(Psi): m_2 = D^2 + 2 D P + 2 P^2, m_3 = D^3 + 3 D^2 P + 6 D P^2 + 6 P^3
        for coefficients, n in (((1, 2, 2), 2), ((1, 3, 6, 6), 3)):
            for power, factor in enumerate(coefficients):
                term = _product([fixed] * (n - power) + [random] * power)
                service[n - 1, : n + 1] += factor * term
        if STALL_COLUMNS[0] in table.column_names:
            probability, stall = (column(table, name) for name in STALL_COLUMNS)
            service = np.stack(
                with_stalls(service, probability * stall ** np.arange(1, 4)[:, None], CONSTANT)
            )
    background = [column(table, f"background_{name}") for name in ("load", "second", "third")]
    channels = column(table, "channels", 1.0)
    several = bool(np.any(channels > 1))
    arrays = (
        service,
        column(table, "connect_mean_s"),
        column(table, "connect_var_s2"),
        # as the work of chunks: waits are those of one server as fast as all channels
        np.stack([sums / channels**power for power, sums in enumerate(background, start=1)]),
        column(table, "cost_per_chunk_dollars"),
        column(table, "cost_per_byte_dollars"),
    )
    # jnp.asarray would compile a program for every shape
    nodes = Nodes(*jax.device_put(arrays))
    return replace(nodes, channels=jax.device_put(channels)) if several else nodes


def _product(factors: list[list[np.ndarray]]) -> np.ndarray:
    """Coefficients of the product of polynomials a + b B, lowest power first: (len + 1, m)."""
    total = [np.ones_like(factors[0][0])]
    for low, high in factors:
        longer = [low * total[0]]
        longer += [low * total[p] + high * total[p - 1] for p in range(1, len(total))]
        total = [*longer, high * total[-1]]
    return np.stack(total)


def files_arrays(table: pa.Table) -> Files:
    """Chunk sizes, rates and floors of a checked files table.

    A read takes d chunks (k where the table has no d) of bytes / d each, so that to the model k is d; storage keeps
    chunks of stored_bytes / k, at least max(d, k + min_extra_chunks) of them, and a write brings bytes / k to each.
    ``code_k`` has the k of the code.
    """
    k = code_k(table)
    read = np.maximum(column(table, "d"), k)
    size = column(table, "bytes")
    stored = column(table, "stored_bytes", np.nan)
    stored = np.where(np.isnan(stored), size, stored)
    writes = column(table, "write_rate_per_s")
    arrays = (
        size / read,
        stored / k,
        read,
        np.maximum(0, k + column(table, "min_extra_chunks") - read),
        column(table, "rate_per_s"),
        writes,
    )
    # the field is there where it counts: with it programs are others
    parts = np.any(read > k) and np.any(writes > 0)
    return Files(*jax.device_put((*arrays, size / k) if parts else arrays))


def index_in(values: pa.ChunkedArray, ids: pa.Array) -> np.ndarray:
    """Position of every value in ``ids``, -1 where it is absent, null or of another type."""
    if values.type != ids.type:
        return np.full(len(values), -1)
    position = pc.index_in(values.combine_chunks(), value_set=ids, skip_nulls=True)
    return pc.fill_null(position, -1).to_numpy(zero_copy_only=False)


def code_k(table: pa.Table) -> np.ndarray:
    """Chunks that rebuild each file of a checked files table, (r,) as float64; a read may take more of them."""
    return column(table, "k")


def several_per_node(nodes: Nodes, files: Files, count: int) -> tuple[Nodes, Files]:
    """The same problem where every node of a file keeps ``count`` of its chunks and serves them together.

    To the model these are one super-chunk (Lemma 4 of the JLCM paper, corrected): its service is the sum of ``count``
    independent chunk services, whose moments are polynomials in the chunk size again. Connecting happens once. (The
    paper prints chunk moments with the chunk rate in the wait, as if chunks came one by one; that is no bound: two
    constant chunks at load 0.5 wait 1, not 0.5.)
    """
    x = count
    first, second, third = np.asarray(nodes.service)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.stack([sum(a[i] * b[p - i] for i in range(p + 1)) for p in range(4)])

    square, cube = product(first, first), product(product(first, first), first)
    moments = (
        x * first,
        x * second + x * (x - 1) * square,
        x * third + 3 * x * (x - 1) * product(first, second) + x * (x - 1) * (x - 2) * cube,
    )
    floor = np.ceil((files.k + files.min_extra_chunks) / x)
    return (
        replace(nodes, service=jnp.asarray(np.stack(moments)), cost_per_chunk=nodes.cost_per_chunk * x),
        replace(
            files,
            stored_chunk_bytes=files.stored_chunk_bytes * x,
            k=files.k / x,
            min_extra_chunks=jnp.asarray(floor) - files.k / x,
        ),
    )


def refuse_channels(nodes: pa.Table, what: str, allowed: str) -> None:
    """Refuse nodes that serve several requests at once.

    Args:
        nodes: checked nodes table.
        what: that takes nodes with one channel only.
        allowed: with several.

    Raises:
        UserError: a node has several channels.
    """
    channels = column(nodes, "channels", 1.0)
    if channels.max(initial=1.0) > 1:
        row = int(np.argmax(channels > 1))
        raise UserError(
            f"{what}: nodes row {row} (node_id={nodes['node_id'][row].as_py()}) has channels={channels[row]:.0f}; "
            f"allowed where nodes serve several requests at once: {allowed}"
        )


def placement_rows(table: pa.Table) -> Rows:
    """Groups (first), then the files without a group, in order of appearance."""
    ids = table["file_id"].combine_chunks()
    if "group" not in table.column_names or table["group"].null_count == table.num_rows:
        return Rows(None, table.num_rows, None, ids)
    group = table["group"].combine_chunks()
    encoded = group.dictionary_encode()
    groups = len(encoded.dictionary)
    index = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    alone = index < 0
    of_file = np.where(alone, groups + np.cumsum(alone) - 1, index)
    singles = ids.filter(pa.array(alone))
    return Rows(
        of_file=of_file,
        count=groups + len(singles),
        group=pa.concat_arrays([encoded.dictionary, pa.nulls(len(singles), group.type)]),
        file=pa.concat_arrays([pa.nulls(groups, ids.type), singles]),
    )


def check_together(nodes: pa.Table, files: pa.Table, per_node: int = 1) -> None:
    """Code lengths must fit on the nodes, and other work must leave room on every node.

    Args:
        nodes: checked nodes table.
        files: checked files table.
        per_node: chunks of a file that each of its nodes keeps.

    Raises:
        UserError: k, d or the durability floor of a file exceeds the number of nodes, or a node's background load
            is 1 or more; the chunks that a read takes are not a multiple of ``per_node``.
    """
    background = column(nodes, "background_load") / column(nodes, "channels", 1.0)
    full = np.flatnonzero(background >= 1)
    if full.size:
        row = int(full[0])
        raise UserError(
            f"nodes: column background_load, row {row} (node_id={nodes['node_id'][row].as_py()}): found "
            f"{background[row]:g}; allowed: below 1, or the node is overloaded before any read"
        )
    if per_node > 1 and np.any(column(nodes, "channels", 1.0) > 1):
        raise UserError(
            f"max_chunks_per_node={per_node}: nodes have channels above 1; allowed with them: 1, as chunks served "
            "together have one server"
        )
    k, extra, read = code_k(files), column(files, "min_extra_chunks"), column(files, "d")
    odd = np.flatnonzero(np.maximum(k, read) % per_node)
    if odd.size:
        row = int(odd[0])
        raise UserError(
            f"max_chunks_per_node={per_node}: files row {row} (file_id={files['file_id'][row].as_py()}): a read takes "
            f"{max(k[row], read[row]):.0f} chunks; allowed: a multiple of {per_node}"
        )
    wrong = np.flatnonzero(np.maximum(k + extra, read) > nodes.num_rows * per_node)
    if wrong.size:
        row = int(wrong[0])
        name = files["file_id"][row].as_py()
        floor = f" + min_extra_chunks={extra[row]:.0f}" if extra[row] else ""
        needs, count = f"k={k[row]:.0f}{floor}", k[row] + extra[row]
        if read[row] > count:
            needs, count = f"d={read[row]:.0f}", read[row]
        raise UserError(
            f"files: row {row} (file_id={name}): {needs} needs {np.ceil(count / per_node):.0f} nodes; nodes has "
            f"{nodes.num_rows}"
        )
