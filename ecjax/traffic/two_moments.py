"""Mean and variance of the workload of queues whose load varies with time, bin by bin.

X mean, V variance of the workload (s, s^2), r the load of a bin, p0 the share of time that the node idles::

    X' = r - 1 + p0;   V' = 2 c r - 2 X p0;   p0 = min(1, c/(X+c) (V / (X (X+q)))^0.806)

with c = m_2/(2 m_1) and q = 2 m_3/(3 m_2) of the service times. The equation of V is exact where p0 is. In steady state
both moments are those of M/G/1; the exponent ln(2/pi)/ln(pi/2 - 1) makes Brownian motion that is reflected at 0 exact
from an empty queue on. Against M_t/M/1 (Kolmogorov equations) the mean wait is within 2 %.

There are two forms of the same steps: ``workload_path`` runs on the host (Numba), ``workload_path_traced`` in JAX, to
be differentiated and batched.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from ecjax.machine_code import njit

_EXPONENT = np.log(2 / np.pi) / np.log(np.pi / 2 - 1)
_STEP = 0.3  # of the relaxation time (X + c)^2 / c, and of the time to change X + c by itself
_SHORT = 0.1  # of c: steps under load are no longer than this or X, so that short queues do not swing
_MOST = 64  # steps in a bin
_LEAST = 1e-9  # of c: workloads below count as this


class Path(NamedTuple):
    """Workload of nodes during bins: what arrivals spread over the bin meet."""

    mean: np.ndarray | jax.Array  # (B, m) s, X, averaged over the bin
    variance: np.ndarray | jax.Array  # (B, m) s^2, V, averaged over the bin
    busy: np.ndarray | jax.Array  # (B, m) share of time that the node is busy, 1 - p0
    end: np.ndarray | jax.Array  # (m,) s, X after the last bin


class Constants(NamedTuple):
    """What nodes are to the recursion."""

    c: np.ndarray | jax.Array  # (m,) s, m_2/(2 m_1), less what the bins resolve
    q: np.ndarray | jax.Array  # (m,) s, 2 m_3/(3 m_2)


@njit(inline="always")
def _closure(mean, variance, c, q):
    """Phi = p0 (X + c) / c."""
    return min((variance / (mean * (mean + q))) ** _EXPONENT, (mean + c) / c)


@njit()
def _walk(work, width, c, q, most, mean, variance, busy, end):
    """One node after the other through the bins."""
    bins, nodes = work.shape
    for j in range(nodes):
        least = _LEAST * c[j]
        x, v = least, least * q[j]
        phi = _closure(x, v, c[j], q[j])
        p0 = phi * c[j] / (x + c[j])
        for b in range(bins):
            load = work[b, j] / width[b]
            left = width[b]
            sum_x = sum_v = sum_idle = 0.0
            for _ in range(most):
                before_x, before_v, before_p0 = x, v, p0
                h = _STEP * (x + c[j]) * min((x + c[j]) / c[j], 1 / max(abs(load - 1), 1e-9))
                if load > 0:
                    h = min(h, max(x, _SHORT * c[j]))
                h = min(min(h, width[b] / 2), left)
                y = x + h * (load - 1)
                root = np.sqrt((y + c[j]) ** 2 + 4 * h * c[j] * phi)
                # (y - c + root) / 2, which loses its digits below c
                x = (y - c[j] + root) / 2 if y > c[j] else 2 * c[j] * (y + h * phi) / (root + c[j] - y)
                x = max(x, least)
                v = max((v + 2 * c[j] * h * load) / (1 + 2 * h * before_x * p0 / v), least * q[j])
                phi = _closure(x, v, c[j], q[j])
                p0 = phi * c[j] / (x + c[j])
                sum_x += h * (before_x + x) / 2
                sum_v += h * (before_v + v) / 2
                sum_idle += h * (before_p0 + p0) / 2
                left -= h
                if left <= 0:
                    break
            # what is left after so many steps is as at their end: steady
            mean[b, j] = (sum_x + left * x) / width[b]
            variance[b, j] = (sum_v + left * v) / width[b]
            busy[b, j] = 1 - (sum_idle + left * p0) / width[b]
        end[j] = x


def workload_path(
    work: np.ndarray, width_s: np.ndarray, constants: Constants, most_steps: int = _MOST
) -> Path:
    """Workload of nodes that begin empty, on the host.

    Args:
        work: (B, m) s, that arrives in each bin, spread over it.
        width_s: (B,) s, of the bins.
        constants: of the nodes, above 0.
        most_steps: of a bin; in what is left after them nothing changes.
    """
    shape = work.shape
    path = Path(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape[1]))
    a, width, c, q = (np.ascontiguousarray(each, float) for each in (work, width_s, *constants))
    _walk(a, width, c, q, most_steps, path.mean, path.variance, path.busy, path.end)
    return path


def workload_path_traced(
    work: ArrayLike, width_s: ArrayLike, constants: Constants, most_steps: int = 8
) -> Path:
    """The same in JAX: to be differentiated by the work and the constants, and batched with ``vmap``.

    Time and memory grow with B m and ``most_steps``; the derivative takes each bin again.

    Args:
        work: (B, m) s.
        width_s: (B,) s.
        constants: of the nodes, above 0.
        most_steps: of a bin, static; in what is left after them nothing changes.
    """
    c, q = (jnp.asarray(each, float) for each in constants)
    least = _LEAST * c

    def closure(x, v):
        # where the idle share is 1 the power must not lend its derivative
        ratio = v / (x * (x + q))
        whole = ratio**_EXPONENT >= (x + c) / c
        return jnp.where(whole, (x + c) / c, jnp.where(whole, 1.0, ratio) ** _EXPONENT)

    def step(width, load, state):
        x, v, phi, left = state
        p0 = phi * c / (x + c)
        h = _STEP * (x + c) * jnp.minimum((x + c) / c, 1 / jnp.maximum(jnp.abs(load - 1), 1e-9))
        h = jnp.where(load > 0, jnp.minimum(h, jnp.maximum(x, _SHORT * c)), h)
        h = jnp.minimum(jnp.minimum(h, width / 2), left)
        y = x + h * (load - 1)
        root = jnp.sqrt((y + c) ** 2 + 4 * h * c * phi)
        low = 2 * c * (y + h * phi) / (root + jnp.abs(c - y))
        new_x = jnp.maximum(jnp.where(y > c, (y - c + root) / 2, low), least)
        new_v = jnp.maximum((v + 2 * c * h * load) / (1 + 2 * h * x * p0 / v), least * q)
        new_phi = closure(new_x, new_v)
        new_p0 = new_phi * c / (new_x + c)
        seen = h[None] * jnp.stack([x + new_x, v + new_v, p0 + new_p0]) / 2
        return (new_x, new_v, new_phi, left - h), seen

    @jax.checkpoint
    def of_bin(state, arguments):
        arrived, width = arguments
        load = arrived / width
        begin = (*state, jnp.full_like(c, width))
        (x, v, phi, left), seen = lax.scan(
            lambda carry, _: step(width, load, carry), begin, length=most_steps
        )
        rest = left[None] * jnp.stack([x, v, phi * c / (x + c)])
        mean, variance, idle = (seen.sum(axis=0) + rest) / width
        return (x, v, phi), (mean, variance, 1 - idle)

    arrived = jnp.asarray(work, float)
    start = q * least
    begin = (least, start, closure(least, start))
    (end, _, _), (mean, variance, busy) = lax.scan(of_bin, begin, (arrived, jnp.asarray(width_s, float)))
    return Path(mean, variance, busy, end)
