"""Service times inferred from finish times, where the log allows it."""

import numba
import numpy as np

from ecjax.tables.statistics.index import grown


@numba.njit(cache=True, nogil=True)
def _infer(nodes, arrivals, finishes, last, state, service):
    """``state``: first row without a finish, first row out of order (-1: none), rows before this batch."""
    for i in range(nodes.shape[0]):
        finish, node = finishes[i], nodes[i]
        service[i] = np.nan
        if np.isnan(finish):
            if state[0] < 0:
                state[0] = state[2] + i
        elif finish < last[node]:
            if state[1] < 0:
                state[1] = state[2] + i
        else:
            service[i] = finish - max(arrivals[i], last[node])
            last[node] = finish
    state[2] += nodes.shape[0]


class ServiceInference:
    """Service = finish - max(arrival, previous finish on the node): right for one first-come first-served server.

    It needs every access in the log and finishes in the order of arrivals on each node; ``reason`` says what speaks
    against it. A sojourn time must never stand in for a service time.
    """

    def __init__(self) -> None:
        self._last = np.zeros(0)
        self._state = np.array([-1, -1, 0], np.int64)

    def add(self, nodes: np.ndarray, arrivals: np.ndarray, finishes: np.ndarray, known: int) -> np.ndarray:
        """Service times (s) of rows in order of arrival, NaN where none can be told.

        Args:
            nodes: node numbers below ``known``, (n,).
            arrivals: s, (n,).
            finishes: s, NaN where missing, (n,).
            known: number of nodes so far.
        """
        fresh = self._last.shape[0]
        self._last = grown(self._last, known)
        self._last[fresh:] = -np.inf
        service = np.empty(nodes.shape[0])
        _infer(nodes, arrivals, finishes, self._last, self._state, service)
        return service

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
