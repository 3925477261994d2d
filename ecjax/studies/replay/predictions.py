"""Latencies without a replay: the bound of the plan, and its estimate."""

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import planning
from ecjax.errors import UserError
from ecjax.planning.problem import EVALUATE
from ecjax.predict.class_bounds import class_bounds
from ecjax.predict.class_estimates import class_estimates
from ecjax.predict.kind_latencies import KINDS, kind_estimates, small_bounds
from ecjax.predict.latencies import Latencies
from ecjax.predict.workload import ESTIMATE, TAIL_BOUND, node_laws, workload_of
from ecjax.problem.classes import Classes
from ecjax.programs import program
from ecjax.queueing import waiting
from ecjax.queueing.channels import delay_over_channels
from ecjax.queueing.condense import condense
from ecjax.queueing.earlier_bounds import forks_bound, split_merge_bound
from ecjax.simulation.laws import EXPONENTIAL, KIND, WITH_STALLS
from ecjax.studies.replay.operating_point import OperatingPoint

PREDICTABLE = ("probabilistic", "uniform", "proportional")


def predictions(at: OperatingPoint, estimate: bool, earlier: bool) -> dict[str, list[Latencies]]:
    """Bound and estimate by kind of group, where the policy and the queues have them; empty elsewhere.

    They are of Poisson arrivals at the mean rates, without decoding, client links and outages.

    Args:
        at: what they are about.
        estimate: whether latencies are estimated.
        earlier: whether earlier bounds are computed.

    Raises:
        UserError: earlier bounds do not know such nodes or files.
    """
    if at.policy not in PREDICTABLE:
        return {}
    # chunks that a node serves together have no law of their own in the estimate
    estimate = estimate and at.plan.per_node == 1
    if at.queue.name != "fcfs":
        return _by_class(at, estimate)
    if at.kinds is not None:
        return _with_small_reads(at, estimate)
    stored = jnp.asarray(at.plan.stored)
    plan = EVALUATE(at.problem, jnp.asarray(at.probabilities), stored, jnp.zeros(()))
    by_file = np.asarray(plan.file_latency)
    means = {
        "all": np.array([float(plan.latency)]),
        "class": by_class(by_file, np.asarray(at.problem.share), at.plan.classes),
        "file": by_file,
    }
    if estimate:
        estimated = _estimates(at)
        kinds = {kind: [_bound(mean, estimated[kind][1]), estimated[kind][0]] for kind, mean in means.items()}
    else:
        kinds = {kind: [_bound(mean)] for kind, mean in means.items()}
    if earlier:
        kinds["all"] += _earlier_bounds(at)
    return kinds | {"node": [_node_delays(at)]}


def _with_small_reads(at: OperatingPoint, estimate: bool) -> dict[str, list[Latencies]]:
    """Bound and estimate of full reads, by class, and of small ones, by kind."""
    kinds, model = at.kinds, at.kind_model
    assert kinds is not None and model is not None
    stored = jnp.asarray(at.plan.stored)
    plan = EVALUATE(at.loaded, jnp.asarray(at.probabilities), stored, jnp.zeros(()))
    files, classes, reads = at.problem.files, at.plan.classes, kinds.reads
    rate = np.asarray(files.rate)
    spread = at.probabilities[np.arange(len(at.probabilities))[:, None], model.full_nodes]
    loads = model.loads(np.where(model.full_nodes >= 0, spread, 0.0), kinds.degraded)
    bounds = small_bounds(model, loads, kinds.degraded)
    read, by_file = rate > 0, np.asarray(plan.file_latency)
    full = np.sum(rate[read] * by_file[read])
    small = reads.rate * kinds.share
    with np.errstate(invalid="ignore", divide="ignore"):
        degraded = np.nansum(small * bounds.degraded) / small.sum()
    direct = reads.rate - small
    means = {
        "all": np.array([(full + reads.rate @ bounds.mean) / (rate.sum() + reads.rate.sum())]),
        "class": np.append(
            by_class(by_file, rate, classes), [direct @ bounds.direct / direct.sum(), degraded]
        ),
    }
    predicted = {kind: [_bound(mean)] for kind, mean in means.items()}
    if estimate:
        service = node_laws(at.laws, at.problem.nodes.count)
        each = kind_estimates(at.problem, at.probabilities, at.plan.stored, model, kinds.degraded, service)
        predicted["all"].append(Latencies("estimated", np.array([each.mean]), each.quantiles[None]))
        # full reads have no estimate by class here
        whole = np.arange(len(each.kind_mean))[len(KINDS) - 2 - (len(classes.names) == 1) :]
        blank = len(classes.names) + 2 - len(whole)
        mean = np.append(np.full(blank, np.nan), each.kind_mean[whole])
        quantiles = np.concatenate(
            [np.full((blank, each.quantiles.size), np.nan), each.kind_quantiles[whole]]
        )
        predicted["class"].append(Latencies("estimated", mean, quantiles))
    return predicted


def _by_class(at: OperatingPoint, estimate: bool) -> dict[str, list[Latencies]]:
    """Bound and estimate where classes have queues of their own."""
    plan, classes, queue, weights = at.plan, at.plan.classes, at.queue.name, at.queue.weights
    bound = class_bounds(at.problem, at.probabilities, plan.stored, classes.of_file, queue, weights)
    share = np.asarray(at.problem.share)
    mean = np.array([np.sum(share[share > 0] * bound[share > 0])])
    means = {"all": mean, "class": by_class(bound, share, classes), "file": bound}
    estimated = {}
    if estimate:
        reads = at.probabilities, plan.stored
        estimated = class_estimates(at.problem, at.laws, *reads, classes, queue, weights)
    return {
        kind: [_bound(mean), *([estimated[kind]] if kind in estimated else [])]
        for kind, mean in means.items()
    }


