"""The planning problem against the model written out in NumPy, at random plans."""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import problems
import pytest

from ecjax.model import Evaluation
from ecjax.planning import evaluate, scaled
from ecjax.planning.problem import chunk_delay, node_work, of_files, prices, reading_prices, shared_latency
from ecjax.planning.slopes import Slopes, latency_slopes
from ecjax.programs import program
from ecjax.queueing import waiting


class Computed(NamedTuple):
    work: jax.Array
    mean: jax.Array
    variance: jax.Array
    gradient: jax.Array
    slopes: Slopes
    evaluation: Evaluation


@program
def compute(problem, probabilities, kept, price) -> Computed:
    """All that the tests look at, as one compiled program; ``kept`` is the share of a chunk that is stored."""
    work = node_work(problem, probabilities, kept)
    delay = chunk_delay(problem, waiting(*work))
    gradient = jax.grad(lambda p: shared_latency(problem, p, kept)[0])(probabilities)
    slopes = latency_slopes(problem, probabilities, kept, jnp.zeros(()))
    evaluation = evaluate(problem, probabilities, kept > 0, price)
    return Computed(work, delay.mean, delay.variance, gradient, slopes, evaluation)


def computed(case, probabilities, stored, price=7.0, problem=None) -> Computed:
    arguments = jnp.asarray(probabilities), jnp.asarray(stored), jnp.asarray(price)
    return jax.tree.map(np.asarray, compute(case.problem() if problem is None else problem, *arguments))


def loops(case, probabilities, stored):
    """rho, A_2, A_3 by loops over nodes and files."""
    moments = problems.service(case)
    work = np.zeros((3, len(case.nodes)))
    for n in range(3):
        for j in range(len(case.nodes)):
            work[n, j] = case.node(f"background_{('load', 'second', 'third')[n]}")[j]
            for i in range(len(case.files)):
                chunks = case.file("rate_per_s")[i] * probabilities[i, j]
                chunks += case.file("write_rate_per_s")[i] * stored[i, j]
                work[n, j] += chunks * moments[n][i, j]
    return work


@pytest.mark.parametrize("name", problems.ALL)
def test_loads_delays_bounds_and_costs_match_the_model_written_out(name):
    case = problems.ALL[name]()
    problem = case.problem()
    rows, kept = problems.random_plan(case, problem.rows, seed=3)
    found = computed(case, rows, kept)
    probabilities, stored = problems.of_files(case, rows), problems.of_files(case, kept)
    assert np.any(stored > (probabilities > 0)), "a cold chunk is to be among them"
    np.testing.assert_allclose(found.work, loops(case, probabilities, stored), rtol=1e-12)
    mean, variance = problems.chunk_delay(case, found.work)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-11)

    expected = problems.outcome(case, probabilities, stored)
    evaluation = found.evaluation
    assert expected.load.max() < 1
    np.testing.assert_allclose(evaluation.load, expected.load, rtol=1e-12)
    np.testing.assert_allclose(evaluation.latency_shared_z, expected.latency_shared_z_s, rtol=1e-10)
    np.testing.assert_allclose(evaluation.latency, expected.latency_s, rtol=1e-10)
    np.testing.assert_allclose(evaluation.file_latency, expected.file_latency, rtol=1e-10)
    np.testing.assert_allclose(evaluation.file_cost, expected.file_cost, rtol=1e-12)
    np.testing.assert_allclose(evaluation.cost, expected.cost, rtol=1e-12)
    np.testing.assert_allclose(evaluation.objective, expected.objective(7.0), rtol=1e-10)
    assert evaluation.latency <= evaluation.latency_shared_z * (1 + 1e-12)
    np.testing.assert_allclose(found.slopes.value, expected.latency_shared_z_s, rtol=1e-8)
    if np.isfinite(expected.z_s):
        np.testing.assert_allclose(evaluation.z, expected.z_s, rtol=1e-4)
    else:
        assert evaluation.z == -np.inf


