"""Small systems with small reads, and their latency bound written out once more, in NumPy alone."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from ecjax.model import Files, Nodes
from ecjax.planning.problem import Problem, prepare
from ecjax.planning.read_kinds import KindModel, SmallReads
from ecjax.planning.read_kinds.node_lists import decoding_nodes


def nodes_of(fixed, random, per_byte=0.0) -> Nodes:
    """Nodes whose services are fixed + per_byte B + Exp(random) s."""
    fixed, random = np.broadcast_arrays(np.asarray(fixed, float), np.asarray(random, float))
    service = np.zeros((3, 4, len(fixed)))
    d, c, p = fixed, np.broadcast_to(per_byte, fixed.shape), random
    service[0, :2] = d + p, c
    service[1, :3] = d**2 + 2 * d * p + 2 * p**2, 2 * c * (d + p), c**2
    service[2] = (
        d**3 + 3 * d**2 * p + 6 * d * p**2 + 6 * p**3,
        c * (3 * d**2 + 6 * d * p + 6 * p**2),
        3 * c**2 * (d + p),
        c**3,
    )
    zero = jnp.zeros(len(fixed))
    return Nodes(jnp.asarray(service), zero, zero, jnp.zeros((3, len(fixed))), zero, zero)


def problem_of(nodes: Nodes, k, rate, chunk_bytes=4.0, extra=2) -> Problem:
    """Files with full reads, which may be none."""
    k, rate = np.asarray(k, float), np.asarray(rate, float)
    one = np.ones_like(k)
    files = Files(*map(jnp.asarray, (chunk_bytes * one, chunk_bytes * one, k, extra * one, rate, 0 * one)))
    return prepare(nodes, files)


def small_reads(stored, row, chunk, node, k, rate, size=1.0) -> SmallReads:
    """Small reads of data chunks on these nodes, one each or (T, W) of them, -1 after the last."""
    row, node, rate = np.asarray(row), np.asarray(node), np.asarray(rate, float)
    nodes = node.reshape(len(row), -1)
    others = decoding_nodes(stored, row, nodes)
    one = np.ones(len(row))
    return SmallReads(row, np.asarray(chunk), nodes, others, (k * one).astype(int), rate, size * one)


def of_any_sizes(model: KindModel, full, degraded, z_grid) -> np.ndarray:
    """Mean latency bounds of plans whose chunks have any sizes, s, as ``direct_formula``.

    Args:
        model: small reads of one chunk each; every file its own row.
        full: (..., R, m) probabilities of full reads.
        degraded: (..., T, m) x.
        z_grid: s.
    """
    small, files = model.small, model.problem.files
    service = np.asarray(model.problem.nodes.service)
    share, whole = degraded.sum(axis=-1) / small.k, float(np.sum(files.rate))
    kinds = []  # kind, size, chunks 1/s at every node
    for row, (rate, size) in enumerate(
        zip(np.asarray(files.rate), np.asarray(files.chunk_bytes), strict=True)
    ):
        kinds.append(("full", size, rate * full[..., row, :]))
    for read in range(small.number):
        here = np.arange(service.shape[2]) == small.node[read]
        kinds += [("direct", small.size[read], small.rate[read] * (1 - share[..., read, None]) * here)]
        kinds += [("joined", small.size[read], small.rate[read] * degraded[..., read, :])]
    moments = [np.einsum("npm,p->nm", service, size ** np.arange(4.0)) for _, size, _ in kinds]
    sums = sum(each * chunks[..., None, :] for each, (_, _, chunks) in zip(moments, kinds, strict=True))
    wait, variance, overloaded = waits_of(sums)
    total = 0.0
    for kind, rate in (
        ("full", np.asarray(whole)),
        ("joined", share @ small.rate),
        ("direct", np.zeros(share.shape[:-1])),
    ):
        value = rate[..., None] * z_grid
        for each, (which, _, chunks) in zip(moments, kinds, strict=True):
            if which != kind:
                continue
            d = (each[0] + wait)[..., None, :] - (0.0 if kind == "direct" else z_grid[:, None])
            spread = (each[1] - each[0] ** 2 + variance)[..., None, :]
            one = d if kind == "direct" else 0.5 * (d + np.sqrt(d * d + spread))
            value = value + (one * chunks[..., None, :]).sum(axis=-1)
        total = total + value.min(axis=-1)
    return np.where(overloaded, np.inf, total / (whole + small.rate.sum()))


def waits_of(sums) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and variances of waits at every node, (..., m), and whether any has more work than time, (...).

    Args:
        sums: (..., 3, m) moments of the work that comes in a second.
    """
    # plans that overload a node get numbers that nobody looks at
    rho = np.minimum(sums[..., 0, :], 1 - 1e-9)
    wait = sums[..., 1, :] / (2 * (1 - rho))
    return wait, sums[..., 2, :] / (3 * (1 - rho)) + wait**2, sums[..., 0, :].max(axis=-1) >= 1