def _node_delays(at: OperatingPoint) -> Latencies:
    """Mean and deviation of the time that a read's chunk spends at each node, and the node's load: M/G/1."""
    reads, stored = jnp.asarray(at.probabilities), jnp.asarray(at.plan.stored, float)
    mean, variance, load = (np.asarray(each) for each in _sojourn(at.problem, reads, stored))
    return Latencies("estimated", mean, deviation=np.sqrt(variance), utilisation=load)


@program
def _sojourn(
    problem: planning.Problem, reads: jax.Array, stored: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean (s; nan where nothing is read), variance (s^2) and load of every node, (m,) each."""
    work = planning.node_work(problem, reads, stored)
    wait = waiting(work[0], work[1], work[2])
    if problem.nodes.channels is not None:
        wait = delay_over_channels(wait, work[0], problem.nodes.channels)
    powers = problem.reads @ reads
    service = jnp.sum(problem.nodes.service * powers[None], axis=1) / powers[:1]
    mean = jnp.where(powers[0] > 0, wait.mean + service[0], jnp.nan)
    return mean, wait.variance + service[1] - service[0] ** 2, work[0]


def mean_bound(at: OperatingPoint) -> float:
    """Bound on the mean latency of reads by the plan, in FCFS queues, s; infinite where it overloads a node."""
    plan = jnp.asarray(at.plan.probabilities), jnp.asarray(at.plan.stored)
    return float(EVALUATE(at.problem, *plan, jnp.zeros(())).latency)


def _estimates(at: OperatingPoint) -> dict[str, tuple[Latencies, np.ndarray]]:
    """Estimated mean and quantiles, and the quantiles (G, Q) that are promised, by kind of group."""
    classes = at.plan.classes
    reads = planning.of_files(at.problem, jnp.asarray(at.probabilities))
    load = workload_of(at.problem, at.laws, at.plan.stored)
    groups = {"groups": jnp.asarray(classes.of_file), "group_count": len(classes.names)}
    estimate = ESTIMATE(reads, load, **groups, condensed=condense(reads, load))
    bound = TAIL_BOUND(reads, load, **groups)
    return {
        "all": (
            _estimated(estimate.mean[None], estimate.quantiles[None]),
            np.asarray(bound.quantiles)[None],
        ),
        "class": (
            _estimated(estimate.group_mean, estimate.group_quantiles),
            np.asarray(bound.group_quantiles),
        ),
        "file": (_estimated(estimate.file_mean, estimate.file_quantiles), np.asarray(bound.file_quantiles)),
    }


def _estimated(mean: jax.Array, quantiles: jax.Array) -> Latencies:
    return Latencies("estimated", np.asarray(mean), np.asarray(quantiles))


def _bound(mean: np.ndarray, quantiles: np.ndarray | None = None) -> Latencies:
    return Latencies("bound", mean, quantiles)


def _earlier_bounds(at: OperatingPoint) -> list[Latencies]:
    """The two bounds of Fig. 7 of the JLCM paper (split-merge for exponential service only); none where infinite.

    Raises:
        UserError: nodes or files differ, a node keeps no chunk of a file, or connections take time: these bounds know
            one kind of each, and no connections.
    """
    problem, plan, table = at.problem, at.plan, at.laws.table
    connecting = np.any(problem.nodes.connect_mean) or np.any(problem.nodes.connect_variance)
    k, size = np.unique(np.asarray(problem.files.k)), np.unique(np.asarray(problem.files.chunk_bytes))
    stalled = table[0, KIND] in WITH_STALLS
    alike = not stalled and len(k) == 1 and len(size) == 1 and np.all(table == table[0]) and plan.stored.all()
    other_work = problem.writes is not None or np.any(np.asarray(problem.nodes.background))
    if not alike or plan.per_node > 1 or other_work or connecting:
        raise UserError(
            "earlier_bounds=true: found nodes or files that differ, stalls, connection delays or other work; allowed: "
            "one service law, one k, one chunk size, chunks of every file on all nodes, reads only, no connect_mean_s"
        )
    rate, k_, n = float(problem.files.rate.sum()), round(float(k[0])), len(plan.nodes)
    law = node_laws(at.laws, 1)
    offset, scale = (float(part[0, 0]) for part in law.parts(size[:, None]))
    times = offset + scale * np.asarray(law.unit.value[0])
    bounds = {"forks": forks_bound(rate, times, np.asarray(law.unit.level[0]), k_)}
    if table[0, KIND] == EXPONENTIAL and offset == 0:
        bounds["split_merge"] = split_merge_bound(rate, scale, n, k_)
    return [Latencies(name, np.array([float(value)])) for name, value in bounds.items() if np.isfinite(value)]


def by_class(values: np.ndarray, share: np.ndarray, classes: Classes) -> np.ndarray:
    """Means (K,) of the files' values, weighted by their reads; nan for a class that is never read."""
    count, read = len(classes.names), share > 0
    total = np.bincount(classes.of_file[read], share[read] * values[read], count)
    weight = np.bincount(classes.of_file[read], share[read], count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / weight
