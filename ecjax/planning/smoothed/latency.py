"""What the reads of a node cost by their rate, where all chunks have one size: F, its slopes, and their inverse.

F(L; z) = (L / lambda_hat) 1/2 [(w + E - z) + sqrt((w + E - z)^2 + q + w^2 + V)] with the waits of ``certified.waits``,
w = A_2/(2 s), q = A_3/(3 s), s = 1 - A_1, A_p = background + L m_p. F is convex in L at a fixed z.
"""

from typing import Any, NamedTuple

from ecjax.planning.smoothed.backend import Backend

_CLOSED = 1e-13  # relative width of a bracket, or error of a slope, that ends the search for a rate
_MOST_STEPS = 80
_HALVINGS = 100
_Z_CLOSED = 1e-14  # relative width of a bracket of z, or step, that ends its search
_FULL = 1e-9  # share of a node's room that no rate takes
_LEAST_BEND = 1e-12  # of the slope by rate, so that nodes that hardly work have a bend


class NodeLaw(NamedTuple):
    """Nodes with chunks of one size; arrays (m,).

    Attributes:
        moments: (3, m) raw service moments, s^p.
        mean: s, service and connection.
        variance: s^2 of both.
        background: (3, m) sums of other work.
        rate: 1/s, reads of all files: lambda_hat.
        alone: 1.0 where every file has k = 1 (the bound is the mean delay, without z), else 0.0.
    """

    moments: Any
    mean: Any
    variance: Any
    background: Any
    rate: Any
    alone: Any


class Cost(NamedTuple):
    """F in s, F' in s per 1/s, F'' in s per 1/s^2; (m,)."""

    value: Any
    slope: Any
    bend: Any


def most(law: NodeLaw) -> Any:
    """Rates that leave hardly any room: (m,) 1/s."""
    return (1 - law.background[0]) / law.moments[0] * (1 - _FULL)


def cost(xp: Any, law: NodeLaw, loads: Any, z: Any) -> Cost:
    """F and its derivatives at the rates ``loads`` (m,), all below ``most``."""
    first, second, third = law.moments
    room = 1 - law.background[0] - loads * first
    w = 0.5 * (law.background[1] + loads * second) / room
    q = (law.background[2] + loads * third) / (3 * room)
    w1 = (0.5 * second + w * first) / room
    q1 = (third / 3 + q * first) / room
    w2, q2 = 2 * w1 * first / room, 2 * q1 * first / room
    d = w + law.mean - z
    root = xp.sqrt(d * d + xp.maximum(q + w * w + law.variance, 1e-300))
    root1 = (d * w1 + 0.5 * q1 + w * w1) / root
    root2 = (w1 * w1 + d * w2 + 0.5 * q2 + w1 * w1 + w * w2 - root1 * root1) / root
    alone = law.alone > 0
    term = xp.where(alone, w + law.mean, 0.5 * (d + root))
    term1 = xp.where(alone, w1, 0.5 * (w1 + root1))
    term2 = xp.where(alone, w2, 0.5 * (w2 + root2))
    slope = (term + loads * term1) / law.rate
    bend = (2 * term1 + loads * term2) / law.rate
    return Cost(loads * term / law.rate, slope, xp.maximum(bend, _LEAST_BEND * slope / most(law)))


class _Search(NamedTuple):
    low: Any
    high: Any
    loads: Any
    open: Any
    step: Any


