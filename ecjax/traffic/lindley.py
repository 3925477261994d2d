r"""The wait under the arrivals of a log as a convex function of the work that arrives: a smoothed Lindley recursion.

The workload X of a node after each bin of length D into which work a arrives, from "idle share = c / (X + c)"
integrated by backward Euler:

    y = X + a;   X' = ((y - D - c) + sqrt((y - D - c)^2 + 4 c y)) / 2;
    J = X_end^2 / 2 + sum_b D_b X_b^2 / (X_b + c)   (s^2, the wait of all work, weighted by work)

Under a constant load X is that of Pollaczek and Khinchine, c rho / (1 - rho), for every D, with c = m_2 / (2 m_1);
c = 0 is the fluid queue max(X + a - D, 0). Other costs of a workload than its wait are those of ``penalties``, with
g(X) = G (h - h(0)) instead of X^2 / (X + c). J is convex and increasing in a, hence convex in a plan, in which a is
linear. The price of work in a bin, p_b = dJ / da_b, backwards with p_end = X_end:

    p_b = (p_{b+1} + D g'(X)) / (1 + D c / (X + c)^2),   g' = (X^2 + 2 c X) / (X + c)^2 for J

On the host these are two Numba loops over (bins, nodes); ``waits`` is the same J in JAX, with a derivative by
everything. A load of 1 or more in a bin is nothing special.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.machine_code import njit
from ecjax.traffic.penalties import Penalty, above, at_zero, integral, mean_wait, slope

_MET = 1e-11  # relative to X + c: two workloads are the same again


@njit(error_model="numpy")
def _after(y, d, c):
    """X' from y = X + a; of two forms the one in which nothing cancels."""
    s = y - d - c
    root = np.sqrt(s * s + 4.0 * c * y)
    if s > 0.0:
        return 0.5 * (s + root)
    return 2.0 * c * y / (root - s) if root - s > 0.0 else 0.0


@njit(error_model="numpy")
def forward(width, work, c, penalty, workload):
    """Workloads after every bin and J of every node, or what another penalty makes of them.

    Args:
        width: (B,) s, D.
        work: (B, m) s, a.
        c: (m,) s, at least 0.
        penalty: Penalty.
        workload: (B, m) result: X, s.

    Returns:
        J, (m,) s^2.
    """
    bins, m = work.shape
    total, before = np.zeros(m), np.zeros(m)
    for b in range(bins):
        d = width[b]
        for j in range(m):
            x = _after(before[j] + work[b, j], d, c[j])
            workload[b, j] = x
            before[j] = x
            if x > 0.0:
                total[j] += d * x * above(penalty, j, x) / (x + c[j])
    for j in range(m):
        total[j] += integral(penalty, j, before[j])
        first = at_zero(penalty, j)
        if first != 0.0:
            total[j] += first * np.sum(work[:, j])
    return total


@njit(error_model="numpy")
def backward(width, workload, c, penalty, price):
    """Prices of work by bin and node, s per s; where c = 0 and the queue is empty after the bin, 0.

    Args:
        width: (B,) s, D.
        workload: (B, m) s, X of ``forward``.
        c: (m,) s.
        penalty: Penalty.
        price: (B, m) result: p, s.
    """
    bins, m = workload.shape
    following, first = np.zeros(m), np.zeros(m)
    for j in range(m):
        following[j] = above(penalty, j, workload[bins - 1, j])
        first[j] = at_zero(penalty, j)
    for b in range(bins - 1, -1, -1):
        d = width[b]
        for j in range(m):
            x = workload[b, j]
            scale = (x + c[j]) * (x + c[j])
            p = 0.0
            if scale > 0.0:
                grown = c[j] * above(penalty, j, x) + x * (x + c[j]) * slope(penalty, j, x)
                p = (following[j] * scale + d * grown) / (scale + d * c[j])
            price[b, j] = p + first[j]
            following[j] = p


