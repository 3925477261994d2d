"""From a plan to the arrays that a replay runs on."""

from typing import Any, NamedTuple

import numpy as np

from ecjax.problem.arrays import column
from ecjax.simulation import law_fit
from ecjax.simulation.laws import Laws
from ecjax.simulation.run import DIRECT_OR_DEGRADED
from ecjax.simulation.system import UNIT, System, whole_units
from ecjax.studies.replay.operating_point import OperatingPoint
from ecjax.studies.replay.options import ReplayOptions

_Part = dict[
    str, np.ndarray
]  # columns of a ``System`` by name, rates (1/s) of its files, lengths of its rows


class Arriving(NamedTuple):
    """A system, and what arrives there: reads, then writes and background work as requests of files of their own.

    Attributes:
        system: nodes and files; the first ``reads`` are those of the plan.
        rates: (files of the system,) 1/s.
        reads: files of the plan, and its small reads.
    """

    system: System
    rates: np.ndarray
    reads: int


def arriving(at: OperatingPoint, options: ReplayOptions) -> Arriving:
    """System and arrival rates.

    Writes of a file are requests of a file of their own that loads every chunk; background work of a node likewise.

    Args:
        at: rates and chunk sizes are those of its problem.
        options: decoding and client links.
    """
    reads = _reads(at, options)
    parts = [reads, *_small_reads(at, options)]
    count = sum(len(part["rates"]) for part in parts)
    parts += [_writes(at, reads)] if at.problem.writes is not None else []
    tables = [at.laws.table]
    # of its own jobs, each on one channel
    background = np.asarray(at.problem.nodes.background) * at.channels ** np.arange(1, 4)[:, None]
    for node in np.flatnonzero(background[0] > 0).tolist():
        rate, law = law_fit.background(*background[:, node])
        parts.append(_background(node, rate, len(tables[0]) + len(tables) - 1, reads["queue"].max()))
        tables.append(law[None])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in reads}
    first_row = np.cumsum([0, *(len(part["lengths"]) for part in parts[:-1])])
    columns["row"] = np.concatenate([part["row"] + row for part, row in zip(parts, first_row, strict=True)])
    rates, start = columns.pop("rates"), np.concatenate([[0], np.cumsum(columns.pop("lengths"))])
    laws = Laws(np.concatenate(tables), at.laws.samples)
    return Arriving(System(laws, _connection(at), start=start, **columns), rates, count)


def _reads(at: OperatingPoint, options: ReplayOptions) -> _Part:
    plan, files = at.plan, at.problem.files
    placed, node = np.nonzero(plan.stored)
    lengths = plan.stored.sum(axis=1)
    start, need = np.concatenate([[0], np.cumsum(lengths)]), np.rint(np.asarray(at.problem.k))
    chunk, bandwidth = np.asarray(files.chunk_bytes), options.client_bandwidth_bytes_per_s
    moved = chunk * plan.per_node  # by one access
    return {
        "rates": np.asarray(files.rate),
        "need": np.rint(np.asarray(files.k)).astype(np.int64),
        "chunk_bytes": chunk,
        "extra_s": options.decode_s_per_byte * (moved * np.asarray(files.k)),
        "link_s": moved / bandwidth if bandwidth else np.zeros(len(chunk)),
        "group": plan.classes.of_file,
        "queue": plan.classes.of_file,
        "row": np.arange(len(chunk)) if at.problem.row is None else np.asarray(at.problem.row),
        "lengths": lengths,
        "node": node,
        "law": node,
        "units": whole_units(at.probabilities[placed, node], start, need.astype(np.int64)),
        "chunks": np.full(len(node), plan.per_node),
        "either": np.zeros(len(chunk), np.int64),
    }


