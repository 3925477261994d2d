"""Waits of nodes and what they cost the reads: values for the loops over rows (Numba), slopes and curvature (NumPy).

A node with sums A_1, A_2, A_3 of its work has the mean wait w = A_2/(2 s) and the wait's variance q + w^2 with
q = A_3/(3 s), s = 1 - A_1. Below s = ``NEARLY_FULL`` 1/s is continued by its quadratic, which is below it: plans in the
making may overload a node, at a high and finite price; the lower bound holds all the same.
"""

from typing import NamedTuple

import numpy as np

from ecjax.machine_code import njit
from ecjax.planning.certified.data import Service

NEARLY_FULL = 1e-3
_LEAST_ROOT = 1e-9  # of the mean delay: a root is no smaller, so that its bends are finite
_TINY = 1e-100  # s


@njit()
def node_value(work, reads, mean, variance, z, alone, penalty):
    """Sum over sizes of reads times the bound's term of one chunk, s x 1/s.

    Args:
        work: (3,) sums A_1, A_2, A_3.
        reads: (C,) 1/s.
        mean: (C,) s, without the wait.
        variance: (C,) s^2.
        z: s.
        alone: whether k = 1 everywhere.
        penalty: price of a load of 1.
    """
    wait, spread, over = wait_of(work[0], work[1], work[2])
    total = 0.0
    for c in range(len(reads)):
        total += term_of(reads[c], wait, spread, mean[c], variance[c], z, alone)
    return total + penalty * over * over


@njit(inner=True)
def wait_of(first, second, third):
    """Mean of a node's wait, s, its variance, s^2, and how far its load is into what is nearly full, by its sums."""
    room = 1.0 - first
    over = max(0.0, 1 - room / NEARLY_FULL)
    inverse = 1 / room if over == 0 else (1 + over + over * over) / NEARLY_FULL
    wait = 0.5 * second * inverse
    return wait, third * inverse / 3 + wait * wait, over


@njit(inner=True)
def term_of(reads, wait, spread, mean, variance, z, alone):
    """Reads of one size, 1/s, times the bound's term of one chunk after such a wait, s x 1/s."""
    if alone:
        return reads * (wait + mean)
    d = wait + mean - z
    return reads * 0.5 * (d + np.sqrt(d * d + spread + variance))


class Slopes(NamedTuple):
    """Latency part of all nodes, at given loads, with its derivatives."""

    value: float  # s, without z
    read: np.ndarray  # (m, C) s per 1/s of reads
    write: np.ndarray  # (m, C) s per 1/s of writes
    roots: np.ndarray  # (m, X, p): roots roots^T is the convex part of the second derivative by the X rates


def work_of(service: Service, loads: np.ndarray) -> np.ndarray:
    """Sums A_1, A_2, A_3 of every node, (m, 3), from the rates (m, X): C of reads, then C of writes if any."""
    sizes = len(service.size)
    rate = loads if loads.shape[1] == sizes else loads[:, :sizes] + loads[:, sizes:]
    return service.background + np.einsum("mc,pmc->mp", rate, service.moments)


def waits(work: np.ndarray) -> tuple[np.ndarray, ...]:
    """w, q, and the derivatives of 1/s: 1/s, (1/s)', (1/s)''; all (m,)."""
    room = 1 - work[:, 0]
    over = np.maximum(0.0, 1 - room / NEARLY_FULL)
    inside = over == 0
    safe = np.where(inside, room, NEARLY_FULL)
    inverse = np.where(inside, 1 / safe, (1 + over + over**2) / NEARLY_FULL)
    first = np.where(inside, 1 / safe**2, (1 + 2 * over) / NEARLY_FULL**2)
    second = np.where(inside, 2 / safe**3, 2 / NEARLY_FULL**3)
    return 0.5 * work[:, 1] * inverse, work[:, 2] * inverse / 3, inverse, first, second


