"""The demand of rows as an array program, for NumPy or JAX."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ecjax.planning.smoothed.backend import Backend
from ecjax.planning.smoothed.curvature import curvature
from ecjax.planning.smoothed.newton import Answer, Demand, temperatures
from ecjax.planning.smoothed.response import Prices, Rows, respond


class Grid(NamedTuple):
    """Nodes by site.

    Attributes:
        node: (S, g) number of the node in each place; m where there is none.
        place: (m,) place of each node in that, flattened.
    """

    node: Any
    place: Any


def by_site(xp: Any, grid: Grid, values: Any) -> Any:
    """Values of nodes (..., m) in their places (..., S, g), 0 where there is no node."""
    filled = xp.concatenate([values, xp.zeros_like(values[..., :1])], axis=-1)
    return xp.take(filled, grid.node, axis=-1)


def by_node(xp: Any, grid: Grid, values: Any) -> Any:
    """Values by place (..., S, g) of the nodes (..., m)."""
    return xp.take(values.reshape(*values.shape[:-2], -1), grid.place, axis=-1)


def _as_it_is(sums: Any) -> Any:
    return sums


def demand_of(
    backend: Backend,
    rows: Rows,
    grid: Grid,
    with_places: bool,
    of_all: Callable[[Any], Any] = _as_it_is,
) -> Demand:
    """The demand of rows whose costs are by place.

    Args:
        backend: of the arrays.
        rows: rows, all or those that are here.
        grid: places.
        with_places: whether places for chunks have prices.
        of_all: sums over the rows that are here -> over the rows of all devices.
    """
    xp = backend.xp
    usual = xp.nanmedian(xp.where(xp.isfinite(rows.cold_cost), rows.cold_cost, xp.nan), axis=(1, 2))

    def answer(prices: Any, tau: Any) -> Answer:
        at = Prices(by_site(xp, grid, prices[0]), by_site(xp, grid, prices[1]))
        response = respond(backend, rows, at, tau)
        stored = response.hot + response.cold
        requested = xp.einsum("r,rsg->sg", rows.weight * rows.rate, response.hot)
        chunks = xp.einsum("r,rsg->sg", rows.weight * rows.chunks, stored)
        cold = xp.where(xp.isfinite(rows.cold_cost), rows.cold_cost, 0.0)
        dollars = xp.einsum("r,rsg->", rows.weight, stored * cold + response.hot * rows.reading)
        here = by_node(xp, grid, requested), by_node(xp, grid, chunks), dollars, response.unfinished
        requested, chunks, dollars, unfinished = of_all(here)
        return Answer(requested, chunks, dollars, unfinished, response)

    def curve(answer: Answer, prices: Any, tau: Any) -> Any:
        matrix = of_all(curvature(backend, rows, answer.detail, tau, with_places))
        at = grid.place
        if with_places:
            at = xp.concatenate([at, grid.node.size + at])
        return matrix[at][:, at]

    def of_prices(mean: Any, eps: Any) -> Any:
        return temperatures(xp, rows.rate * mean + usual, rows.weight, eps, of_all)

    return Demand(of_prices, answer, curve)
