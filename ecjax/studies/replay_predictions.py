"""What is known of latencies without a replay: the bound of the plan, and its estimate."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from ecjax import optimize
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
    return {
        "all": [_bound(np.array([float(found.latency)]))],
        "class": [_bound(by_class(by_file, share, ranks))],
        "file": [_bound(by_file)],
        "node": [_bound(np.full(len(case.nodes), np.nan))],
    }


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
