"""Placements improved for failures: no worse, within their limits, better where something is to be had."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import problems
import pytest

from ecjax.planning.robust import robust_improve
from ecjax.planning.scenarios import evaluate_scenarios, node_scenarios, site_scenarios

SITE = np.array([0, 0, 1, 1, 2, 2])
DOWN = np.concatenate([node_scenarios(problems.NODES), site_scenarios(SITE)])
THETA, TRIALS = 0.2, 15


def plan(case, seed=3):
    """One chunk more than a read needs on random nodes."""
    random = np.random.default_rng(seed)
    stored = np.zeros((problems.FILES, problems.NODES), bool)
    for row, k in zip(stored, case.k.astype(int), strict=True):
        row[random.permutation(problems.NODES)[: k + 1]] = True
    return stored * (case.k / stored.sum(axis=1))[:, None], stored


@cache
def improved(weight: str, load: float = 0.3, trials: int = TRIALS):
    case = problems.mixed(load=load)
    return case, robust_improve(case.problem(), *plan(case), DOWN, THETA, weight, trials)


def check(case, found, weight):
    """What every result must hold; its objective from the scenarios and the model in NumPy."""
    start, stored = plan(case)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), case.k, atol=1e-9)
    assert np.all((found.probabilities >= 0) & (found.probabilities <= found.stored))
    assert np.all(found.stored.sum(axis=1) >= case.k + case.file("min_extra_chunks"))
    assert np.all(found.after.unavailable_share <= found.before.unavailable_share)
    changed = np.maximum((found.stored & ~stored).sum(axis=1), (stored & ~found.stored).sum(axis=1))
    assert found.chunks_changed == changed.sum()
    pairs = (
        (found.before, found.objective_before, start, stored),
        (found.after, found.objective_after, found.probabilities, found.stored),
    )
    for outcomes, objective, probabilities, placement in pairs:
        again = evaluate_scenarios(case.problem(), probabilities, placement, DOWN)
        np.testing.assert_allclose(again.latency_shared_z, outcomes.latency_shared_z, rtol=1e-12)
        served = again.latency_shared_z[~np.isnan(again.latency_shared_z)]
        latency = served.mean() if weight == "mean" else served.max()
        cost = problems.outcome(case, probabilities, placement.astype(float)).cost
        assert objective == pytest.approx(latency + THETA * cost / problems.FILES, rel=1e-9)


@pytest.mark.parametrize("weight", ["mean", "worst"])
def test_a_random_plan_is_improved(weight):
    case, found = improved(weight)
    check(case, found, weight)
    assert np.isfinite(found.before.latency).all()
    assert found.objective_after < 0.97 * found.objective_before
    assert 0 < found.trials <= TRIALS and found.chunks_changed > 0


def test_overloaded_scenarios_are_relieved_first():
    case, found = improved("mean", load=1.0)
    check(case, found, "mean")
    assert np.isinf(found.before.latency).sum() == 2 and np.isinf(found.objective_before)
    assert np.isfinite(found.after.latency).all() and np.isfinite(found.objective_after)


def test_without_trials_the_plan_comes_back():
    case, found = improved("mean", trials=0)
    start, stored = plan(case)
    np.testing.assert_array_equal(found.stored, stored)
    np.testing.assert_array_equal(found.probabilities, start)
    assert found.objective_after == found.objective_before and found.chunks_changed == 0
    assert found.after is found.before


def test_limits_are_kept_to():
    case = problems.mixed(load=0.3)
    start, stored = plan(case)
    allowed = np.ones_like(stored)
    allowed[:, 2] = stored[:, 2]
    allowed[4] = stored[4]
    capacity = stored.sum(axis=0) + 1.0
    limits = {"allowed": allowed, "site": SITE + 5, "capacity": capacity}
    problem = replace(case.problem(), per_site=2, **{name: jnp.asarray(a) for name, a in limits.items()})
    found = robust_improve(problem, start, stored, DOWN, THETA, trials=6)
    assert found.chunks_changed > 0
    assert not np.any(found.stored & ~allowed)
    assert np.all(found.stored.sum(axis=0) <= capacity)
    sites = found.stored.astype(int) @ (SITE[:, None] == np.arange(3))
    assert np.all(sites <= 2)


def test_paid_reads_are_charged_as_they_go_without_failures():
    case = problems.mixed(load=0.3)
    start, stored = plan(case)
    reading = np.random.default_rng(1).uniform(0, 20, stored.shape)
    found = robust_improve(
        replace(case.problem(), reading=jnp.asarray(reading)), start, stored, DOWN, THETA, trials=6
    )
    pairs = (
        (found.before, found.objective_before, start, stored),
        (found.after, found.objective_after, found.probabilities, found.stored),
    )
    for outcomes, objective, probabilities, placement in pairs:
        cost = problems.outcome(case, probabilities, placement.astype(float)).cost
        cost += np.sum(reading * probabilities)
        latency = np.nanmean(outcomes.latency_shared_z)
        assert objective == pytest.approx(latency + THETA * cost / problems.FILES, rel=1e-9)
    assert found.objective_after < found.objective_before


def test_an_unknown_weight_is_refused():
    case = problems.mixed()
    with pytest.raises(ValueError, match="found 'median'; allowed: mean, worst"):
        robust_improve(case.problem(), *plan(case), DOWN, 0.0, "median")


def test_files_that_fewer_chunks_rebuild_are_read_in_larger_parts():
    """Reads of k = d chunks of n = d: with one down the other d - 1 serve them, and no read is lost."""
    case = problems.mixed(load=0.3)
    case = replace(case, files=case.files.assign(k=3, min_extra_chunks=0))
    stored = np.zeros((problems.FILES, problems.NODES), bool)
    stored[:, :3] = stored[::2, 3:] = True
    stored[::2, :3] = False
    down = node_scenarios(problems.NODES)[
        np.arange(len(DOWN)) % problems.NODES
    ]  # the shape of the other tests
    rebuild = np.full(problems.FILES, 2)
    found = robust_improve(
        case.problem(), stored.astype(float), stored, down, THETA, "worst", TRIALS, rebuild
    )
    latency = []
    for node in range(problems.NODES):
        # two chunks of half of the file in place of three of a third
        parts = np.where(stored[:, node], 1.5, 1.0)
        files = case.files.assign(bytes=case.file("bytes") * parts)
        left = stored & (np.arange(problems.NODES) != node)
        assert np.all(left.sum(axis=1) * parts == 3)
        shared = problems.outcome(replace(case, files=files), left.astype(float), left.astype(float))
        latency.append(shared.latency_shared_z_s)
    np.testing.assert_allclose(found.before.latency_shared_z[: problems.NODES], latency, rtol=1e-6)
    assert not found.before.unavailable_files.any() and not found.after.unavailable_files.any()
    assert found.objective_after < 0.97 * found.objective_before
