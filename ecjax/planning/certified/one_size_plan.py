"""A plan and its lower bound where all chunks have one size: prices from bins, systematic rounding, a short polish."""

import numpy as np

from ecjax.planning.certified import systematic
from ecjax.planning.certified.collapse import rates_of
from ecjax.planning.certified.every_z import bound_every_z
from ecjax.planning.certified.exchange import exchange
from ecjax.planning.certified.relax import full_price, loads_of, respond
from ecjax.planning.certified.rounding import keeps_capacity, worth
from ecjax.planning.certified.smooth import Bins, Relaxation
from ecjax.planning.smoothed import latency

_MOST_BASINS = 4  # times that the search for z may meet a better region
_SWEEPS = 12
_ROUNDINGS = 8  # tries, on problems of up to _FEW rows times nodes
_FEW = 200_000
_TOGETHER = 3  # rows that are placed anew together
_TRIALS = 120_000  # of those, times nodes, in a round
_TRIALS_A_ROUND = (2000, 10_000)
_MOST_ROUNDS = 20
_WORTHWHILE = 0.02  # of the gap, which two rounds have to close for others to follow


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
        bound = bound_every_z(bins, relaxation, 0.1 * gap, most_turns)
        turns += bound.turns
        value = max(value, bound.value)
        if bound.better is None or attempt == _MOST_BASINS - 1:
            break
        relaxation = bins.relax(bound.better.z, bound.better)
        turns += relaxation.turns
    return relaxation, value, turns


def round_off(
    bins: Bins, relaxation: Relaxation, target: float, tol: float, seed: int
) -> tuple[np.ndarray, float, float]:
    """Whole choices close to the relaxation.

    Args:
        bins: of the rows.
        relaxation: what to round.
        target: s; an objective that is good enough.
        tol: relative gain of a sweep that ends them.
        seed: of further tries.

    Returns:
        choices (R, m), their z and objective, s.
    """
    passes = bins.passes
    tries = _ROUNDINGS if passes.rows.number * len(relaxation.loads) <= _FEW else 1
    random = np.random.default_rng(seed)
    best: tuple[np.ndarray, float, float] | None = None
    for attempt in range(tries):
        if tries > 1:
            kinds = _spread(bins, relaxation, random if attempt else None)
        else:
            kinds = _rounded(bins, relaxation)
            _polish(bins, kinds, tol)
        if tries > 1 or not keeps_capacity(passes, kinds):
            respond(passes, kinds, None, relaxation.prices.chunk, _SWEEPS, tol, seed + attempt)
        z, objective = worth(passes, kinds)
        if best is None or (objective < best[2] and keeps_capacity(passes, kinds)):
            best = kinds, z, objective
        if best[2] <= target:
            break
    assert best is not None
    if tries > 1 and best[2] > target:
        best = _exchanged(bins, best, target, random)
    return best


def _exchanged(
    bins: Bins, plan: tuple[np.ndarray, float, float], target: float, random: np.random.Generator
) -> tuple[np.ndarray, float, float]:
    """A few rows at a time placed anew, while that closes the gap."""
    passes = bins.passes
    service, rows = passes.service, passes.rows
    rate, (kinds, z, objective) = rates_of(rows), plan
    kinds = kinds.copy()
    if rows.number < _TOGETHER:
        return plan
    trials = int(np.clip(_TRIALS // kinds.shape[1], *_TRIALS_A_ROUND))
    before = objective
    for number in range(_MOST_ROUNDS):
        if number % 2 == 0:
            if number and before - objective < _WORTHWHILE * (before - target):
                break
            before = objective
        loads, chunks, _ = loads_of(passes, kinds)
        full = full_price(rows, objective)
        tuples = random.integers(0, rows.number, (trials, _TOGETHER))
        exchange(tuples, service, rows, rate, kinds, np.ascontiguousarray(loads[:, 0]), chunks, z, full)
        z, objective = worth(passes, kinds)
        if objective <= target:
            break
    if objective < plan[2] and keeps_capacity(passes, kinds):
        return kinds, z, objective
    return plan


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


def _rounded(bins: Bins, relaxation: Relaxation) -> np.ndarray:
    passes, collapsed = bins.passes, bins.fine.collapsed
    rows = passes.rows
    order = bins.sites[0]
    sums = np.cumsum(relaxation.hot[:, order], axis=1)
    # exactly k at the end
    sums *= (bins.fine.rows.hot / sums[:, -1])[:, None]
    kinds = np.zeros((rows.number, len(order)), np.int8)

    def part(first: int, last: int) -> None:
        systematic.place(
            first,
            last,
            rows,
            collapsed.of_row,
            collapsed.rank,
            sums,
            order,
            relaxation.prices.chunk,
            kinds,
        )

    passes.share_out(part)
    return kinds


def _polish(bins: Bins, kinds: np.ndarray, tol: float) -> None:
    passes = bins.passes
    service, rows = passes.service, passes.rows
    rate = rates_of(rows)
    order = np.argsort(-rate, kind="stable")
    last = np.inf
    for _ in range(_SWEEPS):
        z, objective = worth(passes, kinds)
        if not last - objective > tol * abs(objective):
            break
        last = objective
        loads, chunks, _ = loads_of(passes, kinds)
        systematic.polish(
            order,
            service,
            rows,
            rate,
            kinds,
            np.ascontiguousarray(loads[:, 0]),
            chunks,
            z,
        )
