"""Latency of service classes as a function of how reads are spread: priority and weighted queues, one z per class.

Files of one class and one chunk size have the same delay at a node, whatever else they are: they are of one *kind*.
With P_cj = sum_i (lambda_i / lambda_hat) pi_ij over the files of kind c, everything a node does follows from P:

    sums_nk = lambda_hat sum_{c of class k} m_n(B_c) P_c + other work of class k,     n = 1, 2, 3
    L_k = z_k + (1 / share_k) sum_{c of class k, j} P_cj / 2 [(E_cj - z_k) + sqrt((E_cj - z_k)^2 + V_cj)]

is the bound on the mean latency of the reads of class k (Lemma 2 with one z per class), with the exact waits of
``ecjax.queueing``: (3)-(8) of the differentiated-latency paper are wrong, see there.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ecjax.planning.problem import Problem, prices, reading_prices
from ecjax.queueing import Delay, priority_waiting, waiting
from ecjax.queueing.minimise import minimiser, single

QUEUES = ("priority", "weighted")

# Up to so many kinds sums over their files are products with a dense matrix (kinds, rows).
_MOST_DENSE = 64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ClassModel:
    """A planning problem whose files belong to K service classes; C kinds of files."""

    problem: Problem  # scaled
    row_class: jax.Array  # (R,) int32, 0 goes first under priority
    kind_class: jax.Array  # (C,) int32
    kind_bytes: jax.Array  # (C,) B, chunk size
    member: jax.Array  # (K, C) 1 where the kind belongs to the class
    share: jax.Array  # (K,) of the read rate
    mean_k: jax.Array  # (K,) chunks per read
    mix: jax.Array | None  # (C, R) share of the reads that are of a kind and a row; None where C is large
    kind_of_file: jax.Array  # (r,) int32
    queue: str = field(metadata={"static": True})

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return self.share.shape[-1]


def class_model(problem: Problem, of_file: ArrayLike, classes: int, queue: str) -> ClassModel:
    """Sort files into kinds.

    Args:
        problem: scaled; files that share a placement row belong to one class.
        of_file: (r,) class of each file, 0 to classes - 1.
        classes: K.
        queue: one of QUEUES.

    Raises:
        ValueError: files of one row belong to several classes, or a class has no reads.
    """
    number = np.asarray(of_file).astype(np.int64)
    share = np.asarray(problem.share, float)
    row = np.arange(len(number)) if problem.row is None else np.asarray(problem.row)
    row_class = np.zeros(problem.rows, np.int64)
    row_class[row] = number
    if np.any(row_class[row] != number):
        raise ValueError("files that share a placement belong to one class")
    by_class = np.bincount(number, share, classes)
    if np.any(by_class <= 0):
        raise ValueError(f"class {int(np.argmin(by_class))} has no reads")
    size, read, some = np.asarray(problem.files.chunk_bytes, float), share > 0, np.empty(classes)
    some[number[read]] = size[read]
    # files that are never read are of the kind of one that is: proofs are for classes of one kind
    pairs = np.stack([number, np.where(read, size, some[number])])
    kinds, kind = np.unique(pairs, axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    count = kinds.shape[1]
    dense = count <= _MOST_DENSE
    mix = np.zeros((count, problem.rows)) if dense else None
    if mix is not None:
        np.add.at(mix, (kind, row), share)
    kind_class = kinds[0].astype(np.int32)
    k = np.bincount(number, share * np.asarray(problem.files.k), classes) / by_class
    return ClassModel(
        problem=problem,
        row_class=jax.device_put(np.asarray(row_class, np.int32)),
        kind_class=jax.device_put(kind_class),
        kind_bytes=jax.device_put(kinds[1]),
        member=jax.device_put((kind_class[None] == np.arange(classes)[:, None]).astype(float)),
        share=jax.device_put(by_class),
        mean_k=jax.device_put(k),
        mix=None if mix is None else jax.device_put(mix),
        kind_of_file=jax.device_put(np.asarray(kind, np.int32)),
        queue=queue,
    )


def kind_reads(model: ClassModel, probabilities: jax.Array) -> jax.Array:
    """P: reads of every kind at every node, as shares of the read rate, (C, m)."""
    if model.mix is not None:
        return jnp.matmul(model.mix, probabilities, precision="highest")
    problem = model.problem
    by_file = probabilities if problem.row is None else probabilities[problem.row]
    return jax.ops.segment_sum(
        problem.share[:, None] * by_file, model.kind_of_file, num_segments=len(model.kind_bytes)
    )


def of_rows_by_kind(model: ClassModel, by_kind: jax.Array) -> jax.Array:
    """Derivatives by probabilities, (R, m), from those by P, (C, m)."""
    if model.mix is not None:
        return jnp.matmul(model.mix.T, by_kind, precision="highest")
    problem = model.problem
    by_file = problem.share[:, None] * by_kind[model.kind_of_file]
    if problem.row is None:
        return by_file
    return jax.ops.segment_sum(by_file, problem.row, num_segments=problem.rows)


def other_work(model: ClassModel, stored: jax.Array) -> jax.Array:
    """Load, A_2 and A_3 of each class beside its reads, (3, K, m): writes; background work goes with the last class.

    Args:
        model: the model.
        stored: (R, m) bool, chunks that writes load.
    """
    problem = model.problem
    nodes = problem.nodes
    empty = jnp.zeros((3, model.classes, nodes.count)).at[:, -1].set(nodes.background)
    if problem.writes is None:
        return empty
    member = model.row_class[None] == jnp.arange(model.classes, dtype=jnp.int32)[:, None]
    sums = jnp.einsum(
        "kR,pR,Rj->pkj",
        member.astype(float),
        problem.writes,
        stored.astype(float),
        precision="highest",
    )
    return empty + jnp.einsum("npj,pkj->nkj", nodes.service, sums, precision="highest")


def class_work(model: ClassModel, reads: jax.Array, other: jax.Array) -> jax.Array:
    """Load and the sums A_2, A_3 of every class at every node, (3, K, m).

    Args:
        model: the model.
        reads: P, (C, m).
        other: (3, K, m) work beside the reads.
    """
    problem = model.problem
    rate = jnp.sum(problem.files.rate)
    powers = rate * model.kind_bytes[None] ** jnp.arange(4.0)[:, None]
    sums = jnp.einsum("kc,pc,cj->pkj", model.member, powers, reads, precision="highest")
    return other + jnp.einsum("npj,pkj->nkj", problem.nodes.service, sums, precision="highest")


def class_waits(model: ClassModel, work: jax.Array, weights: jax.Array) -> Delay:
    """Wait before service of every class at every node, (K, m).

    Args:
        model: the model.
        work: (3, K, m).
        weights: (K, m), of weighted queues; left aside under priority.
    """
    if model.queue == "priority":
        return priority_waiting(work[0], work[1], work[2])
    return waiting(work[0] / weights, work[1] / weights**2, work[2] / weights**3)


def kind_delays(model: ClassModel, wait: Delay, weights: jax.Array) -> Delay:
    """Sojourn and connection of a chunk of every kind at every node, (C, m)."""
    nodes = model.problem.nodes
    first, second = nodes.service[0], nodes.service[1]
    size, of = model.kind_bytes[:, None], model.kind_class
    slow = 1 / weights[of] if model.queue == "weighted" else jnp.ones_like(wait.mean[of])
    mean = first[0][None] + first[1][None] * size
    # m_2(B) - m_1(B)^2 by powers of B, so that nothing cancels between large terms
    linear, square = second[1] - 2 * first[0] * first[1], second[2] - first[1] ** 2
    spread = (second[0] - first[0] ** 2)[None] + size * (linear[None] + size * square[None])
    return Delay(
        mean * slow + wait.mean[of] + nodes.connect_mean[None],
        jnp.maximum(spread, 0) * slow**2 + wait.variance[of] + nodes.connect_variance[None],
    )


def stable(model: ClassModel, work: jax.Array, weights: jax.Array) -> jax.Array:
    """Whether every class is stable at every node: () bool."""
    if model.queue == "priority":
        return jnp.all(jnp.sum(work[0], axis=0) < 1)
    return jnp.all(work[0] < weights)


def class_z(model: ClassModel, reads: jax.Array, delay: Delay, start: jax.Array) -> jax.Array:
    """The z of every class that makes its bound least, (K,) s; 0 where reads take one chunk (z -> -inf).

    Args:
        model: the model.
        reads: P, (C, m).
        delay: (C, m).
        start: (K,) to start the search from, s.
    """
    weights = model.member[:, :, None] * (reads[None] / model.share[:, None, None])
    finite = jnp.isfinite(delay.mean)
    mean, variance = (jnp.where(finite, part, 0) for part in (delay.mean, delay.variance))
    return jax.vmap(minimiser, (0, None, None, 0))(weights, mean, variance, start)


def excess(model: ClassModel, delay: Delay, z: jax.Array) -> jax.Array:
    """What a chunk adds to the bound: [(E - z) + sqrt((E - z)^2 + V)] / 2, E for reads of one chunk; (C, m) s."""
    d = delay.mean - z[model.kind_class][:, None]
    # the smallest number keeps derivatives finite at d = V = 0
    root = jnp.sqrt(d * d + delay.variance + jnp.finfo(d.dtype).tiny)
    alone = single(model.mean_k)[model.kind_class][:, None]
    return jnp.where(alone, delay.mean, 0.5 * (d + root))


def latencies_at(
    model: ClassModel, reads: jax.Array, other: jax.Array, weights: jax.Array, z: jax.Array
) -> jax.Array:
    """L_k for given z: bound on the mean latency of the reads of every class, (K,) s.

    Differentiable by ``reads``, ``other`` and ``weights``; of no meaning where a class is not stable.

    Args:
        model: the model.
        reads: P, (C, m).
        other: (3, K, m) work beside the reads.
        weights: (K, m), of weighted queues.
        z: (K,) s.
    """
    wait = class_waits(model, class_work(model, reads, other), weights)
    late = jnp.sum(reads * excess(model, kind_delays(model, wait, weights), z), axis=1)
    summed = jnp.matmul(model.member, late, precision="highest") / model.share
    return jnp.where(single(model.mean_k), summed, z + summed)


class State(NamedTuple):
    """Latencies of the classes at a point."""

    latency: jax.Array  # (K,) s, one z per class; infinite everywhere where a class is not stable at a node
    z: jax.Array  # (K,) s


def state(
    model: ClassModel, reads: jax.Array, other: jax.Array, weights: jax.Array, start: jax.Array
) -> State:
    """Latencies with the best z of every class, searched from ``start`` (K,)."""
    work = class_work(model, reads, other)
    delay = kind_delays(model, class_waits(model, work, weights), weights)
    z = class_z(model, reads, delay, start)
    latency = latencies_at(model, reads, other, weights, z)
    return State(jnp.where(stable(model, work, weights), latency, jnp.inf), z)


def even_weights(model: ClassModel, work: jax.Array) -> jax.Array:
    """Weights that give every class its load and an equal part of what is left, (K, m).

    Args:
        model: the model.
        work: (3, K, m).
    """
    load = work[0]
    spare = jnp.maximum(1 - jnp.sum(load, axis=0), 0)
    parts = load + spare[None] / model.classes
    return parts / jnp.sum(parts, axis=0, keepdims=True)


def tolls(model: ClassModel, theta: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """What storage and reads cost in the objective, (R, m) s each: theta / r times prices and reading prices."""
    problem = model.problem
    per_dollar = jnp.asarray(theta, float) / problem.files.count
    reading = reading_prices(problem)
    storing = per_dollar * prices(problem)
    return storing, jnp.zeros_like(storing) if reading is None else per_dollar * reading
