"""Reads shared out over more nodes than k: flows keep all limits, gain, and end where descents do."""

from functools import lru_cache

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning.certified.untuned import check, limited, passes_of, untuned

from ecjax.planning.certified import lanes
from ecjax.planning.certified.certify import Settings, certify
from ecjax.planning.certified.lanes import plan_lanes
from ecjax.planning.certified.relax import loads_of
from ecjax.planning.certified.splits import split, whole
from ecjax.planning.certified.waits import best_z
from ecjax.planning.descent import Stopping
from ecjax.planning.problem import EVALUATE
from ecjax.planning.rescheduling import reschedule

THETA = 0.01


def _random_choices(random, problem, sites=None, per_site=0):
    """k hot chunks and the floor's cold ones on random nodes that the row may use."""
    kinds = np.zeros((problem.rows, problem.nodes.count), np.int8)
    for row, (k, floor) in enumerate(zip(np.asarray(problem.k), np.asarray(problem.floor), strict=True)):
        left = {} if sites is None else dict.fromkeys(sites, per_site)
        nodes = []
        for node in random.permutation(problem.nodes.count):
            if len(nodes) < floor and (sites is None or left[sites[node]] > 0):
                nodes.append(node)
                if sites is not None:
                    left[sites[node]] -= 1
        kinds[row, nodes[: int(k)]] = 2
        kinds[row, nodes[int(k) :]] = 1
    return kinds


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["plain", "sites", "mask", "capacity", "charges"]))
def test_flows_keep_limits_and_gain(seed, kind):
    random = np.random.default_rng(seed)
    problem = untuned(seed % 1000, 20, float(random.uniform(0.3, 0.9)), nodes=10).problem()
    sites = np.arange(10) % 5 if kind == "sites" else None
    kinds = _random_choices(random, problem, sites, 3)
    limits = {}
    if kind == "sites":
        limits = {"site": sites, "per_site": 3}
    if kind == "mask":
        limits = {"allowed": (kinds > 0) | (random.random(kinds.shape) < 0.3)}
    if kind == "capacity":
        limits = {"capacity": (kinds > 0).sum(axis=0) + random.integers(0, 2, 10)}
    if kind == "charges":
        limits = {
            "surcharge": random.uniform(0, 3, kinds.shape),
            "reading": random.uniform(0, 3, kinds.shape),
        }
    problem = limited(problem, **limits)
    passes = passes_of(problem, THETA)
    z = best_z(passes.service, loads_of(passes, kinds)[0])
    before = split(passes, whole(kinds), z, np.inf, 1.0)
    after = split(passes, whole(kinds), z, 0.0, 1e-3)
    share, stored = after.probabilities, after.stored
    np.testing.assert_allclose(share.sum(axis=1), np.asarray(problem.k), rtol=0, atol=1e-12)
    assert share.min() >= 0 and share.max() <= 1
    assert np.all(stored | (share == 0))
    length = np.asarray(problem.floor)
    assert np.all(stored.sum(axis=1) >= length)
    idle = (stored & (share == 0)).sum(axis=1)
    assert np.all((idle == 0) | (stored.sum(axis=1) == length)), (
        "chunks that serve nothing are those of the floor"
    )
    if kind == "sites":
        assert all(stored[:, sites == site].sum(axis=1).max() <= 3 for site in range(5))
    if kind == "mask":
        assert not np.any(stored & ~limits["allowed"])
    if kind == "capacity":
        assert np.all(stored.sum(axis=0) <= limits["capacity"])
    assert after.objective <= before.objective
    worth = EVALUATE(problem, share, stored, THETA)
    if np.all(np.asarray(worth.load) < 0.99):  # beyond, the loops count with another cost, which has no pole
        np.testing.assert_allclose(after.objective, float(worth.objective), rtol=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_descent_over_the_same_chunks_ends_lower(seed):
    random = np.random.default_rng(seed)
    problem = untuned(seed, 40, 0.5, nodes=10).problem()
    kinds = _random_choices(random, problem)
    problem = limited(problem, allowed=kinds > 0)  # no other chunks: a convex problem
    passes = passes_of(problem, THETA)
    flowed = split(passes, whole(kinds), 0.1, 0.0, 1e-5)
    for start in flowed.probabilities, (kinds == 2).astype(float):
        descent = reschedule(problem, start, kinds > 0, Stopping(eps=1e-10, max_iterations=1000))
        least = float(EVALUATE(problem, descent.point, kinds > 0, THETA).objective)
        assert flowed.objective <= (1 + 2e-4) * least


@lru_cache
def near_saturation(nodes, files, seed):
    """A problem, its lane's plan and bound, and the certificate that these are made from.

    Whole choices overload nodes, or are 10 to 30 % above the bound.
    """
    case = untuned(seed, files, 0.95, nodes=nodes)
    problem, made = case.problem(), []

    def recorded(*args):
        made.append(certify(*args))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "certify", recorded)
        plans, bounds, _ = plan_lanes(problem, np.array([THETA]), np.ones(1), np.ones(1), Settings())
    (certificate,) = made
    return case, problem, plans, bounds, certificate


