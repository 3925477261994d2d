"""Prices of node work by Newton's method on the smoothed dual, from hot to cold temperatures.

Any prices y of reads and g of places give a lower bound on the relaxation at one z,

    z + sum over nodes of [F(L) - y L] - g . capacity + sum over rows of weight A_tau,   L = (F')^(-1)(y).

Its gradient by y is what the rows ask for less what the nodes offer, and where that vanishes the rows' marginals are a
plan of the relaxation. The temperature orders nodes that cost the same; it falls in steps, and z moves with them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ecjax.planning.smoothed import latency
from ecjax.planning.smoothed.backend import Backend
from ecjax.planning.smoothed.latency import NodeLaw

_MOST_RISE = 3.0  # times a price, in one step
_LEAST_PART = 0.2  # of a price, and of a step that was too long
_BEYOND = 0.1  # of the slope that a step starts with: much more behind the top can be lower than its start
COOLING = 0.4
_LEAST_SCALE = 1e-6  # of a row's temperature, relative to that of all rows
_DONE = 2.0  # temperatures that a step still promises, relative, when the next one comes
_Z_ROUNDS = 3  # times that the last temperature is finished, with z moved in between


class Settings(NamedTuple):
    """When to stop.

    Attributes:
        first: relative temperature to start at.
        last: the coldest.
        tol: relative to the objective, what a Newton step may still promise at the end.
        turns: limit of passes over the rows.
        fixed_z: whether z stays.
    """

    first: float = 0.1
    last: float = 1e-5
    tol: float = 1e-9
    turns: int = 400
    fixed_z: bool = False


class Cluster(NamedTuple):
    """Nodes, and (m,) the chunks that they can hold; infinite without a limit."""

    law: NodeLaw
    capacity: Any


class Answer(NamedTuple):
    """What rows ask for at prices.

    Attributes:
        requested: (m,) 1/s, reads of each node.
        chunks: (m,) that they store there.
        dollars: () s, what they pay for chunks and reads, without the prices of work and places.
        unfinished: () rows without an answer.
        detail: marginals by row, as the demand has them.
    """

    requested: Any
    chunks: Any
    dollars: Any
    unfinished: Any
    detail: Any


class Demand(NamedTuple):
    """Rows, by what they answer to prices.

    Attributes:
        temperatures: (mean price of a read, relative temperature) -> (R,) s.
        answer: (prices of reads and places (2, m), temperatures) -> Answer.
        curvature: (answer, prices, temperatures) -> H, (m, m), or (2 m, 2 m) with places.
        step: (answer, prices, temperatures, diagonal (m,), right (m,)) -> (H + diagonal)^(-1) right, without H; None
            where H is what steps are made of.
    """

    temperatures: Callable[..., Any]
    answer: Callable[..., Answer]
    curvature: Callable[..., Any]
    step: Callable[..., Any] | None = None


def temperatures(xp: Any, scale: Any, weight: Any, eps: Any, of_all: Callable[[Any], Any]) -> Any:
    """Temperatures of rows by what a chunk costs them, (R,) s.

    Args:
        xp: array module.
        scale: (R,) s.
        weight: (R,) files in each row.
        eps: relative temperature.
        of_all: sums over the rows that are here -> over all rows.
    """
    total, number = of_all((xp.sum(weight * scale), xp.sum(weight)))
    # no temperature is 0 where a file is never read and keeps its chunks for nothing
    return eps * xp.maximum(scale, _LEAST_SCALE * total / number)


class Solution(NamedTuple):
    """Prices at the end.

    Attributes:
        read: (m,) y, s per 1/s.
        place: (m,) g, s.
        loads: (m,) 1/s, what nodes offer at these prices.
        z: s.
        objective: s, of the rows' marginals, to first order in what is left of the gradient.
        promise: relative, what a further step promises.
        answer: of the rows.
        turns: passes over the rows.
        unfinished: passes in which some row had no answer.
    """

    read: Any
    place: Any
    loads: Any
    z: Any
    objective: Any
    promise: Any
    answer: Answer
    turns: Any
    unfinished: Any


class _State(NamedTuple):
    base: Any  # (2, m) prices of reads and of places
    move: Any  # (2, m)
    length: Any
    slope: Any  # what the move promised at the base, s
    eps: Any
    z: Any
    loads: Any  # (m,)
    tau: Any
    promise: Any
    rounds: Any
    done: Any
    turn: Any
    unfinished: Any


def solve(
    backend: Backend, cluster: Cluster, demand: Demand, settings: Settings, z: Any, read: Any, place: Any
) -> Solution:
    """Prices at which what rows ask for is what nodes offer.

    Args:
        backend: of the arrays.
        cluster: m nodes.
        demand: of the rows.
        settings: when to stop.
        z: s, to start from, or to stay at.
        read: (m,) prices to start from, s per 1/s.
        place: (m,) prices of places to start from, s; all positive where there is a capacity.
    """
    xp, law = backend.xp, cluster.law
    limited = xp.isfinite(cluster.capacity)
    capacity = xp.where(limited, cluster.capacity, 0.0)
    nodes = law.mean.shape[0]
    idle = xp.zeros_like(law.mean)

    def offered(prices: Any, z: Any, loads: Any) -> tuple[Any, Any]:
        """Prices of reads, none below what the first read costs, and the rates that they call for."""
        least = latency.cost(xp, law, idle, z).slope
        prices = xp.maximum(prices, least)
        return prices, latency.rates_at(backend, law, prices, z, loads)

    def worth(answer: Answer, loads: Any, z: Any) -> Any:
        z = xp.where(law.alone > 0, 0.0, z)
        return z + xp.sum(latency.cost(xp, law, loads, z).value) + answer.dollars

    def newton_step(answer: Answer, prices: Any, tau: Any, diagonal: Any, gradient: Any, barrier: Any) -> Any:
        """(m,), or (2 m,) with places."""
        if demand.step is not None:
            return demand.step(answer, prices, tau, diagonal, gradient[0])
        matrix = demand.curvature(answer, prices, tau)
        if matrix.shape[0] == nodes:
            return backend.solve(matrix, diagonal, gradient[0])
        held = xp.where(limited, barrier / xp.where(limited, prices[1], 1.0) ** 2, 1.0)
        free = xp.concatenate([xp.ones_like(diagonal), xp.where(limited, 1.0, 0.0)])
        matrix = matrix * free[:, None] * free[None]
        return backend.solve(matrix, xp.concatenate([diagonal, held]), gradient.reshape(-1))

    def body(state: _State) -> _State:
        prices = state.base + state.length * state.move
        prices = xp.maximum(prices, _LEAST_PART * state.base)
        read, loads = offered(prices[0], state.z, state.loads)
        prices = xp.stack([read, prices[1]])
        answer = demand.answer(prices, state.tau)
        objective = worth(answer, loads, state.z)
        barrier = state.eps * xp.abs(objective) / nodes
        over = xp.where(limited, answer.chunks - capacity + barrier / xp.where(limited, prices[1], 1.0), 0.0)
        gradient = xp.stack([answer.requested - loads, over])
        slope = xp.sum(gradient * state.move)
        accepted = slope >= -_BEYOND * state.slope
        tried = state._replace(
            loads=loads,
            turn=state.turn + 1,
            unfinished=state.unfinished + xp.where(answer.unfinished > 0, 1, 0),
        )

        def longer(_: Any) -> _State:
            secant = state.slope / (state.slope - slope)
            return tried._replace(length=state.length * xp.maximum(_LEAST_PART, secant))

        def onwards(_: Any) -> _State:
            bend = latency.cost(xp, law, loads, state.z).bend
            step = newton_step(answer, prices, state.tau, 1 / bend, gradient, barrier)
            move = step.reshape(2, nodes) if len(step) > nodes else xp.stack([step, xp.zeros_like(step)])
            promised = xp.sum(move * gradient)
            rise = xp.max(move / xp.where(prices > 0, prices, xp.inf))
            length = xp.minimum(1.0, _MOST_RISE / xp.maximum(rise, 1e-300))
            relative = promised / xp.abs(objective)
            coldest = state.eps <= settings.last
            settled = xp.where(coldest, relative < settings.tol, relative < _DONE * state.eps)
            rounds = state.rounds + xp.where(settled & coldest, 1, 0)
            finished = settled & coldest & ((rounds >= _Z_ROUNDS) | settings.fixed_z)
            # the next temperature, or the last one again at another z
            eps = xp.where(settled, xp.maximum(COOLING * state.eps, settings.last), state.eps)
            z, moved_read = state.z, prices[0]
            if not settings.fixed_z:
                moves = settled & ~finished
                z = backend.cond(
                    moves, lambda _: latency.best_z(backend, law, loads), lambda _: state.z, None
                )
                change = latency.cost(xp, law, loads, z).slope - latency.cost(xp, law, loads, state.z).slope
                moved_read = xp.maximum(prices[0] + change, _LEAST_PART * prices[0])
                moved_read = xp.where(moves, moved_read, prices[0])
            return tried._replace(
                base=xp.stack([moved_read, prices[1]]),
                move=xp.where(settled, 0.0, move),
                length=xp.where(settled, 0.0, length),
                slope=xp.where(settled, xp.inf, promised),
                eps=eps,
                z=z,
                tau=xp.where(settled & ~finished, demand.temperatures(xp.mean(moved_read), eps), state.tau),
                promise=relative,
                rounds=rounds,
                done=finished,
            )

        return backend.cond(accepted, onwards, longer, None)

    nothing = xp.zeros((2, nodes))
    start = xp.stack([read, xp.where(limited, place, 0.0)])
    first = xp.asarray(settings.first)
    tau = demand.temperatures(xp.mean(read), first)
    state = _State(
        base=start,
        move=nothing,
        length=xp.asarray(0.0),
        slope=xp.asarray(xp.inf),
        eps=first,
        z=xp.asarray(z),
        loads=0.5 * latency.most(law),
        tau=tau,
        promise=xp.asarray(xp.inf),
        rounds=xp.asarray(0),
        done=xp.asarray(False),
        turn=xp.asarray(0),
        unfinished=xp.asarray(0),
    )
    last = backend.while_loop(lambda s: ~s.done & (s.turn < settings.turns), body, state)
    read, loads = offered(last.base[0], last.z, last.loads)
    answer = demand.answer(xp.stack([read, last.base[1]]), last.tau)
    return Solution(
        read,
        last.base[1],
        loads,
        last.z,
        worth(answer, loads, last.z),
        last.promise,
        answer,
        last.turn,
        last.unfinished,
    )
