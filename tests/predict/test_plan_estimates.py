"""Estimates of whole plans: kinds of files instead of files, a sample instead of many kinds."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ecjax import planning
from ecjax.planning import prepare
from ecjax.predict import plan_estimates
from ecjax.predict.plan_estimates import Kinds, calibrated, kinds_estimate, kinds_of, padded, plan_estimate
from ecjax.predict.workload import ESTIMATE, node_laws, workload_of
from ecjax.problem import builtin
from ecjax.problem.arrays import files_arrays, nodes_arrays
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.problem.service_laws import service_laws
from ecjax.programs import program
from ecjax.queueing.estimate import LEVELS, Estimate
from ecjax.queueing.service_law import ServiceLaw, UnitLaw
from ecjax.queueing.workload import Workload

NODES = 12


def plan_of(count, seed=0):
    """The built-in cluster with placements at random: problem, laws, probabilities."""
    options = ClusterOptions(files=count)
    nodes, files = builtin.nodes(options), builtin.files(options)
    problem = prepare(nodes_arrays(nodes), files_arrays(files))
    draw = np.random.default_rng(seed)
    probabilities = np.zeros((count, NODES))
    for row, k in zip(probabilities, np.asarray(problem.files.k), strict=True):
        row[draw.permutation(NODES)[: int(k) + 1]] = k / (k + 1)
    return problem, service_laws(nodes, problem.files, "auto", "proportional"), probabilities


def test_files_that_are_read_alike_are_one_kind():
    problem, _, probabilities = plan_of(8)
    probabilities[1] = probabilities[0]
    kinds = kinds_of(problem, probabilities)
    rate = np.asarray(problem.files.rate)
    assert len(kinds.rate) == 7
    together = np.flatnonzero(np.isclose(kinds.rate, rate[0] + rate[1]))
    assert np.any(np.all(kinds.probabilities[together] == probabilities[0], axis=1))
    np.testing.assert_allclose(kinds.rate @ kinds.probabilities, rate @ probabilities, rtol=1e-12)


def test_a_row_read_with_two_chunk_sizes_is_two_kinds():
    problem, _, probabilities = plan_of(4)
    probabilities[:] = probabilities[0]
    files = problem.files
    sizes = np.asarray(files.chunk_bytes) * np.array([1, 1, 2, 2])
    k = np.full(4, np.asarray(files.k)[0])
    changed = replace(problem, files=replace(files, chunk_bytes=jnp.asarray(sizes), k=jnp.asarray(k)))
    assert sorted(kinds_of(changed, probabilities).chunk_bytes) == sorted(set(sizes))


@pytest.mark.parametrize("most", [32, 100])
def test_a_sample_loads_every_node_as_all_files_do(most):
    draw = np.random.default_rng(most)
    _, laws, _ = plan_of(8)
    service = node_laws(laws, NODES)
    chosen = draw.random((400, NODES)).argsort(axis=1) < 5
    kinds = Kinds(chosen * 0.8, draw.lognormal(0, 1.5, 400), draw.choice([1e6, 4e6], 400), np.full(400, 4.0))

    def load(part):
        return part.rate @ (np.asarray(service.moments(part.chunk_bytes[:, None])[0]) * part.probabilities)

    sample = calibrated(kinds, service, most)
    assert len(sample.rate) == most and np.all(sample.rate > 0)
    np.testing.assert_allclose(load(sample), load(kinds), rtol=1e-6)
    assert calibrated(kinds, service, 400) is kinds


@pytest.mark.parametrize(
    ("count", "rows"), [(1, 128), (128, 128), (129, 1024), (4096, 4096), (4097, 5120), (7024, 7168)]
)
def test_rows_are_padded_to_few_numbers_of_them(count, rows):
    kinds = Kinds(np.ones((count, 2)), 1.0 + np.arange(count), np.ones(count), np.full(count, 2.0))
    full = padded(kinds)
    assert len(full.rate) == len(full.probabilities) == rows
    np.testing.assert_array_equal(full.rate[:count], kinds.rate)
    assert not full.rate[count:].any()


def test_what_is_compiled_beside_the_planning_is_what_the_estimate_needs(monkeypatch):
    traced = []

    def estimate_of(reads, load, condensed):
        traced.append(1)
        # tracing the estimate itself takes seconds, and it is of the same arrays
        return Estimate(load.rate[0], jnp.zeros(len(LEVELS)), *[None] * 5)

    monkeypatch.setattr(plan_estimates, "ESTIMATE", program(estimate_of))
    monkeypatch.setattr(plan_estimates, "_BEGUN", set())
    problem, laws, probabilities = plan_of(21)
    sizes = np.choose(np.arange(21) % 3, [1e6, 2e6, 3e6])
    problem = replace(problem, files=replace(problem.files, chunk_bytes=jnp.asarray(sizes)))
    thread = plan_estimates.begin_compiling(problem, laws)
    assert thread is not None
    thread.join()
    assert len(traced) == 1
    plan_estimate(problem, laws, probabilities, probabilities > 0)
    assert len(traced) == 1
    assert plan_estimates.begin_compiling(problem, laws) is None


class NotMade(Exception):
    """In place of an estimate."""


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("connections", [False, True])
def test_work_and_delays_that_are_not_there_are_no_part_of_the_program(monkeypatch, writes, connections):
    asked = []

    def estimate_of(reads, load, condensed):
        asked.append(jax.tree.structure((reads, load, condensed)))
        raise NotMade(load)

    monkeypatch.setattr(plan_estimates, "ESTIMATE", estimate_of)
    monkeypatch.setattr(plan_estimates, "_BEGUN", set())
    problem, laws, probabilities = plan_of(8)
    if writes:
        problem = replace(problem, writes=jnp.full((4, 8), 1e-3))
    if not connections:
        none = jnp.zeros(NODES)
        problem = replace(problem, nodes=replace(problem.nodes, connect_mean=none, connect_variance=none))
    thread = plan_estimates.begin_compiling(problem, laws)
    thread.join()
    with pytest.raises(NotMade) as raised:
        plan_estimate(problem, laws, probabilities, probabilities > 0)
    (load,) = raised.value.args
    assert (load.background is not None, load.connect is not None) == (writes, connections)
    # what was compiled beside the planning
    assert asked[0] == asked[1]


@pytest.mark.slow
def test_the_estimate_without_connections_and_other_work_is_that_with_zeros_of_them():
    problem, laws, probabilities = plan_of(60)
    files, nodes = problem.files, problem.nodes
    none = jnp.zeros(NODES)
    free = replace(problem, nodes=replace(nodes, connect_mean=none, connect_variance=none))
    load = Workload.of(
        files.rate, files.chunk_bytes, files.k, node_laws(laws, NODES), (none, none), jnp.zeros((3, NODES))
    )
    zeros, short = (
        ESTIMATE(probabilities, load),
        ESTIMATE(probabilities, workload_of(free, laws, probabilities > 0)),
    )
    np.testing.assert_allclose(zeros.mean, short.mean, rtol=1e-7)
    np.testing.assert_allclose(zeros.quantiles, short.quantiles, rtol=1e-7)


@pytest.mark.slow
def test_kinds_give_the_estimate_of_all_files_and_samples_nearly():
    problem, laws, probabilities = plan_of(600)
    load = workload_of(problem, laws, probabilities > 0)
    whole = ESTIMATE(planning.of_files(problem, jnp.asarray(probabilities)), load, levels=(0.99,))
    estimate = plan_estimate(problem, laws, probabilities, probabilities > 0)
    assert estimate.mean == pytest.approx(float(whole.mean), rel=1e-6)
    assert estimate.p99 == pytest.approx(float(whole.quantiles[0]), rel=1e-6)
    sample = calibrated(kinds_of(problem, probabilities), node_laws(laws, NODES), 128)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_estimates, "calibrated", lambda kinds, service, drawn_by: sample)
        sampled = plan_estimate(problem, laws, probabilities, probabilities > 0)
    assert sampled.mean == pytest.approx(estimate.mean, rel=0.01)
    assert sampled.p99 == pytest.approx(estimate.p99, rel=0.02)


@pytest.mark.slow  # many kinds
def test_waits_of_a_sample_are_those_of_all_kinds(monkeypatch):
    draw = np.random.default_rng(7)
    nodes, k = 40, 4
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=np.full(nodes, 0.01))
    chosen = (draw.random((400, nodes)).argsort(axis=1) < k).astype(float)
    # nothing but chance in it, and the loads of all kinds are as even as they are many
    kinds = Kinds(chosen, np.full(400, 3.0), np.full(400, 1e6), np.full(400, float(k)))
    whole = kinds_estimate(kinds, service)
    monkeypatch.setattr(plan_estimates, "MOST_KINDS", 24)
    monkeypatch.setattr(
        plan_estimates, "calibrated", lambda kinds, service, **_: calibrated(kinds, service, 24)
    )
    few = kinds_estimate(kinds, service)
    assert few.mean == pytest.approx(whole.mean, rel=0.03)
    assert few.p99 == pytest.approx(whole.p99, rel=0.04)
