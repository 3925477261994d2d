"""What requests draw, in JAX: the same numbers as ``streams``, ``subset`` and ``laws`` give, for whole blocks."""

import jax
import jax.numpy as jnp
import numpy as np

from ecjax.simulation import laws
from ecjax.simulation.system import UNIT
from ecjax.streams.streams import FIRST, SECOND, STEP

_UNIT_BITS = UNIT.bit_length() - 1


def _mixed(state):
    z = (state ^ (state >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


def stream(start, counter):
    """States of the streams of counters, any shape; see ``streams.stream``."""
    return start + counter.astype(jnp.uint64) * STEP


def _advance(state):
    return _mixed(state) ^ STEP


def _uniform(state):
    return ((_mixed(state) >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def entries(widest, units, begin, count, state):
    """Entries (b, widest) of each request's row in random order, and whether they are read; see ``subset.draw``.

    Args:
        widest: most entries of a row, at least ``count``.
        units: (entries,) probabilities in whole units.
        begin: (b,) first entry of the row.
        count: (b,) entries of the row; those beyond are not read.
        state: (b,) of the DISPATCH stream.
    """
    place = jnp.arange(widest)[None, :]

    def swap(step, carry):
        order, state = carry
        i = widest - 1 - step
        active = i < count
        state = jnp.where(active, _advance(state), state)
        j = jnp.where(active, (_uniform(state) * jnp.float64(i + 1)).astype(int), i)
        current, there = order[:, i, None], jnp.take_along_axis(order, j[:, None], axis=1)
        order = jnp.where(place == i, there, jnp.where(place == j[:, None], current, order))
        return order, state

    order = jnp.broadcast_to(place, (len(begin), widest))
    order, state = jax.lax.fori_loop(0, widest - 1, swap, (order, state))
    first = (_uniform(_advance(state)) * 2.0**_UNIT_BITS).astype(int)
    entry = begin[:, None] + jnp.minimum(order, count[:, None] - 1)
    share = jnp.where(place < count[:, None], units[entry], 0)
    reach = first[:, None] + jnp.cumsum(share, axis=1)
    return entry, (reach >> _UNIT_BITS) > ((reach - share) >> _UNIT_BITS)


def _normal(state):
    return jnp.sqrt(-2.0 * jnp.log(_uniform(state))) * jnp.cos(2.0 * np.pi * _uniform(_advance(state)))


def gamma(state, shape, wanted):
    """Draws of gamma laws with scale 1, 0 where they are not ``wanted``; see ``streams.gamma``."""
    shape = jnp.where(wanted, shape, 1.0)
    small = shape < 1.0
    boost = jnp.where(small, _uniform(state) ** (1.0 / shape), 1.0)
    state = jnp.where(small, _advance(state), state)
    d = jnp.where(small, shape + 1.0, shape) - 1.0 / 3.0
    c = 1.0 / jnp.sqrt(9.0 * d)

    def body(carry):
        state, drawn, open_ = carry
        x = _normal(state)
        after = _advance(_advance(state))
        v = 1.0 + c * x
        positive = v > 0.0
        v = jnp.where(positive, v, 1.0) ** 3
        limit = 0.5 * x * x + d - d * v + d * jnp.log(v)
        accepted = open_ & positive & (jnp.log(_uniform(after)) < limit)
        return _advance(after), jnp.where(accepted, boost * d * v, drawn), open_ & ~accepted

    first = state, jnp.zeros_like(d), jnp.broadcast_to(wanted, d.shape)
    return jax.lax.while_loop(lambda carry: jnp.any(carry[2]), body, first)[1]


def _unit(kinds, table, samples, state):
    """Draws of U for laws ``table`` (..., COLUMNS)."""
    a, b, kind = table[..., laws.A], table[..., laws.B], table[..., laws.KIND]
    u = _uniform(state)
    drawn = jnp.zeros_like(u)
    for which in kinds:
        if which in (laws.EXPONENTIAL, laws.STALLED):
            value = -jnp.log(u)
        elif which == laws.LOGNORMAL:
            value = jnp.exp(a * _normal(state))
        elif which == laws.GAMMA:
            value = gamma(state, a, kind == which)
        elif which == laws.WEIBULL:
            value = (-jnp.log(u)) ** (1.0 / a)
        elif which == laws.PARETO:
            value = (1.0 - u * (1.0 - b**-a)) ** (-1.0 / a)
        elif which == laws.TWO_POINT:
            value = jnp.where(u < a, 1.0, 0.0)
        elif which in (laws.EMPIRICAL, laws.EMPIRICAL_STALLED):
            count = table[..., laws.SAMPLES]
            place = jnp.minimum((u * count).astype(int), count.astype(int) - 1)
            value = samples[table[..., laws.FIRST_SAMPLE].astype(int) + place]
        else:
            continue
        drawn = jnp.where(kind == which, value, drawn)
    return drawn


def service(kinds, most, table, samples, chunk_bytes, chunks, state):
    """Service times, s, of any shape; see ``laws.service``.

    Args:
        kinds: of the laws that occur.
        most: chunks that are served together at most.
        table: (..., COLUMNS) of ``Laws``.
        samples: of the empirical laws.
        chunk_bytes: (...) B.
        chunks: (...) served together.
        state: (...) of the SERVICE stream.
    """
    total = _unit(kinds, table, samples, state)
    for number in range(1, most):
        further = _unit(kinds, table, samples, stream(_mixed(state), jnp.full(state.shape, number)))
        total = total + jnp.where(number < chunks, further, 0.0)
    offset = table[..., laws.OFFSET] + table[..., laws.OFFSET_PER_BYTE] * chunk_bytes
    scale = table[..., laws.SCALE] + table[..., laws.SCALE_PER_BYTE] * chunk_bytes
    work = chunks.astype(float) * offset + scale * total
    if not set(laws.WITH_STALLS) & set(kinds):
        return work
    kind = table[..., laws.KIND]
    first = jnp.where(kind == laws.EMPIRICAL_STALLED, table[..., laws.B], 0.0).astype(int)
    for number in range(most):
        stalling = stream(_mixed(state), jnp.full(state.shape, laws.STALLS + number))
        place = (_uniform(_advance(stalling)) * laws.STALL_SAMPLES).astype(int)
        stall = jnp.where(kind == laws.STALLED, table[..., laws.B], samples[first + place])
        stalls = (kind >= laws.STALLED) & (number < chunks) & (_uniform(stalling) < table[..., laws.A])
        work = work + jnp.where(stalls, stall, 0.0)
    return work
