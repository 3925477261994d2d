"""What reads pay at least, given prices of chunks: on a placement here, wherever chunks are in ``everywhere``."""

from typing import Protocol

import numpy as np

from ecjax.planning.read_kinds.model import KindModel


class ReadTerm(Protocol):
    """What reads pay at least, given prices of chunks."""

    most: np.ndarray  # (m, 3) full, direct and joined chunks that a node may have to serve, 1/s
    beside: np.ndarray  # (3, m) load, A_2, A_3 of other work that nodes have at least
    entries: int  # prices that a call compares

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> tuple[float, np.ndarray]:
        """S/s; and the loads (m, 3), 1/s, of these answers.

        Args:
            prices: (m, 3) s, of full, direct and joined chunks.
            z_full: s.
            z_joined: s.
        """
        ...


class PlacementTerm:
    """What reads pay at least on the placement of a model."""

    def __init__(self, model: KindModel) -> None:
        self.model, self.beside = model, np.asarray(model.moments.beside)
        self.entries = model.full_nodes.size + model.small.others.size
        self.rate = model.full_rate.sum(axis=1)
        small, m = model.small, model.problem.nodes.count
        there = small.others >= 0
        possible = there.sum(axis=1) >= small.k
        stored = np.zeros((len(self.rate), m))
        row, place = np.nonzero(model.full_nodes >= 0)
        stored[row, model.full_nodes[row, place]] = 1.0
        coded = np.bincount(
            small.others[there & possible[:, None]],
            np.broadcast_to(small.rate[:, None], there.shape)[there & possible[:, None]],
            m,
        )
        self.alone = small.width == 1
        self.several = np.where(self.alone[:, None], -1, small.nodes)
        coded += counted(self.several, self.several >= 0, small.rate, m)
        direct = np.bincount(small.node[self.alone], small.rate[self.alone], m)
        self.most = np.stack([self.rate @ stored, direct, coded], axis=1)

    def __call__(self, prices: np.ndarray, z_full: float, z_joined: float) -> tuple[float, np.ndarray]:
        """See ``ReadTerm``."""
        model, small = self.model, self.model.small
        asked = np.zeros_like(prices)
        paid = float(self.rate.sum()) * z_full
        if paid > 0 or self.rate.any():
            there = model.full_nodes >= 0
            costs, places = least_sums(np.where(there, prices[model.full_nodes, 0], np.inf), model.full_k)
            paid += float(self.rate @ costs)
            asked[:, 0] = counted(model.full_nodes, places, self.rate, len(prices))
        others = np.where(small.others >= 0, prices[small.others, 2], np.inf)
        costs, places = least_sums(others, small.k)
        several = np.sum(np.where(self.several >= 0, prices[self.several, 2], 0.0), axis=1)
        direct, coded = np.where(self.alone, prices[small.node, 1], z_joined + several), z_joined + costs
        cheaper = coded < direct
        asked[:, 1] = np.bincount(small.node, small.rate * (~cheaper & self.alone), len(prices))
        asked[:, 2] = counted(small.others, places, small.rate * cheaper, len(prices))
        asked[:, 2] += counted(self.several, self.several >= 0, small.rate * ~cheaper, len(prices))
        return paid + float(small.rate @ np.minimum(direct, coded)), asked


def least_sums(costs: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the k least of each row, (B,), infinite where fewer are finite; and which they are, (B, N) bool."""
    order = np.argsort(costs, axis=1, kind="stable")
    chosen = np.zeros(costs.shape, bool)
    np.put_along_axis(chosen, order, np.arange(costs.shape[1]) < k[:, None], axis=1)
    total = np.sum(np.where(chosen, costs, 0.0), axis=1)
    return np.where(k <= costs.shape[1], total, np.inf), chosen


def counted(nodes: np.ndarray, chosen: np.ndarray, rate: np.ndarray, count: int) -> np.ndarray:
    """Sum of the rates of the rows that chose each of ``count`` nodes, (count,); -1 stands for none."""
    there = chosen & (nodes >= 0) & (rate > 0)[:, None]
    return np.bincount(nodes[there], np.broadcast_to(rate[:, None], nodes.shape)[there], count)
