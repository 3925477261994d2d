"""A lower bound on every plan of few placement rows: every node decides which of them it keeps.

Where many files share each of a few placements (groups), the choices of rows are too few for prices of their mixtures:
half of a row on a node costs half of its storage there, and the bound stays some percent low. With few rows R a node
has at most 2^R sets of rows that it may keep, and what it costs to keep one is exact. For prices mu_e of the reads of
one chunk size by one row, and nu_i of the chunks of a row, any plan costs at least

    z + sum over e of mu_e k r_e + sum over rows of min(nu_i n_i, nu_i m_i)
      + sum over nodes of min over sets s of [sum over i in s of (dollars_ij - nu_i) + N_js(mu; z)],

where a row has n_i to m_i chunks, and N_js is the least latency less mu times reads of a node that serves at most all
reads of the rows in s beside their writes (``node_bound``). N falls with z, so that ``march`` proves it for every z.
The linear program of the prices says which set every node should keep: placements to try. On some dozen nodes branches
close what the prices leave open at a z (``set_program``), and keep limits of chunks per site, which are left aside
otherwise; limits of nodes are not.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from ecjax.planning.certified.data import Rows, Service
from ecjax.planning.certified.march import Range, march
from ecjax.planning.certified.node_bound import ShareOut
from ecjax.planning.certified.node_sets import StatePrices, States, answers, states_of
from ecjax.planning.certified.set_search import Search
from ecjax.planning.certified.waits import slopes, waits

_MOST_ROWS = 4
_MOST_ENTRIES = 16  # chunk sizes of all rows together
_FIRST_BOX, _GROWTH, _SHRINKAGE = 0.3, 1.5, 0.6
_ROUNDS = 40  # of prices for one z
_CLOSED = 0.5  # of the tolerance, between what prices prove and what others could
_FINE = 0.3  # of the tolerance, for the minima of all nodes
_LEAST_TOL, _MOST_TOL = 3e-3, 1e-2  # relative
_PART = 0.1  # of what stays open, that the search over z may lose
_PLACEMENTS = 4  # to try
_ROWS_AT_LAST = 2  # for which branches that come last prove more; plans they may better for all
_FIRST_WORK, _LAST_WORK = (10_000, 3), (10_000, 1)  # minima before less is proved, and how often, of branches
_RENEWALS = 24  # z that get prices of their own
_FIRST_MINIMA, _MOST_MINIMA = 24, 64  # that each price takes, for branches at first and at last


class BySets(NamedTuple):
    """A lower bound on all plans, s, and (C, R, m) placements that may be good, the most promising first."""

    bound: float
    placements: np.ndarray


def few_rows(service: Service, rows: Rows) -> bool:
    """Whether rows and their chunk sizes are few enough for this bound, and more than prices of mixtures do well."""
    return rows.number <= _MOST_ROWS and len(rows.grid) <= _MOST_ENTRIES and not len(rows.true_size.edge)


def branches_first(service: Service, rows: Rows, share_out: ShareOut) -> bool:
    """Whether they and the kinds of nodes are so few that branches need no other plans and bounds to start from."""
    return few_rows(service, rows) and states_of(service, rows, share_out).minima <= _FIRST_MINIMA


def bound_by_sets(
    service: Service,
    rows: Rows,
    loads: np.ndarray,
    z: float,
    objective: float,
    tol: float,
    share_out: ShareOut,
) -> BySets:
    """Lower bound on all plans, s, and placements to try.

    Args:
        service: nodes.
        rows: few of them, all chunk sizes on the grid.
        loads: (m, X) 1/s by grid size, of a good mixture.
        z: s, that is best for it.
        objective: s, of a plan; of what it leaves open a part need not be proved.
        tol: relative; what may stay open.
        share_out: the nodes, to threads.
    """
    states = states_of(service, rows, share_out)

    def steep(at: float) -> np.ndarray:
        return slopes(service, loads, at).read[:, rows.grid].max(axis=0)

    flat = StatePrices(steep(z), np.zeros(rows.number), z)
    soonest = float((service.mean + waits(service.background)[0][:, None]).min())
    surely = states.storage + soonest
    worth = states.storage + max(z, soonest)
    first, tried = _solved(states, flat, flat.read, max(tol, _LEAST_TOL) * worth)
    placements = tried[[_keeps(rows, each) for each in tried]]
    k = float(states.asked.sum()) / service.rate

    def lowest(target: float) -> float:
        """Plans of a smaller z cost more."""
        return (k * soonest + states.storage - target) / (k - 1) if k > 1 else -np.inf

    bound, work = surely, _FIRST_WORK
    if states.minima > _FIRST_MINIMA:
        start = _Start(first, steep, lowest, surely, objective)
        bound, work = _by_prices(states, start, max(tol, _LEAST_TOL)), _LAST_WORK
    if states.minima <= _MOST_MINIMA and objective - bound > tol * abs(bound):
        search = Search(states, rows, steep, worth, tol)
        search.improve(first, lowest)
        placements = np.concatenate([search.placements(), placements])
        if service.alone:
            bound = max(bound, search.best)
        elif work == _FIRST_WORK or rows.number <= _ROWS_AT_LAST:
            bound = max(bound, search.everywhere(k, bound, *work))
    return BySets(bound, placements[:_PLACEMENTS])


class _Start(NamedTuple):
    """What searches over z start from.

    Attributes:
        prices: at the best z.
        steep: (E,) s per 1/s, about as large as prices are at a z.
        lowest: s, z below which plans cost more than a target.
        surely: s, a lower bound on all plans.
        objective: s, of a plan.
    """

    prices: StatePrices
    steep: Callable[[float], np.ndarray]
    lowest: Callable[[float], float]
    surely: float
    objective: float


def _by_prices(states: States, start: _Start, tol: float) -> float:
    """Lower bound on all plans, s, without branches: what prices prove from the best z on."""
    first, z = start.prices, start.prices.z
    # z is 0 where reads are of one chunk
    worth = max(start.surely, states.storage + z)
    at_best = answers(states, first, z, _FINE * tol * worth).bound
    if states.service.alone:
        return max(start.surely, at_best)
    worth = abs(z + at_best)
    # what stays open at the best z, a finer search over z would not close
    slack = float(np.clip(_PART * (start.objective - z - at_best), tol * worth, _MOST_TOL * worth))
    target = z + at_best - slack
    if target <= start.surely:
        return start.surely
    made: list[StatePrices] = [first]

    def rest(prices: StatePrices, at: float, fine: float) -> float:
        return answers(states, prices, at, fine).bound

    def renewed(at: float, again: bool) -> list[StatePrices]:
        near = min(made, key=lambda prices: abs(prices.z - at))
        there = start.steep(at)
        # they move along with the slopes at the loads
        moved = StatePrices(near.read * there / start.steep(near.z), near.kept, at)
        if not again:
            return [moved]
        if len(made) > _RENEWALS:
            return []
        made.append(_solved(states, moved, there, slack)[0])
        return made[-1:]

    where = Range(min(start.lowest(target), z), max(target - states.storage, z), target, slack)
    return max(start.surely, march(rest, renewed, first, where)[0])


def _solved(
    states: States, start: StatePrices, scale: np.ndarray, slack: float
) -> tuple[StatePrices, np.ndarray]:
    """Prices that prove about the most at a z: cutting planes, in a box around the best prices so far.

    Also (C, R, m) placements by the programs' multipliers, those of the last program first.

    Args:
        states: of the nodes.
        start: prices to start from, with their z.
        scale: (E,) s per 1/s, about as large as prices are.
        slack: s, that need not be proved.
    """
    m, number = len(states.dollars), len(states.least)
    entries = len(scale)
    finite = np.where(np.isfinite(states.dollars), states.dollars, 0.0)
    unit = np.maximum(finite.max() / max(number, 1), slack / m)
    right = -np.concatenate([states.asked, states.least, -states.longest, np.ones(m)])
    planes, costs = np.zeros((0, len(right))), np.zeros(0)
    best, value, box = start, -np.inf, _FIRST_BOX
    prices = start
    placements: list[np.ndarray] = []
    for _ in range(_ROUNDS):
        answer = answers(states, prices, start.z, _FINE * slack)
        box *= _GROWTH if answer.bound > value else _SHRINKAGE
        if answer.bound > value:
            best, value = prices, answer.bound
        planes = np.vstack([planes, np.hstack([answer.loads, answer.kept, -answer.kept, np.eye(m)])])
        costs = np.append(costs, answer.cost)
        # multipliers: mu, the positive and the negative part of nu, and what each node is worth
        reach = box * unit
        up, down = np.maximum(best.kept, 0.0), np.maximum(-best.kept, 0.0)
        low = np.concatenate([best.read - box * scale, up - reach, down - reach, np.full(m, -np.inf)])
        high = np.concatenate([best.read + box * scale, up + reach, down + reach, np.full(m, np.inf)])
        low[: entries + 2 * number] = np.maximum(low[: entries + 2 * number], 0.0)
        solution = linprog(right, planes, costs, bounds=np.stack([low, high], axis=1), method="highs")
        if solution.status != 0:
            break
        kept = planes[:, entries : entries + number]
        placements.append(_placement(states, kept, -solution.ineqlin.marginals))
        if -solution.fun - value <= _CLOSED * slack:
            break
        x = solution.x
        kept = x[entries : entries + number] - x[entries + number : entries + 2 * number]
        prices = StatePrices(x[:entries], kept, start.z)
    different = list({each.tobytes(): each for each in reversed(placements)}.values())
    shape = len(different), number, m
    return best, np.array(different, bool).reshape(shape)


def _keeps(rows: Rows, placement: np.ndarray) -> bool:
    """Whether a placement (R, m) keeps all constraints."""
    enough = np.all(placement.sum(axis=1) >= np.maximum(rows.length, rows.hot))
    held = rows.chunks @ placement <= rows.capacity * (1 + 1e-12)
    may = not len(rows.allowed) or not np.any(placement & ~rows.allowed)
    by_site = placement @ (rows.site[:, None] == np.arange(rows.site.max() + 1)).astype(int)
    return bool(enough and held.all() and may and (not rows.per_site or np.all(by_site <= rows.per_site)))


def _placement(states: States, kept: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(R, m) the set of rows that counts most at every node, and more where a row has too few chunks.

    Args:
        states: of the nodes.
        kept: (rounds m, R) sets, those of a round together.
        weight: (rounds m,) of each.
    """
    m = len(states.dollars)
    by_node, shares = kept.reshape(-1, m, kept.shape[1]), weight.reshape(-1, m)
    placement = by_node[shares.argmax(axis=0), np.arange(m)] > 0.5
    expected = np.einsum("tj,tji->ji", shares, by_node)
    for i, least in enumerate(states.least.astype(int)):
        # the state of one row alone says whether a node may keep it
        alone = int(np.flatnonzero((states.kept.sum(axis=1) == 1) & (states.kept[:, i] == 1))[0])
        worth = np.where(np.isfinite(states.dollars[:, alone]) & ~placement[:, i], expected[:, i], -np.inf)
        more = np.argsort(-worth, kind="stable")[: max(0, least - int(placement[:, i].sum()))]
        placement[more, i] = True
    return placement.T
