"""Cheaper placements a chunk or two away, where files are few.

Matching moves the pairs of a row as they are. Among few files a cheaper placement may need the reads to be spread anew
before it keeps the limits: here placements that differ by one or two exchanges of a chunk are tried with their reads
(and shares) made good for the limits, those first that would be least late with the reads moved along. Where there are
not many placements at all, none is too far away.
"""

import heapq
import math
from collections.abc import Iterator
from itertools import combinations, islice, product

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning import limits
from ecjax.planning.classes.alternate import Alternation, Point
from ecjax.planning.classes.deadlines_search import Search
from ecjax.planning.classes.model import kind_reads, other_work, state
from ecjax.planning.classes.relief import Start, relieved
from ecjax.programs import program

_CELLS = 200  # rows times nodes, at most
_ALL = 20_000  # placements in all, so many at most: none is left out
_PAIRS = 10_000  # of exchanges, at most
_ROUNDING = 1e-9
_TRIES = 100  # placements that are tried, between two that are better
_BATCH = 128  # placements whose latencies are found together

_Plan = tuple[np.ndarray, ...]  # probabilities and what is stored, (R, m) each
_Move = tuple[int, int, int, float]  # row, node that loses its chunk, node that gets it, dollars


def exchange(search: Search) -> None:
    """Change the best plan of a search as long as exchanges find cheaper ones that keep the limits.

    Args:
        search: its goal is what chunks cost, and reads cost nothing.
    """
    problem = search.run.model.problem
    if problem.rows * problem.nodes.count > _CELLS:
        return
    run, better = search.run, True
    while better and search.best is not None and not search.finished:
        value, steps = search.best.value, len(run.steps)
        for start in _candidates(search, search.best.point):
            # what is tried in vain is no step
            del run.steps[steps:]
            stable = relieved(problem, start, np.zeros(problem.rows, int), np.ones((1, problem.nodes.count)))
            search.judge(search.settle(Alternation(run.model, stable, run.settings, None).point))
            better = search.best.value < value
            if better:
                break
        else:
            better = False
            del run.steps[steps:]


def _candidates(search: Search, point: Point) -> list[Start]:
    """Cheaper placements that keep the constraints, the most promising first."""
    problem = search.run.model.problem
    stored = np.asarray(point.stored)
    ways = math.prod(math.comb(problem.nodes.count, int(length)) for length in stored.sum(axis=1))
    cheaper = _all(search, point) if ways <= _ALL else _nearby(search, point)
    plans = [plan for plan in cheaper if limits.keeps(problem, plan[1])]
    late = _lateness(search, point, plans)
    first = [plans[i] for i in np.argsort(late, kind="stable")[:_TRIES]]
    return [Start(jnp.asarray(reads), jnp.asarray(chunks)) for reads, chunks in first]


def _all(search: Search, point: Point) -> Iterator[_Plan]:
    """All cheaper placements; rows that change are read evenly."""
    storing, stored, reads = (
        np.asarray(part) for part in (search.goal.storing, point.stored, point.probabilities)
    )
    k, nodes = np.asarray(search.run.model.problem.k), np.arange(stored.shape[1])
    rows = [
        np.array([np.isin(nodes, selection) for selection in combinations(nodes, int(length))])
        for length in stored.sum(axis=1)
    ]
    costs = [(row * price).sum(axis=1) for row, price in zip(rows, storing, strict=True)]
    spread = [
        np.where((row == current).all(axis=1, keepdims=True), now, row * (read / current.sum()))
        for row, current, now, read in zip(rows, stored, reads, k, strict=True)
    ]
    most = np.sum(storing * stored) * (1 - _ROUNDING)
    for selection in product(*(range(len(row)) for row in rows)):
        if sum(cost[i] for cost, i in zip(costs, selection, strict=True)) < most:
            yield tuple(
                np.stack([row[i] for row, i in zip(part, selection, strict=True)]) for part in (spread, rows)
            )


def _nearby(search: Search, point: Point) -> Iterator[_Plan]:
    """Cheaper placements by one or two exchanges of a chunk, whose reads go with it."""
    storing, stored, reads = (
        np.asarray(part) for part in (search.goal.storing, point.stored, point.probabilities)
    )
    moves = [
        (row, int(out), int(into), float(storing[row, into] - storing[row, out]))
        for row in range(len(stored))
        for out in np.flatnonzero(stored[row])
        for into in np.flatnonzero(~stored[row])
    ]
    sets: list[tuple[_Move, ...]] = [(move,) for move in moves if move[3] < 0]
    sets += islice(_pairs(moves), _PAIRS)
    for moved in sets:
        probabilities, chunks = reads.copy(), stored.copy()
        for row, out, into, _ in moved:
            probabilities[row, into], probabilities[row, out] = probabilities[row, out], 0.0
            chunks[row, out], chunks[row, into] = False, True
        yield probabilities, chunks


def _pairs(moves: list[_Move]) -> Iterator[tuple[_Move, _Move]]:
    """Pairs of exchanges that save together, those that save most first: of one that saves and one that does not.

    Two that both save are for the next time.
    """
    ordered = sorted(moves, key=lambda move: move[3])
    saving, paying = ([move for move in ordered if (move[3] < 0) == saves] for saves in (True, False))
    # the best pair of each that saves with those that it has not met: all pairs at once may be millions
    best = [(one[3] + paying[0][3], i, 0) for i, one in enumerate(saving)] if paying else []
    while best and best[0][0] < 0:
        _, i, j = best[0]
        if _apart(saving[i], paying[j]):
            yield saving[i], paying[j]
        if j + 1 < len(paying):
            heapq.heapreplace(best, (saving[i][3] + paying[j + 1][3], i, j + 1))
        else:
            heapq.heappop(best)


def _apart(one: _Move, other: _Move) -> bool:
    """Whether two exchanges are of different chunks and nodes, or of different rows."""
    return one[0] != other[0] or (one[1] != other[1] and one[2] != other[2])


def _lateness(search: Search, point: Point, plans: list[_Plan]) -> np.ndarray:
    """The largest of L_k / limit_k, by plans."""
    lateness = []
    for first in range(0, len(plans), _BATCH):
        some = plans[first : first + _BATCH]
        filled = some + [some[-1]] * (_BATCH - len(some))
        reads, stored = (np.stack(part) for part in zip(*filled, strict=True))
        latency = _LATENCIES(
            search.run.model, jnp.asarray(reads), jnp.asarray(stored), point.weights, point.z
        )
        late = np.asarray(latency)[: len(some)]
        # a class that is promised nothing has to be stable, too
        share = np.divide(late, search.limits, out=np.full_like(late, np.inf), where=np.isfinite(late))
        lateness.append(np.max(share, axis=1))
    return np.concatenate(lateness) if lateness else np.zeros(0)


@program
def _LATENCIES(model, reads, stored, weights, z):
    def one(reads, stored):
        return state(model, kind_reads(model, reads), other_work(model, stored), weights, z).latency

    return jax.vmap(one)(reads, stored)
