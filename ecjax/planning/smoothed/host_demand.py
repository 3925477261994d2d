"""The demand of rows on processor cores: row by row, in parts that threads share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ecjax.planning.smoothed import host
from ecjax.planning.smoothed.backend import NUMPY
from ecjax.planning.smoothed.low_rank import solve_low_rank
from ecjax.planning.smoothed.newton import Answer, Demand, temperatures
from ecjax.planning.smoothed.response import Rows

_ROOTS_TO_NODES = 2.0  # nodes for each root of a row from which on steps are made of roots

ShareOut = Callable[[int, Callable[[int, int], Any]], list[Any]]


class Marginals(NamedTuple):
    """Of rows: hot and cold (R, m), and alpha and beta (2, R) s."""

    hot: np.ndarray
    cold: np.ndarray
    multipliers: np.ndarray


def host_demand(
    rows: Rows, sites: tuple[np.ndarray, np.ndarray], with_places: bool, share_out: ShareOut
) -> Demand:
    """The demand of rows whose costs are by node, (R, m).

    Args:
        rows: rows; ``reading`` is (0, m) where reads cost nothing themselves.
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        with_places: whether places for chunks have prices.
        share_out: (number, part) -> what part(first, last + 1) returns for all of them, in their order.
    """
    number, m = rows.cold_cost.shape
    finite = np.isfinite(rows.cold_cost)
    usual = np.nanmedian(np.where(finite, rows.cold_cost, np.nan), axis=1)
    payable = np.where(finite, rows.cold_cost, 0.0)
    size = 2 * m if with_places else m
    order, start = sites
    width = np.diff(start)
    # each node with all nodes of its site: (pairs,) the one, its place among them, the other
    one = np.repeat(order, np.repeat(width, width))
    place = np.concatenate([np.tile(np.arange(count), count) for count in width])
    other = order[np.repeat(np.repeat(start[:-1], width), np.repeat(width, width)) + place]
    # where the next answer starts from
    last_multipliers = np.full((2, number), np.nan)

    def answer(prices: np.ndarray, tau: np.ndarray) -> Answer:
        hot, cold = np.empty((number, m)), np.empty((number, m))
        multipliers = last_multipliers.copy()

        def part(first: int, last: int) -> int:
            return host.respond(first, last, rows, prices, tau, sites, hot, cold, multipliers)

        unfinished = sum(share_out(number, part))
        last_multipliers[:] = multipliers
        stored = hot + cold
        dollars = np.einsum("r,rm,rm->", rows.weight, stored, payable)
        if len(rows.reading):
            dollars += np.einsum("r,rm,rm->", rows.weight, hot, rows.reading)
        return Answer(
            (rows.weight * rows.rate) @ hot,
            (rows.weight * rows.chunks) @ stored,
            dollars,
            unfinished,
            Marginals(hot, cold, multipliers),
        )

    def parts(answer: Answer, prices: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariances inside sites, and roots (2 R, size) of what is between."""
        weight = np.sqrt(rows.weight / tau) * np.stack([rows.rate, rows.chunks])
        roots = np.empty((number, 2, size))
        hot, cold, multipliers = answer.detail

        def part(first: int, last: int) -> np.ndarray:
            blocks = np.zeros((3 if with_places else 1, m, int(width.max())))
            host.curve(first, last, rows, prices, multipliers, tau, sites, hot, cold, weight, roots, blocks)
            return blocks

        blocks: np.ndarray = np.sum(share_out(number, part), axis=0)
        return blocks, roots.reshape(-1, size)

    def curvature(answer: Answer, prices: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return dense(*parts(answer, prices, tau))

    def dense(blocks: np.ndarray, flat: np.ndarray) -> np.ndarray:
        matrix = flat.T @ flat
        # in place: a matrix of thousands of nodes is dear to touch
        np.negative(matrix, out=matrix)
        matrix[one, other] += blocks[0, one, place]
        if with_places:
            matrix[one, m + other] += blocks[1, one, place]
            matrix[m + other, one] += blocks[1, one, place]
            matrix[m + one, m + other] += blocks[2, one, place]
        return matrix

    def step(
        answer: Answer, prices: np.ndarray, tau: np.ndarray, diagonal: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        blocks, flat = parts(answer, prices, tau)
        solution = solve_low_rank(blocks[0], sites, flat, diagonal, right)
        return NUMPY.solve(dense(blocks, flat), diagonal, right) if solution is None else solution

    few = not with_places and _ROOTS_TO_NODES * 2 * number < m

    def of_prices(mean: float, eps: float) -> np.ndarray:
        scale = rows.rate * mean + usual
        result: np.ndarray = temperatures(np, scale, rows.weight, eps, lambda sums: sums)
        return result

    return Demand(of_prices, answer, curvature, step if few else None)
