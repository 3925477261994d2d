"""Planning problems that nobody tuned anything for, and a check of plans in plain NumPy."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pandas as pd
import problems
from planning.brute_force import OUT, UNDECIDED, Optimum, Relaxation, limits_of, optimum
from planning.brute_model import model_of
from scipy.optimize import minimize

from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import Passes

BYTES = 1e6  # of a chunk
_STEP = 1e-4  # of a node's room, for slopes


def nodes_of(random: np.random.Generator, count: int, spread: float = 10.0) -> pd.DataFrame:
    """Nodes whose speeds are up to ``spread`` apart, with prices from 1 to 5 dollars that speed has no part in."""
    mean = 0.01 * np.exp(random.uniform(0, np.log(spread), count))
    bend = random.uniform(0.2, 1.5, count)  # a gamma law has these moments
    return pd.DataFrame(
        {
            "node_id": np.arange(count),
            "service_mean_s": mean,
            "service_second_s2": mean**2 * (1 + bend),
            "service_third_s3": mean**3 * (1 + bend) * (1 + 2 * bend),
            "reference_bytes": BYTES,
            "connect_mean_s": random.uniform(0, 0.005, count),
            "connect_var_s2": random.uniform(0, 1e-5, count),
            "cost_per_chunk_dollars": random.uniform(1, 5, count),
        }
    )


def files_of(random: np.random.Generator, count: int, k: np.ndarray, floors: int = 3) -> pd.DataFrame:
    """Files with lognormal rates and 0 to ``floors`` extra chunks, all chunks of one size."""
    return pd.DataFrame(
        {
            "file_id": np.arange(count),
            "bytes": BYTES * k,
            "k": k,
            "rate_per_s": random.lognormal(0, 1.5, count),
            "min_extra_chunks": random.integers(0, floors + 1, count),
        }
    )


def at_largest_load(case: problems.Case, load: float) -> problems.Case:
    """Rates scaled so that the best spread of reads over all nodes, one chunk of a file on each, loads one so far."""
    size = case.file("bytes") / case.k
    rate, speed = case.file("rate_per_s") * size, size[0] / problems.service(case)[0][0]  # bytes / s
    reads, most = float(rate @ case.k), rate.sum()
    low, high = 0.0, reads / speed.min()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.minimum(most, middle * speed).sum() >= reads else (middle, high)
    return case.scaled(rate=load / high)


def untuned(seed: int, files: int, load: float, nodes: int = 12) -> problems.Case:
    """One chunk size, k from 2 to 6."""
    random = np.random.default_rng(seed)
    k = random.integers(2, 7, files)
    case = problems.Case(nodes_of(random, nodes), files_of(random, files, k))
    return at_largest_load(case, load)


def dear_and_cheap(files: int) -> problems.Case:
    """Files of one chunk each on two alike nodes, of which one has place for nothing: both have work for 3/4.

    With a theta of 150 s times the files, a file that leaves the other saves 150 s: the best plans keep the node of no
    cost at a load of about 1 - 6e-5, or a file below that, at which reads wait for minutes.
    """
    nodes = pd.DataFrame(
        {
            "node_id": [0, 1],
            "service_mean_s": 0.01,
            "service_second_s2": 2e-4,
            "service_third_s3": 6e-6,
            "reference_bytes": BYTES,
            "cost_per_chunk_dollars": [0.0, 1.0],
        }
    )
    table = pd.DataFrame(
        {
            "file_id": np.arange(files),
            "bytes": BYTES,
            "k": 1,
            "rate_per_s": 150 / files,
            "min_extra_chunks": 0,
        }
    )
    return problems.Case(nodes, table)


def limited(problem, **limits):
    """The problem with some of its constraints and charges set from NumPy arrays."""
    arrays = {name: value if name == "per_site" else jnp.asarray(value) for name, value in limits.items()}
    return replace(problem, **arrays)


def check(case: problems.Case, problem, theta: float, plan) -> None:
    """Whether a plan (without a lane axis) keeps all constraints and is worth what it says."""
    stored, probabilities = np.asarray(plan.stored), np.asarray(plan.probabilities)
    of_files = stored if problem.row is None else stored[np.asarray(problem.row)]
    own = probabilities if problem.row is None else probabilities[np.asarray(problem.row)]
    np.testing.assert_allclose(own.sum(axis=1), case.k, rtol=0, atol=1e-9)
    assert own.min() >= 0 and own.max() <= 1
    assert not np.any(own[~of_files]), "reads go to chunks only"
    assert np.all(of_files.sum(axis=1) >= case.k + case.file("min_extra_chunks"))
    if problem.allowed is not None:
        assert not np.any(stored & ~np.asarray(problem.allowed))
    if problem.per_site is not None:
        for site in np.unique(np.asarray(problem.site)):
            assert stored[:, np.asarray(problem.site) == site].sum(axis=1).max() <= problem.per_site
    if problem.capacity is not None:
        assert np.all(of_files.sum(axis=0) <= np.asarray(problem.capacity))
    expected = problems.outcome(case, own, of_files)
    cost = expected.cost
    if problem.surcharge is not None:
        cost += (np.asarray(problem.surcharge) * of_files).sum()
    if problem.reading is not None:
        cost += (np.asarray(problem.reading) * own).sum()
    found = plan.evaluation
    assert expected.load.max() < 1
    np.testing.assert_allclose(found.load, expected.load, rtol=1e-9)
    np.testing.assert_allclose(found.cost, cost, rtol=1e-9)
    np.testing.assert_allclose(found.latency_shared_z, expected.latency_shared_z_s, rtol=1e-8)
    np.testing.assert_allclose(
        found.objective, expected.latency_shared_z_s + theta * cost / len(case.files), rtol=1e-8
    )


def _load(case: problems.Case, reads: np.ndarray) -> np.ndarray:
    """Loads of nodes with so many reads, (m,) 1/s, of chunks of one size."""
    return reads * case.node("service_mean_s")


def _delays(case: problems.Case, reads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the time from request to the last byte of a chunk, (m,)."""
    first, second, third = (case.node(f"service_{name}") for name in ("mean_s", "second_s2", "third_s3"))
    room = 1 - reads * first
    wait = reads * second / (2 * room)
    spread = second - first**2 + reads * third / (3 * room) + wait**2
    return first + wait + case.node("connect_mean_s"), spread + case.node("connect_var_s2")