@pytest.mark.parametrize("name", problems.ALL)
def test_gradient_of_the_latency_is_that_of_finite_differences(name):
    """Along directions that keep the sums of the rows, where k = 1 is differentiable too."""
    case = problems.ALL[name]()
    count = case.problem().rows
    rows, kept = problems.random_plan(case, count, seed=5)
    rows = 0.9 * rows + 0.1 * problems.of_rows(case, count, case.k)[:, None] / rows.shape[1]  # inside
    stored = 0.5 + 0.5 * np.random.default_rng(1).uniform(size=rows.shape)
    found = computed(case, rows, stored)
    random = np.random.default_rng(0)
    for _ in range(4):
        direction = random.normal(size=rows.shape)
        direction -= direction.mean(axis=1, keepdims=True)
        also = random.normal(size=rows.shape) / 2

        def latency(step, stored_step=0.0, direction=direction, also=also):
            moved = problems.of_files(case, rows + step * direction)
            kept = problems.of_files(case, stored + stored_step * also)
            return problems.outcome(case, moved, kept).latency_shared_z_s

        slope = (latency(3e-5) - latency(-3e-5)) / 6e-5
        assert np.sum(found.gradient * direction) == pytest.approx(slope, rel=1e-5, abs=1e-6)
        assert np.sum(found.slopes.by_probability * direction) == pytest.approx(slope, rel=2e-4, abs=1e-4)
        if found.slopes.by_stored is not None:
            slope = (latency(0, 3e-5) - latency(0, -3e-5)) / 6e-5
            assert np.sum(found.slopes.by_stored * also) == pytest.approx(slope, rel=2e-4, abs=1e-4)


@pytest.mark.parametrize("load", [0.6, 1e-2, 1e-4, 1e-7, 1e-12])
def test_bound_of_delays_that_hardly_vary(load):
    """The bound is nearly a polygon in z: its curvature tells next to nothing about where the minimum is."""
    case = problems.steady(load)
    found = computed(case, case.even, np.ones_like(case.even))
    expected = problems.outcome(case, case.even, np.ones_like(case.even))
    for value in (found.slopes.value, found.evaluation.latency_shared_z):
        assert value == pytest.approx(expected.latency_shared_z_s, rel=1e-8)
    assert found.evaluation.latency == pytest.approx(expected.latency_s, rel=1e-8)


def test_files_that_are_never_read_have_a_latency_and_no_weight():
    case = problems.idle()
    rows, kept = problems.random_plan(case, len(case.files), seed=1)
    rows, kept = (rows + 3 * case.even) / 4, np.ones_like(kept)
    unread = case.file("rate_per_s") == 0
    found = computed(case, rows, kept)
    assert np.isfinite(found.evaluation.latency)
    assert np.all(found.gradient[unread] == 0)
    assert np.all(found.evaluation.file_latency[unread] > 0)
    other = rows.copy()
    other[unread] = case.even[unread]
    assert computed(case, other, kept).evaluation.latency == found.evaluation.latency


def test_alike_nodes_have_the_closed_form_of_alike_nodes():
    """One chunk size, k of all files alike, reads spread evenly: E + sqrt((k - 1) V) for file and mean."""
    k, count = 3, problems.NODES
    nodes = problems.moment_nodes().assign(
        service_mean_s=0.8,
        service_second_s2=1.0,
        service_third_s3=1.5,
        reference_bytes=1e6,
        connect_mean_s=0.05,
        connect_var_s2=0.01,
    )
    files = problems.mixed_files(k=(k,)).assign(bytes=3e6, rate_per_s=0.15)
    case = problems.Case(nodes, files)
    found = computed(case, case.even, np.ones_like(case.even)).evaluation
    chunks = 0.15 * problems.FILES * k / count
    rho, second, third = chunks * 0.8, chunks * 1.0, chunks * 1.5
    wait = second / (2 * (1 - rho))
    mean = 0.8 + wait + 0.05
    variance = 1.0 - 0.8**2 + third / (3 * (1 - rho)) + wait**2 + 0.01
    expected = mean + np.sqrt((k - 1) * variance)
    np.testing.assert_allclose(found.file_latency, expected, rtol=1e-12)
    np.testing.assert_allclose([found.latency, found.latency_shared_z], expected, rtol=1e-12)
    np.testing.assert_allclose(found.z, mean + (k - 2) / (2 * np.sqrt(k - 1)) * np.sqrt(variance), rtol=1e-9)


