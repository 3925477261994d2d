"""Whole choices from a mixture: they keep every constraint, are worth what they say, and lose little."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import problems
import pytest
from planning.certified.untuned import limited, passes_of, untuned

from ecjax.planning.certified.relax import groups_of, relax, respond, worth
from ecjax.planning.certified.rounding import keeps_capacity, round_off, spare_chunks

THETA = 0.02


def relaxed(problem, theta=THETA, tol=1e-6):
    passes = passes_of(problem, theta)
    kinds = np.zeros((problem.rows, problem.nodes.count), np.int8)
    z = respond(passes, kinds, None, np.zeros(problem.nodes.count), 6, 1e-3, 0).z
    return passes, relax(passes, groups_of(passes.service, passes.rows), kinds, z, tol, 100)


def constrained(seed, files=200, load=0.6):
    case = untuned(seed, files, load)
    random = np.random.default_rng(seed)
    need = case.k + case.file("min_extra_chunks")
    allowed = random.random((files, 12)) < 0.95
    # of every site as many as are allowed on it stay, so that a choice exists
    allowed[:, :9] = True
    capacity = np.full(12, np.inf)
    capacity[:4] = np.floor(need.sum() / 13)
    return case, limited(
        case.problem(), site=np.arange(12) % 3, per_site=3, allowed=allowed, capacity=capacity
    )


@pytest.mark.parametrize("seed", range(3))
def test_choices_keep_the_constraints_and_lose_little(seed):
    case, problem = constrained(seed)
    passes, mixture = relaxed(problem)
    kinds, z, objective, _ = round_off(passes, mixture, 1e-7, 0)
    assert np.all((kinds == 2).sum(axis=1) == case.k)
    assert np.all((kinds == 1).sum(axis=1) == case.file("min_extra_chunks"))
    assert not np.any((kinds > 0) & ~np.asarray(problem.allowed))
    for site in range(3):
        assert (kinds > 0)[:, np.arange(12) % 3 == site].sum(axis=1).max() <= 3
    assert np.all((kinds > 0).sum(axis=0) <= np.asarray(problem.capacity))
    expected = problems.outcome(case, (kinds == 2).astype(float), (kinds > 0).astype(float))
    assert z == pytest.approx(expected.z_s, rel=1e-5)
    assert objective == pytest.approx(expected.objective(THETA), rel=1e-8)
    # one chunk size: no plan is below the relaxation
    exact = mixture.objective - mixture.open
    assert exact <= objective * (1 + 1e-9) and objective <= exact * (1 + 1e-2)


def test_errors_do_not_add_up_over_many_files():
    """The loss is that of the last few files: ten times the files, about a tenth of it."""
    losses = []
    for files in (100, 1000):
        passes, mixture = relaxed(untuned(5, files, 0.7).problem())
        losses.append(round_off(passes, mixture, 1e-7, 0)[2] / mixture.objective - 1)
    assert losses[1] < 0.5 * losses[0] and losses[1] < 5e-4


def test_worth_of_files_of_many_sizes_and_writes():
    """Sizes on the grid are exact."""
    case = untuned(1, 40, 0.4)
    random = np.random.default_rng(1)
    files = case.files.assign(
        bytes=case.files["bytes"] * random.choice([0.3, 1.0, 2.5], 40),
        write_rate_per_s=0.05 * case.file("rate_per_s"),
    )
    case = replace(case, files=files).scaled(rate=0.3)
    passes, mixture = relaxed(case.problem(), tol=1e-4)
    kinds, z, objective, _ = round_off(passes, mixture, 1e-6, 0)
    expected = problems.outcome(case, (kinds == 2).astype(float), (kinds > 0).astype(float))
    assert (z, objective) == worth(passes, kinds)[:2]
    assert objective == pytest.approx(expected.objective(THETA), rel=1e-8)


def test_capacity_is_looked_at():
    case, problem = constrained(0)
    passes = passes_of(problem, THETA)
    kinds = np.zeros((200, 12), np.int8)
    kinds[:, :6] = 2
    assert not keeps_capacity(passes, kinds)
    kinds[:, :4] = 0
    assert keeps_capacity(passes, kinds)


def test_spare_chunks_keep_the_limits():
    case, problem = constrained(1)
    passes, mixture = relaxed(problem)
    kinds, z, _, _ = round_off(passes, mixture, 1e-7, 0)
    rows, nodes = spare_chunks(passes, kinds, z, 24)
    assert 0 < len(rows) <= 24 and len(set(rows)) == len(rows)
    assert np.all(kinds[rows, nodes] == 0)
    stored = kinds > 0
    stored[rows, nodes] = True
    assert not np.any(stored & ~np.asarray(problem.allowed))
    assert np.all(stored.sum(axis=0) <= np.asarray(problem.capacity))
    for site in range(3):
        assert stored[:, np.arange(12) % 3 == site].sum(axis=1).max() <= 3


def test_spare_chunks_of_rows_that_have_a_chunk_everywhere():
    case = untuned(2, 5, 0.3)
    problem = case.problem()
    problem = replace(problem, floor=jnp.full(5, 12.0))
    passes = passes_of(problem, THETA)
    kinds = np.ones((5, 12), np.int8)
    for i, k in enumerate(case.k.astype(int)):
        kinds[i, :k] = 2
    rows, nodes = spare_chunks(passes, kinds, 0.1, 24)
    assert len(rows) == len(nodes) == 0