def _latency(case: problems.Case, reads: np.ndarray) -> float:
    """Latency with one z for all files, s; infinite where a node is overloaded."""
    if _load(case, reads).max() >= 1:
        return np.inf
    return problems.least_bound(reads / case.file("rate_per_s").sum(), *_delays(case, reads))[0]


def mixture_below(case: problems.Case, problem, theta: float, plan, steps: int) -> float:
    """Objective of a mixture of plans that costs no more than a plan, s: none of them is below a lower bound on all.

    By steps of Frank and Wolfe from the plan, which is of chunks of one size under limits of sites.
    """
    rate, weight = case.file("rate_per_s"), theta / len(case.files)
    price = weight * case.node("cost_per_chunk_dollars")
    reads, seconds = rate @ np.asarray(plan.probabilities), float(np.asarray(plan.stored).sum(axis=0) @ price)

    def value(reads: np.ndarray, seconds: float) -> float:
        return _latency(case, reads) + seconds

    for _ in range(steps):
        other_reads, other_seconds = _cheap_choices(case, problem, _slopes(case, reads), price)
        blends = [
            (reads + part * (other_reads - reads), seconds + part * (other_seconds - seconds))
            for part in np.append(0.0, np.geomspace(1e-5, 1.0, 40))
        ]
        reads, seconds = min(blends, key=lambda blend: value(*blend))
    return value(reads, seconds)


def _slopes(case: problems.Case, reads: np.ndarray) -> np.ndarray:
    """Derivatives of the latency by the reads of the nodes, (m,) s per 1/s, by differences at its best z."""
    total = case.file("rate_per_s").sum()
    z = problems.least_bound(reads / total, *_delays(case, reads))[1]

    def parts(reads: np.ndarray) -> np.ndarray:
        mean, variance = _delays(case, reads)
        return reads / total * 0.5 * (mean - z + np.sqrt((mean - z) ** 2 + variance))

    step = _STEP * (1 - _load(case, reads)) / case.node("service_mean_s")
    return (parts(reads + step) - parts(reads - step)) / (2 * step)


