"""Which share of the small reads is degraded, and which nodes full and degraded reads use: least mean latency bound.

The latency depends on the spread by the loads of the nodes only. Given the prices of these (the slopes of the latency)
every read has a cheapest answer: direct or degraded, from the nodes of least price. The spread is improved by mixing it
with such answers, and with blurred ones that reads with nearly the same prices share (simplicial decomposition).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.planning.descent import Stopping, descend
from ecjax.planning.projection import project_hypersimplex
from ecjax.planning.read_kinds.model import KindModel, Loads, Moments, latency, node_work
from ecjax.programs import program

_COLUMNS = 12  # that are mixed, the spread itself among them
_BLURS = (0.3, 0.03)  # of the mean price
_MIXING = Stopping(eps=1e-10, max_iterations=400)
_STEPS = 60
_CLOSE = 1e-6  # relative gain to first order that is not worth another step
_BISECTIONS = 60
_NEARLY = 0.01  # of all reads
_SETTLED = 4  # steps without gain that end the search


class Prices(NamedTuple):
    """What a chunk costs at every node, s: full (F, m), direct and joined (S, m); and a joined read.

    ``beyond``, (4, m) s/B^p, p = 0..3: of what B^p of a chunk is beyond that of the size that stands for its own.
    """

    full: np.ndarray
    direct: np.ndarray
    joined: np.ndarray
    joined_read: float
    beyond: np.ndarray


@dataclass(frozen=True)
class KindPlan:
    """Shares and spread of reads on a placement.

    Attributes:
        full: (R, N) probability that a full read uses each of ``model.full_nodes``.
        degraded: (T, N) x, probability that a small read is degraded and uses each of ``model.small.others``.
        latency: s, bound on the mean latency of all reads with one z per kind; infinite where a node is overloaded.
        z: s, of full and of joined reads.
        loads: of the nodes.
        steps: of the search.
    """

    full: np.ndarray
    degraded: np.ndarray
    latency: float
    z: tuple[float, float]
    loads: Loads
    steps: int


class _Column(NamedTuple):
    full: np.ndarray
    degraded: np.ndarray
    loads: Loads


def _relief(loads: Loads, moments: Moments) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """The 16-norm of the node loads."""
    load = node_work(loads, moments)[0]
    peak = jax.lax.stop_gradient(jnp.max(load))
    return peak * jnp.sum((load / peak) ** 16) ** (1 / 16), (jnp.zeros(()), jnp.zeros(()))


_SLOPES = {each: program(jax.value_and_grad(each, has_aux=True)) for each in (latency, _relief)}


@partial(program, quick=True, static_argnums=0)
def _mix(objective: Callable, columns: Loads, moments: Moments) -> jax.Array:
    """Shares of the columns, the first of them feasible."""

    def value(shares: jax.Array) -> jax.Array:
        mixed = Loads(*(jnp.tensordot(shares, part, 1) for part in columns))
        return objective(mixed, moments)[0]

    def smooth(shares: jax.Array, aux: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        each, slope = jax.value_and_grad(value)(shares)
        return each, aux, slope

    start = jnp.zeros(_COLUMNS).at[0].set(1.0)
    return descend(
        smooth,
        None,
        lambda shares: project_hypersimplex(shares, 1.0),
        start,
        jnp.zeros(()),
        jnp.ones(_COLUMNS),
        _MIXING,
    ).point


def plan_kinds(model: KindModel, full: np.ndarray, share: float | None = None) -> KindPlan:
    """The best spread that is found for a placement.

    Args:
        model: full and small reads on it.
        full: (R, m) probabilities of full reads to start from.
        share: of every small read that is degraded, to keep, other chunks alike; None: the best.
    """
    rows = np.arange(len(full))[:, None]
    start = np.where(model.full_nodes >= 0, full[rows, model.full_nodes], 0.0)
    point = _column(model, start, model.evenly(share or 0.0))
    fixed, steps = None if share is None else point.degraded, 0
    if _busiest(model, point) >= 1:
        point, steps = _improved(model, _relief, point, fixed)
    if _busiest(model, point) >= 1:
        return _plan(model, point, steps)
    point, more = _improved(model, latency, point, fixed)
    mixed = _plan(model, point, steps + more)
    if fixed is not None:
        return mixed
    snapped = _plan(model, _snapped(model, point), steps + more)
    return snapped if snapped.latency < mixed.latency else mixed


def prices_at(model: KindModel, loads: Loads) -> tuple[float, tuple[float, float], Prices]:
    """Latency (s), z of full and joined reads, and prices at loads."""
    (value, z), slope = _SLOPES[latency](_as_jax(loads), model.moments)
    return float(value), (float(z[0]), float(z[1])), _prices(model, slope)


def cheapest(model: KindModel, prices: Prices) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest answer to every read, full (R, N) and degraded (T, N)."""
    costs, gain = _small_costs(model, prices)
    others = _least(costs, model.small.k, 0.0)
    return _cheapest_full(model, prices), others * (gain(others) > 0)[:, None]


