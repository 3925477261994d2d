"""Exact plans of many caches, popularities and capacities at once on a device: the whole dynamic programme, in JAX.

The items are one scan, F_m(c) = max_j F_{m-1}(c - j) + tau_{m,j}, the caches its lanes. It ends with the best value of
every capacity, so that a sweep of capacities of one cache takes one scan. On a CPU the core of the knapsack
(``exact``, one cache after the other) takes less time; here is no work that depends on the values, as an accelerator
likes it.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.caching.knapsack import checked
from ecjax.caching.valuation import checked_whole
from ecjax.errors import UserError
from ecjax.programs import program

_TYPES = ("float64", "float32")


def exact_batched(
    tau: ArrayLike, capacity: ArrayLike, dtype: str = "float64", memory_bytes: float = 2**30
) -> np.ndarray:
    """Best chunks per item of each of B caches, as good as ``exact`` of each and as small.

    Args:
        tau: values as ``exact`` takes them, of each cache, (B, M, K + 1).
        capacity: chunks of each cache, (B,), or R capacities of each, (B, R).
        dtype: "float64", or "float32": plans are best, and smallest, within its rounding then.
        memory_bytes: of the tables of choices (M C bytes per cache) and the values that are on the device together;
            one cache is, in any case.

    Returns:
        Chunks, (B, M) or (B, R, M) int64.

    Raises:
        UserError: what is given is not as above.
    """
    if dtype not in _TYPES:
        raise UserError(f"dtype: found {dtype!r}; allowed: {', '.join(_TYPES)}")
    values, rooms = _checked(tau, np.asarray(capacity))
    lanes, items, options = values.shape
    most = int(rooms.max(initial=0))
    plans = np.zeros((*rooms.shape, items), np.int64)
    lane_bytes = items * (most + 1 + options * np.dtype(dtype).itemsize + rooms.shape[1])
    together = int(min(max(1, memory_bytes // max(1, lane_bytes)), max(1, lanes)))
    for begin in range(0, lanes if plans.size else 0, together):
        part = slice(begin, begin + together)
        lacking = max(0, begin + together - lanes)
        # the last ones are filled up to the shape of all others: one compilation
        batch = np.pad(_cast(values[part], dtype), ((0, lacking), (0, 0), (0, 0)))
        room = np.pad(rooms[part], ((0, lacking), (0, 0)))
        plans[part] = np.asarray(_plans(batch, room, most))[: together - lacking]
    return plans.reshape(*np.shape(capacity), items)


def _cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values (B, M, K + 1) of that type; in single precision the largest of a cache becomes 0.5 to 1.

    Values may be beyond the range of that type; a power of two moves no plan.
    """
    if dtype == "float32":
        _, exponent = np.frexp(values.max(axis=(1, 2), initial=0.0, keepdims=True))
        values = np.ldexp(values, -exponent)
    return values.astype(dtype)


def _checked(tau: ArrayLike, capacity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of each cache, (B, M, K + 1), and its capacities, (B, R) of at most M K."""
    try:
        values = np.ascontiguousarray(tau, np.float64)
    except (TypeError, ValueError):
        raise UserError("tau: found something that is not numbers; allowed: (B, M, K + 1)") from None
    if values.ndim != 3:
        raise UserError(f"tau: found shape {values.shape}; allowed: (B, M, K + 1)")
    if capacity.ndim not in (1, 2) or len(capacity) != len(values):
        raise UserError(
            f"capacity: found shape {capacity.shape}; allowed: ({len(values)},) or ({len(values)}, R)"
        )
    columns = np.expand_dims(capacity, 1) if capacity.ndim == 1 else capacity
    rooms = np.zeros(columns.shape, np.int32)
    for cache, rows in enumerate(values):
        try:
            most = checked(rows)[:, 1:].size
            rooms[cache] = [min(checked_whole("capacity", room), most) for room in columns[cache].tolist()]
        except UserError as error:
            raise UserError(f"cache {cache}: {error}") from None
    return values, rooms


@partial(program, static_argnames="most")
def _plans(tau: jax.Array, capacity: jax.Array, most: int) -> jax.Array:
    """Chunks (B, R, M) uint8 of capacities (B, R) of at most ``most``."""
    best, choice = jax.vmap(partial(_scan, most=most))(tau)
    # the fewest chunks of that value
    capacity_used = jax.vmap(jax.vmap(lambda best, room: jnp.argmax(best >= best[room]), (None, 0)))(
        best, capacity
    )
    return jax.vmap(jax.vmap(_traced_back, (None, 0)))(choice, capacity_used.astype(jnp.int32))


def _scan(tau: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Best value with c chunks at most, (C + 1,), and the chunks of each item then, (M, C + 1) uint8."""
    options, size = tau.shape[1], most + 1

    def add(best: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
        choice = jnp.zeros(size, jnp.uint8)
        before = jnp.concatenate([jnp.full(options - 1, -jnp.inf, best.dtype), best])
        for j in range(1, options):
            other = lax.slice(before, (options - 1 - j,), (options - 1 - j + size,)) + values[j]
            choice = jnp.where(other > best, jnp.uint8(j), choice)
            best = jnp.maximum(best, other)
        return best, choice

    return lax.scan(add, jnp.zeros(size, tau.dtype), tau)


def _traced_back(choice: jax.Array, capacity: jax.Array) -> jax.Array:
    """Chunks, (M,) uint8, that fill ``capacity``."""

    def take(capacity: jax.Array, choice: jax.Array) -> tuple[jax.Array, jax.Array]:
        return capacity - choice[capacity].astype(jnp.int32), choice[capacity]

    return lax.scan(take, capacity, choice, reverse=True)[1]
