"""What is replayed, as plain arrays: nodes with their service laws, files with the nodes that keep their chunks."""

from typing import NamedTuple

import numpy as np

from ecjax.simulation.laws import Laws

UNIT = 1 << 40  # probabilities in whole units: the nodes of a row sum to a multiple exactly


class System(NamedTuple):
    """Nodes, files and placements of a replay; arrays only, so that compiled loops take it whole.

    Writes and background work are requests of files of their own, that read every node of their row and whose
    ``group`` is -1: they make others wait and are not counted.
    """

    laws: Laws  # entry j < m is node j's; background work has further ones
    connect: np.ndarray  # (2, m) shape (0: constant) and scale (s) of the gamma law of the connection delay
    need: np.ndarray  # (r,) int64, chunks that complete a request; a read that is coded otherwise takes d
    chunk_bytes: np.ndarray  # (r,) B
    extra_s: np.ndarray  # (r,) s, added to every read: decoding
    link_s: np.ndarray  # (r,) s, time that a chunk holds the client's link; 0: unlimited
    group: np.ndarray  # (r,) int64, class that latencies are reported by; -1: not reported
    queue: np.ndarray  # (r,) int64, class at the nodes: 0 goes first under priority
    row: np.ndarray  # (r,) int64, placement row
    start: np.ndarray  # (R + 1,) int64, where the entries of a row begin
    node: np.ndarray  # (entries,) int64
    law: np.ndarray  # (entries,) int64, entry of ``laws``
    units: np.ndarray  # (entries,) int64, probability in units of 2^-40; a row sums to its need exactly
    chunks: np.ndarray  # (entries,) int64, chunks served together
    # (r,) data chunks of small reads that choose their kind, 0: of others; (0,): there are none
    either: np.ndarray = np.zeros(0, np.int64)

    @property
    def nodes(self) -> int:
        """Number of nodes m."""
        return self.connect.shape[1]

    @property
    def files(self) -> int:
        """Number of files r, those that stand for writes and background work among them."""
        return len(self.need)

    @property
    def widest(self) -> int:
        """Most nodes of a row."""
        return int(np.diff(self.start).max())


def whole_units(probabilities: np.ndarray, start: np.ndarray, need: np.ndarray) -> np.ndarray:
    """Probabilities in units of 2^-40 that sum to exactly ``need`` in every row.

    What rounding leaves over or lacks goes to nodes with 0 < pi < 1, so that nodes with pi of 0 and 1 keep it.

    Args:
        probabilities: (entries,), each row sums to its need within 1e-6.
        start: (R + 1,) where rows begin.
        need: (R,) whole numbers.

    Raises:
        ValueError: a row does not sum to its need, or an entry is not within [0, 1].
    """
    if not np.all((probabilities >= -1e-9) & (probabilities <= 1 + 1e-9)):
        raise ValueError("probabilities must be within [0, 1]")
    units = np.rint(np.clip(probabilities, 0.0, 1.0) * UNIT).astype(np.int64)
    lack = need.astype(np.int64) * UNIT - np.add.reduceat(units, start[:-1])
    if np.any(np.abs(lack) > 1e-6 * UNIT):
        row = int(np.argmax(np.abs(lack)))
        raise ValueError(
            f"row {row}: probabilities sum to {need[row] - lack[row] / UNIT:.9g}, not {need[row]}"
        )
    for row in np.flatnonzero(lack).tolist():
        entries = slice(start[row], start[row + 1])
        row_units = units[entries]
        while lack[row]:
            partial = (row_units > 0) & (row_units < UNIT)
            room = np.where(partial, UNIT - row_units if lack[row] > 0 else row_units, 0)
            place = int(np.argmax(room))
            if room[place] == 0:  # a row of zeros and ones that sums to another number
                row_units[
                    int(np.argmax(row_units < UNIT) if lack[row] > 0 else np.argmax(row_units > 0))
                ] += lack[row]
                break
            step = int(np.sign(lack[row])) * min(abs(int(lack[row])), int(room[place]))
            row_units[place] += step
            lack[row] -= step
    return units
