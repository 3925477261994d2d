"""Cheaper placements a chunk or two away, where files are few.

Matching moves the pairs of a row as they are. Among few files a cheaper placement may need the reads to be spread anew
before it keeps the limits: here placements that differ by one or two exchanges of a chunk are tried with their reads
(and shares) made good for the limits, those first that would be least late with the reads moved along.
"""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.optimize import limits
from ecjax.optimize.classes.alternate import Alternation, Point
from ecjax.optimize.classes.deadlines_search import Search
from ecjax.optimize.classes.model import kind_reads, other_work, state
from ecjax.optimize.classes.relief import Start

_CELLS = 200  # rows times nodes, at most
_PAIRS = 10_000  # of exchanges, at most
_TRIES = 60  # placements that are tried, between two that are better
_BATCH = 128  # placements whose latencies are found together

_Move = tuple[int, int, int, float]  # row, node that loses its chunk, node that gets it, dollars


def exchange(search: Search) -> None:
    """Change the best plan of a search as long as exchanges find cheaper ones that keep the limits.

    Args:
        search: its goal is what chunks cost, and reads cost nothing.
    """
    problem = search.run.model.problem
    if problem.rows * problem.nodes.count > _CELLS:
        return
    while search.best is not None and not search.done:
        value = search.best.value
        for start in _candidates(search, search.best.point):
            search.judge(search.settle(Alternation(search.run.model, start, search.run.settings, None).point))
            if search.best.value < value:
                break
        else:
            return


def _candidates(search: Search, point: Point) -> list[Start]:
    """Cheaper placements nearby that keep the constraints, the most promising first."""
    problem, kept = search.run.model.problem, np.asarray(search.goal.kept)
    stored, reads = np.asarray(point.stored), np.asarray(point.probabilities)
    moves = [
        (row, int(out), int(into), float(kept[row, into] - kept[row, out]))
        for row in range(problem.rows)
        for out in np.flatnonzero(stored[row])
        for into in np.flatnonzero(~stored[row])
    ]
    sets: list[tuple[_Move, ...]] = [(move,) for move in moves if move[3] < 0]
    # two that both save are for the next time
    pairs = [pair for pair in combinations(moves, 2) if min(-pair[0][3], -pair[1][3]) <= 0 and _apart(*pair)]
    pairs = [pair for pair in pairs if pair[0][3] + pair[1][3] < 0]
    sets += sorted(pairs, key=lambda pair: pair[0][3] + pair[1][3])[:_PAIRS]
    starts = []
    for moved in sets:
        own, chunks = reads.copy(), stored.copy()
        for row, out, into, _ in moved:
            own[row, into], own[row, out] = own[row, out], 0.0
            chunks[row, out], chunks[row, into] = False, True
        if not any(violation.times for violation in limits.violations(problem, chunks).values()):
            starts.append(Start(own, chunks))
    late = _lateness(search, point, starts)
    return [starts[i] for i in np.argsort(late, kind="stable")[:_TRIES] if np.isfinite(late[i])]


def _apart(one: _Move, other: _Move) -> bool:
    """Whether two exchanges are of different chunks and nodes, or of different rows."""
    return one[0] != other[0] or (one[1] != other[1] and one[2] != other[2])


def _lateness(search: Search, point: Point, starts: list[Start]) -> np.ndarray:
    """The largest of L_k / limit_k, by starts."""
    found = []
    for first in range(0, len(starts), _BATCH):
        some = starts[first : first + _BATCH]
        filled = some + [some[-1]] * (_BATCH - len(some))
        reads, stored = (np.stack(part) for part in zip(*filled, strict=True))
        latency = _LATENCIES(
            search.run.model, jnp.asarray(reads), jnp.asarray(stored), point.weights, point.z
        )
        found.append(np.max(np.asarray(latency)[: len(some)] / search.limits, axis=1))
    return np.concatenate(found) if found else np.zeros(0)


@jax.jit
def _LATENCIES(model, reads, stored, weights, z):
    def one(reads, stored):
        return state(model, kind_reads(model, reads), other_work(model, stored), weights, z).latency

    return jax.vmap(one)(reads, stored)
