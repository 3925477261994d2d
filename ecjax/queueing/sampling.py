"""Drawing k distinct nodes with given marginal probabilities (Theorem 1 of the JLCM paper, constructive).

Systematic sampling: lay intervals of length pi_j end to end on [0, k] and take the nodes whose interval
holds one of the points u, u + 1, ..., u + k - 1, u uniform on [0, 1). As no interval is longer than 1,
the k nodes are distinct.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from ecjax.queueing.moments import as_float

_BITS = 30
_ONE = 1 << _BITS


def sample_subset(key: jax.Array, probabilities: ArrayLike, shuffle: bool = True) -> jax.Array:
    """Draw the nodes that one request reads; map over keys or rows with ``jax.vmap``.

    Exactly k = round(sum_j pi_j) nodes are taken in every draw: those with pi_j = 1 always, those with
    pi_j = 0 never. The arithmetic is in whole units of 2^-30: each marginal is pi_j rounded to a unit, and
    the units that the roundings leave over or lack (at most m/2, and what the sum of pi itself is off an
    integer) go to one node.

    Args:
        key: random key.
        probabilities: pi, (m,), in [0, 1], with a whole sum.
        shuffle: lay the nodes in a random order in every draw. In one fixed order some pairs of nodes
            are never read together; the marginals are the same.

    Returns:
        Boolean (m,).
    """
    lengths = _whole_lengths(as_float(probabilities))
    order_key, start_key = jax.random.split(key)
    start = jax.random.bits(start_key, (), jnp.uint32) >> (32 - _BITS)
    if not shuffle:
        return _systematic(lengths, start)
    order = jax.random.permutation(order_key, lengths.shape[0])
    return jnp.zeros(lengths.shape, bool).at[order].set(_systematic(lengths[order], start))


def _whole_lengths(probabilities: jax.Array) -> jax.Array:
    """Probabilities in units of 2^-30, uint32 (m,), summing exactly to a multiple of 2^30.

    The node that takes the remainder is, of those with 0 < pi < 1, the shortest when units are to be
    added and the longest when they are to be removed: with F such nodes its room is at least 2^30/F, the
    remainder at most F/2.
    """
    lengths = jnp.round(probabilities * _ONE).astype(jnp.uint32)
    k = jnp.round(probabilities.sum()).astype(jnp.uint32)
    # modulo 2^32 the difference is exact, however large k is
    remainder = lax.bitcast_convert_type(k * jnp.uint32(_ONE) - lengths.sum(dtype=jnp.uint32), jnp.int32)
    signed = lengths.astype(jnp.int32)
    fractional = (probabilities > 0) & (probabilities < 1)
    room = jnp.where(remainder > 0, _ONE - signed, signed)
    chosen = jnp.argmax(jnp.where(fractional, room, -1))
    return signed.at[chosen].add(remainder).astype(jnp.uint32)


def _systematic(lengths: jax.Array, start: jax.Array) -> jax.Array:
    """Nodes whose interval, from its offset to its offset + length, passes a multiple of 2^30."""
    ends = jnp.cumsum(lengths, dtype=jnp.uint32)
    # offsets modulo 2^32 are right modulo 2^30, which is all that matters
    offset = (ends - lengths + start) & jnp.uint32(_ONE - 1)
    return offset + lengths >= jnp.uint32(_ONE)