def slopes(service: Service, loads: np.ndarray, z: float) -> Slopes:
    """Latency part of all nodes at the rates ``loads`` (m, X)."""
    work = work_of(service, loads)
    sizes = len(service.size)
    reads = loads[:, :sizes] / service.rate
    w, q, inverse, first, second = waits(work)
    d = w[:, None] + service.mean - z
    spread = (q + w**2)[:, None] + service.variance
    if service.alone:
        term = w[:, None] + service.mean
        by_w, by_q = np.ones_like(d), np.zeros_like(d)
        ww = wq = qq = np.zeros_like(d)
    else:
        # at z a node without work and of constant services has none; bends there stay finite
        root = np.maximum(np.sqrt(d * d + spread), _LEAST_ROOT * (w[:, None] + service.mean) + _TINY)
        sum_ = d + w[:, None]  # derivative of the root's square by w, halved
        term = 0.5 * (d + root)
        by_w, by_q = 0.5 * (1 + sum_ / root), 0.25 / root
        ww, wq, qq = (
            0.5 * (2 / root - sum_**2 / root**3),
            -0.25 * sum_ / root**3,
            -0.125 / root**3,
        )
    over = np.maximum(0.0, 1 - (1 - work[:, 0]) / NEARLY_FULL)
    value = float((reads * term).sum() + (service.penalty * over**2).sum())
    f_w, f_q = (reads * by_w).sum(1), (reads * by_q).sum(1)
    f_ww, f_wq, f_qq = ((reads * bend).sum(1) for bend in (ww, wq, qq))
    # derivatives of w and q by A_1, A_2, A_3
    zero = np.zeros_like(w)
    w_by = np.stack([0.5 * work[:, 1] * first, 0.5 * inverse, zero], 1)
    q_by = np.stack([work[:, 2] * first / 3, zero, inverse / 3], 1)
    by_work = f_w[:, None] * w_by + f_q[:, None] * q_by
    by_work[:, 0] += 2 * service.penalty * over / NEARLY_FULL
    by_rate = np.einsum("mp,pmc->mc", by_work, service.moments)
    # second derivative in the basis moments 1, 2, 3, by_w, by_q
    core = np.zeros((len(w), 5, 5))
    core[:, :3, :3] = (
        f_ww[:, None, None] * w_by[:, :, None] * w_by[:, None, :]
        + f_qq[:, None, None] * q_by[:, :, None] * q_by[:, None, :]
        + f_wq[:, None, None] * (w_by[:, :, None] * q_by[:, None, :] + q_by[:, :, None] * w_by[:, None, :])
    )
    core[:, 0, 0] += f_w * 0.5 * work[:, 1] * second + f_q * work[:, 2] * second / 3
    core[:, 0, 0] += np.where(over > 0, 2 * service.penalty / NEARLY_FULL**2, 0.0)
    core[:, 0, 1] += 0.5 * f_w * first
    core[:, 1, 0] += 0.5 * f_w * first
    core[:, 0, 2] += f_q * first / 3
    core[:, 2, 0] += f_q * first / 3
    core[:, :3, 3] = core[:, 3, :3] = w_by / service.rate
    core[:, :3, 4] = core[:, 4, :3] = q_by / service.rate
    moments = service.moments.transpose(1, 2, 0)
    basis = np.concatenate([moments, by_w[:, :, None], by_q[:, :, None]], 2)
    if loads.shape[1] > sizes:
        writes = np.concatenate([moments, np.zeros((*by_w.shape, 2))], 2)
        basis = np.concatenate([basis, writes], 1)
    return Slopes(
        value, term / service.rate + by_rate, by_rate, _roots(basis @ core @ basis.transpose(0, 2, 1))
    )


def _roots(hessian: np.ndarray) -> np.ndarray:
    """Roots of the positive semidefinite part of symmetric matrices (m, X, X), at most five columns."""
    scale = np.sqrt(np.maximum(np.abs(np.einsum("mxx->mx", hessian)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(hessian / scale[:, :, None] / scale[:, None, :])
    keep = min(5, hessian.shape[1])
    values, vectors = values[:, -keep:], vectors[:, :, -keep:]
    return scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0))[:, None, :]


def best_z(service: Service, loads: np.ndarray) -> float:
    """The z that minimises the bound at the rates ``loads`` (m, X), s; 0 where k = 1 everywhere."""
    if service.alone:
        return 0.0
    w, q = waits(work_of(service, loads))[:2]
    weights = loads[:, : len(service.size)] / service.rate
    used = weights > 0
    k = weights.sum()
    mean = (w[:, None] + service.mean)[used]
    variance = ((q + w**2)[:, None] + service.variance)[used]
    weights = weights[used]
    c = (k - 2) / (2 * np.sqrt(max(k - 1, 1e-12)))
    alike = mean + c * np.sqrt(variance)
    low, high = alike.min(), alike.max()
    for _ in range(200):
        z = 0.5 * (low + high)
        d = mean - z
        rising = (weights * 0.5 * (1 + d / np.sqrt(d * d + variance + 1e-300))).sum() < 1
        low, high = (low, z) if rising else (z, high)
        if high - low <= 1e-14 * (abs(low) + abs(high)):
            break
    return float(0.5 * (low + high))
