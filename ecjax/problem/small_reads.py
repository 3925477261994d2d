"""Small reads, of some data chunks: what a files table says of them, and where a placement has their chunks."""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.planning import Problem, prepare
from ecjax.planning.read_kinds.model import SmallReads
from ecjax.planning.read_kinds.node_lists import decoding_nodes, padded_nodes
from ecjax.problem.arrays import Rows, code_k, column, index_in
from ecjax.problem.constraints import of_file

RATE = "small_rate_per_s"
_ANY = -1  # all data chunks alike


class SmallTraffic(NamedTuple):
    """Small reads of r files.

    Attributes:
        rate: (r,) 1/s.
        size: (r,) B, that each chunk of a read has; 1 where there are none.
        width: (r,) data chunks of a read, one after the other; after the last comes the first.
        chunk: (r,) the first of them; -1: all k alike.
        k: (r,) data chunks of the file.
    """

    rate: np.ndarray
    size: np.ndarray
    width: np.ndarray
    chunk: np.ndarray
    k: np.ndarray

    def scaled(self, rate: float, size: float) -> "SmallTraffic":
        """The same with all rates and all sizes, stripe units too, multiplied."""
        return self._replace(rate=self.rate * rate, size=self.size * size)


class ChunkReads(NamedTuple):
    """Small reads on a placement, and whose they are.

    Attributes:
        reads: T of them, those of a placement row that take the same bytes of the same chunk together.
        file: (P,) a file that has such reads, once for each of its chunks.
        of: (P,) which of ``reads`` these are among.
        rate: (P,) 1/s.
    """

    reads: SmallReads
    file: np.ndarray
    of: np.ndarray
    rate: np.ndarray


def small_traffic(files: pa.Table, stripe_unit_bytes: float | None = None) -> SmallTraffic | None:
    """Small reads of a checked files table; None where there are none.

    Args:
        files: checked.
        stripe_unit_bytes: bytes of a file that lie in one data chunk before the next has its share; None: the chunk.
    """
    rate = column(files, RATE)
    if not rate.any():
        return None
    size = np.where(rate > 0, column(files, "small_bytes", 1.0), 1.0)
    k = code_k(files).astype(np.int64)
    width, size = chunks_of_reads(size, column(files, "bytes"), k, stripe_unit_bytes)
    chunk = column(files, "small_chunk", _ANY).astype(np.int64)
    return SmallTraffic(rate, size, width, chunk, k)


