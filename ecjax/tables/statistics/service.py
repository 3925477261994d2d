"""Service times inferred from finish times, where the log allows it."""

import numpy as np

from ecjax.machine_code import njit
from ecjax.tables.statistics.index import grown


@njit()
def _infer(nodes, arrivals, finishes, continues, last, state, service, waiting):
    """``state``: first row without a finish, first row out of order (-1: none), rows before this batch.

    Returns how many rows wait for the finish before them on their node; ``waiting`` holds their places.
    """
    count = 0
    for i in range(nodes.shape[0]):
        finish, node = finishes[i], nodes[i]
        service[i] = np.nan
        if np.isnan(finish):
            if state[0] < 0:
                state[0] = state[2] + i
        elif continues and last[node] == -np.inf:
            waiting[count] = i
            count += 1
            last[node] = finish
        elif finish < last[node]:
            if state[1] < 0:
                state[1] = state[2] + i
        else:
            service[i] = finish - max(arrivals[i], last[node])
            last[node] = finish
    state[2] += nodes.shape[0]
    return count


class ServiceInference:
    """Service = finish - max(arrival, previous finish on the node): right for one first-come first-served server.

    It needs every access in the log and finishes in the order of arrivals on each node; ``reason`` says what speaks
    against it. A sojourn time must never stand in for a service time.

    Args:
        first_row: number of the first row in the log.
        continues: whether rows come before. The first access with a finish on each node then waits for ``absorb``:
            only with the finish before it can its service be told, or that it is out of order. Of the accesses after
            it all is known, unless it was out of order itself: then no later one is the first of its node to be so.
    """

    def __init__(self, first_row: int = 0, continues: bool = False) -> None:
        self._last = np.zeros(0)
        self._continues = continues
        self._state = np.array([-1, -1, first_row], np.int64)
        self._waiting: dict[int, tuple[int, float, float]] = {}  # by node: row, arrival, finish
        self.waiting = np.zeros(0, np.int64)  # places of the rows, of those last added, that wait

    def add(
        self, nodes: np.ndarray, arrivals: np.ndarray, finishes: np.ndarray, node_count: int
    ) -> np.ndarray:
        """Service times (s) of rows in order of arrival, NaN where none can be told (yet: see ``waiting``).

        Args:
            nodes: node numbers below ``node_count``, (n,).
            arrivals: s, (n,).
            finishes: s, NaN where missing, (n,).
            node_count: number of nodes so far.
        """
        self._make_room(node_count)
        service = np.empty(nodes.shape[0])
        waiting = np.empty(node_count if self._continues else 0, np.int64)
        before = int(self._state[2])
        count = _infer(nodes, arrivals, finishes, self._continues, self._last, self._state, service, waiting)
        self.waiting = waiting[:count]
        for i in self.waiting.tolist():
            self._waiting[int(nodes[i])] = (before + i, float(arrivals[i]), float(finishes[i]))
        return service

    def absorb(self, other: "ServiceInference", nodes: np.ndarray, node_count: int) -> np.ndarray:
        """Add the rows after those of this one.

        Args:
            other: what was inferred from them.
            nodes: the number here of each of its nodes, (nodes of the other,).
            node_count: number of nodes here.

        Returns:
            By node of the other, the service time (s) of its access that waited; NaN where it was out of order or none
            waited.
        """
        self._make_room(node_count)
        service = np.full(len(nodes), np.nan)
        unordered = [int(other._state[1])]
        for node, (row, arrival, finish) in other._waiting.items():
            last = self._last[nodes[node]]
            if finish < last:
                unordered.append(row)
            else:
                service[node] = finish - max(arrival, last)
        if self._state[0] < 0:
            self._state[0] = other._state[0]
        if self._state[1] < 0:
            self._state[1] = min((row for row in unordered if row >= 0), default=-1)
        places = nodes[: len(other._last)]  # none, where nothing was to be inferred
        self._last[places] = np.maximum(self._last[places], other._last[: len(places)])
        self._state[2] = other._state[2]
        return service

    def _make_room(self, node_count: int) -> None:
        fresh = self._last.shape[0]
        self._last = grown(self._last, node_count)
        self._last[fresh:] = -np.inf

    @property
    def complete(self) -> bool:
        """Whether every access has a finish."""
        return bool(self._state[0] < 0)

    @property
    def reason(self) -> str | None:
        """Why service times cannot be inferred; None where they can."""
        incomplete, unordered, _ = self._state
        if incomplete >= 0:
            return f"start_s is missing, and row {incomplete} has no finish_s to infer service times from"
        if unordered >= 0:
            return (
                "start_s is missing, and accesses do not finish in order of arrival on their node "
                f"(row {unordered} first), so that service times cannot be inferred"
            )
        return None