def test_a_group_is_its_files_placed_alike():
    case = problems.grouped()
    problem = case.problem()
    rows, kept = problems.random_plan(case, problem.rows, seed=2)
    alone = problems.Case(case.nodes, case.files.drop(columns="group"))
    together = computed(case, rows, kept).evaluation
    apart = computed(alone, problems.of_files(case, rows), problems.of_files(case, kept)).evaluation
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), together, apart)
    np.testing.assert_allclose(
        np.asarray(prices(problem)),
        [
            np.asarray(prices(alone.problem()))[np.asarray(problem.row) == row].sum(axis=0)
            for row in range(problem.rows)
        ],
        rtol=1e-12,
    )
    assert np.array_equal(np.asarray(of_files(problem, problem.k)), case.k), "every file finds its row"


@pytest.mark.parametrize("name", ["affine", "written", "grouped"])
@pytest.mark.parametrize("rate, size", [(0.5, 1.0), (1.0, 0.7), (1.2, 0.4)])
def test_scaled_problem_is_the_problem_of_scaled_tables(name, rate, size):
    case = problems.ALL[name]()
    problem = case.problem()
    rows, kept = problems.random_plan(case, problem.rows, seed=4)
    within = computed(case, rows, kept, problem=scaled(problem, rate, size)).evaluation
    expected = computed(case.scaled(rate, size), rows, kept).evaluation
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-300), within, expected)


@pytest.mark.parametrize("name", ["mixed", "grouped"])
def test_surcharges_and_reads_are_paid_for(name):
    """Cost = prices . stored + surcharge . stored + reading . probabilities, by loops over files and nodes."""
    case = problems.ALL[name]()
    plain = case.problem()
    random = np.random.default_rng(9)
    surcharge, reading = random.uniform(0, 3, (2, problems.FILES, problems.NODES))
    problem = replace(plain, surcharge=jnp.asarray(surcharge), reading=jnp.asarray(reading))
    rows, kept = problems.random_plan(case, problem.rows, seed=3)
    probabilities, stored = problems.of_files(case, rows), problems.of_files(case, kept)
    expected = problems.outcome(case, probabilities, stored)
    more = np.zeros(problems.FILES)
    for i in range(problems.FILES):
        for j in range(problems.NODES):
            more[i] += surcharge[i, j] * stored[i, j] + reading[i, j] * probabilities[i, j]
    found = computed(case, rows, kept, problem=problem).evaluation
    np.testing.assert_allclose(found.file_cost, expected.file_cost + more, rtol=1e-12)
    np.testing.assert_allclose(found.cost, expected.cost + more.sum(), rtol=1e-12)
    objective = expected.latency_shared_z_s + 7.0 * (expected.cost + more.sum()) / problems.FILES
    np.testing.assert_allclose(found.objective, objective, rtol=1e-10)
    np.testing.assert_allclose(
        np.sum(prices(problem) * kept) + np.sum(reading_prices(problem) * rows), found.cost, rtol=1e-12
    )
    assert reading_prices(plain) is None

    twice = computed(case, rows, kept, problem=scaled(problem, 0.5, 0.8)).evaluation
    own = problems.outcome(case.scaled(0.5, 0.8), probabilities, stored).file_cost
    own += (0.8 * surcharge * stored + 0.4 * reading * probabilities).sum(axis=1)
    np.testing.assert_allclose(twice.file_cost, own, rtol=1e-12)


def test_integer_scales_are_numbers_too():
    problem = problems.mixed().problem()
    twice = scaled(problem, 2, 1)
    np.testing.assert_allclose(np.asarray(twice.reads), 2 * np.asarray(problem.reads), rtol=1e-15)


def test_an_overloaded_node_makes_the_latency_infinite():
    case = problems.mixed().scaled(rate=2.0)
    found = computed(case, case.even, np.ones_like(case.even))
    assert found.work[0].max() >= 1
    assert found.evaluation.objective == np.inf and found.evaluation.latency_shared_z == np.inf
    assert np.isfinite(found.evaluation.cost)


def test_a_node_that_only_writes_overload_makes_the_latency_infinite():
    case = problems.written()
    problem = case.problem()
    probabilities = np.zeros_like(case.even)
    probabilities[:, :4] = (case.k / 4)[:, None]  # no file reads from the last two nodes
    stored = (probabilities > 0).astype(float)
    stored[:, -1] = 1
    busy = replace(problem, writes=problem.writes * 40)
    some = computed(case, probabilities, (probabilities > 0).astype(float))
    assert np.isfinite(some.evaluation.objective)
    found = computed(case, probabilities, stored, problem=busy)
    assert found.work[0, -1] >= 1
    assert found.evaluation.objective == np.inf
