"""What is transferred, and over what: coflows on a non-blocking switch whose ports have capacities."""

from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError

CHOSEN_LATER = -1  # source of a flow that a source rule will choose


class Fabric(NamedTuple):
    """A non-blocking switch: only its ports limit transfers.

    Sources and destinations are counted apart: a machine that sends and receives has a port of each kind.
    """

    send: np.ndarray  # (S,) bytes/s that each source can send
    receive: np.ndarray  # (D,) bytes/s that each destination can receive


class Workload(NamedTuple):
    """Coflows in order of arrival: sets of flows that are of use once the last of them has ended.

    A read of an erasure-coded file is a coflow of k flows of one size to one client, whose sources are chosen among the
    servers that keep a chunk: its flows have source ``CHOSEN_LATER`` and it has candidates. Coflows with
    given sources have none.
    """

    arrival_s: np.ndarray  # (C,) ascending
    first_flow: np.ndarray  # (C + 1,) the flows of coflow c are first_flow[c] to first_flow[c + 1] - 1
    source: np.ndarray  # (F,) sending port of each flow, or CHOSEN_LATER
    destination: np.ndarray  # (F,) receiving port
    bytes: np.ndarray  # (F,) above 0
    first_candidate: np.ndarray  # (C + 1,)
    candidate: np.ndarray  # (N,) servers with a chunk of what is read; those of one coflow differ

    @property
    def width(self) -> np.ndarray:
        """Flows of each coflow, (C,)."""
        return np.diff(self.first_flow)

    @property
    def coflow_bytes(self) -> np.ndarray:
        """Bytes of each coflow, (C,)."""
        return np.add.reduceat(self.bytes, self.first_flow[:-1])

    @property
    def coflow_of_flow(self) -> np.ndarray:
        """Coflow of each flow, (F,)."""
        return np.repeat(np.arange(len(self.arrival_s)), self.width)


def given_sources(
    arrival_s: np.ndarray,
    first_flow: np.ndarray,
    source: np.ndarray,
    destination: np.ndarray,
    size: np.ndarray,
) -> Workload:
    """Coflows whose sources are given: shapes as in ``Workload``."""
    none = np.zeros(len(arrival_s) + 1, dtype=np.int64)
    return Workload(arrival_s, first_flow, source, destination, size, none, np.empty(0, dtype=np.int64))


def reads(
    arrival_s: np.ndarray,
    client: np.ndarray,
    chunk_bytes: np.ndarray,
    k: np.ndarray,
    first_candidate: np.ndarray,
    candidate: np.ndarray,
) -> Workload:
    """Reads of erasure-coded files: k chunks of one size each, from servers to be chosen.

    Args:
        arrival_s: (C,) ascending.
        client: receiving port of each read, (C,).
        chunk_bytes: size of a chunk of what it reads, (C,).
        k: chunks that it needs, (C,).
        first_candidate: (C + 1,).
        candidate: servers that keep a chunk, (N,).
    """
    first = np.concatenate([[0], np.cumsum(k)]).astype(np.int64)
    return Workload(
        arrival_s,
        first,
        np.full(first[-1], CHOSEN_LATER, dtype=np.int64),
        np.repeat(client, k).astype(np.int64),
        np.repeat(chunk_bytes, k).astype(float),
        np.asarray(first_candidate, dtype=np.int64),
        np.asarray(candidate, dtype=np.int64),
    )


def check(workload: Workload, fabric: Fabric) -> None:
    """What a replay relies on.

    Raises:
        UserError: arrivals descend or are not finite, sizes or capacities are not above 0, ports do not exist, a coflow
            has no flow, or a read fewer candidates than flows or a candidate twice.
    """
    arrival, size = workload.arrival_s, workload.bytes
    if not np.isfinite(arrival).all() or (np.diff(arrival) < 0).any():
        raise UserError("arrival_s: found times that descend or are not finite; allowed: ascending seconds")
    if not (np.isfinite(size).all() and (size > 0).all()):
        raise UserError("bytes: found sizes that are not above 0; allowed: finite numbers above 0")
    for name, capacity in (("send", fabric.send), ("receive", fabric.receive)):
        if not (np.isfinite(capacity).all() and (capacity > 0).all()):
            raise UserError(f"{name}: found a port without capacity; allowed: finite bytes/s above 0")
    if (workload.width < 1).any():
        raise UserError("first_flow: found a coflow without flows; allowed: at least one each")
    for name, port, count in (
        ("source", workload.source[workload.source != CHOSEN_LATER], len(fabric.send)),
        ("destination", workload.destination, len(fabric.receive)),
        ("candidate", workload.candidate, len(fabric.send)),
    ):
        if len(port) and (port.min() < 0 or port.max() >= count):
            raise UserError(f"{name}: found port {port.min()} to {port.max()}; allowed: 0 to {count - 1}")
    later = np.add.reduceat(workload.source == CHOSEN_LATER, workload.first_flow[:-1])
    candidates = np.diff(workload.first_candidate)
    short = (later > 0) & (candidates < workload.width)
    if short.any():
        first = int(short.argmax())
        raise UserError(
            f"coflow {first}: found {candidates[first]} servers that keep a chunk; allowed: at least the "
            f"{workload.width[first]} that it reads"
        )
    of = np.repeat(np.arange(len(arrival)), candidates)
    pairs = np.unique(np.stack([of, workload.candidate]), axis=1).shape[1]
    if pairs < len(of):
        raise UserError("candidate: found a server twice for one coflow; allowed: once")
