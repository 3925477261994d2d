"""A plan and its lower bound where all chunks have one size: prices from bins, systematic rounding, a short polish."""

import numpy as np

from ecjax.planning.certified import systematic
from ecjax.planning.certified.choice import HOT
from ecjax.planning.certified.data import rates_of
from ecjax.planning.certified.every_z import bound_every_z
from ecjax.planning.certified.exchange import exchange
from ecjax.planning.certified.relax import loads_of, worth
from ecjax.planning.certified.rounding import Plan, keeps_capacity, rank
from ecjax.planning.certified.smooth import Bins, Relaxation
from ecjax.planning.certified.splits import Split, split, whole
from ecjax.planning.certified.trades import takers, trade
from ecjax.planning.smoothed import latency

_MOST_BASINS = 4  # times that the search for z may meet a better region
_SWEEPS = 12
_SHORT_SWEEPS = 3  # over the busiest rows only
_BUSIEST = 0.1
_ROUNDINGS, _HOPELESS = 8, 3  # tries, on problems of up to _FEW rows times nodes; where none comes near
_NEAR = 1e-3  # relative, of a target
_FEW = 200_000
_TOGETHER = 3  # rows that are placed anew together
_TRIALS = 120_000  # of those, times nodes, in a round
_TRIALS_A_ROUND = (2000, 10_000)
_MOST_ROUNDS = 20
_PROMISE = 10.0  # of the relative gain that ends sweeps: what all nodes' trades have to promise
_SPLITS, _MOST_SPLITS = 50_000, 8  # rows times nodes of the roundings that are split, of each kind
_SHIFTS = 1 << 20
_ROUGH, _FINE = 0.03, 0.001  # of the gap: what flows of a round have to close
_WORTHWHILE = 0.02  # of the gap, which two rounds have to close for others to follow


def placed_anew(
    bins: Bins, start: np.ndarray, gap: float, seed: int
) -> tuple[list[Plan], Plan | None, float]:
    """An earlier plan with its new rows placed, if that is good enough already: no search for other prices.

    Args:
        bins: of the rows.
        start: (R, m) choices; a row of zeros is new.
        gap: relative, of plan and bound, that is good enough.
        seed: of the order in which rows respond.

    Returns:
        the plans that were tried, the least changed first; the one that is good enough; its lower bound in s.
    """
    kinds, random = start.copy(), np.random.default_rng(seed)
    tried: list[Plan] = []
    new = np.flatnonzero(~(kinds == HOT).any(axis=1))
    for which in (new, None):
        if which is None or len(which):
            respond(bins, kinds, gap, random, which)
        plan = Plan(kinds.copy(), *worth(bins.passes, kinds))
        if not plan.kept:
            continue
        tried.append(plan)
        bound = bound_every_z(
            bins, bins.at_loads(loads_of(bins.passes, kinds)[0][:, 0], plan.z), 0.3 * gap, 0
        )
        if plan.objective <= bound.value + gap * abs(bound.value):
            return tried, plan, bound.value
    return tried, None, -np.inf


def prove(bins: Bins, gap: float, most_turns: int) -> tuple[Relaxation, float, int]:
    """The relaxation, a lower bound on all plans in s, and the passes over the bins that both took.

    Args:
        bins: of the rows.
        gap: relative, of plan and bound, that is good enough.
        most_turns: limit of passes for relaxations at other z.
    """
    relaxation = bins.relax()
    turns = relaxation.turns
    value = -np.inf
    for attempt in range(_MOST_BASINS):
        # the last one looks for no other relaxation, and so has a value
        turns_left = most_turns if attempt < _MOST_BASINS - 1 else 0
        bound = bound_every_z(bins, relaxation, 0.1 * gap, turns_left)
        turns += bound.turns
        value = max(value, bound.value)
        if bound.better is None:
            break
        relaxation = bins.relax(bound.better.z, bound.better)
        turns += relaxation.turns
    return relaxation, value, turns


