"""From a plan to the arrays that a replay runs on."""

from typing import NamedTuple

import numpy as np

from ecjax.problem.arrays import column
from ecjax.replay import law_fit
from ecjax.replay.laws import Laws
from ecjax.replay.system import UNIT, System, whole_units
from ecjax.studies.replay.operating_point import OperatingPoint
from ecjax.studies.replay.options import ReplayOptions

_FILE_COLUMNS = ("need", "chunk_bytes", "extra_s", "link_s", "group", "queue", "row")  # of a ``System``


class Arriving(NamedTuple):
    """A system, and what arrives there: reads, then writes and background work as requests of files of their own.

    Attributes:
        system: nodes and files; the first ``reads`` are those of the plan.
        rates: (files of the system,) 1/s.
        reads: files of the plan.
    """

    system: System
    rates: np.ndarray
    reads: int


class _Parts:
    """Files with their placement rows and nodes, put together part by part."""

    def __init__(self) -> None:
        self.files: dict[str, list[np.ndarray]] = {name: [] for name in _FILE_COLUMNS}
        self.entries: dict[str, list[np.ndarray]] = {name: [] for name in ("node", "law", "units", "chunks")}
        self.rates: list[np.ndarray] = []
        self.starts = [np.zeros(1, np.int64)]

    @property
    def rows(self) -> int:
        """Placement rows so far."""
        return sum(map(len, self.starts)) - 1

    def add_files(self, rates: np.ndarray, **columns: np.ndarray) -> None:
        """Files with their rates and columns of a ``System``; absent ones are 0."""
        self.rates.append(rates)
        for name, parts in self.files.items():
            parts.append(columns.get(name, np.zeros(len(rates))))

    def add_rows(self, lengths: np.ndarray, **columns: np.ndarray) -> None:
        """Placement rows with so many nodes each, and columns by node."""
        self.starts.append(self.starts[-1][-1] + np.cumsum(lengths))
        for name, parts in self.entries.items():
            parts.append(columns[name])


def arriving(at: OperatingPoint, options: ReplayOptions) -> Arriving:
    """System and arrival rates.

    Writes of a file are requests of a file of their own that loads every chunk; background work of a node likewise.

    Args:
        at: rates and chunk sizes are those of its problem.
        options: decoding and client links.
    """
    plan, files = at.plan, at.problem.files
    count, per_node, classes = files.count, plan.per_node, plan.classes.of_file
    row = np.arange(count) if at.problem.row is None else np.asarray(at.problem.row)
    placed, node = np.nonzero(plan.stored)
    lengths = plan.stored.sum(axis=1)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    units = whole_units(
        at.probabilities[placed, node], begin, np.rint(np.asarray(at.problem.k)).astype(np.int64)
    )
    chunk, together = np.asarray(files.chunk_bytes), np.full(len(node), per_node)
    bandwidth = options.client_bandwidth_bytes_per_s
    parts = _Parts()
    parts.add_files(
        np.asarray(files.rate),
        need=np.rint(np.asarray(files.k)).astype(np.int64),
        chunk_bytes=chunk / per_node,
        extra_s=options.decode_s_per_byte * (chunk * np.asarray(files.k)),
        link_s=chunk / bandwidth if bandwidth else np.zeros(count),
        group=classes,
        queue=classes,
        row=row,
    )
    parts.add_rows(lengths, node=node, law=node, units=units, chunks=together)
    if at.problem.writes is not None:
        parts.add_files(
            np.asarray(files.write_rate),
            need=lengths[row],
            chunk_bytes=chunk / per_node,
            group=np.full(count, -1),
            queue=classes,
            row=parts.rows + row,
        )
        parts.add_rows(lengths, node=node, law=node, units=np.full(len(node), UNIT), chunks=together)
    laws, last = [at.laws.table], classes.max(keepdims=True)
    background = np.asarray(at.problem.nodes.background)
    for busy in np.flatnonzero(background[0] > 0):
        rate, law = law_fit.background(*background[:, busy])
        one = np.ones(1, np.int64)
        parts.add_files(
            np.array([rate]), need=one, group=-one, queue=last, row=np.array([parts.rows], np.int64)
        )
        number = np.array([sum(map(len, laws))])
        parts.add_rows(one, node=np.array([busy]), law=number, units=one * UNIT, chunks=one)
        laws.append(law[None])
    columns = {
        name: np.concatenate(values)
        for name, values in (parts.files | parts.entries | {"start": parts.starts}).items()
    }
    system = System(Laws(np.concatenate(laws), at.laws.samples), connect=_connection(at), **columns)
    return Arriving(system, np.concatenate(parts.rates), count)


def _connection(at: OperatingPoint) -> np.ndarray:
    """Shape (0: constant) and scale (s) of the gamma laws of the nodes' connection delays, (2, m)."""
    mean, variance = (column(at.plan.nodes, name) for name in ("connect_mean_s", "connect_var_s2"))
    varies = (variance > 0) & (mean > 0)
    shape = np.where(varies, mean**2 / np.where(varies, variance, 1.0), 0.0)
    return np.stack([shape, np.where(varies, mean / np.where(varies, shape, 1.0), mean)])
