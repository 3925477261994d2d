"""The system that the replays are timed on: 1000 files of four classes, k = 6, on 12 unlike nodes."""

from dataclasses import dataclass

import numpy as np

from ecjax.simulation import laws, run, tally
from ecjax.simulation.run import Outcome, Policy, Queue
from ecjax.simulation.system import System, whole_units
from ecjax.streams import arrivals

FILES, NODES, NEED, CLASSES = 1000, 12, 6, 4
MEAN_S = 0.01  # service of a chunk at the fastest node
SLOWEST = 1.25
_SHIFT = 0.6  # part of the mean that is the shift of the shifted exponential law
_SIGMA = 0.5


@dataclass(frozen=True)
class ReferenceSystem:
    """A system and the reads of its files."""

    system: System
    rates: np.ndarray  # (r,) 1/s
    probabilities: np.ndarray  # (r, m)


def reference_system(law: str, n: int, load: float, seed: int, files: int = FILES) -> ReferenceSystem:
    """Files on ``n`` of the nodes each, read with unlike probabilities and lognormal rates.

    Args:
        law: "exponential", "shifted exponential" or "lognormal".
        n: nodes of a file; all, or drawn for every file.
        load: of the busiest node.
        seed: of what is drawn.
        files: how many.
    """
    rng = np.random.default_rng(seed)
    mean = MEAN_S * np.linspace(1.0, SLOWEST, NODES)
    placed = np.sort(np.argsort(rng.random((files, NODES)), axis=1)[:, :n], axis=1)
    weight = rng.uniform(0.85, 1.15, placed.shape)
    share = NEED * weight / weight.sum(axis=1, keepdims=True)
    rates = rng.lognormal(0.0, 1.0, files)
    probabilities = np.zeros((files, NODES))
    np.put_along_axis(probabilities, placed, share, axis=1)
    rates *= load / (rates @ probabilities * mean).max()
    start, nothing = n * np.arange(files + 1), np.zeros(files)
    need, group = np.full(files, NEED), np.arange(files) % CLASSES
    system = System(
        laws=laws.Laws(_laws(law, mean), np.zeros(1)),
        connect=np.stack([np.zeros(NODES), np.full(NODES, 1e-3)]),
        need=need,
        chunk_bytes=np.ones(files),
        extra_s=nothing,
        link_s=nothing,
        group=group,
        queue=group,
        row=np.arange(files),
        start=start,
        node=placed.ravel(),
        law=placed.ravel(),
        units=whole_units(share.ravel(), start, need),
        chunks=np.ones(placed.size, np.int64),
    )
    return ReferenceSystem(system, rates, probabilities)


def _laws(law: str, mean: np.ndarray) -> np.ndarray:
    table = np.zeros((len(mean), 9))
    if law == "lognormal":
        table[:, 2], table[:, 4], kind = mean * np.exp(-(_SIGMA**2) / 2), _SIGMA, laws.LOGNORMAL
    else:
        shift = _SHIFT if law == "shifted exponential" else 0.0
        table[:, 0], table[:, 2], kind = shift * mean, (1 - shift) * mean, laws.EXPONENTIAL
    table[:, 6] = kind
    return table


def replay(
    reference: ReferenceSystem,
    requests: int,
    seed: int,
    policy: Policy | None = None,
    queue: Queue | None = None,
    paths: bool = False,
) -> Outcome:
    """One replay: arrivals, dispatch, service times, and counting by class, node and file.

    Args:
        reference: system and rates.
        requests: how many.
        seed: of the replay.
        policy: the plan's probabilities by default.
        queue: first come, first served by default.
        paths: keep the latency of every request.
    """
    files = len(reference.rates)
    counts = tally.empty(requests, CLASSES, NODES, files, file_bins=True, paths=paths)
    blocks = arrivals.poisson(reference.rates, requests, seed)
    return run.replay(reference.system, blocks, counts, seed, policy or Policy(), queue or Queue())