def _small_reads(at: OperatingPoint, options: ReplayOptions) -> list[_Part]:
    """Small reads as files of their own: direct and degraded ones, or those that choose when they arrive.

    Rows begin with the nodes of the chunks; direct reads have these alone.
    """
    if at.kinds is None:
        return []
    reads, share = at.kinds.reads, at.kinds.share
    at_node, there = reads.nodes >= 0, reads.others >= 0
    lengths, bandwidth = there.sum(axis=1), options.client_bandwidth_bytes_per_s
    first = len(at.plan.classes.names)

    def part(
        which: np.ndarray, lengths: np.ndarray, node: np.ndarray, units: np.ndarray, **columns: Any
    ) -> _Part:
        size = reads.size[which]
        return {
            "chunk_bytes": size,
            "link_s": size / bandwidth if bandwidth else np.zeros(len(size)),
            "queue": np.zeros(len(size), np.int64),
            "row": np.arange(len(size)),
            "lengths": lengths,
            "node": node,
            "law": node,
            "units": units,
            "chunks": np.ones(len(node), np.int64),
        } | columns

    every = np.arange(reads.number)
    decode_s = options.decode_s_per_byte * reads.size * reads.k
    if at.policy == DIRECT_OR_DEGRADED:
        nodes = np.concatenate([reads.nodes, reads.others], axis=1)
        node = nodes[nodes >= 0]
        group = np.full(reads.number, first)
        return [
            part(
                every, reads.width + lengths, node, np.zeros(len(node), np.int64), rates=reads.rate, need=reads.k,
                extra_s=decode_s, group=group, either=reads.width,
            )
        ]  # fmt: skip
    none, planned = np.zeros(reads.number), np.zeros(reads.number, np.int64)
    parts = [
        part(
            every, reads.width, reads.nodes[at_node], np.full(at_node.sum(), UNIT),
            rates=reads.rate * np.maximum(1 - share, 0.0), need=reads.width, extra_s=none,
            group=np.full(reads.number, first), either=planned,
        )
    ]  # fmt: skip
    coded = np.flatnonzero(share > 0)
    if len(coded):
        probability = at.kinds.degraded[coded] / share[coded, None]
        start = np.concatenate([[0], np.cumsum(lengths[coded])])
        units = whole_units(probability[there[coded]], start, reads.k[coded])
        parts.append(
            part(
                coded, lengths[coded], reads.others[coded][there[coded]], units,
                rates=reads.rate[coded] * share[coded], need=reads.k[coded], extra_s=decode_s[coded],
                group=np.full(len(coded), first + 1), either=planned[coded],
            )
        )  # fmt: skip
    return parts


def _writes(at: OperatingPoint, reads: _Part) -> _Part:
    """A file that reads all chunks for each file that is written."""
    none = np.zeros(len(reads["rates"]))
    return reads | {
        "rates": np.asarray(at.problem.files.write_rate),
        "need": reads["lengths"][reads["row"]],
        "chunk_bytes": np.asarray(at.problem.files.write_bytes),
        "extra_s": none,
        "link_s": none,
        "group": np.full(len(none), -1),
        "units": np.full(len(reads["node"]), UNIT),
    }


def _background(node: int, rate: float, law: int, queue: int) -> _Part:
    """A file that is on one node only."""
    whole = {"need": 1, "group": -1, "queue": queue, "row": 0, "lengths": 1, "chunks": 1}
    whole |= {"node": node, "law": law, "units": UNIT, "either": 0}
    real = {"rates": rate, "chunk_bytes": 0.0, "extra_s": 0.0, "link_s": 0.0}
    return {name: np.array([value]) for name, value in (whole | real).items()}


def _connection(at: OperatingPoint) -> np.ndarray:
    """Shape (0: constant) and scale (s) of the gamma laws of the nodes' connection delays, (2, m)."""
    mean, variance = (column(at.plan.nodes, name) for name in ("connect_mean_s", "connect_var_s2"))
    varies = (variance > 0) & (mean > 0)
    shape = np.where(varies, mean**2 / np.where(varies, variance, 1.0), 0.0)
    return np.stack([shape, np.where(varies, mean / np.where(varies, shape, 1.0), mean)])