def round_off(bins: Bins, relaxation: Relaxation, target: float, tol: float, seed: int) -> Plan:
    """Whole choices close to the relaxation.

    Args:
        bins: of the rows.
        relaxation: what to round.
        target: s; an objective that is good enough.
        tol: relative gain of a sweep that ends them.
        seed: of further tries.
    """
    few = bins.passes.rows.number * len(relaxation.loads) <= _FEW
    alike = bins.fine.collapsed.alike
    random = np.random.default_rng(seed)
    best: Plan | None = None

    for attempt in range(_ROUNDINGS if few else 1):
        if few:
            kinds = _spread(bins, relaxation, random if attempt else None)
            plan = _traded(bins, respond(bins, kinds, tol, random), target, tol, random)
        else:
            kinds = _rounded(bins, relaxation) if alike else _spread(bins, relaxation, None)
            _polish(bins, kinds, target, tol)
            plan = Plan(kinds, *worth(bins.passes, kinds))
            if not plan.kept:
                plan = respond(bins, kinds, tol, random)
            plan = _traded(bins, plan, target, tol, random)
            if alike and rank(plan) > (False, target):
                # nodes that sampling overloads keep what single rows do not undo
                kinds = _spread(bins, relaxation, None)
                other = _traded(bins, Plan(kinds, *worth(bins.passes, kinds)), target, tol, random)
                plan = min(plan, other, key=rank)
        if best is None or rank(plan) < rank(best):
            best = plan
        near = best.objective <= target + _NEAR * abs(target)
        if rank(best) <= (False, target) or (attempt + 1 >= _HOPELESS and not near):
            break
    assert best is not None
    if few and rank(best) > (False, target):
        other = _traded(bins, _exchanged(bins, best, target, random), target, tol, random)
        best = min(best, other, key=rank)
    return best


def shared_out(bins: Bins, relaxation: Relaxation, plan: Plan, target: float) -> Split:
    """A plan whose reads flow to other nodes while that closes the gap to the target, s."""
    return split(bins.passes, whole(plan.kinds), relaxation.z, target, _FINE)


