"""Nodes that keep chunks, as lists of one length each, filled up with -1."""

import numpy as np


def padded_nodes(stored: np.ndarray) -> np.ndarray:
    """Nodes that keep a chunk of each row, (R, N), -1 after the last."""
    row, node = np.nonzero(stored)
    lengths = stored.sum(axis=1)
    nodes = np.full((len(stored), int(lengths.max(initial=1))), -1)
    start = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    nodes[row, np.arange(len(row)) - np.repeat(start, lengths)] = node
    return nodes


def at_nodes(nodes: np.ndarray, values: np.ndarray | float, count: int) -> np.ndarray:
    """Values (B, N) at padded nodes as (B, count), 0 at all others."""
    spread = np.zeros((len(nodes), count + 1))
    spread[np.arange(len(nodes))[:, None], nodes] = values
    return spread[:, :count]


def decoding_nodes(stored: np.ndarray, row: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Nodes that degraded reads may use, (T, N), -1 after the last.

    Args:
        stored: (R, m) bool.
        row: (T,).
        nodes: (T, W) of the chunks that are read; where it is one, this node is left out.
    """
    kept = padded_nodes(stored)[row]
    left_out = (kept == nodes[:, :1]) & (np.sum(nodes >= 0, axis=1) == 1)[:, None]
    order = np.argsort(left_out | (kept < 0), axis=1, kind="stable")
    others = np.take_along_axis(np.where(left_out, -1, kept), order, axis=1)
    return others[:, : int(np.sum(others >= 0, axis=1).max(initial=1))]
