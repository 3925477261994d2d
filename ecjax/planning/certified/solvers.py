"""Where the smoothed dual is solved: row by row on processors, or for all lanes together on JAX's device."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import BoundedSemaphore, Condition
from typing import Literal, Protocol

import jax
import numpy as np

from ecjax.planning.smoothed import newton
from ecjax.planning.smoothed.backend import NUMPY
from ecjax.planning.smoothed.newton import Demand, Solution
from ecjax.planning.smoothed.program import Request, Shape, shape_of, solved

Device = Literal["auto", "host", "jax"]
HOST = "cpu"

# Operations of a pass (rows x nodes^2, of all lanes) from which on an accelerator is taken without being asked for: by
# the table of ``ecjax guide bench`` 64 lanes of 3000 bins on 12 nodes, 2.8e7, gain fivefold; one lane of them gains a
# fifth of a second, less than the compilation that it would need.
_WORTHWHILE = 1e7
_ARRAYS = 40  # of rows x nodes, and
_MATRICES = 8  # of nodes x nodes, that a lane holds at its peak
_MEMORY_BYTES = 2 * 2**30  # where the device does not tell its own
_SHARE = 0.5  # of the device's memory


class Solver(Protocol):
    """Solves for one lane."""

    def solve(self, request: Request, demand: Demand) -> Solution:
        """Prices; ``demand`` is that of the rows of the request, on the host."""

    def leave(self) -> None:
        """Of this lane nothing more is to be solved."""

    def working(self) -> AbstractContextManager[object]:
        """Around what a lane computes besides."""


class HostSolver:
    """On the processors that the demand shares its rows out to."""

    def solve(self, request: Request, demand: Demand) -> Solution:
        """Prices."""
        with np.errstate(all="ignore"):
            return newton.solve(
                *(NUMPY, request.cluster, demand, request.settings),
                *(request.z, request.read, request.place),
            )

    def leave(self) -> None:
        """Nobody waits."""

    def working(self) -> AbstractContextManager[object]:
        """No more lanes than processors compute anyway."""
        return nullcontext()


@dataclass
class _Waiting:
    request: Request
    solution: Solution | None = None
    error: BaseException | None = None


class SharedSolver:
    """Solves the requests of several lanes, each in a thread of its own, as few programs with lanes.

    A request waits until every lane that has not left waits with one of its own.

    Args:
        lanes: how many will ask.
        at_once: of these compute at the same time; those that wait for an answer do not count.
    """

    def __init__(self, lanes: int, at_once: int) -> None:
        self._lanes = lanes
        self._turn = BoundedSemaphore(at_once)
        self._waiting: list[_Waiting] = []
        self._changed = Condition()

    def solve(self, request: Request, demand: Demand) -> Solution:
        """Prices."""
        waiting = _Waiting(request)
        self._turn.release()
        try:
            with self._changed:
                self._waiting.append(waiting)
                self._solve_if_all_wait()
                while waiting.solution is None and waiting.error is None:
                    self._changed.wait()
        finally:
            self._turn.acquire()
        if waiting.solution is None:
            assert waiting.error is not None
            raise waiting.error
        return waiting.solution

    def working(self) -> AbstractContextManager[object]:
        """A turn, which ``solve`` hands on while it waits."""
        return self._turn

    def leave(self) -> None:
        """The others need not wait for this lane any more."""
        with self._changed:
            self._lanes -= 1
            self._solve_if_all_wait()

    def _solve_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._lanes:
            return
        by_shape: dict[Shape, list[_Waiting]] = defaultdict(list)
        for waiting in self._waiting:
            by_shape[shape_of(waiting.request)].append(waiting)
        self._waiting = []
        for shape, group in by_shape.items():
            most = _most_lanes(shape)
            for first in range(0, len(group), most):
                _solve_group(group[first : first + most])
        self._changed.notify_all()


def _solve_group(group: Sequence[_Waiting]) -> None:
    try:
        for waiting, solution in zip(group, solved([each.request for each in group]), strict=True):
            waiting.solution = solution
    except BaseException as error:
        for waiting in group:
            waiting.error = error


def _most_lanes(shape: Shape) -> int:
    """Lanes whose arrays fit into the memory of the devices together, which share the rows."""
    stats = jax.devices()[0].memory_stats() or {}
    memory = _SHARE * stats.get("bytes_limit", _MEMORY_BYTES / _SHARE)
    places = shape.sites * shape.width
    rows = -(-shape.rows // jax.local_device_count())
    lane = 8 * (_ARRAYS * rows * places * shape.per_site + _MATRICES * (2 * shape.nodes) ** 2)
    return max(1, int(memory // lane))


def on_jax(device: Device, rows: int, nodes: int, lanes: int) -> bool:
    """Whether so many lanes are solved by JAX.

    Args:
        device: what was asked for.
        rows: of each lane, bins of files.
        nodes: m.
        lanes: together.
    """
    if device != "auto":
        return device == "jax"
    return jax.default_backend() != "cpu" and rows * nodes**2 * lanes >= _WORTHWHILE
