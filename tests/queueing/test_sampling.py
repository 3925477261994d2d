import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from ecjax.queueing import sample_subset
from ecjax.queueing.sampling import _ONE, _systematic, _whole_lengths

CASES = {
    "equal": [0.5] * 6,
    "thirds": [1 / 3] * 6,
    "always and never": [1.0, 0.0, 0.25, 0.75, 0.6, 0.4],
    "one of them": [0.1, 0.2, 0.3, 0.15, 0.05, 0.2],
    "all": [1.0] * 6,
    "none": [0.0] * 6,
    "nearly certain": [1 - 1e-10, 1e-10, 1.0, 1 - 3e-10, 2e-10, 1e-10],
}

draws = jax.jit(jax.vmap(sample_subset, in_axes=(0, None)))
in_order = jax.jit(jax.vmap(lambda key, p: sample_subset(key, p, shuffle=False), in_axes=(0, None)))
lengths_of = jax.jit(_whole_lengths)
taken_at = jax.jit(jax.vmap(_systematic, in_axes=(None, 0)))


def outcomes(lengths):
    """Every outcome of the systematic draw in one order, with the number of starts that lead to it.

    What is taken changes only where the end of an interval meets a multiple of 2^30.
    """
    ends = np.concatenate([[0], np.cumsum(lengths.astype(object))])
    starts = np.array(sorted({0} | {int(-end % _ONE) for end in ends}), np.uint32)
    # the same number of starts in every case, so that one compiled program serves all
    padded = np.pad(starts, (0, len(ends) + 1 - len(starts)), mode="edge")
    taken = np.asarray(taken_at(lengths, padded))[: len(starts)]
    counts = np.diff(np.append(starts.astype(np.int64), _ONE))
    return taken, counts


@st.composite
def probabilities(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(0, 6))
    subsets = np.array([rng.permutation(6) < k for _ in range(draw(st.integers(1, 6)))], float)
    return np.average(subsets, axis=0, weights=rng.random(len(subsets)) + 0.01)


def check_exactly(p):
    p = np.asarray(p)
    k = round(p.sum())
    lengths = np.asarray(lengths_of(p))
    assert lengths.sum(dtype=np.int64) == k * _ONE
    assert (lengths[p == 1] == _ONE).all() and (lengths[p == 0] == 0).all()
    # rounding to half a unit, and the sum of the roundings on one node
    errors = np.sort(np.abs(lengths - p * _ONE))
    assert errors[-1] <= len(p) / 2 + 0.5 and (errors[:-1] <= 0.5).all()
    taken, counts = outcomes(lengths)
    assert (taken.sum(axis=1) == k).all()
    assert (counts @ taken == lengths).all()  # every marginal, to the unit


@pytest.mark.parametrize("name", CASES)
def test_every_start_takes_k_nodes_and_marginals_are_exact(name):
    check_exactly(CASES[name])


@given(probabilities())
def test_marginals_are_exact(p):
    check_exactly(p)


def test_single_precision_sums_are_mended():
    p = np.asarray([0.1, 0.2, 0.3, 0.15, 0.05, 0.2], np.float32)
    lengths = np.asarray(lengths_of(jnp.asarray(p)))
    assert lengths.sum(dtype=np.int64) == _ONE
    assert_allclose(lengths / _ONE, p, atol=1e-7)


@pytest.mark.parametrize("draw", [draws, in_order])
def test_frequencies(draw):
    number = 20_000
    keys = jax.random.split(jax.random.key(7), number)
    for p in map(np.array, (CASES["always and never"], CASES["one of them"])):
        taken = np.asarray(draw(keys, p))
        assert (taken.sum(axis=1) == round(p.sum())).all()
        half_width = 4.5 * np.sqrt(p * (1 - p) / number)
        assert (np.abs(taken.mean(axis=0) - p) <= half_width).all()


def test_shuffled_subsets_have_the_probabilities_of_all_orders():
    # exact probability of every subset: the mean over the orders of what each start takes
    p = np.array([0.3, 0.7, 0.45, 0.55, 0.0, 0.0])
    lengths = np.asarray(lengths_of(p))
    exact = {subset: 0.0 for subset in itertools.combinations(range(4), 2)}
    orders = list(itertools.permutations(range(4)))  # nodes of length 0 change nothing where they lie
    for order in orders:
        order = (*order, 4, 5)
        for taken, count in zip(*outcomes(lengths[list(order)]), strict=True):
            exact[tuple(sorted(np.array(order)[taken]))] += count / _ONE / len(orders)
    number = 20_000
    keys = jax.random.split(jax.random.key(11), number)
    rows, counts = np.unique(np.asarray(draws(keys, p)), axis=0, return_counts=True)
    seen = {tuple(np.flatnonzero(row)): count for row, count in zip(rows, counts, strict=True)}
    observed = [seen.get(subset, 0) for subset in exact]
    assert stats.chisquare(observed, number * np.array(list(exact.values()))).pvalue > 1e-3


def test_maps_over_rows_and_keys():
    rows = np.array([CASES["equal"], CASES["always and never"]])
    keys = jax.random.split(jax.random.key(0), 2)
    together = np.asarray(jax.jit(jax.vmap(sample_subset))(keys, rows))
    assert (together.sum(axis=1) == 3).all()
    for i in range(2):
        assert (np.asarray(draws(keys, rows[i]))[i] == together[i]).all()


def test_many_chunks_from_many_nodes():
    # more units than 32 bits hold: k 2^30 with k = 40
    taken = np.asarray(draws(jax.random.split(jax.random.key(1), 200), np.full(64, 0.625)))
    assert (taken.sum(axis=1) == 40).all()
