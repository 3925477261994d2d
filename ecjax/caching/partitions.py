"""The partitions chi of a cache: how many items have 1, 2, ..., K chunks there (equation 4 of the SampleX paper).

A partition is x_1, ..., x_K with x_1 + 2 x_2 + ... + K x_K = C chunks and x_1 + ... + x_K <= M items. They are in the
paper's (colexicographic) order: by x_K, then by x_{K-1}, and so on; the last one keeps whole items (equation 7).

None of them is listed to be counted, found by its rank or drawn. Let N(k, c, m) be the number of partitions of c into
at most m parts, none above k: the coefficient of q^c in the Gaussian binomial coefficient

    [m + k choose k]_q = prod_{i=1..k} (1 - q^{m+i}) / (1 - q^i)
                       = sum_j (-1)^j q^{jm + j(j+1)/2} [k choose j]_q / prod_{i=1..k} (1 - q^i)

(Andrews, "The Theory of Partitions", chapter 3). So a table of the partitions into parts of at most k, whatever their
number, is enough. Counts are Python's whole numbers: there are 2e19 partitions of 1000 into parts of at most 15.
"""

import random
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ecjax.caching.valuation import checked_whole
from ecjax.errors import UserError
from ecjax.machine_code import njit


class Partitions:
    """chi of a capacity, a code and a number of items: a sequence that is never written down.

    ``chi[i]`` would be ``unrank(i)``; iterating gives all in order. A partition is an int64 array (K,), x_1 first.
    ``count`` is exact: Table II of the paper for its capacities, Table IV as ``Partitions(2 * k - 1, k, k + 1).count``.

    Args:
        capacity: C, chunks.
        k: K, data chunks of an item.
        items: M; None: as many as there are chunks.

    Raises:
        UserError: a number is not whole, or negative (K: below 1).
    """

    def __init__(self, capacity: int, k: int, items: int | None = None):
        self.capacity = checked_whole("capacity", capacity)
        self.k = checked_whole("k", k, 1)
        self.items = self.capacity if items is None else checked_whole("items", items)
        self._free = _unlimited(self.capacity, self.k)
        self._gaussian = _gaussian_coefficients(self.k)
        self.count = self._number(self.k, self.capacity, self.items)

    def __iter__(self) -> Iterator[np.ndarray]:
        for block in self.blocks():
            yield from block

    def blocks(self, most: int = 4096) -> Iterator[np.ndarray]:
        """All partitions in order, up to ``most`` at a time, (S, K) int64."""
        x = np.zeros(self.k, dtype=np.int64)
        if self.count:
            first_below(x, self.k, self.capacity, self.items)
        for start in range(0, self.count, most):
            block = np.empty((min(most, self.count - start), self.k), dtype=np.int64)
            next_partitions(x, self.items, block)
            yield block

    def last(self) -> np.ndarray:
        """The last partition, equation 7: whole items, and one item with the rest.

        Raises:
            UserError: there is none, as all chunks of all items are fewer than the capacity.
        """
        if not self.count:
            raise UserError(self._empty())
        x = np.zeros(self.k, dtype=np.int64)
        x[-1] = self.capacity // self.k
        if self.capacity % self.k:
            x[self.capacity % self.k - 1] += 1
        return x

    def rank(self, partition) -> int:
        """How many partitions come before this one.

        Raises:
            UserError: it is not one of chi.
        """
        x = [int(value) for value in np.asarray(partition).ravel()]
        chunks = sum(k * value for k, value in enumerate(x, 1))
        if len(x) != self.k or min(x) < 0 or chunks != self.capacity or sum(x) > self.items:
            raise UserError(
                f"partition: found {x}; allowed: {self.k} whole numbers of at least 0 that make {self.capacity} chunks "
                f"of at most {self.items} items"
            )
        before, c, m = 0, self.capacity, self.items
        for k in range(self.k, 1, -1):
            before += self._with_fewer(k, c, m, x[k - 1])
            c, m = c - k * x[k - 1], m - x[k - 1]
        return before

    def unrank(self, index: int) -> np.ndarray:
        """The partition that ``index`` others come before, (K,) int64.

        Raises:
            UserError: there are not so many.
        """
        rest = checked_whole("index", index)
        if rest >= self.count:
            raise UserError(
                f"index: found {index}; allowed: 0 to {self.count - 1}" if self.count else self._empty()
            )
        x = np.zeros(self.k, dtype=np.int64)
        c, m = self.capacity, self.items
        for k in range(self.k, 1, -1):
            low, high = 0, min(c // k, m)  # x_k is the largest that not too many partitions come before
            while low < high:
                middle = (low + high + 1) // 2
                if self._with_fewer(k, c, m, middle) <= rest:
                    low = middle
                else:
                    high = middle - 1
            rest -= self._with_fewer(k, c, m, low)
            x[k - 1] = low
            c, m = c - k * low, m - low
        x[0] = c
        return x

    def ranks_with_whole(self, whole: int) -> range:
        """Ranks of the partitions with x_K = ``whole``, a cluster of the paper."""
        c, m = self.capacity - self.k * whole, self.items - whole
        first = self._with_fewer(self.k, self.capacity, self.items, whole)
        return range(first, first + (self._number(self.k - 1, c, m) if whole >= 0 else 0))

    def sample(self, samples: int, draws: random.Random, ranks: range | None = None) -> list[np.ndarray]:
        """Distinct partitions, every set of them equally likely; all, in order, where there are not more.

        Args:
            samples: how many.
            draws: source of random numbers.
            ranks: draw among these only; None: among all.
        """
        ranks = range(self.count) if ranks is None else ranks
        start, count = ranks.start, ranks.stop - ranks.start
        if samples >= count:
            return [self.unrank(start + i) for i in range(count)]
        # Floyd's (Bentley and Floyd, CACM 30, 1987): one number per sample, however many are wanted
        drawn: dict[int, None] = {}
        for most in range(count - samples, count):
            index = draws.randrange(most + 1)
            drawn[most if index in drawn else index] = None
        return [self.unrank(start + i) for i in drawn]

    def _number(self, k: int, c: int, m: int) -> int:
        """N(k, c, m)."""
        if 0 <= c <= m:
            return self._free[k][c]
        c = min(c, k * m - c)  # as many partitions leave c free as fill c
        if c < 0 or m < 0:
            return 0
        free, total = self._free[k], 0
        for j, coefficients in enumerate(self._gaussian[k]):
            rest = c - j * m - j * (j + 1) // 2
            if rest < 0:
                break
            part = sum(a * free[rest - s] for s, a in enumerate(coefficients[: rest + 1]))
            total += -part if j % 2 else part
        return total

    def _with_fewer(self, k: int, c: int, m: int, value: int) -> int:
        """Partitions that N(k, c, m) counts with x_k < ``value``: the others have as many parts k, and more."""
        return self._number(k, c, m) - self._number(k, c - k * value, m - value)

    def _empty(self) -> str:
        most = self.items * self.k
        return f"capacity: found {self.capacity}; allowed: up to {most}, all chunks of {self.items} items"


@lru_cache(maxsize=4)
def _unlimited(capacity: int, k: int) -> list[list[int]]:
    """Partitions of c into parts of at most k, however many: [k][c]."""
    rows = [[1] + [0] * capacity]
    for part in range(1, k + 1):
        row = rows[-1].copy()
        for c in range(part, capacity + 1):
            row[c] += row[c - part]
        rows.append(row)
    return rows


@lru_cache(maxsize=64)
def _gaussian_coefficients(most: int) -> list[list[list[int]]]:
    """[k][j][s]: the coefficient of q^s in [k choose j]_q, by [k, j] = [k-1, j-1] + q^j [k-1, j]."""
    table = [[[1]]]
    for k in range(1, most + 1):
        row = []
        for j in range(k + 1):
            polynomial = [0] * (j * (k - j) + 1)
            if j > 0:
                for s, a in enumerate(table[k - 1][j - 1]):
                    polynomial[s] += a
            if j < k:
                for s, a in enumerate(table[k - 1][j]):
                    polynomial[s + j] += a
            row.append(polynomial)
        table.append(row)
    return table


@njit()
def next_partitions(x, items, block):
    """Write ``x`` to the first row of ``block``, the partitions after it to the others; leave the next one in ``x``."""
    for i in range(block.shape[0]):
        for j in range(x.size):
            block[i, j] = x[j]
        chunks = 0  # of the items with less than k chunks
        for k in range(1, x.size + 1):
            if chunks >= k:
                # one item more has k chunks, and the others with less come first again
                count = items
                for j in range(k - 1, x.size):
                    count -= x[j]
                x[k - 1] += 1
                first_below(x, k - 1, chunks - k, count - 1)
                break
            chunks += k * x[k - 1]


@njit()
def first_below(x, most, chunks, items):
    """Set x_1, ..., x_most to the first partition of ``chunks`` among ``items``: the fewest of the largest parts."""
    for k in range(most, 0, -1):
        # the others hold (k - 1) chunks each at most
        value = max(0, chunks - (k - 1) * items)
        x[k - 1] = value
        chunks -= k * value
        items -= value
