"""Estimated latencies of files whose classes have queues of their own at the nodes."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ecjax import planning
from ecjax.predict.common_writes import common_writes
from ecjax.predict.latencies import Latencies
from ecjax.predict.workload import ESTIMATE, workload_of
from ecjax.problem.classes import Classes
from ecjax.programs import program
from ecjax.queueing.class_queues import ClassQueues, ClassWrites, partitioned_queues, priority_queues
from ecjax.queueing.estimate import LEVELS, Estimate
from ecjax.queueing.workload import Workload
from ecjax.simulation.laws import Laws

ESTIMATED = ("priority", "partitioned")  # queues that have an estimate
# one small program for each; the large one of the estimate is the same for both
_PRIORITY = program(priority_queues, static_argnames="count")
_PARTITIONED = program(partitioned_queues)


def class_estimates(
    problem: planning.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    stored: np.ndarray,
    classes: Classes,
    queue: str,
    weights: ArrayLike,
) -> dict[str, Latencies]:
    """Estimated mean and quantiles by kind of group: "all", "class" and "file"; nothing for queues without estimate.

    Beside priority replays of 2 and 3 classes (shares of the first from 1/23 to 3/4, 2 to 7 of 12 nodes, loads of 0.3,
    0.6 and 0.9, exponential, shifted exponential and the built-in cluster's service) the means of classes were within
    1.4 % up to a load of 0.6 and 2.6 % at 0.9, the 99 % points within 3.1 %; the replays' own errors are among these.

    Args:
        problem: scaled.
        laws: of the nodes.
        probabilities: (R, m).
        stored: (R, m) bool, chunks that writes load.
        classes: of the files; the first goes first under priority. Writes go with the class of their file, other
            work with the last class.
        queue: "priority", "partitioned" or "shared".
        weights: (K, m) shares of the classes at every node, or (K,) for all nodes alike; under priority they do not
            count.
    """
    if queue not in ESTIMATED:
        return {}
    reads = probabilities, stored, classes.of_file
    estimate = _estimate(problem, laws, *reads, len(classes.names), queue, weights)
    return {
        "all": _latencies(estimate.mean[None], estimate.quantiles[None]),
        "class": _latencies(estimate.group_mean, estimate.group_quantiles),
        "file": _latencies(estimate.file_mean, estimate.file_quantiles),
    }


def class_mean_estimates(
    problem: planning.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    stored: np.ndarray,
    of_file: np.ndarray,
    queue: str,
    weights: ArrayLike,
) -> np.ndarray:
    """Estimated mean latency of every class, (K,) s: infinite where it is not stable, 0 where nothing of it is read.

    Args:
        problem: scaled.
        laws: of the nodes.
        probabilities: (R, m).
        stored: (R, m) bool, chunks that writes load.
        of_file: (r,) class of each file.
        queue: "priority" or "partitioned".
        weights: as in ``class_estimates``; their number is K.

    Raises:
        ValueError: the queue has no estimate.
    """
    count = len(np.asarray(weights))
    estimate = _estimate(problem, laws, probabilities, stored, of_file, count, queue, weights)
    return np.nan_to_num(np.asarray(estimate.group_mean), nan=0.0, posinf=np.inf)


def _estimate(
    problem: planning.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    stored: np.ndarray,
    of_file: np.ndarray,
    count: int,
    queue: str,
    weights: ArrayLike,
) -> Estimate:
    if queue not in ESTIMATED:
        raise ValueError(f"queue is {queue!r}, it must be one of {', '.join(ESTIMATED)}")
    reads = planning.of_files(problem, jnp.asarray(probabilities, float))
    # writes go by class: of the work beside the reads only that of the nodes is left
    load = workload_of(problem, laws, np.zeros_like(stored))
    writes = None if problem.writes is None else _writes(problem, load, stored, of_file, count)
    groups = jnp.asarray(of_file, int)
    queues: ClassQueues
    if queue == "priority":
        queues = _PRIORITY(reads, load, groups, count=count, writes=writes)
    else:
        shares = np.asarray(weights, float)
        share = np.broadcast_to(
            shares if shares.ndim == 2 else shares[:, None], (count, problem.nodes.count)
        ).copy()
        queues = _PARTITIONED(reads, load, groups, jnp.asarray(share), writes)
    return ESTIMATE(reads, load, levels=LEVELS, groups=groups, group_count=count, queues=queues)


def _writes(
    problem: planning.Problem, load: Workload, stored: np.ndarray, of_file: np.ndarray, count: int
) -> ClassWrites:
    files = problem.files
    holds = np.asarray(planning.of_files(problem, jnp.asarray(stored, float)))
    rate, size = np.asarray(files.write_rate), np.asarray(files.write_bytes)
    common = [
        common_writes(np.where(of_file == number, rate, 0.0), holds, np.stack([size, size]), load.service)
        for number in range(count)
    ]
    return ClassWrites(
        jnp.asarray(rate[:, None] * holds), files.whole_chunk_bytes, jnp.asarray(np.stack(common))
    )


def _latencies(mean: jax.Array, quantiles: jax.Array) -> Latencies:
    return Latencies("estimated", np.asarray(mean), np.asarray(quantiles))