def _cheapest_full(model: KindModel, prices: Prices) -> np.ndarray:
    return _least(_full_costs(model, prices), model.full_k, 0.0)


def _plan(model: KindModel, point: _Column, steps: int) -> KindPlan:
    value, z, _ = prices_at(model, point.loads)
    return KindPlan(point.full, point.degraded, value, z, point.loads, steps)


def _busiest(model: KindModel, point: _Column) -> float:
    return float(node_work(_as_jax(point.loads), model.moments)[0].max())


def _column(model: KindModel, full: np.ndarray, degraded: np.ndarray) -> _Column:
    return _Column(full, degraded, model.loads(full, degraded))


def _as_jax(loads: Loads) -> Loads:
    return Loads(*map(jnp.asarray, loads))


def _prices(model: KindModel, slope: Loads) -> Prices:
    """Slopes of the mean over all reads as seconds per read."""
    total = float(model.moments.rates[1])
    full, direct, joined, read, beyond = (np.asarray(part) * total for part in slope)
    return Prices(full, direct, joined, float(read), beyond)


def _improved(
    model: KindModel, objective: Callable, point: _Column, fixed: np.ndarray | None
) -> tuple[_Column, int]:
    """The point after mixing it with answers to its prices, those of small reads unless fixed; and how many times."""
    columns: list[_Column] = []
    best, settled = np.inf, 0
    for step in range(_STEPS):
        (value, _), slope = _SLOPES[objective](_as_jax(point.loads), model.moments)
        prices = _prices(model, slope)
        spread = cheapest(model, prices) if fixed is None else (_cheapest_full(model, prices), fixed)
        answer = _column(model, *spread)
        gain = sum(
            float(np.sum(each * (here - there)))
            for each, here, there in zip(slope, point.loads, answer.loads, strict=True)
        )
        settled = 0 if float(value) < best * (1 - _CLOSE) else settled + 1
        best = min(best, float(value))
        if gain <= _CLOSE * abs(float(value)) or settled == _SETTLED:
            return point, step
        if objective is _relief and _busiest(model, point) < 0.9:
            return point, step
        columns = [*columns, answer, *(_blurred(model, prices, blur, fixed) for blur in _BLURS)][
            1 - _COLUMNS :
        ]
        mixed = [point, *columns]
        some = mixed + [point] * (_COLUMNS - len(mixed))
        stacked = Loads(
            *(jnp.asarray(np.stack(part)) for part in zip(*(each.loads for each in some), strict=True))
        )
        shares = np.asarray(_mix(objective, stacked, model.moments))
        point = _mixture(model, some, shares)
    return point, _STEPS


def _mixture(model: KindModel, columns: list[_Column], shares: np.ndarray) -> _Column:
    full, degraded = np.zeros_like(columns[0].full), np.zeros_like(columns[0].degraded)
    for column, share in zip(columns, shares, strict=True):
        if share > 0:
            full += share * column.full
            degraded += share * column.degraded
    return _column(model, full, degraded)


def _snapped(model: KindModel, point: _Column) -> _Column:
    """The point with small reads all direct or all degraded that are nearly so."""
    share = point.degraded.sum(axis=1) / model.small.k
    factor = np.where(
        share < _NEARLY, 0.0, np.where(share > 1 - _NEARLY, 1 / np.maximum(share, _NEARLY), 1.0)
    )
    return _column(model, point.full, np.clip(point.degraded * factor[:, None], 0.0, 1.0))


