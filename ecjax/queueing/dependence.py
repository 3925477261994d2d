"""Dependence between the waits of nodes that are read together.

A read arrives at its k nodes at once, and a write at all nodes of its file, so their waits rise together. They are
joined by a Gaussian copula with one factor: given a standard normal y, the waits are independent, with

    Pr(W_j <= w | y) = Phi((Phi^-1(Pr(W_j <= w)) - a_j y) / sqrt(1 - a_j^2)).

Service times and connection delays are independent of everything, as they are in the queues themselves.

Nodes that are read together more often than others (a plan may use half of its nodes for half of its files) do not
depend on one factor alike for all. So every file has loadings of its own: those whose products a_j a_l are nearest to
the correlations of the nodes that it reads. The correlation of two nodes (a^2, where they are alike) follows
from P, the share of their work that comes by requests which reach both, and
S = E[X X'] / sqrt(E[X^2] E[X'^2]) over those requests (C = P S is the correlation of the work that arrives):

    a^2 = [1 - (1 - P) g] [1 - (1 - S) (1 + S^1.14 (2.96 rho (1 - rho) + 0.41 rho - 0.22))],
    g = exp(0.15 P - (1 - rho)^2 (0.76 o^0.54 + 1.04 o^0.67 / (1 + 81 (1 - S)))),   o = P / (1 - P).

It is exact where nothing is read together (0) and for alike constant services with all requests in common (1). The
constants were fitted to simulations of alike nodes, k of m at random, (m, k) in (2, 2), (6, 6), (10, 10), (8, 6),
(12, 6), (24, 10), (12, 2), (50, 10), loads 0.1 to 0.9, of constant, shifted exponential, gamma, exponential and
lognormal services, so that the mean and the 99 % point of the slowest read fit, and the mean of the longest wait.

Among chunks of many sizes the large ones make the waits, and they are fewer than rho says: it is multiplied by the
cube root of E[x^2]^2 / (E[x] E[x^3]), x the mean service time of a chunk.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ecjax.queueing.service_law import ServiceLaw

# Beyond this the factor needs more points than are taken; see ``comonotone_share``.
_MOST_CORRELATION = 0.97
_FITTING = 16  # steps of the fit of a file's loadings


def factor_points() -> tuple[jax.Array, jax.Array]:
    """Points y of the factor and their weights, (Y,): the trapezoidal rule, good at strong correlation too."""
    y = np.linspace(-3.0, 4.2, 16)
    weight = np.exp(-y * y / 2)
    return jnp.asarray(y), jnp.asarray(weight / weight.sum())


def wait_correlation(
    probabilities: jax.Array,
    rates: jax.Array,
    chunk_bytes: jax.Array,
    service: ServiceLaw,
    background: jax.Array | None,
    common_writes: jax.Array | None = None,
) -> jax.Array:
    """Correlation of the waits of every two nodes in the copula, (m, m), in [0, 1]; 0 on the diagonal.

    Args:
        probabilities: pi, (r, m).
        rates: 1/s, (r,).
        chunk_bytes: B, (r,).
        service: laws.
        background: (3, m) load, A_2, A_3 of other work.
        common_writes: the part of it that reaches nodes together, see ``with_writes``.
    """
    common = with_writes(common_work(probabilities, rates, chunk_bytes, service), common_writes)
    return pair_correlation(*shares(common, background))


class CommonWork(NamedTuple):
    """Work that reads bring to the nodes, by itself and together; sums over files, x their mean service time."""

    load: jax.Array  # (m,) of x
    squares: jax.Array  # (m,) of x^2, s
    cubes: jax.Array  # (m,) of x^3, s^2
    second: jax.Array  # (m,) of E[X^2], s
    requests: jax.Array  # (m, m) of sqrt(x x') over requests that read both
    work: jax.Array  # (m, m) of x x', s


def common_work(
    probabilities: jax.Array, rates: jax.Array, chunk_bytes: jax.Array, service: ServiceLaw
) -> CommonWork:
    """Sums of what comes to every node, and to every two; linear in the rates. Arguments as above."""
    first, second, _ = service.moments(chunk_bytes[:, None])
    k = jnp.round(jnp.sum(probabilities, axis=1, keepdims=True))
    reads = rates[:, None] * probabilities
    # a request that reads j reads l with about pi_l (k - 1) / (k - pi_j): exact in sum over l, and for equal pi
    several = k > 1.5
    joint = reads * jnp.where(several, k - 1, 0) / jnp.where(several, k - probabilities, 1)

    def pairs(amount):
        both = jnp.matmul((joint * amount).T, probabilities * amount, precision="highest")
        return (both + both.T) / 2

    load, squares, cubes, seconds = (
        jnp.sum(reads * moment, axis=0) for moment in (first, first**2, first**3, second)
    )
    return CommonWork(load, squares, cubes, seconds, pairs(jnp.sqrt(first)), pairs(first))


def with_writes(common: CommonWork, writes: jax.Array | None) -> CommonWork:
    """The same with what writes, whose load is other work, bring to every two nodes at once.

    Args:
        common: sums of the reads, of one class or of several (K, ...).
        writes: such sums, ``requests`` and ``work``, (..., 2, m, m); None: nothing is written.
    """
    if writes is None:
        return common
    return common._replace(
        requests=common.requests + writes[..., 0, :, :], work=common.work + writes[..., 1, :, :]
    )


def shares(common: CommonWork, background: jax.Array | None) -> tuple[jax.Array, jax.Array, jax.Array]:
    """P, C and rho of every two nodes as ``pair_correlation`` takes them, each (m, m).

    Args:
        common: sums of the reads.
        background: (3, m) load, A_2, A_3 of other work.
    """
    load, square = common.load, common.second
    read = load > 0
    # the root has no derivative at 0, where nothing is read
    mixed = jnp.cbrt(jnp.where(read, common.squares**2 / jnp.where(read, load * common.cubes, 1), 1))
    if background is not None:
        load, square = load + background[0], square + background[1]
    apart = 1 - jnp.eye(load.shape[0])

    def part(pairs, total):
        size = jnp.sqrt(jnp.where(total > 0, total, 1))
        return jnp.clip(pairs / size[:, None] / size[None, :] * apart, 0, 1)

    rho = jnp.clip(load * mixed, 0, 1)
    return part(common.requests, load), part(common.work, square), between(rho)


def between(values: jax.Array) -> jax.Array:
    """Means of nodes' values over every two nodes, (m, m)."""
    return (values[:, None] + values[None, :]) / 2


