"""Expectations over k of m nodes drawn with given marginals: conditional Poisson sampling.

Drawing every node by itself with probability p_j, and keeping the draw where there are exactly k of them, is the
design of largest entropy with its marginals (Chen, Dempster, Liu, "Weighted finite population sampling to maximize
entropy", Biometrika 1994); systematic sampling in a random order comes close to it. Then

    E prod_{j in S} F_j = [z^k] prod_j (1 - p_j + p_j F_j z)  /  [z^k] prod_j (1 - p_j + p_j z)
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

# Marginals are mixed with equal ones by this share: at 0 and 1 the odds have no derivative.
_BLUR = 1e-9
# plain and halved steps in turn; the error falls at least tenfold in two
_ITERATIONS = 14


def drawing_probabilities(marginals: jax.Array, most: int) -> jax.Array:
    """The p_j whose conditional Poisson draw has the marginals pi, (m,).

    Marginals of 0 and 1 become 1e-9 off; derivatives are those of the solution there, by implicit differentiation.
    (Where all marginals are 0 or 1 the expectation has a kink: each exchange of nodes has its own slope. The
    derivative is then one between them.)

    Args:
        marginals: pi, (m,), in [0, 1], whose sum k is whole up to rounding.
        most: a static bound on k.
    """
    nodes = marginals.shape[-1]
    k = jnp.round(jnp.sum(marginals))
    blurred = (1 - _BLUR) * marginals + _BLUR * k / nodes
    return _solved(jnp.clip(blurred, 1e-12, 1 - 1e-12), most)


def subset_product(drawing: jax.Array, k: jax.Array, values: jax.Array, most: int) -> jax.Array:
    """E prod_{j in S} F_j over the conditional Poisson draw, for many F at once.

    Args:
        drawing: p, (m,).
        k: whole number of nodes drawn, in the float type.
        values: F, (m, ...).
        most: a static bound on k.

    Returns:
        (...).
    """
    count = k.astype(jnp.int32)

    def add(series, node):
        p, value = node
        weighted = p * value
        rest = 1 - p
        grown = [series[0] * rest]
        grown += [series[c] * rest + series[c - 1] * weighted for c in range(1, most + 1)]
        return tuple(grown), None

    def coefficient(values):
        start = (jnp.ones(values.shape[1:]),) + (jnp.zeros(values.shape[1:]),) * most
        series, _ = lax.scan(add, start, (drawing, values))
        return sum(jnp.where(count == c, series[c], 0) for c in range(most + 1))

    return coefficient(values) / coefficient(jnp.ones(drawing.shape))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _solved(marginals, most):
    k = jnp.round(jnp.sum(marginals))
    target = jnp.log(marginals) - jnp.log1p(-marginals)

    def improve(i, odds):
        without, with_one_less = _left_out(jax.nn.sigmoid(odds), k, most)
        # pi_j = p_j A_j / (p_j A_j + (1 - p_j) B_j), solved for p_j with the other nodes held
        solved = target + jnp.log(without) - jnp.log(with_one_less)
        return jnp.where(_fixed(k, marginals), odds, odds + jnp.where(i % 2 == 0, 0.5, 1.0) * (solved - odds))

    return jax.nn.sigmoid(lax.fori_loop(0, _ITERATIONS, improve, target))


@_solved.defjvp
def _solved_jvp(most, primals, tangents):
    (marginals,), (change,) = primals, tangents
    drawing = _solved(marginals, most)
    k = jnp.round(jnp.sum(marginals))
    odds = jnp.log(drawing) - jnp.log1p(-drawing)
    covariance = jax.jacfwd(lambda o: _inclusion(jax.nn.sigmoid(o), k, most))(odds)
    # The covariance of the draw does not see a common factor of the odds: that direction is filled in. Scaling
    # by pi (1 - pi) makes rows next to 0 and 1 as large as the others.
    size = jnp.sqrt(marginals * (1 - marginals))
    unit = size / jnp.sqrt(jnp.sum(size**2))
    scaled = covariance / size[:, None] / size[None, :] + unit[:, None] * unit[None, :]
    fixed = _fixed(k, marginals)
    scaled = jnp.where(fixed, jnp.eye(marginals.shape[-1]), (scaled + scaled.T) / 2)
    along = jnp.linalg.solve(scaled, change / size) / size
    return drawing, jnp.where(fixed, 0, drawing * (1 - drawing) * along)


def _fixed(k, marginals):
    """All nodes or none: there is nothing to draw."""
    return (k < 0.5) | (k > marginals.shape[-1] - 0.5)


def _inclusion(p, k, most):
    without, with_one_less = _left_out(p, k, most)
    with_node = p * with_one_less
    return with_node / (with_node + (1 - p) * without)


def _left_out(p, k, most):
    """Probabilities that the nodes other than j are k, and k - 1, in number: each (m,)."""
    start = jnp.zeros(most + 1).at[0].set(1.0)

    def add(series, probability):
        grown = series * (1 - probability)
        return grown.at[1:].add(series[:-1] * probability), series

    before = lax.scan(add, start, p)[1]
    after = lax.scan(add, start, p, reverse=True)[1]
    # coefficient c of the product: sum_a before[a] after[c - a]; ``after`` reversed and shifted so that a lines up
    index = jnp.arange(most + 1)

    def coefficient(c):
        other = c.astype(index.dtype) - index
        inside = (other >= 0) & (other <= most)
        picked = jnp.where(inside[None, :], after[:, jnp.clip(other, 0, most)], 0)
        return jnp.sum(before * picked, axis=1)

    return coefficient(k), coefficient(k - 1)
