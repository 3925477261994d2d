"""What is known of latencies without a replay: the bound of the plan, and its estimate."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ecjax import optimize
from ecjax.queueing.estimate import estimate
from ecjax.replay.laws import Laws
from ecjax.studies.estimate_inputs import workload_of
from ecjax.studies.options_replay import ReplayOptions
from ecjax.studies.replay_plans import PlanCase
from ecjax.studies.replay_system import Classes
from ecjax.studies.replay_tables import Latencies

if TYPE_CHECKING:
    from ecjax.studies.replay import Item

PREDICTABLE = ("probabilistic", "uniform", "proportional")


def predictions(
    case: PlanCase,
    problem: optimize.Problem,
    laws: Laws,
    probabilities: np.ndarray,
    ranks: Classes,
    item: "Item",
    options: ReplayOptions,
) -> dict[str, list[Latencies]]:
    """Bound and estimate by kind of group, where the policy and the queues have them; empty elsewhere.

    They are of Poisson arrivals at the mean rates, without decoding, client links and outages.
    """
    if item.policy not in PREDICTABLE or item.queue != "fcfs":
        return {}
    found = optimize.evaluate(problem, jnp.asarray(probabilities), jnp.asarray(case.stored), jnp.zeros(()))
    share, by_file = np.asarray(problem.share), np.asarray(found.file_latency)
    kinds: dict[str, list[Latencies]] = {
        "all": [_bound(np.array([float(found.latency)]))],
        "class": [_bound(by_class(by_file, share, ranks))],
        "file": [_bound(by_file)],
    }
    # chunks that a node serves together have no law of their own in the estimate
    if options.estimate and case.per_node == 1:
        for kind, latencies in estimates(problem, laws, probabilities, case.stored, ranks).items():
            kinds[kind] += latencies
    return kinds


def mean_bound(case: PlanCase, problem: optimize.Problem) -> float:
    """Bound on the mean latency of the plan's reads, s; infinite where the plan overloads a node."""
    plan = jnp.asarray(case.probabilities), jnp.asarray(case.stored)
    return float(optimize.evaluate(problem, *plan, jnp.zeros(())).latency)


def estimates(
    problem: optimize.Problem, laws: Laws, probabilities: np.ndarray, stored: np.ndarray, ranks: Classes
) -> dict[str, list[Latencies]]:
    """Estimated mean and quantiles, by kind of group."""
    own = probabilities if problem.row is None else probabilities[np.asarray(problem.row)]
    classes = len(ranks.names)
    found = _ESTIMATE(
        jnp.asarray(own),
        workload_of(problem, laws, stored),
        groups=jnp.asarray(ranks.of_file),
        group_count=classes,
    )
    return {
        "all": [_estimated(found.mean[None], found.quantiles[None])],
        "class": [_estimated(found.group_mean, found.group_quantiles)],
        "file": [_estimated(found.file_mean, found.file_quantiles)],
    }


# made once, so that the replays of a process share compiled programs
_ESTIMATE = jax.jit(estimate, static_argnames=("levels", "group_count"))


def _estimated(mean: jax.Array, quantiles: jax.Array) -> Latencies:
    return Latencies("estimated", None, np.asarray(mean), None, None, np.asarray(quantiles))


def _bound(mean: np.ndarray) -> Latencies:
    return Latencies("bound", None, mean, None, None, None)


def by_class(values: np.ndarray, share: np.ndarray, ranks: Classes) -> np.ndarray:
    """Means (C,) of the files' values, weighted by their reads; nan for a class that is never read."""
    count = len(ranks.names)
    read = share > 0
    total = np.bincount(ranks.of_file[read], share[read] * values[read], count)
    weight = np.bincount(ranks.of_file[read], share[read], count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / weight
