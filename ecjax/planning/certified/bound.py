"""A lower bound on every plan's objective, by prices of node work, for every z.

For prices y (of reads and writes by node and chunk size) and g >= 0 (of places for chunks) any plan costs at least

    z + sum over nodes of [min over loads of the node's latency - y . loads]
      + sum over rows of the cheapest choice - g . capacity.

The sum over rows does not know z, so that one pass over the files serves all z. In z: the node term falls, hence on
[a, b] the bound is at least a + (the rest at b). Intervals that stay below the target are split, or get prices of their
own, made for the best loads found at their z. Outside a finite range of z the latency alone is too large.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ecjax.planning.certified.envelope import improve
from ecjax.planning.certified.march import Range, march
from ecjax.planning.certified.nodes import NodeMinima
from ecjax.planning.certified.relax import Passes, Prices, Relaxed, relax
from ecjax.planning.certified.thinned import thinned
from ecjax.planning.certified.waits import slopes, waits

_ROUNDS = 30  # of better prices at one z
_RENEWALS = 16  # times that a z gets a relaxation of its own
_FEW, _TIMES = 20_000, 4  # rows up to which passes are so cheap that there may be so many times as many
_ATTEMPTS, _COARSER = 3, 10.0  # searches over z that leave ever more open, where prices of their own ran out


@dataclass(frozen=True)
class Bound:
    """The lower bound, and a better z where the search met one, and ended."""

    value: float  # s, proved in either case
    passes: int  # over the rows
    better: Relaxed | None


def lower_bound(
    passes: Passes,
    relaxed: Relaxed,
    tol: float,
    most_passes: int,
    levels: np.ndarray | None = None,
    last: bool = False,
) -> Bound:
    """Lower bound close to the relaxation's objective.

    Args:
        passes: the rows.
        relaxed: mixture close to the best.
        tol: relative; how far below what the prices can prove the search may stop.
        most_passes: limit of passes over the rows for prices that move along with z, and again for relaxations at
            other z than the best.
        levels: (m, 4) cells of levels of the nodes' waits, as in ``node_minima``: a bound on plans that keep to them.
        last: whether the search goes on where it meets a better mixture, to a bound that may be far below.
    """
    service, rows = passes.service, passes.rows
    minima = NodeMinima(service, rows, levels, partial(passes.share_out_bins, least=1))
    each = abs(relaxed.objective) / len(service.mean)  # s, of a node
    capacity = np.where(np.isfinite(rows.capacity), rows.capacity, 0.0)

    def rest(prices: Prices, z: np.ndarray, fine: float) -> np.ndarray:
        return minima.sums(prices, z, fine * each) + prices.cheapest - float(prices.chunk @ capacity)

    gradient = relaxed.prices[-1]
    read, write, chunk = map(np.zeros_like, (gradient.read, gradient.write, gradient.chunk))
    storage = _proved(passes, replace(gradient, read=read, write=write, chunk=chunk)).cheapest
    soonest = float((service.mean + waits(service.background)[0][:, None]).min())
    some = thinned(passes, relaxed.group)

    def improved(there: Relaxed) -> Prices:
        if some is None:
            return improve(passes, there, minima, tol, _ROUNDS)
        better = improve(some.passes, replace(there, group=some.group), minima, tol, _ROUNDS)
        return _proved(passes, better)

    best = improved(relaxed)
    # no read is over before its soonest chunk
    surely = storage + soonest
    if service.alone:
        return Bound(max(surely, float(rest(best, np.zeros(1), 0.3 * tol)[0])), 1, None)
    at_best = relaxed.z + float(rest(best, np.array([relaxed.z]), 0.3 * tol)[0])
    # where the prices leave a gap at the best z, a finer search over z would not close it
    tol = max(tol, 0.25 * (relaxed.objective - at_best) / abs(relaxed.objective))
    target = min(at_best, relaxed.objective) - tol * abs(at_best)
    if target <= surely:
        return Bound(surely, 1, None)
    k = float(np.sum(np.repeat(rows.hot, np.diff(rows.start)) * rows.read)) / service.rate
    high = max(target - storage, relaxed.z)
    low = min((k * soonest + storage - target) / (k - 1), relaxed.z)
    moved, ran_out = 0, False
    renewals: list[int] = []
    times = _TIMES if rows.number <= _FEW else 1

    def one(prices: Prices, z: float, fine: float) -> float:
        return float(rest(prices, np.array([z]), fine / abs(relaxed.objective))[0])

    def renewed(z: float, again: bool) -> list[Prices] | Relaxed:
        nonlocal moved, ran_out
        if not again:
            if moved >= times * most_passes:
                ran_out = True
                return []
            moved += 1
            return [_priced(passes, relaxed, z, best, gradient)]
        if len(renewals) >= times * _RENEWALS or sum(renewals) >= times * most_passes:
            return []
        there = relax(passes, relaxed.group, relaxed.kinds, z, max(0.3 * tol, 1e-3), 10, fixed_z=True)
        renewals.append(there.passes)
        better = there.objective < relaxed.objective - tol * abs(relaxed.objective)
        if better and levels is None and not last:
            return there
        return [improved(there)]

    slack, count, value = tol * abs(at_best), 1, surely
    for _ in range(_ATTEMPTS):
        moved, ran_out = 0, False
        renewals.clear()
        reached, better = march(one, renewed, best, Range(low, high, target, slack))
        value, count = max(value, reached), count + moved + sum(renewals)
        if better is not None or not ran_out or target - value <= _COARSER * slack:
            break
        # small steps near the best z left no prices for the others
        target, slack = target - _COARSER * slack, _COARSER * slack
    return Bound(value, count, better)


def _priced(passes: Passes, relaxed: Relaxed, z: float, last: Prices, gradient: Prices) -> Prices:
    """Prices for another z: they move along with the slopes at the relaxation's loads."""
    point = slopes(passes.service, relaxed.mixture.loads, z)
    read = np.maximum(last.read + (point.read - gradient.read), 0)
    write = np.maximum(last.write + (point.write - gradient.write), 0)
    return _proved(passes, replace(last, read=read, write=write, z=z))


def _proved(passes: Passes, prices: Prices) -> Prices:
    """The prices with the sum of the cheapest choices of all rows at them, which takes a pass."""
    group = np.zeros(passes.rows.number, np.int64)
    cheapest = passes.cheapest(prices.read, prices.write, prices.chunk, group, 1)[0]
    return replace(prices, cheapest=cheapest)
