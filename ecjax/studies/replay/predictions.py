"""What is known of latencies without a replay: the bound of the plan, and its estimate."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import optimize
from ecjax.errors import UserError
from ecjax.predict.class_bounds import class_bounds
from ecjax.predict.class_estimates import class_estimates
from ecjax.predict.latencies import Latencies
from ecjax.predict.workload import ESTIMATE, TAIL_BOUND, node_laws, workload_of
from ecjax.problem.classes import Classes
from ecjax.queueing import waiting
from ecjax.queueing.earlier_bounds import forks_bound, split_merge_bound
from ecjax.replay.laws import KINDS, Laws
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PlanCase

if TYPE_CHECKING:
    from ecjax.studies.replay.points import Item

PREDICTABLE = ("probabilistic", "uniform", "proportional")


def predictions(
    case: PlanCase,
    problem: optimize.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    ranks: Classes,
    item: "Item",
    weights: np.ndarray,
    options: ReplayOptions,
) -> dict[str, list[Latencies]]:
    """Bound and estimate by kind of group, where the policy and the queues have them; empty elsewhere.

    They are of Poisson arrivals at the mean rates, without decoding, client links and outages.
    """
    if item.policy not in PREDICTABLE:
        return {}
    if item.queue != "fcfs":
        own = class_bounds(problem, probabilities, case.stored, ranks.of_file, item.queue, weights)
        share = np.asarray(problem.share)
        whole = np.array([np.sum(share[share > 0] * own[share > 0])])
        bounds = {"all": whole, "class": by_class(own, share, ranks), "file": own}
        told = (
            class_estimates(problem, laws, probabilities, case.stored, ranks, item.queue, weights)
            if options.estimate and case.per_node == 1
            else {}
        )
        return {
            kind: [_bound(mean), *([told[kind]] if kind in told else [])] for kind, mean in bounds.items()
        }
    found = optimize.evaluate(problem, jnp.asarray(probabilities), jnp.asarray(case.stored), jnp.zeros(()))
    share, by_file = np.asarray(problem.share), np.asarray(found.file_latency)
    means = {
        "all": np.array([float(found.latency)]),
        "class": by_class(by_file, share, ranks),
        "file": by_file,
    }
    nodes = [node_delays(problem, probabilities, case.stored)]
    earlier = earlier_bounds(case, problem, laws) if options.earlier_bounds else []
    # chunks that a node serves together have no law of their own in the estimate
    if not options.estimate or case.per_node > 1:
        kinds = {kind: [_bound(mean), *(earlier if kind == "all" else [])] for kind, mean in means.items()}
        return kinds | {"node": nodes}
    known = estimates(problem, laws, probabilities, case.stored, ranks)
    kinds = {kind: [_bound(mean, known[kind][1]), known[kind][0]] for kind, mean in means.items()}
    kinds["all"] += earlier
    return kinds | {"node": nodes}


def node_delays(problem: optimize.Problem, probabilities: np.ndarray, stored: np.ndarray) -> Latencies:
    """Mean and deviation of the time that a read's chunk spends at each node, and the node's load: M/G/1."""
    reads = jnp.asarray(probabilities)
    work = optimize.node_work(problem, reads, jnp.asarray(stored, float))
    wait = waiting(work[0], work[1], work[2])
    powers = problem.reads @ reads
    own = jnp.sum(problem.nodes.service * powers[None], axis=1) / powers[:1]
    variance = wait.variance + own[1] - own[0] ** 2
    mean = np.asarray(jnp.where(powers[0] > 0, wait.mean + own[0], jnp.nan))
    return Latencies("estimated", None, mean, None, np.sqrt(np.asarray(variance)), None, np.asarray(work[0]))


def mean_bound(case: PlanCase, problem: optimize.Problem) -> float:
    """Bound on the mean latency of the plan's reads, s; infinite where the plan overloads a node."""
    plan = jnp.asarray(case.probabilities), jnp.asarray(case.stored)
    return float(optimize.evaluate(problem, *plan, jnp.zeros(())).latency)


def estimates(
    problem: optimize.Problem, laws: Laws, probabilities: np.ndarray, stored: np.ndarray, ranks: Classes
) -> dict[str, tuple[Latencies, np.ndarray]]:
    """Estimated mean and quantiles, and the quantiles (G, Q) that are promised, by kind of group."""
    own = optimize.of_files(problem, jnp.asarray(probabilities))
    reads = workload_of(problem, laws, stored)
    groups = {"groups": jnp.asarray(ranks.of_file), "group_count": len(ranks.names)}
    found, bound = ESTIMATE(own, reads, **groups), TAIL_BOUND(own, reads, **groups)
    return {
        "all": (_estimated(found.mean[None], found.quantiles[None]), np.asarray(bound.quantiles)[None]),
        "class": (_estimated(found.group_mean, found.group_quantiles), np.asarray(bound.group_quantiles)),
        "file": (_estimated(found.file_mean, found.file_quantiles), np.asarray(bound.file_quantiles)),
    }


def _estimated(mean: jax.Array, quantiles: jax.Array) -> Latencies:
    return Latencies("estimated", None, np.asarray(mean), None, None, np.asarray(quantiles))


def _bound(mean: np.ndarray, quantiles: np.ndarray | None = None) -> Latencies:
    return Latencies("bound", None, mean, None, None, quantiles)


def earlier_bounds(case: PlanCase, problem: optimize.Problem, laws: Laws) -> list[Latencies]:
    """The two bounds of Fig. 7 of the JLCM paper (split-merge for exponential service only); none where infinite.

    Raises:
        UserError: nodes or files differ, or a node keeps no chunk of a file: these bounds know one kind of each.
    """
    files = problem.files
    k, size = np.unique(np.asarray(files.k)), np.unique(np.asarray(files.chunk_bytes))
    alike = len(k) == 1 and len(size) == 1 and np.all(laws.table == laws.table[0]) and case.stored.all()
    if (
        not alike
        or case.per_node > 1
        or problem.writes is not None
        or np.any(np.asarray(problem.nodes.background))
    ):
        raise UserError(
            "earlier_bounds=true: found nodes or files that differ, or other work; allowed: one service law, one k, "
            "one chunk size, chunks of every file on all nodes, reads only"
        )
    rate, k_, n = float(files.rate.sum()), round(float(k[0])), len(case.nodes)
    law = node_laws(laws, 1)
    offset, scale = (float(part[0, 0]) for part in law.parts(size[:, None]))
    times = offset + scale * np.asarray(law.unit.value[0])
    found = {"forks": forks_bound(rate, times, np.asarray(law.unit.level[0]), k_)}
    if KINDS[int(laws.table[0, 6])] == "exponential" and offset == 0:
        found["split_merge"] = split_merge_bound(rate, scale, n, k_)
    return [
        Latencies(name, None, np.array([float(value)]), None, None, None)
        for name, value in found.items()
        if np.isfinite(value)
    ]


def by_class(values: np.ndarray, share: np.ndarray, ranks: Classes) -> np.ndarray:
    """Means (C,) of the files' values, weighted by their reads; nan for a class that is never read."""
    count = len(ranks.names)
    read = share > 0
    total = np.bincount(ranks.of_file[read], share[read] * values[read], count)
    weight = np.bincount(ranks.of_file[read], share[read], count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / weight
