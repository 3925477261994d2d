"""Condensed estimates beside those of which every node has a law of its own."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from ecjax.predict.workload import ESTIMATE
from ecjax.queueing.condense import condense
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.queueing.workload import Workload

# the programs run for longer than optimizing them takes
pytestmark = pytest.mark.usefixtures("optimized")

NODES, FILES, K = 36, 24, 3
LEVELS = (0.5, 0.99)


def chosen(seed):
    """K of the nodes for each file, (r, m)."""
    return (np.random.default_rng(seed).random((FILES, NODES)).argsort(axis=1) < K).astype(float)


def workload(rate, scale=0.01):
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=np.broadcast_to(scale, (NODES,)))
    return Workload.of(np.broadcast_to(rate, (FILES,)), 1e6, K, service)


def both(probabilities, load):
    few = condense(probabilities, load)
    whole, condensed = (
        ESTIMATE(jnp.asarray(probabilities), load, levels=LEVELS, condensed=each) for each in (None, few)
    )
    return few, whole, condensed


def test_alike_nodes_have_one_law_and_the_same_estimate():
    probabilities = np.kron(np.eye(NODES // K), np.ones(K))
    probabilities = np.vstack([probabilities, probabilities[: FILES - len(probabilities)]])
    rate = np.full(FILES, 10.0)
    rate[: FILES - NODES // K] = rate[NODES // K :] = 5.0
    few, whole, condensed = both(probabilities, workload(rate))
    assert len(few.like) < NODES and len(np.unique(few.of_node)) == 1 and few.spread < NODES
    for name in ("mean", "quantiles", "file_mean", "load"):
        np.testing.assert_allclose(getattr(condensed, name), getattr(whole, name), rtol=1e-6)


def test_nodes_of_near_loads_share_a_law():
    rate = np.random.default_rng(1).uniform(9.8, 10.2, FILES)
    probabilities = np.full((FILES, NODES), K / NODES)
    few, whole, condensed = both(probabilities, workload(rate, np.linspace(0.0100, 0.0101, NODES).round(4)))
    assert len(few.like) < NODES and few.spread == NODES
    assert condensed.mean == pytest.approx(float(whole.mean), rel=1e-3)
    np.testing.assert_allclose(condensed.quantiles, whole.quantiles, rtol=2e-3)


def test_services_that_differ_keep_laws_of_their_own():
    few = condense(chosen(2), workload(5.0, np.linspace(0.01, 0.03, NODES)))
    assert len(few.like) == NODES
    np.testing.assert_array_equal(few.of_node, np.arange(NODES))


def test_files_of_few_nodes_are_computed_by_those():
    probabilities = chosen(3)
    few, whole, condensed = both(probabilities, workload(5.0, np.linspace(0.01, 0.03, NODES)))
    assert few.spread < NODES
    np.testing.assert_allclose(condensed.file_mean, whole.file_mean, rtol=1e-6)
    np.testing.assert_allclose(condensed.file_quantiles, whole.file_quantiles, rtol=1e-5)


def test_an_overloaded_node_is_not_taken_for_another():
    probabilities = np.zeros((FILES, NODES))
    probabilities[:, :K] = 1
    probabilities[0] = 0
    probabilities[0, K : 2 * K] = 1
    _, _, condensed = both(probabilities, workload(5.0))
    assert np.isfinite(condensed.file_mean[0]) and np.all(np.isinf(condensed.file_mean[1:]))


def test_waits_are_those_of_all_that_comes_where_the_files_are_a_sample():
    probabilities, load = chosen(4), workload(10.0)
    heavy = replace(load, arrivals=(jnp.full((1, NODES), 50.0), jnp.full((1, NODES), 1e6)))
    estimate = ESTIMATE(
        jnp.asarray(probabilities), heavy, levels=LEVELS, condensed=condense(probabilities, heavy)
    )
    np.testing.assert_allclose(estimate.load, 0.5, rtol=1e-4)
    # each of K nodes takes an exponential time of mean 0.02 s (M/M/1); waits that rise together make the largest less
    assert 0.02 < float(estimate.mean) <= 0.02 * (1 + 1 / 2 + 1 / 3) * 1.005
