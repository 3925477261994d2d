"""Slow and plain: partitions by trying all, assignments by SciPy, the best plan by dynamic programming over items."""

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment


def all_partitions(capacity, k, items):
    """In the paper's order: by x_K, then x_{K-1}, ..."""
    ranges = [range(capacity // part + 1) for part in range(k, 0, -1)]
    return [
        list(reversed(x))
        for x in itertools.product(*ranges)
        if sum(part * value for part, value in zip(range(k, 0, -1), x, strict=True)) == capacity
        and sum(x) <= items
    ]


def assignment_value(tau, partition):
    slots = np.repeat(np.arange(1, tau.shape[1]), partition)
    items, chosen = linear_sum_assignment(tau[:, slots], maximize=True)
    return tau[items, slots[chosen]].sum()


def best_value(tau, capacity):
    """Largest sum of tau of at most ``capacity`` chunks."""
    best = np.zeros(capacity + 1)
    for row in tau:
        best = np.array(
            [max(best[c - j] + row[j] for j in range(min(c, len(row) - 1) + 1)) for c in range(capacity + 1)]
        )
    return best[capacity]


def plan_value(tau, chunks):
    return tau[np.arange(len(tau)), chunks].sum()


@st.composite
def valuations(draw, most_items=7, most_k=5):
    """tau with many ties, plateaus and zeros, whole or not, and a capacity of up to all chunks."""
    items, k = draw(st.integers(1, most_items)), draw(st.integers(1, most_k))
    steps = draw(
        st.lists(
            st.lists(st.sampled_from([0, 0, 1, 2, 5, 40]), min_size=k, max_size=k),
            min_size=items,
            max_size=items,
        )
    )
    scale = draw(st.sampled_from([1.0, 0.1]))
    tau = np.concatenate([np.zeros((items, 1)), np.cumsum(steps, axis=1)], axis=1) * scale
    return tau, draw(st.integers(0, items * k))
