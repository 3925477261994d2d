"""How the work and the places that rows ask for fall as prices rise: minus the second derivative of the smoothed dual.

    H = sum over rows of weight / tau [C - V K^(-1) V^T],  C the covariances of the chunks inside each site, V those of
    a node's chunk with the numbers of hot and of cold chunks of the row, K those of these two numbers,

in which a hot chunk counts by the row's rate, a stored one by the chunks that it stands for.
"""

from typing import Any, NamedTuple

from ecjax.planning.smoothed.backend import Backend
from ecjax.planning.smoothed.response import Response, Rows, inverse, without_each

_LEAST = 1e-290
_DECIDED = 1e-12  # variance of a number of chunks below which a row's choice is as good as made


class _Covariances(NamedTuple):
    """By row and node, (R, N): of the node's hot and stored chunk with the row's numbers of hot and cold chunks."""

    hot_hot: Any
    hot_cold: Any
    stored_hot: Any
    stored_cold: Any


def curvature(backend: Backend, rows: Rows, response: Response, tau: Any, with_places: bool) -> Any:
    """H by prices of work, (N, N), or by those and by the prices of places, (2 N, 2 N); N = S g.

    Args:
        backend: of the arrays.
        rows: rows.
        response: their marginals.
        tau: (R,) s.
        with_places: whether places have prices.
    """
    xp = backend.xp
    number, sites, width = response.hot.shape
    flat = (number, sites * width)
    hot, cold = response.hot.reshape(flat), response.cold.reshape(flat)
    stored = hot + cold
    weight = rows.weight / tau
    by_hot, by_stored = xp.sqrt(weight) * rows.rate, xp.sqrt(weight) * rows.chunks
    if min(rows.per_site, width) == 1:
        alone = _independent(xp, response, flat)
        inside = _single(xp, hot, stored, by_hot, by_stored, width, with_places)
    else:
        pairs = _pairs(backend, rows, response)
        alone = _paired(xp, response, pairs, flat)
        inside = _several(xp, response, pairs, by_hot, by_stored, with_places)
    entries = inverse(
        xp,
        # rows that are all but decided: what rounding leaves of their covariances must not be blown up
        xp.maximum(xp.sum(alone.hot_hot, axis=1), _DECIDED),
        xp.sum(alone.hot_cold, axis=1),
        xp.maximum(_cold_cold(xp, alone, rows.extra), _DECIDED),
    )
    first, second = xp.sqrt(entries[0]), entries[1] / xp.sqrt(entries[0])
    third = xp.sqrt(xp.maximum(entries[2] - second * second, 0.0))

    def roots(with_hot: Any, with_cold: Any, scale: Any) -> Any:
        one = (first * scale)[:, None] * with_hot + (second * scale)[:, None] * with_cold
        return xp.concatenate([one, (third * scale)[:, None] * with_cold])

    x = roots(alone.hot_hot, alone.hot_cold, by_hot)
    if with_places:
        x = xp.concatenate([x, roots(alone.stored_hot, alone.stored_cold, by_stored)], axis=1)
    return inside - x.T @ x


def _cold_cold(xp: Any, alone: _Covariances, extra: Any) -> Any:
    """Variance of the number of cold chunks: of the stored ones with it, less that of the hot ones."""
    variance = xp.sum(alone.stored_cold - alone.hot_cold, axis=1)
    return xp.where(extra > 0, variance, 1.0)


def _independent(xp: Any, response: Response, flat: tuple[int, int]) -> _Covariances:
    """At most one chunk per site."""
    hot, cold = response.hot, response.cold
    stored = hot + cold
    of_site_hot, of_site_cold = (xp.sum(each, axis=2, keepdims=True) for each in (hot, cold))
    return _Covariances(
        *(
            each.reshape(flat)
            for each in (
                hot * (1 - of_site_hot),
                -hot * of_site_cold,
                hot - stored * of_site_hot,
                cold - stored * of_site_cold,
            )
        )
    )