def chunks_of_reads(
    size: np.ndarray, file_bytes: np.ndarray, k: np.ndarray, stripe_unit_bytes: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Data chunks of reads of a part of a file, and the bytes of each: (r,) and (r,).

    Reads begin where a stripe unit does. Those of more than one take whole units; those of more than k units as much of
    every chunk as in the mean over where they begin. None takes more than its file.

    Args:
        size: (r,) B, that are asked for.
        file_bytes: (r,) B, of the file.
        k: (r,) its data chunks.
        stripe_unit_bytes: that lie in one data chunk before the next has its share; None: the whole chunk.
    """
    chunk = file_bytes / k
    unit = chunk if stripe_unit_bytes is None else np.minimum(stripe_unit_bytes, chunk)
    # of a file in k equal parts the last may end a rounding error behind the file
    units = np.ceil(np.minimum(size, file_bytes) / unit * (1 - 1e-12)).astype(np.int64)
    whole = np.minimum(unit * np.maximum(units / k, 1.0), chunk)
    return np.minimum(units, k), np.where(units > 1, whole, np.minimum(size, chunk))


def counted_as_full(problem: Problem, traffic: SmallTraffic, size_scale: float) -> Problem:
    """The problem with so many more full reads that these bring the work of the small ones: placements are made for it.

    Direct small reads of a file take all of its data chunks alike, as full reads do. Where services do not go with the
    bytes alone, how many full reads that is depends on the sizes: these are of lanes with this ``size_scale``.

    Args:
        problem: with its constraints, before scaling.
        traffic: small reads of its files, before scaling.
        size_scale: what the lanes multiply sizes by.
    """
    nodes, files = problem.nodes, problem.files
    first = np.asarray(nodes.service[0]).mean(axis=1)
    small = np.polynomial.polynomial.polyval(size_scale * traffic.size, first)
    chunk = np.polynomial.polynomial.polyval(size_scale * np.asarray(files.chunk_bytes), first)
    more = traffic.rate * traffic.width * small / (chunk * np.asarray(files.k))
    counted = prepare(
        nodes,
        replace(files, rate=jnp.asarray(np.asarray(files.rate) + more)),
        problem.row,
        problem.rows,
    )
    return replace(
        problem,
        files=counted.files,
        share=counted.share,
        row_share=counted.row_share,
        reads=counted.reads,
    )


def data_chunks(stored: np.ndarray, probabilities: np.ndarray, rows: Rows, files: pa.Table) -> np.ndarray:
    """Nodes of every row's data chunks, (R, K), -1 after the last: those that full reads use most, in their order.

    Args:
        stored: (R, m) bool.
        probabilities: (R, m) of full reads.
        rows: of the files.
        files: checked table.
    """
    k = np.zeros(rows.count, np.int64)
    of_file = rows.row_of_file
    k[of_file] = code_k(files).astype(np.int64)
    order = np.where(stored, -probabilities, np.inf)
    rank = np.argsort(np.argsort(order, axis=1, kind="stable"), axis=1)
    return padded_nodes(stored & (rank < k[:, None]))


def chunk_work(traffic: SmallTraffic, rows: Rows, most: int) -> np.ndarray:
    """Small reads of every data chunk, all direct: rates times sizes to the power of 0..3, (R, K, 4).

    Args:
        traffic: of the files.
        rows: of the files.
        most: K.
    """
    of_file = rows.row_of_file
    chunk = np.arange(most)
    begins = np.maximum(traffic.chunk, 0)[:, None]
    read = np.where(
        traffic.chunk[:, None] < 0,
        traffic.width[:, None] / traffic.k[:, None],
        (chunk - begins) % traffic.k[:, None] < traffic.width[:, None],
    )
    read = traffic.rate[:, None] * np.where(chunk < traffic.k[:, None], read, 0.0)
    work = np.zeros((rows.count, most, 4))
    np.add.at(work, of_file, read[:, :, None] * traffic.size[:, None, None] ** np.arange(4.0))
    return work


def check_listed_orders(files: pa.Table, rows: Rows, traffic: SmallTraffic) -> None:
    """Files of a group with small reads list its data chunks, the first k of their nodes, in one order.

    Args:
        files: checked table, with column ``nodes``.
        rows: of the files.
        traffic: their small reads.

    Raises:
        UserError: two files of such a group list them in other orders.
    """
    if rows.group is None:
        return
    k, row_of_file = code_k(files).astype(np.int64), rows.row_of_file
    read = np.zeros(rows.count, bool)
    read[row_of_file[traffic.rate > 0]] = True
    first: dict[int, tuple[int, list]] = {}
    for file, listed in enumerate(files["nodes"].to_pylist()):
        if not listed or not read[row_of_file[file]]:
            continue
        data = listed[: k[file]]
        leader, order = first.setdefault(int(row_of_file[file]), (file, data))
        if data != order:
            others, allowed = (", ".join(map(str, each)) for each in (data, order))
            raise UserError(
                f"{of_file(files, file, 'nodes')}: found {others} first; allowed: {allowed} as in row {leader}, the "
                f"data chunks of group {files['group'][file].as_py()!r}, which has small reads (fixed_groups=true)"
            )


def with_listed_nodes(
    data: np.ndarray, rows: Rows, files: pa.Table, names: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    """Data chunks of rows whose files list their nodes on the first k of them, (R, K), and which rows these are."""
    has_list = np.zeros(len(data), bool)
    if "nodes" not in files.column_names:
        return data, has_list
    of_file = rows.row_of_file
    data, k = data.copy(), code_k(files).astype(np.int64)
    for file, listed in enumerate(files["nodes"].combine_chunks()):
        if listed.is_valid and len(listed.values):
            node = index_in(pa.chunked_array([listed.values]), names)
            data[of_file[file], : k[file]] = node[: k[file]]
            has_list[of_file[file]] = True
    return data, has_list


def chunk_reads(traffic: SmallTraffic, rows: Rows, data: np.ndarray, stored: np.ndarray) -> ChunkReads:
    """Small reads on a placement.

    Args:
        traffic: of the files.
        rows: of the files.
        data: (R, K) nodes of the data chunks.
        stored: (R, m) bool.
    """
    of_file = rows.row_of_file
    read = np.flatnonzero(traffic.rate > 0)
    # reads of all k chunks are the same wherever they begin
    anywhere = (traffic.chunk < 0) & (traffic.width < traffic.k)
    times = np.where(anywhere[read], traffic.k[read], 1)
    file = np.repeat(read, times)
    number = np.arange(len(file)) - np.repeat(np.cumsum(times) - times, times)
    chunk = np.where(anywhere[file], number, np.maximum(traffic.chunk[file], 0))
    rate = traffic.rate[file] / np.repeat(times, times)
    size_index = np.unique(traffic.size[file], return_inverse=True)[1]
    key = np.stack([of_file[file], chunk, traffic.width[file], size_index])
    _, first, of = np.unique(key, axis=1, return_index=True, return_inverse=True)
    of = of.ravel()
    row, chunk, some = of_file[file[first]], chunk[first], file[first]
    place = np.arange(int(traffic.width[some].max()))
    nodes = data[row[:, None], (chunk[:, None] + place) % traffic.k[some, None]]
    nodes = np.where(place < traffic.width[some, None], nodes, -1)
    others = decoding_nodes(stored, row, nodes)
    small = SmallReads(row, chunk, nodes, others, traffic.k[some], np.bincount(of, rate), traffic.size[some])
    return ChunkReads(small, file, of, rate)