@njit(error_model="numpy")
def increments(width, work, c, penalty, more, factor, first, last, start, values):
    """By how much J of every node grows with work on top, each node taken alone.

    Both recursions run side by side from the first bin of that work on, and end where they meet again.

    Args:
        width: (B,) s.
        work: (B, m) s.
        c: (m,) s.
        penalty: Penalty.
        more: (2, B) work on top by node is factor[0] more[0] + factor[1] more[1]; 0 outside first:last.
        factor: (2, m).
        first: bin.
        last: bin.
        start: (m,) s, workloads before the first bin.
        values: (m,) result, s^2.
    """
    bins, m = work.shape
    low, high, free = np.empty(m), np.empty(m), np.empty(m)
    for j in range(m):
        low[j] = high[j] = start[j]
        free[j] = at_zero(penalty, j)
        values[j] = 0.0
    for b in range(first, bins):
        d = width[b]
        apart = False
        for j in range(m):
            a = work[b, j]
            on_top = factor[0, j] * more[0, b] + factor[1, j] * more[1, b]
            x = _after(low[j] + a, d, c[j])
            y = _after(high[j] + a + on_top, d, c[j])
            low[j], high[j] = x, y
            values[j] += free[j] * on_top
            if x + c[j] > 0.0:
                values[j] -= d * x * above(penalty, j, x) / (x + c[j])
            if y + c[j] > 0.0:
                values[j] += d * y * above(penalty, j, y) / (y + c[j])
            apart |= abs(y - x) > _MET * (x + c[j])
        if b >= last and not apart:
            return
    for j in range(m):
        values[j] += integral(penalty, j, high[j]) - integral(penalty, j, low[j])


@njit(error_model="numpy")
def again(width, work, c, first, last, workload):
    """Workloads anew where work has changed between two bins, until they meet the earlier ones; (B, m) in place."""
    bins, m = work.shape
    before = np.zeros(m)
    for j in range(m):
        before[j] = workload[first - 1, j] if first > 0 else 0.0
    for b in range(first, bins):
        apart = False
        for j in range(m):
            x = _after(before[j] + work[b, j], width[b], c[j])
            apart |= abs(workload[b, j] - x) > _MET * (x + c[j])
            workload[b, j] = x
            before[j] = x
        if b >= last and not apart:
            return


def values_and_prices(
    width: np.ndarray, work: np.ndarray, c: np.ndarray, penalty: Penalty | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """J (m,) s^2, workloads X (B, m) s and prices p (B, m) s, on the host.

    Args:
        width: (B,) s.
        work: (B, m) s.
        c: (m,) s.
        penalty: None: the mean wait.
    """
    cost = mean_wait(len(c)) if penalty is None else penalty
    workload, price = np.empty_like(work), np.empty_like(work)
    value = forward(width, work, c, cost, workload)
    backward(width, workload, c, cost, price)
    return value, workload, price


def waits(width: ArrayLike, work: ArrayLike, c: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """J and the workloads after every bin, as a program of JAX; differentiable by all arguments where c > 0.

    Args:
        width: (B,) s.
        work: (B, m) s; several plans at once by ``jax.vmap``.
        c: (m,) s.

    Returns:
        J (m,) s^2 and X (B, m) s.
    """
    widths, works, scale = jnp.asarray(width), jnp.asarray(work), jnp.asarray(c)

    def step(state: tuple[jax.Array, jax.Array], arriving: tuple[jax.Array, jax.Array]):
        before, total = state
        d, a = arriving
        y = before + a
        s = y - d - scale
        # an empty queue that nothing enters has no slope of its root
        square = s * s + 4 * scale * y
        root = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        rising = s > 0
        x = jnp.where(
            rising, 0.5 * (s + root), 2 * scale * y / jnp.where(rising | (root - s <= 0), 1.0, root - s)
        )
        busy = x + scale > 0
        total = total + jnp.where(busy, d * x * x / jnp.where(busy, x + scale, 1.0), 0.0)
        return (x, total), x

    start = (jnp.zeros_like(scale), jnp.zeros_like(scale))
    (last, total), workload = lax.scan(step, start, (widths, works))
    return total + 0.5 * last**2, workload
