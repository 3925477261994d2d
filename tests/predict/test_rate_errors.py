"""Errors of a plan's figures by those of the rates: against differences, and their coverage by simulation."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from ecjax.planning import prepare
from ecjax.planning.problem import EVALUATE
from ecjax.predict import plan_estimates
from ecjax.predict import rate_errors as rate_errors_module
from ecjax.predict.plan_estimates import PlanEstimate, calibrated, plan_estimate
from ecjax.predict.rate_errors import estimate_errors, rate_errors
from ecjax.problem import builtin
from ecjax.problem.arrays import files_arrays, nodes_arrays
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.problem.service_laws import service_laws

FILES, NODES = 20, 12


def plan_of(groups=False, reading=False):
    """The built-in cluster, placements at random: problem by rates, probabilities, stored."""
    options = ClusterOptions(files=FILES)
    nodes, files = nodes_arrays(builtin.nodes(options)), files_arrays(builtin.files(options))
    rows = FILES // 2 if groups else FILES
    row = np.arange(FILES) % rows
    files = replace(files, k=jnp.full(FILES, 4.0), write_rate=files.rate / 10)
    draw = np.random.default_rng(0)
    price = draw.uniform(0, 1, (FILES, NODES))
    probabilities = np.zeros((rows, NODES))
    for each in probabilities:
        each[draw.permutation(NODES)[:6]] = 4 / 6

    def problem(rate):
        made = prepare(
            nodes, replace(files, rate=jnp.asarray(rate)), row if groups else None, rows if groups else None
        )
        return replace(made, reading=jnp.asarray(price * rate[:, None])) if reading else made

    return problem, np.asarray(files.rate), probabilities, probabilities > 0


def figures(problem, probabilities, stored):
    """Bound and cost."""
    evaluation = EVALUATE(problem, jnp.asarray(probabilities), jnp.asarray(stored), jnp.zeros(()))
    return np.array([float(evaluation.latency), float(evaluation.cost)])


@pytest.mark.parametrize("groups", [False, True])
def test_slopes_are_those_of_differences(groups):
    problem, rate, probabilities, stored = plan_of(groups, reading=True)
    for file in (0, 7, FILES - 1):
        error = np.zeros(FILES)
        error[file] = 1e-5 * rate[file]
        up, down = (figures(problem(rate + sign * error), probabilities, stored) for sign in (1, -1))
        found = rate_errors(problem(rate), probabilities, stored, error)
        np.testing.assert_allclose(found, np.abs(up - down) / 2, rtol=1e-3)


def test_independent_errors_add_in_squares():
    problem, rate, probabilities, stored = plan_of()
    error = 0.1 * rate
    alone = [
        rate_errors(problem(rate), probabilities, stored, np.where(np.arange(FILES) == i, error, 0.0))
        for i in range(FILES)
    ]
    whole = rate_errors(problem(rate), probabilities, stored, error)
    assert whole.latency_s == pytest.approx(np.linalg.norm([each.latency_s for each in alone]))
    assert whole.cost == 0.0


def test_intervals_cover_the_bound_at_the_rates_that_made_the_counts():
    problem, rate, probabilities, stored = plan_of(reading=True)
    truth = figures(problem(rate), probabilities, stored)
    length_s, random = 100 * FILES / rate.sum(), np.random.default_rng(1)
    covered, runs = np.zeros(2), 300
    for _ in range(runs):
        counts = random.poisson(rate * length_s)
        logged = problem(counts / length_s)
        errors = rate_errors(logged, probabilities, stored, np.sqrt(counts) / length_s)
        covered += np.abs(figures(logged, probabilities, stored) - truth) < 1.96 * np.array(errors)
    # 95 %, within three standard errors of so many runs and what the delta method leaves out
    np.testing.assert_allclose(covered / runs, 0.95, atol=0.045)


def test_a_mean_that_is_its_bound_has_the_error_of_the_bound(monkeypatch):
    """An estimate above the bound, whose figure is the bound, at the rates and at those that are moved."""
    problem, rate, probabilities, stored = plan_of()
    error = 0.05 * rate
    bound = figures(problem(rate), probabilities, stored)[0]
    monkeypatch.setattr(rate_errors_module, "plan_estimate", lambda *_: PlanEstimate(2 * bound, 3.0))
    given = (problem(rate), None, probabilities, stored, error)
    expected = rate_errors(problem(rate), probabilities, stored, error).latency_s
    for told in (bound, 2 * bound):
        found = estimate_errors(*given, PlanEstimate(told, 3.0))
        assert found.mean == pytest.approx(expected, rel=0.05) and found.p99 == 0.0


@pytest.mark.slow  # the estimate is compiled for every file
def test_errors_of_the_estimate_are_those_of_its_slopes():
    """Slopes of the estimate file by file, by differences, and errors that differ from file to file."""
    problem, rate, probabilities, stored = plan_of()
    laws = service_laws(
        builtin.nodes(ClusterOptions(files=FILES)), problem(rate).files, "gamma", "proportional", 1.0
    )

    def estimated(rates):
        return np.array(plan_estimate(problem(rates), laws, probabilities, stored))

    error = 0.05 * rate * np.random.default_rng(5).lognormal(0, 1, FILES)
    estimate = plan_estimate(problem(rate), laws, probabilities, stored)
    steps = 1e-3 * np.diag(rate)
    slopes = np.array([(estimated(rate + step) - np.array(estimate)) / step.sum() for step in steps])
    expected = np.linalg.norm(slopes * error[:, None], axis=0)
    found = estimate_errors(problem(rate), laws, probabilities, stored, error, estimate)
    np.testing.assert_allclose(found, expected, rtol=0.05)
    certain = estimate_errors(problem(rate), laws, probabilities, stored, 0 * rate, estimate)
    assert certain == (0.0, 0.0)


@pytest.mark.slow  # estimates of plans are compiled
def test_a_sample_of_kinds_does_not_change_with_the_rates(monkeypatch):
    """Errors are those of all kinds: a sample that is drawn anew, or of equal parts, does not follow the rates."""
    count, few = 300, 48
    options, draw = ClusterOptions(files=count), np.random.default_rng(3)
    files = files_arrays(builtin.files(options))
    size = files.chunk_bytes * draw.lognormal(0, 0.5, count)
    files = replace(files, k=jnp.full(count, 4.0), chunk_bytes=jnp.asarray(size))
    problem = prepare(nodes_arrays(builtin.nodes(options)), files)
    probabilities = np.zeros((count, NODES))
    for row in probabilities:
        part = draw.uniform(0.5, 1, 6)
        row[draw.permutation(NODES)[:6]] = np.minimum(4 * part / part.sum(), 1.0)
    laws = service_laws(builtin.nodes(options), files, "gamma", "proportional", 1.0)
    given, error = (problem, laws, probabilities, probabilities > 0), np.asarray(files.rate) / 500
    expected = estimate_errors(*given, error, plan_estimate(*given))
    monkeypatch.setattr(plan_estimates, "MOST_KINDS", few)
    monkeypatch.setattr(
        plan_estimates,
        "calibrated",
        lambda kinds, service, drawn_by=None: calibrated(kinds, service, few, drawn_by),
    )
    found = estimate_errors(*given, error, plan_estimate(*given))
    np.testing.assert_allclose(found, expected, rtol=0.1)