def rates_at(backend: Backend, law: NodeLaw, prices: Any, z: Any, start: Any) -> Any:
    """Rates at which F' is ``prices`` (m,), 0 where F' is above them everywhere; (m,) 1/s.

    Newton's method on F'^(-1/2), which is almost straight, inside a bracket.

    Args:
        backend: of the arrays.
        law: nodes.
        prices: (m,) s per 1/s.
        z: s.
        start: (m,) 1/s, a guess.
    """
    xp = backend.xp
    top = most(law)
    goal = 1 / xp.sqrt(prices)

    def body(state: _Search) -> _Search:
        at = cost(xp, law, state.loads, z)
        below = at.slope < prices
        low = xp.where(below, state.loads, state.low)
        high = xp.where(below, state.high, state.loads)
        inverse = 1 / xp.sqrt(at.slope)
        newton = state.loads + (inverse - goal) * 2 * at.slope / (inverse * at.bend)
        inside = (newton > low) & (newton < high)
        following = xp.where(inside, newton, 0.5 * (low + high))
        closed = (xp.abs(at.slope - prices) <= _CLOSED * prices) | (high - low <= _CLOSED * high)
        loads = xp.where(closed, state.loads, following)
        return _Search(low, high, loads, xp.any(~closed), state.step + 1)

    idle = cost(xp, law, xp.zeros_like(prices), z).slope >= prices
    first = _Search(
        xp.zeros_like(prices),
        xp.where(idle, 0.0, top),
        xp.where(idle, 0.0, xp.clip(start, 0.0, top)),
        xp.asarray(True),
        xp.asarray(0),
    )
    return backend.while_loop(lambda s: s.open & (s.step < _MOST_STEPS), body, first).loads


class _Minimum(NamedTuple):
    low: Any
    high: Any
    z: Any
    step: Any  # the last one
    open: Any
    turn: Any


def best_z(backend: Backend, law: NodeLaw, loads: Any) -> Any:
    """The z that minimises z + sum F(loads; z), s; 0 where k = 1 everywhere.

    Newton's method in the variable in which the problem of alike nodes is linear (see ``queueing.minimise``), inside a
    bracket; halving it where a step leaves it or shrinks too little.
    """
    xp = backend.xp
    room = 1 - law.background[0] - loads * law.moments[0]
    w = 0.5 * (law.background[1] + loads * law.moments[1]) / room
    q = (law.background[2] + loads * law.moments[2]) / (3 * room)
    weights = loads / law.rate
    mean, variance = w + law.mean, xp.maximum(q + w * w + law.variance, 1e-300)
    k = xp.sum(weights)
    c = (k - 2) / (2 * xp.sqrt(xp.maximum(k - 1, 1e-12)))
    alike = mean + c * xp.sqrt(variance)
    used = weights > 0

    def body(state: _Minimum) -> _Minimum:
        d = mean - state.z
        inverse = 1 / xp.sqrt(d * d + variance)
        # 2 - 2 f' and 2 f'' of what is minimised
        part = xp.sum(weights * (1 + d * inverse))
        bend = xp.sum(weights * (variance * inverse * inverse * inverse))
        low = xp.where(part >= 2, state.z, state.low)
        high = xp.where(part <= 2, state.z, state.high)
        share = part / (2 * k)
        spread = xp.maximum(4 * share * (1 - share), 0.0)
        step = k * spread / xp.maximum(bend, 1e-300) * (c * xp.sqrt(spread) - (1 - 2 * share))
        following = state.z + step
        newton = (following > low) & (following < high) & (2 * xp.abs(step) <= state.step)
        width = high - low
        resolution = _Z_CLOSED * (xp.abs(low) + xp.abs(high))
        # a step of rounding alone need not be half of the one before
        closed = (xp.abs(step) <= resolution) | (width <= resolution)
        return _Minimum(
            low,
            high,
            xp.where(closed, state.z, xp.where(newton, following, 0.5 * (low + high))),
            xp.where(newton, xp.abs(step), width),
            ~closed,
            state.turn + 1,
        )

    low, high = xp.min(xp.where(used, alike, xp.inf)), xp.max(xp.where(used, alike, -xp.inf))
    first = _Minimum(low, high, 0.5 * (low + high), 2 * (high - low), xp.asarray(True), xp.asarray(0))
    last = backend.while_loop(lambda state: state.open & (state.turn < _HALVINGS), body, first)
    return xp.where(law.alone > 0, 0.0, last.z)
