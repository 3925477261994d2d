"""The read kinds of an earlier run: small reads on its placement, and how they are spread."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.planning.read_kinds.model import SmallReads
from ecjax.planning.read_kinds.node_lists import decoding_nodes
from ecjax.problem.arrays import code_k, index_in
from ecjax.problem.identity import Identity
from ecjax.tables.committed import batch_of
from ecjax.tables.results import read_run

_SUM = 1e-6  # by which shares may miss their sum


@dataclass(frozen=True)
class PlannedKinds:
    """Small reads of a plan.

    Attributes:
        reads: T of them.
        degraded: (T, N) x, probability that a small read is degraded and uses each of ``reads.others``.
    """

    reads: SmallReads
    degraded: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Share of each that is degraded, (T,)."""
        return self.degraded.sum(axis=1) / self.reads.k

    def scaled(self, rate: float, size: float) -> "PlannedKinds":
        """The same with all rates and all sizes multiplied."""
        reads = self.reads
        return replace(self, reads=reads._replace(rate=reads.rate * rate, size=reads.size * size))


def planned_kinds(
    folder: Path, run_id: str, names: Identity, files: pa.Table, stored: np.ndarray
) -> PlannedKinds:
    """Read kinds of a run whose files have small reads.

    Args:
        folder: of the results.
        run_id: a committed run.
        names: ids of its inputs.
        files: checked table.
        stored: (R, m) bool, its placement.

    Raises:
        UserError: the run has no dataset ``read_kinds``, or one that does not fit its placement.
    """
    where = f"plan={folder}: read_kinds of run {run_id}"
    if not (folder / "read_kinds" / f"{batch_of(folder, run_id)}.parquet").exists():
        raise UserError(
            f"{where}: missing, although files have small reads; allowed: a plan written with them"
        )
    table = read_run(folder, "read_kinds", run_id)
    row = np.full(len(table), -1)
    for column, ids in (("file_id", names.rows.file), ("group", names.rows.group)):
        if ids is not None:
            place = index_in(table[column], ids)
            row = np.where(place >= 0, place, row)
    chunk_node, node = (index_in(table[name], names.nodes) for name in ("chunk_node_id", "node_id"))
    wrong = (row < 0) | (chunk_node < 0) | (node < 0)
    wrong |= ~stored[row, node] | ~stored[row, chunk_node]
    if wrong.any():
        raise UserError(
            f"{where}: row {int(np.argmax(wrong))}: found a file or node that does not keep such a chunk; allowed: "
            "those of its placements"
        )
    chunk, size, rate, share, probability = (
        table[name].to_numpy() for name in ("data_chunk", "bytes", "rate_per_s", "share", "probability")
    )
    width = table["width"].to_numpy() if "width" in table.column_names else np.ones(len(table), np.int64)
    key = np.stack([row, chunk, width, np.unique(size, return_inverse=True)[1]])
    _, first, of = np.unique(key, axis=1, return_index=True, return_inverse=True)
    of = of.ravel()
    k = np.zeros(names.rows.count, np.int64)
    k[names.rows.row_of_file] = code_k(files).astype(int)
    coded = np.array([kind == "degraded" for kind in table["kind"].to_pylist()], bool)
    nodes = _read_directly(chunk_node[first], width[first], of[~coded], node[~coded])
    if (wrong := np.sum(nodes >= 0, axis=1) != width[first]).any():
        each = int(np.argmax(wrong))
        raise UserError(
            f"{where}: data chunk {chunk[first][each]}, width {width[first][each]}: found "
            f"{np.sum(nodes[each] >= 0)} nodes of direct reads; allowed: as many as its width"
        )
    others = decoding_nodes(stored, row[first], nodes)
    reads = SmallReads(row[first], chunk[first], nodes, others, k[row[first]], rate[first], size[first])
    at = np.zeros((reads.number, stored.shape[1] + 1))
    at[of[coded], node[coded]] = (share * probability)[coded]
    degraded = np.where(others >= 0, at[np.arange(reads.number)[:, None], others], 0.0)
    direct = np.bincount(of[~coded], share[~coded], reads.number) / reads.width
    off = np.abs(direct + degraded.sum(axis=1) / reads.k - 1) > _SUM
    if off.any():
        each = int(np.argmax(off))
        raise UserError(
            f"{where}: data chunk {reads.chunk[each]} at node {names.nodes[int(reads.node[each])].as_py()}: shares of "
            "its kinds do not sum to 1; allowed: shares that do"
        )
    return PlannedKinds(reads, degraded)


def _read_directly(first: np.ndarray, width: np.ndarray, of: np.ndarray, node: np.ndarray) -> np.ndarray:
    """Nodes of the chunks of every read, (T, W), -1 after the last: ``first``, then what its direct reads use besides.

    Args:
        first: (T,) node of the first chunk.
        width: (T,) chunks.
        of: (D,) which read each row of direct ones is of.
        node: (D,) that it uses.
    """
    further = node != first[of]
    of, node = of[further], node[further]
    order = np.argsort(of, kind="stable")
    of, node = of[order], node[order]
    place = 1 + np.arange(len(of)) - np.searchsorted(of, of)
    nodes = np.full((len(first), max(int(width.max(initial=1)), int(place.max(initial=0)) + 1)), -1)
    nodes[:, 0] = first
    nodes[of, place] = node
    return nodes
