"""Figures of a plan computed again from its tables, in NumPy, held per chunk (file, node)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

SUM = 1e-9  # absolute: sums of probabilities
PERIOD_S = 30 * 86400.0  # of the prices, where the nodes table does not say


@dataclass(frozen=True)
class Facts:
    """Numbers of the tables, (r,) per file and (m,) per node."""

    k: np.ndarray  # of the code
    read: np.ndarray  # chunks that a read takes: d, else k
    floor: np.ndarray  # least n
    size: np.ndarray  # B, what a read moves from one node
    stored_size: np.ndarray  # B, of a stored chunk
    rate: np.ndarray
    write_rate: np.ndarray
    law: list[list[np.ndarray]]  # raw service moments 1, 2, 3 as polynomials in the size, lowest power first
    background: np.ndarray  # (3, m)
    connect: np.ndarray  # (2, m) mean and variance

    def moments(self, file: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Raw service moments of chunks: (3, chunks)."""
        size = self.size[file]
        return np.array([sum(c[node] * size**p for p, c in enumerate(law)) for law in self.law])


@dataclass(frozen=True)
class Chunks:
    """Every chunk that a plan keeps, those of a group once for each of its files."""

    file: np.ndarray  # row of the files table
    node: np.ndarray  # row of the nodes table
    probability: np.ndarray


def require(wrong, sentence) -> None:
    """Raise the sentence about the first place that is wrong."""
    wrong = np.asarray(wrong, bool)
    if wrong.any():
        raise AssertionError(sentence(int(np.argmax(wrong))))


def numbers(table: pd.DataFrame, name: str, default: float = 0.0) -> np.ndarray:
    if name not in table:
        return np.full(len(table), float(default))
    return table[name].fillna(default).to_numpy(float)


def facts_of(nodes: pd.DataFrame, files: pd.DataFrame, size_scaling: str) -> Facts:
    k = numbers(files, "k")
    read = np.maximum(k, numbers(files, "d"))
    size = numbers(files, "bytes")
    stored = numbers(files, "stored_bytes", np.nan)
    return Facts(
        k=k,
        read=read,
        floor=np.maximum(read, k + numbers(files, "min_extra_chunks")),
        size=size / read,
        stored_size=np.where(np.isnan(stored), size, stored) / k,
        rate=numbers(files, "rate_per_s"),
        write_rate=numbers(files, "write_rate_per_s"),
        law=_law(nodes, size_scaling),
        background=np.array([numbers(nodes, f"background_{name}") for name in ("load", "second", "third")]),
        connect=np.array([numbers(nodes, name) for name in ("connect_mean_s", "connect_var_s2")]),
    )


def _law(nodes: pd.DataFrame, size_scaling: str) -> list[list[np.ndarray]]:
    names = ("service_mean_s", "service_second_s2", "service_third_s3")
    if names[0] in nodes and nodes[names[0]].notna().all():
        given = [numbers(nodes, name) for name in names]
        if size_scaling == "none":
            return [[moment] for moment in given]
        zero, reference = np.zeros(len(nodes)), numbers(nodes, "reference_bytes")
        return [[zero] * power + [moment / reference**power] for power, moment in enumerate(given, start=1)]
    fixed = [numbers(nodes, "delta_s"), numbers(nodes, "delta_s_per_byte")]
    mean = [numbers(nodes, "psi_s"), numbers(nodes, "psi_s_per_byte")]

    def times(a, b):
        product = [np.zeros(len(nodes)) for _ in range(len(a) + len(b) - 1)]
        for p, x in enumerate(a):
            for q, y in enumerate(b):
                product[p + q] = product[p + q] + x * y
        return product

    def plus(*terms):
        return [sum(factor * part[p] for factor, part in terms) for p in range(len(terms[0][1]))]

    dd, dp, pp = times(fixed, fixed), times(fixed, mean), times(mean, mean)
    third = ((1, times(dd, fixed)), (3, times(dd, mean)), (6, times(dp, mean)), (6, times(pp, mean)))
    return [plus((1, fixed), (1, mean)), plus((1, dd), (2, dp), (2, pp)), plus(*third)]


