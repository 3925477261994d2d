"""Latencies of service classes written out again in NumPy and SciPy: priority and weighted queues, one z per class.

The plain problem calls nothing of the package; ``class_problem`` and ``Tiny`` set the two beside each other. Arrays
have a row per file (r) and a column per node (m), also where files share a placement; service moments are taken at
each file's chunk size.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from problems import Case, least_bound, moment_nodes, service
from scipy.optimize import minimize

from ecjax.planning import Stopping
from ecjax.planning.classes.model import ClassModel, class_model, other_work, tolls
from ecjax.planning.classes.scheduling import Fixed, Goal, Scheduled, schedule


@dataclass(frozen=True)
class Plain:
    """The numbers of a problem with service classes."""

    moments: np.ndarray  # (3, r, m) raw service moments of a chunk of file i at node j, s^n
    background: np.ndarray  # (3, m) sums of lambda m_n of other work: it is served with the last class
    connect_mean: np.ndarray  # (m,) s
    connect_variance: np.ndarray  # (m,) s^2
    k: np.ndarray  # (r,) chunks per read
    rate: np.ndarray  # (r,) 1/s, reads
    write_rate: np.ndarray  # (r,) 1/s; a write loads every chunk
    price: np.ndarray  # (r, m) dollars per period of keeping a chunk
    reading: np.ndarray  # (r, m) dollars per period if every read used the node
    of_class: np.ndarray  # (r,) class of each file, 0 goes first under priority
    classes: int
    queue: str  # "priority" or "weighted"

    @property
    def share(self) -> np.ndarray:
        """(r,) of each file in all reads."""
        return self.rate / self.rate.sum()

    @property
    def class_share(self) -> np.ndarray:
        """(K,) of each class in all reads."""
        return np.array([self.share[self.of_class == number].sum() for number in range(self.classes)])


def plain_classes(case: Case, of_class: np.ndarray, queue: str) -> Plain:
    """The numbers of a case whose file i belongs to class of_class[i]."""
    size = case.file("bytes") / case.k
    stored_chunk = case.file("stored_bytes") / case.k if "stored_bytes" in case.files else size
    return Plain(
        moments=np.array(service(case)),
        background=np.array([case.node(f"background_{name}") for name in ("load", "second", "third")]),
        connect_mean=case.node("connect_mean_s"),
        connect_variance=case.node("connect_var_s2"),
        k=case.k,
        rate=case.file("rate_per_s"),
        write_rate=case.file("write_rate_per_s"),
        price=case.node("cost_per_chunk_dollars")
        + case.node("cost_per_byte_dollars") * stored_chunk[:, None],
        reading=np.zeros((len(size), len(case.nodes))),
        of_class=np.asarray(of_class),
        classes=int(np.max(of_class)) + 1,
        queue=queue,
    )


def class_problem(case: Case, of_class: np.ndarray, queue: str) -> ClassModel:
    """The same as the package has it."""
    return class_model(case.problem(), of_class, int(np.max(of_class)) + 1, queue)


def work(plain: Plain, probabilities: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Load and sums of lambda m_2, lambda m_3 of every class at every node, (3, K, m).

    Args:
        plain: the problem.
        probabilities: (r, m) share of the reads of a file that use the node.
        stored: (r, m) 0 or 1, chunks that writes load.
    """
    found = np.zeros((3, plain.classes, probabilities.shape[1]))
    for i, number in enumerate(plain.of_class):
        chunks = plain.rate[i] * probabilities[i] + plain.write_rate[i] * stored[i]
        found[:, number] += chunks * plain.moments[:, i]
    found[:, -1] += plain.background
    return found


