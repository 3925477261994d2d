"""How rows spread their chunks over nodes at prices, at a temperature: marginals, and how they answer to the prices.

A row takes k hot chunks (reads use them) and f cold ones, at most q of them per site. At the temperature tau

    A_tau = max over alpha, beta of  k alpha + f beta - tau sum over sites log Z_s,
    Z_s = sum over d <= q of e_d(x),  x_j = e^((alpha - hot_j)/tau) + e^((beta - cold_j)/tau),

with the elementary symmetric polynomials e_d of the nodes of a site; without a limit every node is a site of its own.
A_tau is never above the cost of the cheapest choice. Arrays of nodes are (S, g): sites by their nodes, filled up with
nodes of infinite cost. Marginals: a of hot, b of cold chunks; their covariances give the derivatives by the prices.
"""

from typing import Any, NamedTuple

from ecjax.planning.smoothed.backend import Backend
from ecjax.planning.smoothed.exact import cheapest

_MOST_TURNS = 80
_CLOSED = 1e-10  # chunks that a row may be short of
_UNFINISHED = 1e-6  # chunks; more than that makes a row's answer useless
_STEP = 20.0  # temperatures
_LARGEST = 300.0  # exponent above that of the q-th node of a site; such nodes are taken for certain
_LEAST = 1e-290
_DECIDED = 1e-14  # variance of a number of chunks: less than that comes of rounding


class Rows(NamedTuple):
    """Rows, each of which stands for files that are priced alike.

    Attributes:
        weight: (R,) how many.
        rate: (R,) 1/s, reads of one.
        hot: (R,) k.
        extra: (R,) f.
        chunks: (R,) chunks that one placed chunk stands for.
        cold_cost: (R, S, g) s, of keeping a chunk; infinite where it may not be.
        reading: (R, S, g) s, if all reads use the node; or (1, 1, 1) zero.
        per_site: q, a number that programs are compiled for.
    """

    weight: Any
    rate: Any
    hot: Any
    extra: Any
    chunks: Any
    cold_cost: Any
    reading: Any
    per_site: int


class Prices(NamedTuple):
    """Of node work, (S, g) s per 1/s, and of places for chunks, (S, g) s."""

    read: Any
    place: Any


class Multipliers(NamedTuple):
    """alpha and beta of every row, (R,) s."""

    hot: Any
    cold: Any


class Terms(NamedTuple):
    """Terms of the generating polynomials, divided by a level of the site.

    Attributes:
        hot: (R, S, g) e^((alpha - hot)/tau) of every node.
        cold: (R, S, g) e^((beta - cold)/tau).
        none: (R, S) 1, divided likewise.
    """

    hot: Any
    cold: Any
    none: Any


class Response(NamedTuple):
    """Marginals of the rows, (R, S, g), and their multipliers.

    Attributes:
        hot: a, probability of a hot chunk.
        cold: b, of a cold one.
        multipliers: at which they add up to k and f.
        unfinished: () rows whose marginals do not add up.
        terms: what they are made of.
    """

    hot: Any
    cold: Any
    multipliers: Multipliers
    unfinished: Any
    terms: Terms


class _Sites(NamedTuple):
    """Per row and site: means and covariances of the numbers of hot and cold chunks, (R, S)."""

    hot: Any
    cold: Any
    hot_hot: Any
    hot_cold: Any
    cold_cold: Any


class _Search(NamedTuple):
    base: Multipliers
    move: Multipliers
    length: Any
    promise: Any  # directional derivative at the base, in chunks x s
    best: Multipliers
    error: Any
    turn: Any


def costs(xp: Any, rows: Rows, prices: Prices) -> tuple[Any, Any]:
    """Cost of a hot and of a cold chunk of every row on every node, (R, S, g) s."""
    chunks, rate = rows.chunks[:, None, None], rows.rate[:, None, None]
    cold = rows.cold_cost + chunks * prices.place[None]
    return cold + rows.reading + rate * prices.read[None], cold