def _cheap_choices(case: problems.Case, problem, slopes: np.ndarray, price: np.ndarray):
    """Reads (m,) and seconds for chunks where every file takes k cheap nodes, then those of its floor, site by site."""
    m = len(price)
    site = np.arange(m) if problem.per_site is None else np.asarray(problem.site)
    per_site = 1 if problem.per_site is None else problem.per_site
    reads, seconds, cheapest = np.zeros(m), 0.0, np.argsort(price, kind="stable").tolist()
    for rate, k, extra in zip(case.file("rate_per_s"), case.k, case.file("min_extra_chunks"), strict=True):
        nodes: list[int] = []
        left = np.full(site.max() + 1, per_site)
        for order, count in ((np.argsort(rate * slopes + price).tolist(), k), (cheapest, k + extra)):
            for j in order:
                if len(nodes) == count:
                    break
                if left[site[j]] > 0 and j not in nodes:
                    left[site[j]] -= 1
                    nodes.append(j)
        reads[nodes[: int(k)]] += rate
        seconds += float(price[nodes].sum())
    return reads, seconds


KINDS = (
    "plain",
    "mixed",
    "writes",
    "sites",
    "mask",
    "capacity",
    "charges",
    "background",
    "alone",
    "mixed_writes",
)


def tiny(seed: int, kind: str, files: int = 3, nodes: int = 4):
    """Case, problem and theta that brute force can solve; ``kind`` of KINDS."""
    random = np.random.default_rng(seed)
    k = np.ones(files, int) if kind == "alone" else random.integers(1, nodes - 1, files)
    of_files = files_of(random, files, k)
    extra = np.minimum(random.integers(0, 2, files), nodes - 1 - k)
    of_files["min_extra_chunks"] = extra
    of_nodes = nodes_of(random, nodes, 4.0)
    if kind.startswith("mixed"):
        of_files["bytes"] *= np.exp(random.normal(0, 1, files))
    if kind.endswith("writes"):
        of_files["write_rate_per_s"] = of_files["rate_per_s"] * random.uniform(0, 0.1, files)
    if kind == "background":
        load = random.uniform(0, 0.2, nodes)
        moments = [of_nodes[f"service_{name}"] for name in ("mean_s", "second_s2", "third_s3")]
        names = ("background_load", "background_second", "background_third")
        of_nodes = of_nodes.assign(**{n: load * v / moments[0] for n, v in zip(names, moments, strict=True)})
    case = at_largest_load(problems.Case(of_nodes, of_files), random.uniform(0.2, 0.6))
    problem = case.problem()
    if kind == "sites":
        problem = limited(problem, site=np.arange(nodes) % 2, per_site=int(-(-(k + extra).max() // 2)))
    if kind == "mask":
        allowed = random.random((files, nodes)) < 0.6
        for i in range(files):
            allowed[i, random.permutation(nodes)[: k[i] + extra[i]]] = True
        problem = limited(problem, allowed=allowed)
    if kind == "capacity":
        problem = limited(problem, capacity=np.full(nodes, -(-(k + extra).sum() // nodes) + seed % 2))
    if kind == "charges":
        problem = limited(
            problem,
            surcharge=random.uniform(0, 3, (files, nodes)),
            reading=random.uniform(0, 3, (files, nodes)),
        )
    return case, problem, float(random.choice([0, 1e-3, 1e-2, 0.1]))


@cache
def best_of(seed: int, kind: str, files: int, nodes: int) -> Optimum | None:
    """What brute force finds for a tiny problem; searched for once for all tests."""
    _, problem, theta = tiny(seed, kind, files, nodes)
    return optimum(problem, theta)


def passes_of(problem, theta: float, threads: int = 1) -> Passes:
    passes = Passes(*flatten(problem), threads)
    passes.with_theta(theta / problem.files.count)
    return passes


def relaxation_of(problem, theta: float) -> Relaxation:
    """The relaxed problem of the brute force, nothing decided."""
    limits = limits_of(problem)
    weight = theta / problem.files.count
    return Relaxation(model_of(problem), limits, weight, np.where(limits.allowed, UNDECIDED, OUT))


def relaxed_at(problem, theta: float, z: float) -> float:
    """Least objective at a fixed z where chunks are kept by shares in [0, 1], by SciPy; convex for one chunk size."""
    relaxation = relaxation_of(problem, theta)
    start = relaxation.least_load()
    scale = abs(relaxation.value(start, z)[0])
    found = minimize(
        lambda x: tuple(part / scale for part in relaxation.value(x, z)[:2]),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * relaxation.size,
        constraints=[
            {
                "type": "eq",
                "fun": lambda x: relaxation.equal @ x - relaxation.total,
                "jac": lambda x: relaxation.equal,
            },
            {
                "type": "ineq",
                "fun": lambda x: relaxation.bound - relaxation.most @ x,
                "jac": lambda x: -relaxation.most,
            },
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.all(relaxation.most @ found.x <= relaxation.bound + 1e-8)
    return float(found.fun * scale)
