r"""What a workload costs: its wait, or what the waits of all nodes of a read add to a bound on its latency.

With h(X) the cost of a chunk that meets workload X, G(X) = X / (X + c) the busy share of a node and H' = h - h(0), all
work that arrives costs

    sum_b D_b G(X_b) (h(X_b) - h(0)) + H(X_end) + h(0) sum_b a_b        (s^2)

- ``WAIT``: h = X. This is J of ``lindley``, the mean wait.
- ``ORDER``: h = ((X + s) + sqrt((X + s)^2 + sigma^2 + q X + X^2)) / 2, s = m_1 - z. Of k chunks the latest has a mean
  of at most z + sum h (order statistics from mean and variance: Aven, J. Applied Probability 22, 1985; JLCM's bound),
  with the sojourn in a steady queue of workload X: mean X + m_1, variance sigma^2 + q X + X^2, q = 2 m_3 / (3 m_2).
  Under a constant load the sum is the latency term of that bound.
- ``EXCESS``: h = ((X + s) + sqrt((X + s)^2 + sigma^2)) / 2, workloads taken as known: a smooth (X + m_1 - z)^+. In deep
  overload the variance of a steady queue is too large, by a factor of up to 1 + sqrt(k - 1) in the bound.

G (h - h(0)) is convex and increasing for services whose scv is 0 to 9, whatever z (a grid from -100 to 10^4 m_1), so
that the sum is convex in the work.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit

WAIT, ORDER, EXCESS = 0, 1, 2
MOST_SCV = 9.0  # of services, up to which ``ORDER`` is convex


class Penalty(NamedTuple):
    """h of m nodes; for compiled loops."""

    kind: int
    shift: np.ndarray  # (m,) s, m_1 - z
    variance: np.ndarray  # (m,) s^2, of a service
    q: np.ndarray  # (m,) s; 0 but for ``ORDER``


def mean_wait(nodes: int) -> Penalty:
    """The wait itself."""
    return Penalty(WAIT, np.zeros(nodes), np.zeros(nodes), np.zeros(nodes))


@njit(inline="always", error_model="numpy")
def above(penalty, j, x):
    """h(X) - h(0) of node j; X >= 0."""
    if penalty.kind == WAIT:
        return x
    shift = penalty.shift[j]
    first = np.sqrt(shift * shift + penalty.variance[j])
    roots = first + _root(penalty, j, x)
    # a difference of roots in which nothing cancels
    return (
        0.5 * x * (1.0 + (_square(penalty) * x + 2.0 * shift + penalty.q[j]) / roots) if roots > 0.0 else 0.0
    )


@njit(inline="always", error_model="numpy")
def slope(penalty, j, x):
    """h'(X)."""
    if penalty.kind == WAIT:
        return 1.0
    shift = penalty.shift[j]
    root = _root(penalty, j, x)
    return 0.5 * (1.0 + (_square(penalty) * x + shift + 0.5 * penalty.q[j]) / root) if root > 0.0 else 1.0


@njit(inline="always", error_model="numpy")
def _square(penalty):
    """What X^2 counts in the root."""
    return 2.0 if penalty.kind == ORDER else 1.0


@njit(inline="always", error_model="numpy")
def _root(penalty, j, x):
    sojourn = x + penalty.shift[j]
    variance = penalty.variance[j] + (penalty.q[j] * x + x * x if penalty.kind == ORDER else 0.0)
    return np.sqrt(sojourn * sojourn + variance)


@njit(error_model="numpy")
def at_zero(penalty, j):
    """h(0)."""
    if penalty.kind == WAIT:
        return 0.0
    shift, variance = penalty.shift[j], penalty.variance[j]
    root = np.sqrt(shift * shift + variance)
    if shift >= 0.0:
        return 0.5 * (shift + root)
    return 0.5 * variance / (root - shift)


@njit(error_model="numpy")
def integral(penalty, j, x):
    """H(X), the integral of h - h(0) from 0."""
    if penalty.kind == WAIT:
        return 0.5 * x * x
    shift = penalty.shift[j]
    # of the root of A X^2 + B X + C
    a, b, c = _square(penalty), 2.0 * shift + penalty.q[j], shift * shift + penalty.variance[j]
    rooted = _area(a, b, c, x) - _area(a, b, c, 0.0)
    return 0.5 * (0.5 * x * x + (shift - 2.0 * at_zero(penalty, j)) * x + rooted)


@njit(error_model="numpy")
def _area(a, b, c, x):
    """An antiderivative of sqrt(a x^2 + b x + c)."""
    along, discriminant = 2.0 * a * x + b, 4.0 * a * c - b * b
    area = along * np.sqrt(max((a * x + b) * x + c, 0.0)) / (4.0 * a)
    scale = np.sqrt(abs(discriminant))
    # beside the square, what is left of it says nothing
    if scale <= 1e-12 * abs(b):
        return area
    ratio = along / scale
    turn = np.arcsinh(ratio) if discriminant > 0.0 else np.sign(ratio) * np.arccosh(max(abs(ratio), 1.0))
    return area + discriminant * turn / (8.0 * a * np.sqrt(a))
