"""The laws of ``latency_laws`` on the host (Numba): any number of files and nodes without compiling again.

Here each kind of files is its list of nodes, and services have the law of their table, exactly.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from ecjax.machine_code import njit
from ecjax.queueing.mg1 import Delay
from ecjax.queueing.service_law import ServiceLaw, Stalls
from ecjax.queueing.wait_law import MOST_LOAD
from ecjax.traffic.gamma_table import SCORES, SHAPES, table
from ecjax.traffic.host_service import host_moments, host_parts
from ecjax.traffic.late_law import LEAST_SCV, LEAST_SKEWNESS, cut_normal_skewness
from ecjax.traffic.latency_laws import LEAST_BUSY, Seen

_ROUNDS = 60  # of the odds of a draw
_FIXED = 1e-9  # probabilities nearer to 0 and 1 are that
# levels between which a value stands for a connection delay: even ones, and to 1e-6 above for the 99.9 % point
_LEVELS = np.concatenate([np.arange(32) / 32, 1 - 0.5 ** (np.arange(11, 41) / 2), [1.0]])


class HostReaders(NamedTuple):
    """Files as readers, K kinds of them."""

    drawing: np.ndarray  # (K, m) of the conditional Poisson draw of the nodes
    k: np.ndarray  # (K,) int64, nodes of a read
    mean: np.ndarray  # (K, m) s, m_1 and connection delay
    variance: np.ndarray  # (K, m) s^2, of service and connection delay
    third: np.ndarray  # (K, m) s^3, their third central moment
    lump: np.ndarray  # (K, m) s, m_3/m_2 of the work of a chunk
    alone: np.ndarray  # (C, m, P) F_S with the connection delay, of C chunk sizes
    size: np.ndarray  # (K,) int64, row of ``alone`` of the size at or below
    part: np.ndarray  # (K,) how far sizes are on the way to the next
    channels: np.ndarray  # (m,) requests that a node serves at once


def host_readers(
    points: np.ndarray,
    probabilities: np.ndarray,
    chunk_bytes: np.ndarray,
    sizes: np.ndarray,
    service: ServiceLaw,
    connect: Delay | None,
    channels: np.ndarray | None = None,
) -> HostReaders:
    """Kinds of files with the laws of their services.

    Args:
        points: s, (P,).
        probabilities: pi, (K, m).
        chunk_bytes: B, (K,).
        sizes: B, (C,), rising: chunk sizes whose laws are taken; those between two of them have a mixture of both.
        service: laws of the m nodes.
        connect: delays of the nodes.
        channels: requests that each node serves at once, (m,); None: one.
    """
    nodes = service.nodes
    delay_mean, delay_variance = (
        (np.zeros(nodes), np.zeros(nodes))
        if connect is None
        else (np.asarray(connect.mean), np.asarray(connect.variance))
    )
    # delays of mean 0 are none, whatever their variance: no gamma law has both
    delay_variance = np.where(delay_mean > 0, delay_variance, 0.0)
    first, second, third = host_moments(service, chunk_bytes)
    channels = np.ones(nodes) if channels is None else np.asarray(channels, float)
    low = np.clip(np.searchsorted(sizes, chunk_bytes, side="right") - 1, 0, len(sizes) - 1)
    above = np.diff(sizes, append=np.inf)[low]
    k = np.rint(probabilities.sum(axis=1)).astype(np.int64)
    drawing = np.empty_like(probabilities)
    _draws(np.ascontiguousarray(probabilities), k, drawing)
    return HostReaders(
        drawing,
        k,
        first + delay_mean,
        second - first**2 + delay_variance,
        third - 3 * first * second + 2 * first**3 + _gamma_third(delay_mean, delay_variance),
        third / np.where(second > 0, second, 1.0) / channels,
        _alone(points, sizes, service, delay_mean, delay_variance),
        low,
        np.maximum(chunk_bytes - sizes[low], 0.0) / above,
        channels,
    )


def host_laws(points: np.ndarray, seen: Seen, kind: np.ndarray, of: HostReaders) -> np.ndarray:
    """Pr(T <= x) of reads in S situations, (S, P).

    Args:
        points: s, (P,).
        seen: workloads.
        kind: (S,) of the file that is read.
        of: the kinds.
    """
    laws = np.empty((len(kind), len(points)))
    mean, variance, busy = (np.ascontiguousarray(each, float) for each in seen)
    busy = np.maximum(busy, LEAST_BUSY)
    waiting = _waiting(busy, of.channels)
    chosen, rows = kind.astype(np.int64), (table(), np.log(SHAPES), SCORES)
    _fill(points, (mean, variance, busy, waiting), chosen, of, rows, cut_normal_skewness(), laws)
    return laws


def _waiting(busy: np.ndarray, channels: np.ndarray) -> np.ndarray:
    """Probability that reads wait, (S, m), where one server as fast as all channels is busy: ``channels.erlang_c``."""
    if np.all(channels == 1):
        return busy
    load = np.minimum(busy, MOST_LOAD)
    offered = load * channels
    logarithm = channels * np.log(offered) - offered - special.gammaln(channels + 1)
    blocked = np.exp(logarithm) / special.gammaincc(channels + 1, offered)
    return np.where(channels > 1, blocked / (1 - load + load * blocked), busy)


def _alone(
    points: np.ndarray, sizes: np.ndarray, service: ServiceLaw, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """Law of service plus connection delay, (C, m, P)."""
    offset, scale = host_parts(service, sizes)
    value, level = np.asarray(service.unit.value), np.asarray(service.unit.level)
    laws = np.zeros((len(sizes), service.nodes, len(points)))
    for j in range(service.nodes):
        delays = _delays(mean[j], variance[j])
        for share, delay in _with_stalls(delays, service.stalls, j):
            for c in range(len(sizes)):
                late = points - offset[c, j] - delay
                if scale[c, j] > 0:
                    law = np.interp(late / scale[c, j], value[j], level[j], left=0.0, right=1.0)
                else:
                    law = late >= 0
                laws[c, j] += share * law
    return laws


def _with_stalls(
    delays: list[tuple[float, float]], stalls: Stalls | None, node: int
) -> list[tuple[float, float]]:
    """Probability and time (s) of what comes on top of a service: connection delays, with and without a stall."""
    if stalls is None:
        return delays
    probability, time = (np.asarray(part[node]) for part in stalls)
    probability, time = np.append(1 - probability.sum(), probability), np.append(0.0, time)
    return [
        (p * share, delay + stall)
        for p, stall in zip(probability, time, strict=True)
        for share, delay in delays
    ]


def _delays(mean: float, variance: float) -> list[tuple[float, float]]:
    """Probabilities and values (s) that stand for a gamma law, means of its parts; one where it is constant."""
    if variance <= 1e-10 * mean**2:
        return [(1.0, mean)]
    shape, share = mean**2 / variance, np.diff(_LEVELS)
    of_mean = special.gammainc(shape + 1, special.gammaincinv(shape, _LEVELS))
    return list(zip(share, mean * np.diff(of_mean) / share, strict=True))


@njit()
def _draws(marginals, k, drawing):
    """The p_j whose conditional Poisson draw has the marginals, as in ``subsets.drawing_probabilities``."""
    kinds, nodes = marginals.shape
    for i in range(kinds):
        free = np.flatnonzero((marginals[i] > _FIXED) & (marginals[i] < 1 - _FIXED))
        drawing[i] = np.where(marginals[i] >= 1 - _FIXED, 1.0, 0.0)
        need = k[i] - int(drawing[i].sum())
        target = marginals[i][free]
        if free.size == 0:
            continue
        p = target.copy()
        if np.max(target) - np.min(target) > 1e-12:
            for number in range(_ROUNDS):
                p = _improved(p, target, need, 0.5 if number % 2 == 0 else 1.0)
        drawing[i][free] = p


@njit()
def _improved(p, target, need, part):
    """One step towards draws with the marginals: each node's odds with the others held."""
    odds = np.empty(p.size)
    series = np.zeros(need + 1)
    for j in range(p.size):
        series[:] = 0.0
        series[0] = 1.0
        for other in range(p.size):
            if other == j:
                continue
            for c in range(need, 0, -1):
                series[c] = series[c] * (1 - p[other]) + series[c - 1] * p[other]
            series[0] *= 1 - p[other]
        solved = target[j] / (1 - target[j]) * series[need] / series[need - 1]
        odds[j] = np.exp((1 - part) * np.log(p[j] / (1 - p[j])) + part * np.log(solved))
    return odds / (1 + odds)


