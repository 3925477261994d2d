"""A lower bound on the mean latency bound of every choice of read kinds and spread, by prices of node work.

A kind of reads is a column of the price decomposition. For prices p of a full, direct or joined chunk at every node
any plan's latency, summed over the reads of a second, is at least

    sum over nodes of [min over loads of the node's latency - p . loads]
      + sum over rows of the least prices of full reads, and lambda_full z_full
      + sum over small reads of rate min(p_d, z_joined + the k least p_g of the other nodes),

with z_joined + the sum of p_g at its nodes for p_d where a direct read is of several chunks.

The latency of a node is not convex in the loads of its kinds, so that slopes at a plan's loads are not the best
prices: these are improved by subgradients, or by cutting planes where there are several sizes (``rectangle``). The
bound holds for the z that prices are used with: z is searched by rectangles, of z of full and of joined reads. All
are proved to a coarse target before any to a finer one, until the work that is allowed is done. Every chunk size of
full reads and every size of small ones has prices of its own; with more sizes than the model has, or where so few
evaluations are allowed that they prove nothing, there is no bound.
"""

import heapq

import numpy as np

from ecjax.planning.read_kinds.model import KindModel
from ecjax.planning.read_kinds.read_terms import PlacementTerm, ReadTerm
from ecjax.planning.read_kinds.rectangle import FAR, Range, RectangleBound
from ecjax.planning.read_kinds.spread import KindPlan

# evaluations times nodes, and times what reads look at; fewer evaluations than so many prove nothing
_MOST_NODES, _MOST_ENTRIES, _FEWEST = 600_000, 400_000_000, 400
_MOST_CELLS = 60_000_000  # of nodes' loads, over all evaluations
_LEVELS = (256, 64, 16, 4, 1)  # times the tolerance: all z are proved to the first before any to the second
_DEARER = 2.5  # than a direct read at the z of a good plan
_FAR_ENOUGH = 4.0  # times z of a good plan: not that of any better one
_NARROW = 1e-4  # width of a rectangle, against the latency, that is not split


def lower_bound(
    model: KindModel, plan: KindPlan, tol: float, goal: float | None = None, reads: ReadTerm | None = None
) -> float | None:
    """Lower bound of the mean latency bound, s, above 0; None where there is none.

    Args:
        model: full and small reads on a placement.
        plan: a good one.
        tol: relative; how far below the plan the search may stop.
        goal: s, the plan's own value of what is bounded; None: its latency.
        reads: what reads pay at least, given prices; None: on the placement of the model.
    """
    least_k = [*model.small.k, *model.full_k[model.full_rate.sum(axis=1) > 0]]
    reads = reads or PlacementTerm(model)
    most = min(_MOST_NODES // model.problem.nodes.count, _MOST_ENTRIES // reads.entries)
    if not model.priced.exact or min(least_k) < 2 or not np.isfinite(plan.latency) or most < _FEWEST:
        return None
    goal = plan.latency if goal is None else goal
    bound = RectangleBound(model, plan, reads, tol, goal)
    bound.ascend(bound.z, goal, goal * (1 - 0.3 * tol))
    boxes = _Boxes(bound)
    for part in _LEVELS:
        if part * tol < 1:
            bound.aim(part * tol)
            _search(boxes, goal * (1 - part * tol), part * tol, most)
    return min(boxes.least, goal) if boxes.least > 0 else None


class _Boxes:
    """Rectangles that together are all z, the one with the least bound first."""

    def __init__(self, bound: RectangleBound) -> None:
        self.bound, self.count = bound, 0
        self.heap = list[tuple[float, int, tuple[Range, Range]]]()
        self.unproved = set[tuple[Range, Range]]()
        full_rate = float(bound.rates[0])
        high_full = bound.latency * bound.total / full_rate if full_rate > 0 else 0.0
        # dearer than a direct read at any z, with some certainty
        top = float(np.max(bound.prices(bound.z, [0])[0][:, bound.model.priced.direct]))
        top *= 1.0 if bound.one_size else _DEARER
        if bound.model.small.nodes.shape[1] > 1:
            # direct reads of several chunks are no way out of a large z
            top = max(top, _FAR_ENOUGH * bound.z[1])
        bound.far = top
        for full_z in _around(high_full, bound.z[0]):
            for joined_z in [*_around(top, bound.z[1]), Range(top, FAR)]:
                # prices that are made for other z would take long to prove little
                box = full_z, joined_z
                self.unproved.add(box)
                heapq.heappush(self.heap, (0.0, self.count, box))
                self.count += 1

    @property
    def least(self) -> float:
        """S, the bound on all z."""
        return self.heap[0][0]

    def add(self, box: tuple[Range, Range], least: float, enough: float = np.inf) -> None:
        """With the bound of a larger one, s; ``enough``: s, of which no more need be proved now."""
        self.unproved.discard(box)
        heapq.heappush(self.heap, (max(least, self.bound(*box, enough)), self.count, box))
        self.count += 1

    def take(self) -> tuple[float, tuple[Range, Range]]:
        """The one with the least bound, which is no longer among them."""
        least, _, box = heapq.heappop(self.heap)
        return least, box


def _search(boxes: _Boxes, target: float, tol: float, most: int) -> None:
    """Divide those that stay below a target, s, or find better prices for them.

    Args:
        boxes: changed.
        target: s; lower where prices cannot prove it.
        tol: relative; how far below what prices prove the target may be.
        most: evaluations of the bound, over all calls.
    """
    bound = boxes.bound
    priced = set[tuple[float, float]]()
    while boxes.least < target and bound.evaluations < most and bound.cells < _MOST_CELLS:
        least, box = boxes.take()
        middle = box[0].middle, box[1].middle
        value = bound.at(middle)
        # what the width of the rectangle loses falls to a quarter in its halves
        if value - 0.25 * (value - least) < target and middle not in priced:
            # prices that were made for another z
            priced.add(middle)
            enough = target * (1 + 0.5 * tol) + value - least
            enough = max(min(bound.latency * (1 - 0.3 * tol), enough), target)
            value = bound.ascend(middle, target * (1 + 2 * tol), enough)
            if value < target:
                target = value * (1 - tol)
            boxes.add(box, least, target)
            continue
        if box in boxes.unproved:
            boxes.add(box, least, target)
            continue
        full, joined = box
        wide = joined.high < FAR and joined.high - joined.low > _NARROW * bound.latency
        long = full.high - full.low > _NARROW * bound.latency
        if not (wide or long):
            heapq.heappush(boxes.heap, (least, boxes.count, box))
            break
        here = Range(middle[0], middle[0]), Range(middle[1], middle[1])
        if long and (not wide or bound(here[0], joined) > bound(full, here[1])):
            for part in (Range(full.low, middle[0]), Range(middle[0], full.high)):
                boxes.add((part, joined), least, target)
        else:
            for part in (Range(joined.low, middle[1]), Range(middle[1], joined.high)):
                boxes.add((full, part), least, target)


def _around(high: float, z: float) -> list[Range]:
    """Parts of a range from 0, narrow around z."""
    if high <= 0:
        return [Range(0.0, 0.0)]
    width = 0.02 * high
    edges = np.unique(np.clip([0.0, z - 4 * width, z - width, z + width, z + 4 * width, high], 0.0, high))
    return [Range(*pair) for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