def split_off(bins: Bins, relaxation: Relaxation, plan: Plan, target: float, seed: int) -> Split:
    """Reads of some rows shared out, where whole choices leave a gap: the best of some roundings; of an infinite
    objective where all of them break a limit of a node.

    The roundings keep to choices that cost least at the prices, as best responses do not: flows even out the loads.

    Args:
        bins: of the rows.
        relaxation: what to round.
        plan: whole choices, to begin with.
        target: s, an objective that is good enough.
        seed: of further roundings.
    """
    passes, z = bins.passes, relaxation.z
    best = split(passes, whole(plan.kinds), z, target, _ROUGH)
    if not keeps_capacity(passes, plan.kinds):
        best = best._replace(objective=np.inf)  # any other is better
    random = np.random.default_rng(seed)
    for turn in range(2 * int(np.clip(_SPLITS // plan.kinds.size, 1, _MOST_SPLITS))):
        if best.objective <= target:
            break
        if turn % 2 == 0:
            if bins.fine.collapsed.alike:
                kinds = _rounded(bins, relaxation, int(random.integers(_SHIFTS)) if turn else 0)
            else:
                kinds = _spread(bins, relaxation, random if turn else None)
        else:
            _polish(bins, kinds, target, _ROUGH)
        if keeps_capacity(passes, kinds):
            other = split(passes, whole(kinds), z, target, _ROUGH)
            best = min(best, other, key=lambda each: each.objective)
    if not target < best.objective < np.inf:
        return best
    return min(split(passes, best, z, target, _FINE), best, key=lambda each: each.objective)


def respond(
    bins: Bins, kinds: np.ndarray, tol: float, random: np.random.Generator, which: np.ndarray | None = None
) -> Plan:
    """Best responses of one row after the other, in sweeps until one gains little; changes ``kinds``.

    Args:
        bins: of the rows.
        kinds: (R, m) choices; a row without one gets one.
        tol: relative gain of a sweep that ends them.
        random: of the order.
        which: rows that respond; None for all.
    """
    passes = bins.passes
    number = passes.rows.number
    # rows that have a choice may be those that nobody reads
    read = np.any((kinds == HOT).any(axis=1) & (rates_of(passes.rows) > 0))
    z, before, _ = worth(passes, kinds) if read else (bins.first_z(), np.inf, False)
    for _ in range(_SWEEPS):
        order = random.permutation(number if which is None else which)
        gain = _exchange(bins, kinds, z, before, order[:, None])
        z, objective, kept = worth(passes, kinds)
        # the objective rises as chunks leave nodes that have too many
        done = gain == 0 or kept
        if done and not before - objective > tol * abs(objective):
            break
        before = objective
    return Plan(kinds, *worth(passes, kinds))


def _exchange(bins: Bins, kinds: np.ndarray, z: float, objective: float, tuples: np.ndarray) -> float:
    """Place rows anew, one tuple after the other; what that gains at this z, with charges beyond capacities, s."""
    passes = bins.passes
    service, rows = passes.service, passes.rows
    loads, chunks, dollars = loads_of(passes, kinds)
    full = passes.full_price(objective if np.isfinite(objective) else z + dollars)
    read_loads = np.ascontiguousarray(loads[:, 0])
    return exchange(tuples, service, rows, rates_of(rows), kinds, read_loads, chunks, z, full)


def _traded(bins: Bins, plan: Plan, target: float, tol: float, random: np.random.Generator) -> Plan:
    """Pairs of rows trade nodes and all rows respond, in turn, while that closes the gap."""
    passes = bins.passes
    service, rows = passes.service, passes.rows
    rate = rates_of(rows)
    by_rate = takers(rate, rows.hot, len(service.mean))
    kinds, z, objective, kept = plan.kinds.copy(), plan.z, plan.objective, plan.kept
    for _ in range(_SWEEPS):
        if kept and objective <= target:
            break
        before = objective
        loads, chunks, _ = loads_of(passes, kinds)
        least = _PROMISE * tol * abs(target) / len(loads)
        read_loads = np.ascontiguousarray(loads[:, 0])
        trade(by_rate, service, rows, rate, kinds, read_loads, chunks, z, least, objective - target)
        z, objective, _ = worth(passes, kinds)
        _exchange(bins, kinds, z, objective, random.permutation(rows.number)[:, None])
        z, objective, kept = worth(passes, kinds)
        if not before - objective > _WORTHWHILE * (before - target):
            break
    return Plan(kinds, z, objective, kept) if kept or not plan.kept else plan


def _exchanged(bins: Bins, plan: Plan, target: float, random: np.random.Generator) -> Plan:
    """A few rows at a time placed anew, while that closes the gap."""
    passes, number = bins.passes, bins.passes.rows.number
    if number < _TOGETHER:
        return plan
    kinds, z, objective, kept = plan.kinds.copy(), plan.z, plan.objective, plan.kept
    trials = int(np.clip(_TRIALS // kinds.shape[1], *_TRIALS_A_ROUND))
    before = objective
    for turn in range(_MOST_ROUNDS):
        if turn % 2 == 0:
            if turn and kept and before - objective < _WORTHWHILE * (before - target):
                break
            before = objective
        _exchange(bins, kinds, z, objective, random.integers(0, number, (trials, _TOGETHER)))
        z, objective, kept = worth(passes, kinds)
        if kept and objective <= target:
            break
    return Plan(kinds, z, objective, kept)


def _spread(bins: Bins, relaxation: Relaxation, random: np.random.Generator | None) -> np.ndarray:
    """One row after the other, in the order of their work, or roughly so."""
    rows, law = bins.passes.rows, bins.cluster.law
    rate = rates_of(rows)
    kinds = np.zeros((rows.number, len(relaxation.loads)), np.int8)
    weight = rate if random is None else rate * np.exp(random.normal(size=len(rate)))
    prices = relaxation.prices
    bend = latency.cost(np, law, relaxation.loads[:, 0], relaxation.z).bend
    systematic.spread(
        np.argsort(-weight, kind="stable"),
        rows,
        rate,
        bins.fine.collapsed.of_row,
        relaxation.hot,
        np.ascontiguousarray(prices.read[:, 0]),
        bend,
        prices.chunk,
        kinds,
    )
    return kinds


def _rounded(bins: Bins, relaxation: Relaxation, shift: int = 0) -> np.ndarray:
    passes, collapsed = bins.passes, bins.fine.collapsed
    rows = passes.rows
    order = bins.sites[0]
    sums = np.cumsum(relaxation.hot[:, order], axis=1)
    # exactly k at the end
    sums *= (bins.fine.rows.hot / sums[:, -1])[:, None]
    kinds = np.zeros((rows.number, len(order)), np.int8)
    rank = collapsed.rank + shift

    def part(first: int, last: int) -> None:
        systematic.place(
            first,
            last,
            rows,
            collapsed.of_row,
            rank,
            sums,
            order,
            relaxation.prices.chunk,
            kinds,
        )

    passes.share_out(part)
    return kinds


def _polish(bins: Bins, kinds: np.ndarray, target: float, tol: float) -> None:
    """Chunks moved one at a time, while that is needed: those of the busiest rows first."""
    passes = bins.passes
    service, rows = passes.service, passes.rows
    rate = rates_of(rows)
    count = max(1, int(_BUSIEST * len(rate)))
    which = np.argpartition(-rate, count - 1)[:count]
    which = which[np.argsort(-rate[which], kind="stable")]
    last = np.inf
    for sweep in range(_SHORT_SWEEPS + _SWEEPS):
        z, objective, kept = worth(passes, kinds)
        gains = last - objective > tol * abs(objective)
        if (kept and objective <= target) or (sweep >= _SHORT_SWEEPS and not gains):
            break
        last = objective
        if sweep == _SHORT_SWEEPS:
            which = np.argsort(-rate, kind="stable")
        loads, chunks, _ = loads_of(passes, kinds)
        systematic.polish(which, service, rows, rate, kinds, np.ascontiguousarray(loads[:, 0]), chunks, z)