def pair_correlation(requests: jax.Array, work: jax.Array, load: jax.Array) -> jax.Array:
    """Correlation a^2 of the copula of two waits: the formula at the head of this module.

    Args:
        requests: P, share of the work in common requests, in [0, 1].
        work: C = P S, correlation of the work that arrives, in [0, 1].
        load: rho, mean of the two loads, in [0, 1].
    """
    shared = requests > 0
    p = jnp.where(shared, requests, 0.5)
    s = jnp.clip(jnp.where(shared, work, 0.5) / p, 1e-6, 1)
    idle = 1 - load
    odds = p / jnp.maximum(1 - p, 1e-6) + 1e-6
    early = 0.76 * odds**0.54 + 1.04 * odds**0.67 / (1 + 81 * (1 - s))
    rarely = jnp.exp(0.15 * p - idle**2 * early)
    spread = (1 - s) * (1 + s**1.14 * (2.96 * load * idle + 0.41 * load - 0.22))
    both = jnp.clip(1 - (1 - p) * rarely, 0, 1) * jnp.clip(1 - spread, 0, 1)
    return jnp.where(shared, both, 0)


def loadings(marginals: jax.Array, correlation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Loadings a of the nodes for the reads of one file, and the part of its dependence that is complete.

    Very strong dependence is a mixture of a^2 = 0.97 and of complete dependence, linear in sqrt(1 - a^2), in
    which the latency is nearly linear.

    Args:
        marginals: pi of the file, (m,).
        correlation: of every two nodes, (m, m), 0 on the diagonal.

    Returns:
        (m,) and ().
    """
    others = marginals[None, :] * (1 - jnp.eye(marginals.shape[0]))
    total = jnp.sum(others, axis=1)
    mean = jnp.sum(others * correlation, axis=1) / jnp.where(total > 0, total, 1)
    limited = jnp.clip(correlation, 0, _MOST_CORRELATION)

    def improve(i, a):
        # least squares of a_j a_l to the correlations, for one node with the others held; the root keeps it from
        # swinging where there are two
        square = others @ (a * a)
        best = (others * limited) @ a / jnp.where(square > 0, square, 1)
        return jnp.sqrt(jnp.clip(a * best, 1e-6, _MOST_CORRELATION))

    start = jnp.sqrt(jnp.clip(mean, 1e-6, _MOST_CORRELATION))
    a = lax.fori_loop(0, _FITTING, improve, start)
    least = (1 - _MOST_CORRELATION) ** 0.5
    complete = jnp.clip(1 - jnp.sqrt(jnp.clip(1 - mean, 1e-8, 1)) / least, 0, 1)
    k = marginals.sum()
    return a, jnp.sum(marginals * complete) / jnp.where(k > 0, k, 1)