@pytest.mark.parametrize(("nodes", "files", "seed", "gap"), [(12, 60, 1, 1e-3), (12, 1000, 1, 3e-4)])
def test_near_saturation_reads_of_few_rows_are_shared_out(nodes, files, seed, gap):
    case, problem, plans, bounds, certificate = near_saturation(nodes, files, seed)
    assert certificate.split is not None
    evaluation = EVALUATE(problem, certificate.probabilities, certificate.stored, THETA)
    assert float(evaluation.objective) > 1.1 * bounds[0]
    assert float(plans.evaluation.objective[0]) <= (1 + gap) * bounds[0]
    check(case, problem, THETA, jax.tree.map(lambda leaf: np.asarray(leaf)[0], plans))


def test_an_earlier_split_plan_stays():
    _, problem, *_, certificate = near_saturation(12, 60, 1)
    first = certificate.split
    # the most read chunks of each row, and the others as cold ones
    rank = np.argsort(np.argsort(-first.probabilities - 0.5 * first.stored, axis=1, kind="stable"), axis=1)
    k, floor = (np.asarray(values)[:, None] for values in (problem.k, problem.floor))
    start = np.where(rank < k, 2, np.where(rank < floor, 1, 0)).astype(np.int8)
    again = certify(passes_of(problem, THETA), Settings(), start)
    assert again.split.objective <= first.objective * (1 + 2e-4)
    moved = again.split.stored & ~first.stored
    assert moved.sum() <= 0.05 * first.stored.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "files", "load", "racks"),
    [
        (12, 60, 0.95, 0),
        (12, 150, 0.95, 0),
        (12, 1000, 0.95, 0),
        (30, 300, 0.95, 8),
        (30, 1000, 0.9, 8),
        (100, 1000, 0.95, 20),
        (100, 3000, 0.8, 0),
    ],
)
def test_gaps_of_problems_that_nobody_tuned_for(nodes, files, load, racks):
    gaps = []
    for seed in (1, 2, 3):
        case = untuned(seed, files, load, nodes=nodes)
        problem = case.problem()
        if racks:
            problem = limited(problem, site=np.arange(nodes) % racks, per_site=max(1, -(-12 // racks)))
        plans, bounds, _ = plan_lanes(problem, np.array([THETA]), np.ones(1), np.ones(1), Settings())
        check(case, problem, THETA, jax.tree.map(lambda leaf: np.asarray(leaf)[0], plans))
        gaps.append(float(plans.evaluation.objective[0]) / bounds[0] - 1)
    assert max(gaps) <= 2.2e-3
    assert sorted(gaps)[0] <= 1.1e-3