def _gamma_third(mean, variance):
    """Third central moment of gamma laws."""
    return 2 * variance**2 / np.where(mean > 0, mean, 1.0)


@njit()
def _late(wait, spread, served, skewness):
    """Shift, mean and variance of the gamma law after it; see ``late_law``."""
    mean, variance, third, lump = served
    above = wait if wait > 0 else 1.0
    square = spread / above**2
    if square < 1:
        third += np.interp(square, skewness[0], skewness[1]) * spread**1.5 + (1 - square) * lump * spread
    else:
        third += 2 * spread**2 / above
    whole = max(spread + variance, LEAST_SCV * mean**2)
    skewed = max(third / whole**1.5, LEAST_SKEWNESS)
    after = 2 * np.sqrt(whole) / skewed
    return wait + mean - after, after, whole


@njit()
def _fill(points, seen, kind, of, gamma_laws, skewness, laws):
    """Products over the nodes of each situation: coefficient k of a polynomial at every point."""
    mean, variance, busy, waiting = seen
    drawing, k, service, spread, third, lump, alone, size, part, _ = of
    gamma, log_shapes, scores = gamma_laws
    count, rows, columns = points.size, log_shapes.size, scores.size
    most = k.max()
    series = np.zeros((most + 1, count))
    whole = np.zeros(most + 1)
    at_node = np.zeros(count)
    shape_step, score_step = log_shapes[1] - log_shapes[0], scores[1] - scores[0]
    for s in range(kind.size):
        i = kind[s]
        series[:] = 0.0
        series[0] = 1.0
        whole[:] = 0.0
        whole[0] = 1.0
        for j in range(drawing.shape[1]):
            p = drawing[i, j]
            if p <= 0:
                continue
            u, late_share = busy[s, j], waiting[s, j]
            wait = mean[s, j] / u
            waits = max((variance[s, j] + mean[s, j] ** 2) / u - wait**2, LEAST_SCV * wait**2)
            begin, late, v = _late(
                wait, waits, (service[i, j], spread[i, j], third[i, j], lump[i, j]), skewness
            )
            log_shape = min(max(np.log(late * late / v), log_shapes[0]), log_shapes[-1])
            shape = np.exp(log_shape)
            row = (log_shape - log_shapes[0]) / shape_step
            low = min(int(row), rows - 2)
            up = row - low
            shift, factor = 1 - 1 / (9 * shape), 3 * np.sqrt(shape) / score_step
            for x in range(count):
                root = np.cbrt(max(points[x] - begin, 0.0) / late)
                column = (root - shift) * factor - scores[0] / score_step
                column = min(max(column, 0.0), columns - 1.0)
                left = min(int(column), columns - 2)
                right = column - left
                one = gamma[low, left] + right * (gamma[low, left + 1] - gamma[low, left])
                two = gamma[low + 1, left] + right * (gamma[low + 1, left + 1] - gamma[low + 1, left])
                idle = alone[size[i], j, x]
                if part[i] > 0:
                    idle += part[i] * (alone[size[i] + 1, j, x] - idle)
                at_node[x] = (1 - late_share) * idle + late_share * (one + up * (two - one))
            for c in range(k[i], 0, -1):
                whole[c] = whole[c] * (1 - p) + whole[c - 1] * p
                for x in range(count):
                    series[c, x] = series[c, x] * (1 - p) + series[c - 1, x] * p * at_node[x]
            whole[0] *= 1 - p
            for x in range(count):
                series[0, x] *= 1 - p
        for x in range(count):
            laws[s, x] = min(max(series[k[i], x] / whole[k[i]], 0.0), 1.0)