def figures_of(facts: Facts, chunks: Chunks) -> dict:
    """Loads and latency bounds."""
    m, r = facts.background.shape[1], len(facts.rate)
    file, node, p = chunks.file, chunks.node, chunks.probability
    moments = facts.moments(file, node)
    rate = facts.rate[file] * p + facts.write_rate[file]
    rho, second, third = (
        np.bincount(node, rate * moment, minlength=m) + background
        for moment, background in zip(moments, facts.background, strict=True)
    )
    require(~(rho < 1), lambda j: f"node {j} has a load of {rho[j]}: it is not stable")
    wait = second / (2 * (1 - rho))
    spread = third / (3 * (1 - rho)) + wait**2
    mean = moments[0] + (wait + facts.connect[0])[node]
    variance = np.maximum(moments[1] - moments[0] ** 2, 0) + (spread + facts.connect[1])[node]
    share = facts.rate / facts.rate.sum()
    shared, z = _bounds(np.zeros(len(file), int), 1, share[file] * p, mean, variance)
    by_file, _ = _bounds(file, r, p, mean, variance)
    weights = share[file] * p

    def at(z: float) -> float:
        """The bound with this z for all files."""
        if z == -np.inf:
            return float(np.sum(weights * mean)) if weights.sum() <= 1 + SUM else np.inf
        return float(z + np.sum(weights / 2 * (mean - z + np.sqrt((mean - z) ** 2 + variance))))

    return {
        "load": rho,
        "max_load": float(rho.max()),
        "latency_shared_z_s": float(shared[0]),
        "z_s": float(z[0]),
        "bound_at": at,
        "file_latency": by_file,
        "latency_s": float(np.sum(share * by_file)),
    }


def _bounds(owner: np.ndarray, count: int, weights, mean, variance) -> tuple[np.ndarray, np.ndarray]:
    """min_z z + sum w/2 [(E - z) + sqrt((E - z)^2 + V)] of every owner, and its z, by bisection of the slope.

    With W the sum of weights, the slope is at most 0 at z where (E - z) / sqrt((E - z)^2 + V) is at least
    2 / W - 1 for all terms and at least 0 where it is at most that, which the extremes of E and V give in closed form.
    """
    total = np.bincount(owner, weights, minlength=count)
    single = total <= 1 + SUM  # the infimum is at z = minus infinity
    balance = np.where(single, 0.0, 2 / np.where(single, 1, total) - 1)
    lowest, highest, widest = np.full(count, np.inf), np.full(count, -np.inf), np.zeros(count)
    np.minimum.at(lowest, owner, mean)
    np.maximum.at(highest, owner, mean)
    np.maximum.at(widest, owner, variance)
    reach = balance * np.sqrt(widest / (1 - balance**2))
    low, high = lowest - np.maximum(reach, 0), highest - np.minimum(reach, 0)
    for _ in range(45):
        z = (low + high) / 2
        away = mean - z[owner]
        slope = 1 - np.bincount(
            owner, weights / 2 * (1 + away / np.sqrt(away**2 + variance)), minlength=count
        )
        low, high = np.where(slope < 0, z, low), np.where(slope < 0, high, z)
    z = (low + high) / 2
    away = mean - z[owner]
    value = z + np.bincount(owner, weights / 2 * (away + np.sqrt(away**2 + variance)), minlength=count)
    means = np.bincount(owner, weights * mean, minlength=count)
    return np.where(single, means, value), np.where(single, -np.inf, z)


def file_costs(nodes, files, facts: Facts, chunks: Chunks, network, migration, current) -> np.ndarray:
    """Dollars per period of every file: chunks kept, moved and read."""
    file, node = chunks.file, chunks.node
    by_byte = numbers(nodes, "cost_per_byte_dollars")[node]
    dollars = numbers(nodes, "cost_per_chunk_dollars")[node] + by_byte * facts.stored_size[file]
    if migration and current is not None:
        known = np.isin(file, current[0])
        moved = known & ~np.isin(file * len(nodes) + node, current[0] * len(nodes) + current[1])
        dollars = dollars + moved * migration * facts.stored_size[file]
    if network is not None:
        period = numbers(nodes, "cost_period_s", PERIOD_S)[0]
        prices, client = _byte_prices(nodes, files, network)
        moved_bytes = facts.rate[file] * period * facts.size[file] * chunks.probability
        dollars = dollars + moved_bytes * prices[client[file], node]
    return np.bincount(file, dollars, minlength=len(files))


def _byte_prices(nodes, files, network) -> tuple[np.ndarray, np.ndarray]:
    """Dollars per byte by client site (the last row: no or another site) and node, and the client of each file.

    Rows of the client's own site come before rows that leave it empty; within these a node before its site before
    neither. What no row names is free.
    """
    empty = pd.Series(None, files.index, object)
    client, sites = pd.factorize(files["client_site"] if "client_site" in files else empty)
    prices = np.zeros((len(sites) + 1, len(nodes)))
    rank = np.full(prices.shape, -1)
    for row in network.to_dict("records"):
        asked, node, site = (row.get(name) for name in ("client_site", "node_id", "node_site"))
        clients = np.ones(len(sites) + 1, bool) if pd.isna(asked) else np.append(sites == asked, False)
        there = np.ones(len(nodes), bool)
        if not pd.isna(node):
            there = (nodes["node_id"] == node).to_numpy()
        elif not pd.isna(site):
            there = (nodes["site"] == site).to_numpy()
        own = 3 * (not pd.isna(asked)) + 2 * (not pd.isna(node)) + (pd.isna(node) and not pd.isna(site))
        better = np.outer(clients, there) & (rank < own)
        prices[better], rank[better] = row["dollars_per_byte"], own
    return prices, np.where(client < 0, len(sites), client)