def respond(backend: Backend, rows: Rows, prices: Prices, tau: Any) -> Response:
    """Marginals at prices.

    Args:
        backend: of the arrays.
        rows: rows.
        prices: prices.
        tau: (R,) s, temperatures.
    """
    xp = backend.xp
    hot_cost, cold_cost = costs(xp, rows, prices)
    keeps_cold = rows.extra > 0
    k, extra = (each.astype(hot_cost.dtype) for each in (rows.hot, rows.extra))
    limit = _STEP * tau
    # the multipliers of whole choices are a few temperatures away
    whole = cheapest(backend, hot_cost, cold_cost, rows.hot, rows.extra, rows.per_site, tau)
    start = Multipliers(whole.level + whole.shift, whole.level)

    def sums(at: Multipliers) -> tuple[Any, ...]:
        sites = _sites(backend, rows, _terms(xp, rows, hot_cost, cold_cost, tau, at))
        totals = [xp.sum(values, axis=1) for values in sites]
        short_hot = k - totals[0]
        short_cold = xp.where(keeps_cold, extra - totals[1], 0.0)
        return short_hot, short_cold, *totals[2:]

    def body(state: _Search) -> _Search:
        at = Multipliers(
            state.base.hot + state.length * state.move.hot, state.base.cold + state.length * state.move.cold
        )
        short_hot, short_cold, hot_hot, hot_cold, cold_cold = sums(at)
        error = xp.maximum(xp.abs(short_hot), xp.abs(short_cold))
        slope = state.move.hot * short_hot + state.move.cold * short_cold
        accepted = slope >= -0.5 * state.promise
        inverted = inverse(xp, hot_hot, hot_cold, xp.where(keeps_cold, cold_cold, 1.0))
        step_hot = tau * (inverted[0] * short_hot + inverted[1] * short_cold)
        step_cold = tau * (inverted[1] * short_hot + inverted[2] * short_cold)
        largest = xp.maximum(xp.abs(step_hot), xp.abs(step_cold))
        part = xp.minimum(1.0, limit / xp.maximum(largest, _LEAST))
        step_hot, step_cold = part * step_hot, part * step_cold
        secant = state.promise / xp.maximum(state.promise - slope, _LEAST)
        better = error < state.error

        def chosen(new: Any, old: Any) -> Any:
            return xp.where(accepted, new, old)

        return _Search(
            Multipliers(chosen(at.hot, state.base.hot), chosen(at.cold, state.base.cold)),
            Multipliers(chosen(step_hot, state.move.hot), chosen(step_cold, state.move.cold)),
            chosen(xp.ones_like(secant), state.length * xp.maximum(0.2, secant)),
            chosen(step_hot * short_hot + step_cold * short_cold, state.promise),
            Multipliers(xp.where(better, at.hot, state.best.hot), xp.where(better, at.cold, state.best.cold)),
            xp.minimum(error, state.error),
            state.turn + 1,
        )

    nothing = xp.zeros_like(tau)
    first = _Search(
        start,
        Multipliers(nothing, nothing),
        nothing,
        nothing,
        start,
        xp.full_like(tau, xp.inf),
        xp.asarray(0),
    )

    def open_(state: _Search) -> Any:
        return xp.any(state.error > _CLOSED) & (state.turn < _MOST_TURNS)

    last = backend.while_loop(open_, body, first)
    terms = _terms(xp, rows, hot_cost, cold_cost, tau, last.best)
    hot, cold = _marginals(backend, rows, terms)
    return Response(hot, cold, last.best, xp.sum(last.error > _UNFINISHED), terms)


def _terms(xp, rows, hot_cost, cold_cost, tau, at: Multipliers) -> Terms:
    """Terms of the generating polynomial, scaled by site so that those of the q dearest nodes do not overflow."""
    scale = tau[:, None, None]
    hot = (at.hot[:, None, None] - hot_cost) / scale
    cold = (at.cold[:, None, None] - cold_cost) / scale
    cold = xp.where((rows.extra > 0)[:, None, None], cold, -xp.inf)
    larger = xp.maximum(hot, cold)
    width = larger.shape[2]
    q = min(rows.per_site, width)
    if q == 1:
        level = xp.max(larger, axis=2)
    else:
        level = xp.sort(larger, axis=2)[:, :, width - q]
    level = xp.maximum(level, 0.0)
    above = xp.maximum(larger - level[:, :, None] - _LARGEST / q, 0.0)
    shift = level[:, :, None] + above
    return Terms(xp.exp(hot - shift), xp.exp(cold - shift), xp.exp(-level))


