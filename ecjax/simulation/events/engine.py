"""Block after block of requests through the loop over events."""

from dataclasses import dataclass, field

import numpy as np

from ecjax.simulation.events import kernel
from ecjax.simulation.events.settings import Settings
from ecjax.simulation.events.state import HEDGES, NEEDED, State, empty, grown
from ecjax.simulation.system import System
from ecjax.simulation.tally import Tally

_END = np.finfo(np.float64).max


@dataclass
class Run:
    """A run: what is carried from block to block."""

    system: System
    settings: Settings
    seed: int
    state: State = field(init=False)
    overflow: bool = field(default=False, init=False)  # too many requests in the system: the run was given up

    def __post_init__(self) -> None:
        self.state = empty(self.system, self.settings)


def replay_block(run: Run, counts: Tally, times: np.ndarray, files: np.ndarray, first: int) -> bool:
    """Replay one block of requests; those that are not finished when the last of them arrives are carried.

    Requests of group -1 need all nodes of their row. Latencies go to the tally when requests leave the system, and
    so may come out of order; ``busy`` has service as it ends, cut short or not. An access counts from when it was first
    sent (late binding: from the arrival) to its end, at the node where it ends; one that was cut short does not.

    Args:
        run: settings and state.
        counts: where to count.
        times: (b,) s, arrivals, in order.
        files: (b,) int64.
        first: number of the first request of the block.

    Returns:
        Whether the run goes on: False where too many requests are in the system (it is far from stable).
    """
    at = 0
    while not run.overflow:
        at += kernel.run(
            run.system, counts, times[at:], files[at:], first + at, run.seed, run.settings, run.state, -np.inf
        )
        if at == len(times):
            break
        larger = grown(run.state, run.system, run.settings)
        if larger is None:
            run.overflow = True
        else:
            run.state = larger
    return not run.overflow


def hedged_share(run: Run) -> float:
    """Accesses of hedging as a share of those that the requests need which may be hedged; 0 without any."""
    return float(run.state.counters[HEDGES]) / max(float(run.state.counters[NEEDED]), 1.0)


def finish(run: Run, counts: Tally) -> int:
    """Let all that is in the system end, after the last block.

    Returns:
        Requests that never end: they wait at nodes that stay down.
    """
    if not run.overflow:
        none = np.empty(0)
        kernel.run(
            run.system, counts, none, none.astype(np.int64), 0, run.seed, run.settings, run.state, _END
        )
    return int(np.sum((run.state.number >= 0) & (run.state.complete == np.inf)))