def stable(plain: Plain, done: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether every class is stable at every node.

    Args:
        plain: the problem.
        done: (3, K, m) as ``work`` gives it.
        weights: (K, m) shares of the nodes, of weighted queues.
    """
    if plain.queue == "priority":
        return bool((done[0].sum(axis=0) < 1).all())
    assert weights is not None
    return bool((done[0] < weights).all())


def waits(plain: Plain, done: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the wait before service of every class, (K, m) s and s^2; see ``stable``."""
    means, variances = [], []
    for number in range(plain.classes):
        if plain.queue == "priority":
            a_2, a_3 = done[1].sum(axis=0), done[2].sum(axis=0)
            b_k, c_k = done[1, :number].sum(axis=0), done[1, : number + 1].sum(axis=0)
            a, b = 1 - done[0, :number].sum(axis=0), 1 - done[0, : number + 1].sum(axis=0)
            mean = a_2 / (2 * a * b)
            square = a_3 / (3 * a**2 * b) + a_2 * c_k / (2 * a**2 * b**2) + a_2 * b_k / (2 * a**3 * b)
            variance = square - mean**2
        else:
            assert weights is not None
            w = weights[number]
            rho, a_2, a_3 = done[0, number] / w, done[1, number] / w**2, done[2, number] / w**3
            mean = a_2 / (2 * (1 - rho))
            variance = a_3 / (3 * (1 - rho)) + a_2**2 / (4 * (1 - rho) ** 2)
        means.append(mean)
        variances.append(variance)
    return np.array(means), np.array(variances)


def delays(
    plain: Plain, probabilities: np.ndarray, stored: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the time from request to the last byte of a chunk, (r, m) s and s^2; see ``stable``."""
    mean, variance = waits(plain, work(plain, probabilities, stored), weights)
    own_mean, own_variance = plain.moments[0], plain.moments[1] - plain.moments[0] ** 2
    if plain.queue == "weighted":
        assert weights is not None
        slow = 1 / weights[plain.of_class]
        own_mean, own_variance = own_mean * slow, own_variance * slow**2
    return (
        own_mean + mean[plain.of_class] + plain.connect_mean,
        own_variance + variance[plain.of_class] + plain.connect_variance,
    )


def latencies(
    plain: Plain,
    probabilities: np.ndarray,
    stored: np.ndarray,
    weights: np.ndarray | None = None,
    z: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bound on the mean latency of the reads of every class, and its z, (K,) s each.

    Args:
        plain: the problem.
        probabilities: (r, m), rows sum to k.
        stored: (r, m) 0 or 1.
        weights: (K, m), of weighted queues.
        z: (K,) s; the best of each class where not given (-inf where all its reads take one chunk).

    Returns:
        Latencies and z; infinite latencies everywhere where some class is not stable at some node.
    """
    if not stable(plain, work(plain, probabilities, stored), weights):
        return np.full(plain.classes, np.inf), np.full(plain.classes, np.inf)
    mean, variance = delays(plain, probabilities, stored, weights)
    found, at = np.zeros(plain.classes), np.zeros(plain.classes)
    for number in range(plain.classes):
        own = plain.of_class == number
        part = plain.share[own] / plain.share[own].sum()
        reads = part[:, None] * probabilities[own]
        if z is None or abs(part @ plain.k[own] - 1) < 1e-9:
            found[number], at[number] = least_bound(reads, mean[own], variance[own])
        else:
            at[number] = z[number]
            d = mean[own] - z[number]
            found[number] = z[number] + np.sum(reads / 2 * (d + np.sqrt(d**2 + variance[own])))
    return found, at


def charges(plain: Plain, probabilities: np.ndarray, stored: np.ndarray, theta: float) -> float:
    """What storage and reads cost in an objective, s: theta times the mean cost per file."""
    return float(theta / len(plain.k) * np.sum(plain.price * stored + plain.reading * probabilities))


def best_spread(
    plain: Plain,
    stored: np.ndarray,
    coefficient: np.ndarray,
    start: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    z: np.ndarray | None = None,
    movable: np.ndarray | None = None,
    limits: np.ndarray | None = None,
    theta: float = 0.0,
) -> tuple[float, np.ndarray]:
    """Least sum_k coefficient_k L_k + theta cost / r over probabilities, by SciPy's SLSQP: its value, and them (r, m).

    For problems without groups.

    Args:
        plain: the problem.
        stored: (r, m) 0 or 1; only these chunks are read.
        coefficient: (K,).
        start: (r, m), feasible.
        weights: (K, m), of weighted queues.
        z: (K,) s; the best one at every point where not given.
        movable: (r,) bool, rows that may change; all where not given.
        limits: (K,) s that L_k may not exceed; infinite for none.
        theta: s per dollar.
    """
    free = (stored > 0) & (np.ones(len(stored), bool) if movable is None else movable)[:, None]

    def filled(values: np.ndarray) -> np.ndarray:
        found = start.copy()
        found[free] = values
        return found

    def latency(values: np.ndarray) -> np.ndarray:
        # outside the stable domain SLSQP needs a number that turns it back
        return np.minimum(latencies(plain, filled(values), stored, weights, z)[0], 1e6)

    def objective(values: np.ndarray) -> float:
        return coefficient @ latency(values) + charges(plain, filled(values), stored, theta)

    rows = np.flatnonzero(free.any(axis=1))
    row_of = np.nonzero(free)[0]
    sums = (row_of == rows[:, None]).astype(float)
    constraints = [{"type": "eq", "fun": lambda values: sums @ values - plain.k[rows], "jac": lambda _: sums}]
    if limits is not None:
        bound = np.flatnonzero(np.isfinite(limits))
        constraints.append({"type": "ineq", "fun": lambda values: limits[bound] - latency(values)[bound]})
    found = minimize(
        objective,
        start[free],
        method="SLSQP",
        bounds=[(0.0, 1.0)] * int(free.sum()),
        constraints=constraints,
        options={"maxiter": 300, "ftol": 1e-13},
    )
    return float(found.fun), filled(found.x)


def feasible_spreads(
    plain: Plain, stored: np.ndarray, count: int, seed: int = 0, concentration: float = 1.0
) -> list[np.ndarray]:
    """Random probabilities (r, m) on the chunks that there are, each row summing to its k.

    Mixtures of vertices (k whole chunks), so that small concentrations come near to the vertices.
    """
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        spread = np.zeros(stored.shape)
        for i, row in enumerate(stored):
            on = np.flatnonzero(row)
            for part in random.dirichlet(np.full(2 * len(on), concentration)):
                spread[i, random.permutation(on)[: int(plain.k[i])]] += part
        found.append(np.minimum(spread, 1.0))
    return found


LONG = Stopping(eps=1e-13, max_iterations=3000)
THETA = 0.05  # s per dollar
NO_LIMITS = np.full(2, np.inf)
EVERY = np.ones(4, bool)
TINY_CLASSES = np.array([0, 1, 0, 1])  # of the files of ``tiny_case``


def tiny_case(seed: int, load: float) -> Case:
    """Four nodes and four files of two classes, one chunk size each: small enough for general-purpose solvers."""
    random = np.random.default_rng(seed)
    files = pd.DataFrame(
        {
            "file_id": np.arange(4),
            "k": [2, 2, 1, 3],
            "rate_per_s": random.uniform(0.3, 1.5, 4),
            "min_extra_chunks": 0,
        }
    )
    files["bytes"] = files["k"] * np.where(TINY_CLASSES == 0, 1e6, 2.5e6)
    return Case(moment_nodes(seed, 4), files).at_load(load)


def tiny_placement(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities spread evenly over the chunks that there are, and these (0 or 1), (r, m): two files lack one."""
    random = np.random.default_rng(seed)
    stored = np.ones((len(case.files), len(case.nodes)))
    for row in (0, 2):
        stored[row, random.integers(len(case.nodes))] = 0
    return case.k[:, None] * stored / stored.sum(axis=1, keepdims=True), stored


def spare_weights(done: np.ndarray) -> np.ndarray:
    """Shares of nodes that give every class its load and an equal part of what is left, (K, m)."""
    return done[0] + (1 - done[0].sum(axis=0)) / done.shape[1]


class Tiny(NamedTuple):
    """A tiny problem with service classes, as the package has it and plain."""

    model: ClassModel
    plain: Plain
    start: np.ndarray  # (r, m) probabilities
    stored: np.ndarray  # (r, m) 0 or 1
    weights: np.ndarray  # (K, m)

    @property
    def fixed(self) -> Fixed:
        stored = jnp.asarray(self.stored > 0)
        return Fixed(stored, other_work(self.model, stored), jnp.asarray(self.weights))

    def goal(self, coefficient, limits=NO_LIMITS, movable=EVERY) -> Goal:
        kept, reading = tolls(self.model, THETA)
        return Goal(jnp.asarray(coefficient, float), jnp.asarray(limits), kept, reading, jnp.asarray(movable))

    def run(self, goal: Goal, start=None, z=(0.0, 0.0)) -> Scheduled:
        begin = jnp.asarray(self.start if start is None else start)
        return schedule(self.model, goal, self.fixed, begin, jnp.asarray(z), stopping=LONG)

    def latencies(self, probabilities, z=None):
        return latencies(self.plain, np.asarray(probabilities), self.stored, self.weights, z)[0]

    def value(self, coefficient, probabilities, z=None) -> float:
        charge = charges(self.plain, np.asarray(probabilities), self.stored, THETA)
        return float(np.asarray(coefficient) @ self.latencies(probabilities, z) + charge)

    def best(self, coefficient, start, z, movable=EVERY, limits=None) -> float:
        return best_spread(
            self.plain,
            self.stored,
            np.asarray(coefficient, float),
            np.asarray(start),
            weights=self.weights,
            z=None if z is None else np.asarray(z),
            movable=movable,
            limits=limits,
            theta=THETA,
        )[0]


def tiny(queue: str, seed: int) -> Tiny:
    case = tiny_case(seed, [0.3, 0.6, 0.85][seed % 3])
    start, stored = tiny_placement(case, seed)
    plain = plain_classes(case, TINY_CLASSES, queue)
    weights = spare_weights(work(plain, start, stored))
    return Tiny(class_problem(case, TINY_CLASSES, queue), plain, start, stored, weights)