def _sites(backend: Backend, rows: Rows, terms: Terms) -> _Sites:
    xp = backend.xp
    width = terms.hot.shape[2]
    if min(rows.per_site, width) == 1:
        hot, cold = xp.sum(terms.hot, axis=2), xp.sum(terms.cold, axis=2)
        total = terms.none + hot + cold
        a, b, none = hot / total, cold / total, terms.none / total
        return _Sites(a, b, a * (none + b), -a * b, b * (none + a))
    # polynomials in the number of chunks, up to q, with the first two derivatives by alpha
    q = min(rows.per_site, width)
    shape = (*terms.none.shape, q + 1)
    start = _one(xp, shape)

    def body(carry, j):
        value, first, second = carry
        hot = xp.take(terms.hot, j, axis=2)[..., None]
        both = hot + xp.take(terms.cold, j, axis=2)[..., None]
        v, f, s = (_raised(xp, each) for each in (value, first, second))
        return (value + both * v, first + both * f + hot * v, second + both * s + 2 * hot * f + hot * v), 0.0

    nothing = xp.zeros(shape)
    (value, first, second), _ = backend.scan(body, (start, nothing, nothing), width)
    powers = terms.none[..., None] ** (q - xp.arange(q + 1))
    value, first, second = value * powers, first * powers, second * powers
    total = xp.sum(value, axis=-1)
    number = xp.arange(q + 1).astype(total.dtype)
    stored = xp.sum(number * value, axis=-1) / total
    hot = xp.sum(first, axis=-1) / total
    hot_hot = xp.sum(second, axis=-1) / total - hot * hot
    away = number - stored[..., None]
    hot_stored = xp.sum(away * first, axis=-1) / total
    stored_stored = xp.sum(away * away * value, axis=-1) / total
    hot_cold = hot_stored - hot_hot
    return _Sites(hot, stored - hot, hot_hot, hot_cold, stored_stored - hot_cold - hot_stored)


def _one(xp, shape):
    return xp.concatenate([xp.ones((*shape[:-1], 1)), xp.zeros((*shape[:-1], shape[-1] - 1))], axis=-1)


def _raised(xp, polynomial):
    """Times the variable, without the highest term."""
    return xp.concatenate([xp.zeros_like(polynomial[..., :1]), polynomial[..., :-1]], axis=-1)


def without_each(backend: Backend, x: Any, q: int) -> Any:
    """Polynomials of a site without one of its nodes, up to degree q: (..., g) -> (g, ..., q + 1)."""
    xp = backend.xp
    width = x.shape[-1]
    shape = (*x.shape[:-1], q + 1)
    start = _one(xp, shape)

    def times(order):
        def body(carry, step):
            j = width - 1 - step if order < 0 else step
            return carry + xp.take(x, j, axis=-1)[..., None] * _raised(xp, carry), carry

        return backend.scan(body, start, width)[1]

    before, after = times(1), times(-1)[::-1]
    parts = [sum(before[..., i] * after[..., d - i] for i in range(d + 1)) for d in range(q + 1)]
    return xp.stack(parts, axis=-1)


def at_scale(xp, terms: Terms, q: int, polynomial: Any) -> Any:
    """Sum over degrees up to ``q`` of a polynomial that lacks some nodes, at the scale of Z."""
    degrees = polynomial.shape[-1]
    powers = terms.none[..., None] ** (q - xp.arange(degrees))
    return xp.sum(polynomial * powers, axis=-1)


def _marginals(backend: Backend, rows: Rows, terms: Terms) -> tuple[Any, Any]:
    xp = backend.xp
    q = min(rows.per_site, terms.hot.shape[2])
    if q == 1:
        total = (terms.none + xp.sum(terms.hot + terms.cold, axis=2))[..., None]
        return terms.hot / total, terms.cold / total
    x = terms.hot + terms.cold
    left = without_each(backend, x, q)
    with_it = xp.moveaxis(at_scale(xp, terms, q - 1, left[..., :q]), 0, -1)
    without = xp.moveaxis(at_scale(xp, terms, q, left), 0, -1)
    whole = x * with_it + without
    return terms.hot * with_it / whole, terms.cold * with_it / whole


def inverse(xp, hot_hot, hot_cold, cold_cold) -> tuple[Any, Any, Any]:
    """Inverse of a symmetric positive semidefinite 2 x 2 matrix: its three entries."""
    one, two = xp.maximum(hot_hot, _DECIDED), xp.maximum(cold_cold, _DECIDED)
    scale_one, scale_two = xp.sqrt(one), xp.sqrt(two)
    # at unit diagonal, so that no product underflows
    off = xp.clip(hot_cold / (scale_one * scale_two), -1 + 1e-12, 1 - 1e-12)
    left = 1 / ((1 - off) * (1 + off))
    return left / one, -off * left / (scale_one * scale_two), left / two
