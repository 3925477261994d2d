"""A plain simulator of reads from several nodes at once, written for the tests of the estimate only.

Requests come one by one; every node is a finish time. Nothing of the package is used but what keeps machine code.
"""

import math
from dataclasses import dataclass

import numpy as np

from ecjax.machine_code import njit

KINDS = {"deterministic": 0, "exponential": 1, "gamma": 2, "lognormal": 3, "weibull": 4, "empirical": 5}


@dataclass
class Reads:
    """r files, m nodes; units are seconds and bytes."""

    probabilities: np.ndarray  # (r, m)
    rates: np.ndarray  # (r,)
    chunk_bytes: np.ndarray  # (r,)
    kind: str
    parameter: float = 1.0
    offset: np.ndarray | float = 0.0  # (m,)
    offset_per_byte: np.ndarray | float = 0.0
    scale: np.ndarray | float = 0.0
    scale_per_byte: np.ndarray | float = 0.0
    connect: tuple[float, float] = (0.0, 0.0)
    background: tuple[float, float] = (0.0, 0.0)  # rate and mean of exponential jobs at every node
    samples: tuple[float, ...] = (1.0,)


def simulate(reads: Reads, requests: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Latency and file of each request, after a tenth more for warming up."""
    m = reads.probabilities.shape[1]
    parts = [
        np.broadcast_to(np.asarray(part, float), (m,)).copy()
        for part in (reads.offset, reads.offset_per_byte, reads.scale, reads.scale_per_byte)
    ]
    rng = np.random.default_rng(seed)
    total = requests + requests // 10
    file = rng.choice(len(reads.rates), total, p=reads.rates / reads.rates.sum())
    latency = _run(
        seed,
        file,
        reads.probabilities,
        reads.rates.sum(),
        reads.chunk_bytes,
        KINDS[reads.kind],
        reads.parameter,
        np.asarray(reads.samples),
        *parts,
        *reads.connect,
        *reads.background,
    )
    return latency[requests // 10 :], file[requests // 10 :]


def summary(latency: np.ndarray, levels=(0.5, 0.9, 0.99, 0.999), batches: int = 20):
    """Mean, quantiles and the relative half-widths of their 95 % intervals, by batch means."""
    cut = latency[: len(latency) // batches * batches].reshape(batches, -1)
    values = np.concatenate([[latency.mean()], np.quantile(latency, levels)])
    each = np.concatenate([[cut.mean(axis=1)], np.quantile(cut, levels, axis=1)])
    return values, 2.09 * each.std(axis=1, ddof=1) / math.sqrt(batches) / values


@njit()
def _unit(kind, parameter, samples):
    if kind == 0:
        return 1.0
    if kind == 1:
        return np.random.exponential()
    if kind == 2:
        return np.random.gamma(parameter)
    if kind == 3:
        return math.exp(parameter * np.random.normal())
    if kind == 4:
        return np.random.exponential() ** (1 / parameter)
    return samples[np.random.randint(len(samples))]


@njit()
def _run(
    seed,
    file,
    pi,
    rate,
    size,
    kind,
    parameter,
    samples,
    offset,
    by_offset,
    scale,
    by_scale,
    eta,
    xi2,
    jobs,
    job,
):
    np.random.seed(seed)
    m = pi.shape[1]
    free = np.zeros(m)
    next_job = np.full(m, np.inf)
    if jobs > 0:
        for j in range(m):
            next_job[j] = np.random.exponential() / jobs
    order = np.arange(m)
    latency = np.empty(len(file))
    now = 0.0
    for n in range(len(file)):
        now += np.random.exponential() / rate
        i = file[n]
        # nodes in random order, one at each whole step of the sum of pi; of equal ones the first k, which is the same
        alike = pi[i].min() == pi[i].max()
        taken = round(pi[i].sum()) if alike else m
        for a in range(min(taken, m - 1)):
            b = a + np.random.randint(m - a)
            order[a], order[b] = order[b], order[a]
        end = np.random.random()
        slowest = 0.0
        for a in range(taken):
            j = order[a]
            start = end
            end += 1.0 if alike else pi[i, j]
            if math.floor(end + 1e-12) == math.floor(start + 1e-12):
                continue
            while next_job[j] < now:
                free[j] = max(free[j], next_job[j]) + job * np.random.exponential()
                next_job[j] += np.random.exponential() / jobs
            unit = _unit(kind, parameter, samples)
            service = offset[j] + by_offset[j] * size[i] + (scale[j] + by_scale[j] * size[i]) * unit
            free[j] = max(free[j], now) + service
            sojourn = free[j] - now
            if xi2 > 0:
                sojourn += np.random.gamma(eta * eta / xi2) * xi2 / eta
            else:
                sojourn += eta
            slowest = max(slowest, sojourn)
        latency[n] = slowest
    return latency