def one_hot_node(hot: float, others: float, slower: float = 1.0) -> KindModel:
    """Section 5 of the durability document: eight nodes of 0.006 + Exp(0.004) s, k = 4, reads of one chunk per node."""
    factor = np.array([slower, *[1.0] * 7])
    nodes = nodes_of(0.006 * factor, 0.004 * factor)
    stored = np.ones((8, 8), bool)
    problem = problem_of(nodes, [4] * 8, [0.0] * 8, extra=4)
    small = small_reads(stored, np.arange(8), np.zeros(8, int), np.arange(8), 4, [hot, *[others] * 7])
    return KindModel(problem, stored, small)


def direct_formula(nodes: Nodes, full, small, degraded, sizes, z_grid) -> np.ndarray:
    """Mean latency bounds of plans, s, by M/G/1 formulas and a grid of z; inf where a node is overloaded.

    Args:
        nodes: m nodes.
        full: (rate, probabilities (..., m)) of each file with full reads.
        small: (rate, node, or several) of each small read.
        degraded: (..., T, m) x of each.
        sizes: B of a chunk of a full, of a small read.
        z_grid: s.
    """
    service = np.asarray(nodes.service)
    moments = [[sum(service[n, p] * size**p for p in range(4)) for n in range(3)] for size in sizes]
    k = 2
    share = degraded.sum(axis=-1) / k
    whole = sum((rate * probabilities for rate, probabilities in full), np.zeros(service.shape[2]))
    joined, joined_rate, direct = np.zeros(service.shape[2]), 0.0, np.zeros(service.shape[2])
    for read, (rate, where) in enumerate(small):
        chunks = np.isin(np.arange(service.shape[2]), where) * (rate * (1 - share[..., read, None]))
        joined = joined + rate * degraded[..., read, :]
        joined_rate = joined_rate + rate * share[..., read]
        if np.size(where) > 1:
            joined = joined + chunks
            joined_rate = joined_rate + rate * (1 - share[..., read])
        else:
            direct = direct + chunks
    sums = np.stack([whole * moments[0][n] + (direct + joined) * moments[1][n] for n in range(3)], axis=-2)
    wait, variance, overloaded = waits_of(sums)
    mean = [moments[c][0] + wait for c in range(2)]
    spread = [moments[c][1] - moments[c][0] ** 2 + variance for c in range(2)]

    def last_of(loads: np.ndarray, rate, c: int):
        d = mean[c][..., None, :] - z_grid[:, None]
        later = 0.5 * (d + np.sqrt(d * d + spread[c][..., None, :]))
        value = np.asarray(rate)[..., None] * z_grid + (later * loads[..., None, :]).sum(axis=-1)
        return value.min(axis=-1)

    total = sum(rate for rate, _ in full) + sum(rate for rate, _ in small)
    of_full = last_of(whole, sum(rate for rate, _ in full), 0) if full else 0.0
    latency = (direct * mean[1]).sum(axis=-1) + of_full + last_of(joined, joined_rate, 1)
    return np.where(overloaded, np.inf, latency / total)


def with_prices(problem: Problem, per_chunk) -> Problem:
    """The problem with prices of chunks."""
    return replace(problem, nodes=replace(problem.nodes, cost_per_chunk=jnp.asarray(per_chunk, float)))
