"""Mean read latency under all, or sampled, partitions of a cache: figures 4, 5 and 7 of the SampleX paper."""

from collections.abc import Sequence

import numpy as np

from ecjax.caching.clearing import Market
from ecjax.caching.partitions import Partitions
from ecjax.caching.sampling import LIMIT, drawn_partitions
from ecjax.caching.valuation import checked_whole, valuation
from ecjax.errors import UserError

_ROUNDING = 1e-12  # relative: of sums of values in another order


class SamplingStudy:
    """One cache, whose plans are judged by the mean latency of a read, s.

    A read takes as long as its slowest chunk that is not kept (chunks at the edge take no time here, as in the paper):
    (sum_m r_m l_m1 - sum_m tau_{m, lambda_m}) / sum_m r_m.

    Args:
        rates: r, (M,), reads of each item per second, not all 0.
        latency_s: (M, K), mean time to fetch each chunk, s.
        capacity: C, chunks, at most M K.

    Raises:
        UserError: they are not as said.
    """

    def __init__(self, rates, latency_s, capacity: int):
        tau = valuation(rates, latency_s)
        if tau.ndim != 2:
            raise UserError(f"rates: found shape {np.shape(rates)}; allowed: (M,), one cache")
        total = float(np.sum(rates))
        if total <= 0:
            raise UserError("rates: found no reads at all; allowed: at least one rate above 0")
        items, k = tau.shape[0], tau.shape[1] - 1
        capacity = checked_whole("capacity", capacity)
        if capacity > items * k:
            raise UserError(
                f"capacity: found {capacity}; allowed: up to {items * k}, all chunks of all items"
            )
        self.partitions = Partitions(capacity, k, items)
        self._market = Market(tau, min(capacity, items))
        self._uncached = float(tau[:, -1].sum())
        self._total = total

    def all_latencies(self, limit: int = LIMIT) -> np.ndarray:
        """Mean latency of the best assignment to every partition, in order, (count,), s (figures 4 and 7).

        Raises:
            UserError: there are more partitions than ``limit``.
        """
        chi = self.partitions
        if chi.count > limit:
            raise UserError(
                f"capacity: found {chi.count} partitions of {chi.capacity}; allowed: up to {limit}"
            )
        return self._latency(self._market.best_of_all(chi)[0])

    def sampled_latencies(self, scheme: str, samples: int, seeds: Sequence[int]) -> np.ndarray:
        """Mean latency under a scheme's plan for each seed, (len(seeds),), s (figure 5).

        Args:
            scheme: of ``ecjax.caching.sampling.SCHEMES``.
            samples: S.
            seeds: one plan each.

        Raises:
            UserError: there is no such scheme, or a number is not whole or too small.
        """
        draws = (drawn_partitions(self.partitions, scheme, samples, seed) for seed in seeds)
        return self._latency(np.array([self._market.best(partitions)[0].max() for partitions in draws]))

    def _latency(self, values: np.ndarray) -> np.ndarray:
        left = self._uncached - values
        return np.where(left > _ROUNDING * self._uncached, left, 0.0) / self._total
