"""The latency bound and the costs of a plan in NumPy, with slopes, for problems without groups.

Nothing of the package is called: a ``Problem`` is read as a container of numbers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq


@dataclass(frozen=True)
class Model:
    """The numbers of a problem without groups, per file i and node j."""

    moments: np.ndarray  # (3, r, m) raw service moments of a chunk of file i at node j
    background: np.ndarray  # (3, m)
    connect_mean: np.ndarray  # (m,) s
    connect_variance: np.ndarray  # (m,) s^2
    k: np.ndarray  # (r,)
    floor: np.ndarray  # (r,) least n
    rate: np.ndarray  # (r,) 1/s, reads
    write_rate: np.ndarray  # (r,) 1/s
    price: np.ndarray  # (r, m) dollars per period of keeping a chunk
    reading: np.ndarray  # (r, m) dollars per period if every read used the node

    @cached_property
    def share(self) -> np.ndarray:
        return self.rate / self.rate.sum()

    @cached_property
    def has_z(self) -> bool:
        """Whether the least bound has a finite z: not where every read takes one chunk."""
        return bool(self.share @ self.k > 1 + 1e-12)

    @cached_property
    def own_mean(self) -> np.ndarray:
        """Of a chunk without waiting, (r, m) s."""
        return self.moments[0] + self.connect_mean

    @cached_property
    def own_variance(self) -> np.ndarray:
        """The same, (r, m) s^2."""
        return self.moments[1] - self.moments[0] ** 2 + self.connect_variance

    def work(self, reads: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """rho, A_2 and A_3 of every node, (3, m)."""
        chunks = self.rate[:, None] * reads + self.write_rate[:, None] * stored
        return np.einsum("nij,ij->nj", self.moments, chunks) + self.background

    def delay(self, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the time from request to the last byte of a chunk, (r, m)."""
        idle = 1 - work[0]
        wait = work[1] / (2 * idle)
        return self.own_mean + wait, self.own_variance + work[2] / (3 * idle) + wait**2

    def latency(self, reads: np.ndarray, stored: np.ndarray, z: float):
        """The bound at z, and its slopes by reads (r, m), stored (r, m) and z.

        Where ``has_z`` is false z does not count: the bound is the mean delay.
        """
        work = self.work(reads, stored)
        mean, variance = self.delay(work)
        weights = self.share[:, None] * reads
        if self.has_z:
            root = np.sqrt((mean - z) ** 2 + variance)
            each = (mean - z + root) / 2
            by_mean, by_variance = weights / 2 * (1 + (mean - z) / root), weights / 4 / root
            value, by_z = z + (weights * each).sum(), 1 - by_mean.sum()
        else:
            each, by_mean, by_variance = mean, weights, np.zeros_like(weights)
            value, by_z = (weights * each).sum(), 0.0
        idle, wait = 1 - work[0], work[1] / (2 * (1 - work[0]))
        of_wait, of_variance = by_mean.sum(axis=0), by_variance.sum(axis=0)
        slopes = np.stack(
            [
                of_wait * wait / idle + of_variance * (work[2] / (3 * idle**2) + 2 * wait**2 / idle),
                of_wait / (2 * idle) + of_variance * wait / idle,
                of_variance / (3 * idle),
            ]
        )
        by_chunks = np.einsum("nij,nj->ij", self.moments, slopes)
        by_reads = self.share[:, None] * each + self.rate[:, None] * by_chunks
        return value, by_reads, self.write_rate[:, None] * by_chunks, by_z


def least_z(model: Model, reads: np.ndarray, stored: np.ndarray) -> float:
    """The z of the least bound: the zero of its slope, which rises with z; 0 without a z."""
    if not model.has_z:
        return 0.0

    mean, variance = model.delay(model.work(reads, stored))
    weights = model.share[:, None] * reads
    low, high = mean.min() - np.sqrt(variance.max()), mean.max() + np.sqrt(variance.max())

    def slope(z: float) -> float:
        return 1 - float((weights / 2 * (1 + (mean - z) / np.sqrt((mean - z) ** 2 + variance))).sum())

    while slope(low) > 0:
        low -= high - low
    while slope(high) < 0:
        high += high - low
    return brentq(slope, low, high, xtol=1e-16 * (high - low))


def model_of(problem, surcharge=None, reading=None) -> Model:
    """The numbers of a Problem without groups, with its charges unless others are given."""
    assert problem.row is None, "groups are not modelled here"
    surcharge = problem.surcharge if surcharge is None else surcharge
    reading = problem.reading if reading is None else reading
    nodes, files = problem.nodes, problem.files
    size = np.asarray(files.chunk_bytes, float)[:, None]
    service = np.asarray(nodes.service, float)
    moments = np.stack([sum(service[n, p] * size**p for p in range(4)) for n in range(3)])
    stored_bytes = np.asarray(files.stored_chunk_bytes, float)[:, None]
    price = np.asarray(nodes.cost_per_chunk, float) + stored_bytes * np.asarray(nodes.cost_per_byte, float)
    none = np.zeros_like(price)
    k = np.asarray(files.k, float)
    return Model(
        moments=moments,
        background=np.asarray(nodes.background, float),
        connect_mean=np.asarray(nodes.connect_mean, float),
        connect_variance=np.asarray(nodes.connect_variance, float),
        k=k,
        floor=np.maximum(k + np.asarray(files.min_extra_chunks, float), np.asarray(problem.floor, float)),
        rate=np.asarray(files.rate, float),
        write_rate=np.asarray(files.write_rate, float),
        price=price + (none if surcharge is None else np.asarray(surcharge, float)),
        reading=none if reading is None else np.asarray(reading, float),
    )