def _single(xp, hot, stored, by_hot, by_stored, width, with_places):
    """Covariances inside sites that hold one chunk at most, summed over the rows."""
    nodes = hot.shape[1]
    site = xp.arange(nodes) // width
    same = site[:, None] == site[None]
    u, v = by_hot[:, None] * hot, by_stored[:, None] * stored

    def block(diagonal: Any, left: Any, right: Any) -> Any:
        if width == 1:
            return xp.diag(diagonal - xp.sum(left * right, axis=0))
        return xp.diag(diagonal) - xp.where(same, left.T @ right, 0.0)

    work = block((by_hot**2) @ hot, u, u)
    if not with_places:
        return work
    mixed = block((by_hot * by_stored) @ hot, u, v)
    places = block((by_stored**2) @ stored, v, v)
    return xp.block([[work, mixed], [mixed.T, places]])


def _pairs(backend: Backend, rows: Rows, response: Response) -> Any:
    """Probability that two different nodes of a site both store a chunk: (R, S, g, g), 0 on the diagonal."""
    xp = backend.xp
    terms = response.terms
    width = terms.hot.shape[2]
    q = min(rows.per_site, width)
    x = terms.hot + terms.cold
    off = 1.0 - xp.eye(width)
    # the site without node i for every i, and of those without each node j
    left = without_each(backend, x[:, :, None, :] * off, q)  # (j, R, S, i, q + 1)
    none = terms.none[:, :, None]

    def scaled(upto: int) -> Any:
        degrees = xp.arange(upto + 1)
        return xp.sum(left[..., : upto + 1] * none[None, ..., None] ** (upto - degrees), axis=-1)

    both, one, neither = scaled(q - 2), scaled(q - 1), scaled(q)
    first = xp.moveaxis(x, -1, 0)[..., None]  # x_j, (j, R, S, 1)
    second = x[None]  # x_i
    whole = first * second * both + (first + second) * one + neither
    return xp.moveaxis(first * second * both / whole, 0, -1) * off


def _paired(xp: Any, response: Response, pairs: Any, flat: tuple[int, int]) -> _Covariances:
    hot, cold = response.hot, response.cold
    stored = hot + cold
    part = hot / xp.maximum(stored, _LEAST)
    off = pairs - stored[..., :, None] * stored[..., None, :]
    off = off * (1.0 - xp.eye(hot.shape[2]))

    def with_number(kind: Any, same: Any) -> Any:
        return same + xp.einsum("rsij,rsj->rsi", off, kind)

    by_hot = with_number(part, 0.0)
    by_cold = with_number(1 - part, 0.0)
    return _Covariances(
        (hot - hot * hot + part * by_hot).reshape(flat),
        (-hot * cold + part * by_cold).reshape(flat),
        (hot - stored * hot + by_hot).reshape(flat),
        (cold - stored * cold + by_cold).reshape(flat),
    )


def _several(xp, response, pairs, by_hot, by_stored, with_places):
    hot, stored = response.hot, response.hot + response.cold
    _, sites, width = hot.shape
    off = (pairs - stored[..., :, None] * stored[..., None, :]) * (1.0 - xp.eye(width))
    part = hot / xp.maximum(stored, _LEAST)
    u, v = by_hot[:, None, None] * part, xp.broadcast_to(by_stored[:, None, None], hot.shape)

    def block(diagonal: Any, left: Any, right: Any) -> Any:
        by_site = xp.einsum("rsij,rsi,rsj->sij", off, left, right) + diagonal[:, :, None] * xp.eye(width)
        rows = [
            xp.concatenate([by_site[s] if s == t else xp.zeros((width, width)) for t in range(sites)], axis=1)
            for s in range(sites)
        ]
        return xp.concatenate(rows, axis=0)

    def summed(weight: Any, values: Any) -> Any:
        return xp.einsum("r,rsi->si", weight, values)

    work = block(summed(by_hot**2, hot - hot * hot), u, u)
    if not with_places:
        return work
    mixed = block(summed(by_hot * by_stored, hot - hot * stored), u, v)
    places = block(summed(by_stored**2, stored - stored * stored), v, v)
    return xp.block([[work, mixed], [mixed.T, places]])
