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


def of_any_sizes(model: KindModel, full, degraded, z_grid) -> float:
    """Mean latency bound of a plan whose chunks have any sizes, s, as ``direct_formula``.

    Args:
        model: small reads of one chunk each; every file its own row.
        full: (R, m) probabilities of full reads.
        degraded: (T, m) x.
        z_grid: s.
    """
    small, files = model.small, model.problem.files
    service = np.asarray(model.problem.nodes.service)
    share = degraded.sum(axis=1) / small.k
    kinds = []  # kind, size, chunks 1/s at every node
    for row, (rate, size) in enumerate(
        zip(np.asarray(files.rate), np.asarray(files.chunk_bytes), strict=True)
    ):
        kinds.append(("full", size, rate * full[row]))
    for read in range(small.number):
        direct = np.zeros(service.shape[2])
        direct[small.node[read]] = small.rate[read] * (1 - share[read])
        kinds += [("direct", small.size[read], direct)]
        kinds += [("joined", small.size[read], small.rate[read] * degraded[read])]
    moments = [np.einsum("npm,p->nm", service, size ** np.arange(4.0)) for _, size, _ in kinds]
    sums = sum(each * chunks for each, (_, _, chunks) in zip(moments, kinds, strict=True))
    if sums[0].max() >= 1:
        return np.inf
    wait = sums[1] / (2 * (1 - sums[0]))
    variance = sums[2] / (3 * (1 - sums[0])) + wait**2
    total = 0.0
    for kind, rate in (("full", np.sum(files.rate)), ("joined", small.rate @ share), ("direct", 0.0)):
        value = rate * z_grid
        for each, (which, _, chunks) in zip(moments, kinds, strict=True):
            d = each[0] + wait - (0.0 if kind == "direct" else z_grid[:, None])
            spread = each[1] - each[0] ** 2 + variance
            one = d if kind == "direct" else 0.5 * (d + np.sqrt(d * d + spread))
            value = value + (which == kind) * (one @ chunks)
        total += float(np.min(value))
    return total / float(np.sum(files.rate) + small.rate.sum())


def one_hot_node(hot: float, others: float, slower: float = 1.0) -> KindModel:
    """Section 5 of the durability document: eight nodes of 0.006 + Exp(0.004) s, k = 4, reads of one chunk per node."""
    factor = np.array([slower, *[1.0] * 7])
    nodes = nodes_of(0.006 * factor, 0.004 * factor)
    stored = np.ones((8, 8), bool)
    problem = problem_of(nodes, [4] * 8, [0.0] * 8, extra=4)
    small = small_reads(stored, np.arange(8), np.zeros(8, int), np.arange(8), 4, [hot, *[others] * 7])
    return KindModel(problem, stored, small)


def direct_formula(nodes: Nodes, full, small, degraded, sizes, z_grid) -> float:
    """Mean latency bound of a plan, s, by M/G/1 formulas and a grid of z; inf where a node is overloaded.

    Args:
        nodes: m nodes.
        full: (rate, probabilities (m,)) of each file with full reads.
        small: (rate, node, or several) of each small read.
        degraded: (T, m) x of each.
        sizes: B of a chunk of a full, of a small read.
        z_grid: s.
    """
    service = np.asarray(nodes.service)
    moments = [[sum(service[n, p] * size**p for p in range(4)) for n in range(3)] for size in sizes]
    k = 2
    chunks = np.zeros((2, service.shape[2]))
    for rate, probabilities in full:
        chunks[0] += rate * probabilities
    joined, joined_rate = np.zeros(service.shape[2]), 0.0
    for (rate, nodes), x in zip(small, degraded, strict=True):
        share = x.sum() / k
        joined += rate * x
        joined_rate += rate * share
        if np.size(nodes) > 1:
            joined[list(nodes)] += rate * (1 - share)
            joined_rate += rate * (1 - share)
        else:
            chunks[1, nodes] += rate * (1 - share)
    chunks[1] += joined
    sums = [sum(chunks[c] * moments[c][n] for c in range(2)) for n in range(3)]
    if sums[0].max() >= 1:
        return np.inf
    wait = sums[1] / (2 * (1 - sums[0]))
    variance = sums[2] / (3 * (1 - sums[0])) + wait**2
    mean = [moments[c][0] + wait for c in range(2)]
    spread = [moments[c][1] - moments[c][0] ** 2 + variance for c in range(2)]

    def last_of(loads: np.ndarray, rate: float, c: int) -> float:
        if rate <= 0:
            return 0.0
        d = mean[c][None] - z_grid[:, None]
        return float(np.min(rate * z_grid + (0.5 * (d + np.sqrt(d * d + spread[c]))) @ loads))

    total = sum(rate for rate, _ in full) + sum(rate for rate, _ in small)
    direct = sum(
        rate * (1 - x.sum() / k) * float(np.sum(mean[1][nodes]))
        for (rate, nodes), x in zip(small, degraded, strict=True)
        if np.size(nodes) == 1
    )
    whole = last_of(chunks[0], sum(rate for rate, _ in full), 0)
    return (direct + whole + last_of(joined, joined_rate, 1)) / total


def with_prices(problem: Problem, per_chunk) -> Problem:
    """The problem with prices of chunks."""
    return replace(problem, nodes=replace(problem.nodes, cost_per_chunk=jnp.asarray(per_chunk, float)))
