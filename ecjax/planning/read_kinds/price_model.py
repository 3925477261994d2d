"""What prices may prove, from above, by all the answers of nodes and reads to earlier prices: cutting planes.

The least of a node's latency minus p . x is no more than its value at any loads x, whatever the prices p are, and what
reads pay no more than the price of any answer of theirs. The least of those that were met is concave and piecewise
linear in the prices; a linear program finds the prices for which it is largest. Answers serve every z: only what they
cost changes with it.
"""

from collections import deque

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ecjax.planning.certified.node_levels import DIRECT, Chunks
from ecjax.planning.read_kinds.read_terms import Answer

_MOST_ANSWERS = 60  # the last so many


class PriceModel:
    """An upper bound on what prices prove."""

    def __init__(self, chunks: Chunks, full_rate: float) -> None:
        self.chunks, self.full_rate = chunks, full_rate
        self.loads: deque[np.ndarray] = deque(maxlen=_MOST_ANSWERS)  # (m, C) 1/s
        self.answers: deque[Answer] = deque(maxlen=_MOST_ANSWERS)

    def add(self, loads: np.ndarray, answer: Answer, prices: np.ndarray, paid_z: tuple[float, float]) -> None:
        """Answers to prices.

        Args:
            loads: (m, C) 1/s, that nodes were met at.
            answer: of the reads.
            prices: (m, C) s.
            paid_z: s, that full and joined reads paid.
        """
        beside = answer.paid - float(np.sum(answer.loads * prices))
        beside -= self.full_rate * paid_z[0] + answer.joined_rate * paid_z[1]
        self.loads.append(loads)
        self.answers.append(answer._replace(paid=beside))

    def best(
        self, z: tuple[float, float], paid_z: tuple[float, float], low: np.ndarray, high: np.ndarray
    ) -> tuple[float, np.ndarray] | None:
        """What prices between ``low`` and ``high`` may prove at most, s/s, and those prices, (m, C) s.

        Args:
            z: s, of full and joined reads.
            paid_z: s, what these pay.
            low: (m, C) s.
            high: (m, C) s.
        """
        m, columns = low.shape
        rounds, prices = len(self.loads), low.size
        loads = np.stack(self.loads)
        # variables: prices, the latency of every node, what reads pay; a row for every answer of a node, and of reads
        row = np.arange(rounds * m)
        node = np.tile(np.arange(m), rounds)
        at_nodes = sparse.csr_matrix(
            (
                loads.ravel(),
                (np.repeat(row, columns), (node[:, None] * columns + np.arange(columns)).ravel()),
            ),
            shape=(rounds * m, prices),
        )
        one_node = sparse.csr_matrix((np.ones(rounds * m), (row, node)), shape=(rounds * m, m + 1))
        of_reads = sparse.csr_matrix(np.stack([-each.loads.ravel() for each in self.answers]))
        reads = sparse.csr_matrix(
            (np.ones(rounds), (np.arange(rounds), np.full(rounds, m))), shape=(rounds, m + 1)
        )
        constant = [
            each.paid + self.full_rate * paid_z[0] + each.joined_rate * paid_z[1] for each in self.answers
        ]
        bounds = np.concatenate([np.stack([low.ravel(), high.ravel()], axis=1), np.full((m, 2), -np.inf)])
        bounds[prices:, 1] = 0.0
        result = linprog(
            np.concatenate([np.zeros(prices), np.full(m + 1, -1.0)]),
            A_ub=sparse.vstack([sparse.hstack([at_nodes, one_node]), sparse.hstack([of_reads, reads])]),
            b_ub=np.concatenate([self.latency(loads, z).ravel(), constant]),
            bounds=np.concatenate([bounds, [[-np.inf, np.inf]]]),
            method="highs",
        )
        if result.x is None:
            return None
        return -float(result.fun), np.clip(result.x[:prices].reshape(low.shape), low, high)

    def latency(self, loads: np.ndarray, z: tuple[float, float]) -> np.ndarray:
        """Latency of nodes at loads (T, m, C) with these z, (T, m) s/s."""
        chunks = self.chunks
        work = chunks.beside.T[:, None] + np.einsum("nmc,tmc->ntm", chunks.moments, loads)
        idle = 1 - work[0]
        wait = work[1] / (2 * idle)
        variance = work[2] / (3 * idle) + wait**2
        mean = chunks.mean + wait[:, :, None]
        spread = chunks.variance + variance[:, :, None]
        d = mean - np.array([*z, 0.0])[chunks.kind]
        each = np.where(chunks.kind == DIRECT, mean, 0.5 * (d + np.sqrt(d * d + spread)))
        return np.sum(loads * each, axis=2)
