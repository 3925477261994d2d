"""Work that nodes have left when a log ends, or the reads of a replay: whether their queues have drained."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ecjax.traffic.node_work import Arrivals, Placed, node_work
from ecjax.units import time_text

_SERVICES = 10.0  # any node may have so many left
_ORDINARY = 5.0  # times the mean queue of Poisson reads, which is longer once in 150 times
_WAITS, _LEFT = 3.0, 0.01  # times the mean wait, or of the length of a log: what is less hardly counts


class Queues(NamedTuple):
    """Queues of m nodes over a log."""

    wait_s: float  # mean of chunks
    work_s: float  # mean of the chunks read
    load: np.ndarray  # (m,) of the whole log
    end_s: np.ndarray  # (m,) work that is left at its end


def fluid_queues(arrivals: Arrivals, placed: Placed) -> Queues:
    """Queues if every chunk took the mean of its services, which long ones hardly depend on: no estimate is needed.

    Args:
        arrivals: of r files, by bins.
        placed: where their chunks are.
    """
    at, width = node_work(arrivals, placed), arrivals.reads.width_s
    # work that arrived less the time that passed, and what of that time nodes were idle
    ahead = np.cumsum(at.work - width[:, None], axis=0)
    left = ahead - np.minimum(np.minimum.accumulate(ahead, axis=0), 0.0)
    wait_s = float(np.sum(at.work * left) / at.work.sum())
    return Queues(wait_s, at.work_s, at.load, left[-1])


def undrained(queues: Queues, length_s: float, names: Sequence[object], what: str = "the log") -> list[str]:
    """A sentence on the longest queue at the end that is no ordinary one; none where there is no such queue.

    Args:
        queues: of the nodes.
        length_s: of the log.
        names: of the nodes.
        what: ends.
    """
    full = queues.load >= 1
    ordinary = np.where(full, 0.0, _ORDINARY * queues.load / np.where(full, 1.0, 1 - queues.load))
    least = np.maximum(ordinary, _SERVICES) * queues.work_s
    least = np.maximum(least, min(_LEFT * length_s, _WAITS * queues.wait_s))
    left = np.where(queues.end_s > least, queues.end_s, 0.0)
    node = int(np.argmax(left))
    if left[node] <= 0:
        return []
    return [
        f"Node {names[node]} has work for {time_text(float(left[node]))} left when {what} ends: its queue has not "
        f"drained, and latencies depend on where {what} ends."
    ]