def _full_costs(model: KindModel, prices: Prices) -> np.ndarray:
    """What a full read of each row pays at each of its nodes, by its rate, (R, N); infinite beyond the last."""
    nodes = model.full_nodes
    costs = (model.full_rate @ prices.full)[np.arange(len(nodes))[:, None], nodes]
    costs = costs + _beyond(prices, model.full_beyond, nodes)
    return np.where(nodes >= 0, costs, np.inf)


def _small_costs(model: KindModel, prices: Prices) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """What a degraded read pays at each other node, (T, N); and what degraded reads save, (T,), given a spread."""
    small = model.small
    beyond = model.small_beyond
    costs = prices.joined[model.small_class[:, None], small.others] + _beyond(prices, beyond, small.others)
    costs = np.where(small.others >= 0, costs, np.inf)
    there = _beyond(prices, beyond, small.nodes)
    several = prices.joined[model.small_class[:, None], small.nodes] + there
    several = prices.joined_read + np.sum(np.where(small.nodes >= 0, several, 0.0), axis=1)
    one = prices.direct[model.small_class, small.node] + there[:, 0]
    direct = np.where(small.width == 1, one, several)
    possible = np.sum(small.others >= 0, axis=1) >= small.k

    def gain(spread: np.ndarray) -> np.ndarray:
        paid = np.sum(np.where(spread > 0, np.where(spread > 0, costs, 0.0) * spread, 0.0), axis=1)
        return np.where(possible, direct - prices.joined_read - paid, -np.inf)

    return costs, gain


def _beyond(prices: Prices, factors: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """What chunks at nodes (B, N) cost beyond those of the sizes that stand for theirs, s, by factors (B, 4)."""
    costs = np.zeros(nodes.shape)
    for factor, price in zip(factors.T, prices.beyond, strict=True):
        if factor.any():
            costs += factor[:, None] * price[nodes]
    return costs


def _blurred(model: KindModel, prices: Prices, blur: float, fixed: np.ndarray | None) -> _Column:
    """Answers shared by nodes of nearly the same price, and unless fixed by kinds that cost nearly the same."""
    full = _full_costs(model, prices)
    scale = np.mean(np.where(model.full_nodes >= 0, full, 0.0), axis=1, keepdims=True)
    spread = _least(full, model.full_k, blur * scale)
    if fixed is not None:
        return _column(model, spread, fixed)
    costs, gain = _small_costs(model, prices)
    width = blur * float(np.mean(prices.joined))
    others = _least(costs, model.small.k, width)
    share = np.clip(0.5 + 0.5 * gain(others) / max(width, 1e-300), 0.0, 1.0)
    return _column(model, spread, others * share[:, None])


def _least(costs: np.ndarray, k: np.ndarray, width: np.ndarray | float) -> np.ndarray:
    """Probabilities that sum to k: of the k least costs 1; within ``width`` of them, in proportion.

    Minimises costs . p + width / 2 |p|^2, (B, N). Rows with fewer than k nodes are zero.
    """
    there = np.isfinite(costs)
    possible = there.sum(axis=1) >= k
    if np.all(np.asarray(width) <= 0):
        rank = np.argsort(np.argsort(costs, axis=1, kind="stable"), axis=1)
        return ((rank < k[:, None]) & possible[:, None]).astype(float)
    finite = np.where(there, costs, 0.0)
    width = np.maximum(np.broadcast_to(width, (len(costs), 1)), 1e-300)
    low = np.min(np.where(there, finite, np.inf), axis=1, keepdims=True, initial=np.inf)
    high = np.max(np.where(there, finite, -np.inf), axis=1, keepdims=True, initial=-np.inf) + width
    low, high = np.where(possible[:, None], low, 0.0), np.where(possible[:, None], high, 1.0)

    def spread(level: np.ndarray) -> np.ndarray:
        return np.where(there, np.clip((level - finite) / width, 0.0, 1.0), 0.0)

    for _ in range(_BISECTIONS):
        level = 0.5 * (low + high)
        enough = spread(level).sum(axis=1, keepdims=True) >= k[:, None]
        low, high = np.where(enough, low, level), np.where(enough, level, high)
    result = spread(high)
    # what bisection leaves over goes to the shares that are neither 0 nor 1
    free = (result > 0) & (result < 1)
    count = np.maximum(free.sum(axis=1, keepdims=True), 1)
    result = np.where(
        free, np.clip(result + (k[:, None] - result.sum(axis=1, keepdims=True)) / count, 0, 1), result
    )
    return result * possible[:, None]
