"""Whole choices evaluated by their nodes, against plain NumPy and the evaluation over all nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest
from planning.certified.untuned import KINDS, limited, tiny

from ecjax.planning.certified.choice import COLD, HOT, NONE
from ecjax.planning.certified.places import places_of
from ecjax.planning.certified.whole_plan import evaluate_whole
from ecjax.planning.problem import EVALUATE

THETA = 0.02


def choices(random, k, nodes):
    """Hot nodes and some cold ones at random, (R, m)."""
    kinds = np.full((len(k), nodes), NONE, np.int8)
    for row, count in enumerate(np.asarray(k, int)):
        at = random.permutation(nodes)
        kinds[row, at[:count]] = HOT
        kinds[row, at[count : count + random.integers(0, nodes - count + 1)]] = COLD
    return kinds


def compare(case, problem, kinds, rtol=1e-10):
    evaluation = evaluate_whole(problem, kinds, THETA)
    hot, stored = (kinds == HOT).astype(float), kinds != NONE
    other = EVALUATE(problem, jnp.asarray(hot), jnp.asarray(stored), jnp.asarray(THETA))
    for mine, theirs in zip(jax.tree.leaves(evaluation), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol)
    of_files = slice(None) if problem.row is None else np.asarray(problem.row)
    expected = problems.outcome(case, hot[of_files], stored[of_files])
    np.testing.assert_allclose(evaluation.load, expected.load, rtol=1e-9)
    np.testing.assert_allclose(evaluation.latency_shared_z, expected.latency_shared_z_s, rtol=1e-8)
    if problem.surcharge is None and problem.reading is None:
        np.testing.assert_allclose(evaluation.cost, expected.cost, rtol=1e-9)
    return evaluation


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_all_of_it_is_that_of_the_probabilities(kind, seed):
    case, problem, _ = tiny(seed, kind, files=9, nodes=7)
    compare(case, problem, choices(np.random.default_rng(seed), case.k, 7))


def test_files_of_a_group_share_nodes():
    case = problems.grouped()
    problem = case.problem()
    k = np.asarray(problem.k).astype(int)
    nodes = problem.nodes.count
    charged = limited(problem, surcharge=np.random.default_rng(1).uniform(0, 3, (len(case.files), nodes)))
    for each in (problem, charged):
        compare(case, each, choices(np.random.default_rng(0), k, nodes))


def test_a_plan_that_overloads_a_node_has_no_finite_objective():
    case, problem, _ = tiny(0, "plain", files=9, nodes=7)
    kinds = np.zeros((9, 7), np.int8)
    for row, count in enumerate(case.k.astype(int)):
        kinds[row, :count] = HOT
    case = case.scaled(rate=20.0)
    evaluation = evaluate_whole(case.problem(), kinds, THETA)
    assert np.asarray(evaluation.load).max() > 1
    assert np.isinf(evaluation.objective)


def test_places_are_the_nodes_of_each_row():
    kinds = np.array([[HOT, NONE, COLD, HOT], [NONE, NONE, NONE, HOT]], np.int8)
    places = places_of(kinds)
    assert places.hot[:, :2].tolist() == [[0, 3], [3, 4]] and np.all(places.hot[:, 2:] == 4)
    assert places.stored[:, :3].tolist() == [[0, 2, 3], [3, 4, 4]] and np.all(places.stored[:, 3:] == 4)


def test_plans_of_most_code_lengths_share_a_program():
    one, other = (places_of(np.full((5, 12), HOT, np.int8)[:, :k]) for k in (3, 11))
    assert one.hot.shape == other.hot.shape and one.stored.shape == other.stored.shape
