"""Failure scenarios: by hand, and against the model of the nodes that are left written out in NumPy and SciPy."""

import itertools
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import problems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from ecjax.planning import scenarios
from ecjax.planning.scenarios import evaluate_scenarios, node_scenarios, site_scenarios
from ecjax.status import Status

COUNT = 9  # scenarios of every call on the common shape, so that tests share compiled programs


def downs(*nodes: tuple[int, ...]) -> np.ndarray:
    """Scenarios with these nodes down, and as many without any as COUNT asks for."""
    down = np.zeros((COUNT, problems.NODES), bool)
    for scenario, some in enumerate(nodes):
        down[scenario, list(some)] = True
    return down


SOME = downs((), (0,), (1,), (5,), (0, 1), (2, 3), (3, 4, 5), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5))


def projected(y: np.ndarray, k: float, there: np.ndarray) -> np.ndarray:
    """Nearest point with sum k, 0 <= p <= 1, p = 0 elsewhere, by bisection."""
    low, high = y.min() - 1, y.max() + 1
    low, high = -high - 1, -low + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (np.clip(y + middle, 0, 1) * there).sum() < k else (low, middle)
    return np.clip(y + high, 0, 1) * there


def left_over(case, probabilities, stored, down):
    """The model without the nodes that are down: case, chunks and availability (rows are files)."""
    up = ~down
    survivors = stored[:, up]
    available = survivors.sum(axis=1) >= case.k
    files = case.files.assign(rate_per_s=case.file("rate_per_s") * available)
    return replace(case, nodes=case.nodes[up].reset_index(drop=True), files=files), survivors, available


def expected_nearest(case, probabilities, stored, down):
    own, survivors, available = left_over(case, probabilities, stored, down)
    spread = np.array(
        [
            projected(row[~down], k, there) if some else np.zeros(len(there))
            for row, k, there, some in zip(probabilities, case.k, survivors, available, strict=True)
        ]
    )
    return problems.outcome(own, spread, survivors), available


def plan(case, seed=0):
    return problems.random_plan(case, case.problem().rows, seed)


def test_two_replicas_by_hand():
    """Two files with k = 1 on exponential servers of mean 1 s: a node with load rho answers in 1 / (1 - rho).

    The last node keeps nothing.
    """
    nodes = pd.DataFrame(
        {
            "node_id": [10, 11, 12, 13],
            "service_mean_s": 1.0,
            "service_second_s2": 2.0,
            "service_third_s3": 6.0,
            "reference_bytes": 1.0,
        }
    )
    files = pd.DataFrame({"file_id": ["a", "b"], "bytes": 1.0, "k": 1, "rate_per_s": [0.3, 0.2]})
    case = problems.Case(nodes, files)
    stored = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], bool)
    down = np.array([*itertools.product([0, 1], repeat=3)], bool)[[0, 4, 6, 5, 2, 7]]
    down = np.column_stack([down, down.all(axis=1)])
    found = evaluate_scenarios(case.problem(), stored / 2, stored, down, "nearest")
    at = {load: 1 / (1 - load) for load in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)}
    expected = [
        0.6 * (at[0.15] + at[0.25]) / 2 + 0.4 * (at[0.25] + at[0.1]) / 2,
        0.6 * at[0.4] + 0.4 * (at[0.4] + at[0.1]) / 2,
        at[0.2],  # file a is gone
        at[0.5],
        0.6 * at[0.3] + 0.4 * at[0.2],
    ]
    np.testing.assert_allclose(found.latency[:5], expected, rtol=1e-12)
    np.testing.assert_allclose(found.latency_shared_z[:5], expected, rtol=1e-12)
    assert np.isnan(found.latency[5]) and np.isnan(found.latency_shared_z[5])
    np.testing.assert_allclose(found.max_load[:5], [0.25, 0.4, 0.2, 0.5, 0.3], rtol=1e-12)
    assert found.busiest[:5].tolist() == [1, 1, 2, 1, 0]
    assert found.unavailable_files.tolist() == [0, 0, 1, 0, 0, 2]
    np.testing.assert_allclose(found.unavailable_share, [0, 0, 0.6, 0, 0, 1], atol=1e-15)
    assert found.status == [Status.OK] * 5 + [Status.INFEASIBLE]
    assert found.worst() == 5
    assert found.mean() == pytest.approx(np.mean(expected))
    # three times the rates: the only survivor of both files has 1.5 of work
    found = evaluate_scenarios(case.scaled(rate=3.0).problem(), stored / 2, stored, down, "optimal")
    assert found.status[3] == Status.UNSTABLE and np.isinf(found.latency[3])
    assert (found.busiest[3], found.max_load[3]) == (1, pytest.approx(1.5))
    assert np.isinf(found.mean())
    # with node 10 down, file a brings 0.9 to node 11, and file b would bring 0.3
    simple = evaluate_scenarios(case.scaled(rate=3.0).problem(), stored / 2, stored, down, "nearest")
    assert simple.status[1] == Status.UNSTABLE and simple.max_load[1] == pytest.approx(1.2)
    assert found.status[1] == Status.OK and found.max_load[1] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("name", ["mixed", "affine", "fixed", "idle", "replicated", "grouped"])
def test_every_scenario_is_that_of_the_nodes_that_are_left(name):
    case = problems.ALL[name]()
    probabilities, stored = plan(case, 5)
    found = evaluate_scenarios(case.problem(), probabilities, stored, SOME, "nearest")
    of_file = [problems.of_files(case, values) for values in (probabilities, stored)]
    unstable = 0
    for s, down in enumerate(SOME[:-1]):
        expected, available = expected_nearest(case, *of_file, down)
        rate = case.file("rate_per_s")
        assert found.unavailable_files[s] == np.sum(~available)
        assert found.unavailable_share[s] == pytest.approx(rate[~available].sum() / rate.sum(), abs=1e-12)
        if rate[available].sum() == 0:
            assert found.status[s] == Status.INFEASIBLE
            continue
        unstable += expected.load.max() >= 1
        assert found.max_load[s] == pytest.approx(expected.load.max(), rel=1e-9)
        assert np.flatnonzero(~down)[np.argmax(expected.load)] == found.busiest[s]
        assert found.latency_shared_z[s] == pytest.approx(expected.latency_shared_z_s, rel=1e-8)
        assert found.latency[s] == pytest.approx(expected.latency_s, rel=1e-8)
    assert found.status[-1] == Status.INFEASIBLE and found.unavailable_share[-1] == pytest.approx(1)
    assert unstable < 6


def test_optimal_is_between_slsqp_and_nearest():
    """SciPy reschedules two files on the three nodes that are left of four."""
    case = problems.tiny().scaled(rate=0.6)
    stored = np.array([[1, 1, 0, 1], [1, 1, 1, 1]])
    down = np.eye(6, 4, dtype=bool)[[1, 3, 4, 4, 4, 4]]
    start = stored * (case.k / stored.sum(axis=1))[:, None]
    found = evaluate_scenarios(case.problem(), start, stored, down, "optimal")
    simple = evaluate_scenarios(case.problem(), start, stored, down, "nearest")
    assert np.all(found.latency_shared_z < simple.latency_shared_z)
    for s, gone in enumerate(down[:3]):
        own, survivors, _ = left_over(case, start, stored, gone)
        there = survivors.astype(bool)

        def latency(x, own=own, survivors=survivors, there=there):
            spread = np.zeros(there.shape)
            spread[there] = x
            return problems.outcome(own, spread, survivors).latency_shared_z_s

        first = (survivors * (case.k / survivors.sum(axis=1))[:, None])[there]
        row = np.nonzero(there)[0]
        best = minimize(
            latency,
            first,
            method="SLSQP",
            bounds=[(0, 1)] * len(first),
            constraints={"type": "eq", "fun": lambda x, row=row: np.bincount(row, x) - case.k},
            options={"ftol": 1e-11},
        )
        assert found.latency_shared_z[s] == pytest.approx(best.fun, rel=1e-5)
        assert found.status[s] == Status.OK


def least_largest_load(case, stored, down) -> float:
    """Linear program: the least largest load that some schedule reaches."""
    own, survivors, available = left_over(case, None, stored, down)
    row, node = np.nonzero(survivors * available[:, None])
    work = own.file("rate_per_s")[row] * problems.service(own)[0][row, node]
    loads = np.zeros((len(own.nodes), len(row) + 1))
    loads[node, np.arange(len(row))] = work
    loads[:, -1] = -1
    sums = np.zeros((len(stored), len(row) + 1))
    sums[row, np.arange(len(row))] = 1
    found = linprog(
        np.append(np.zeros(len(row)), 1),
        A_ub=loads,
        b_ub=-own.node("background_load"),
        A_eq=sums[available],
        b_eq=case.k[available],
        bounds=[(0, 1)] * len(row) + [(0, None)],
    )
    return found.fun


def test_a_scenario_is_unstable_exactly_when_no_schedule_is_stable():
    case = problems.mixed(load=0.95)
    probabilities, stored = plan(case, 6)
    found = evaluate_scenarios(case.problem(), probabilities, stored, SOME, "optimal")
    simple = evaluate_scenarios(case.problem(), probabilities, stored, SOME, "nearest")
    assert np.all(~(found.latency_shared_z > simple.latency_shared_z * (1 + 1e-12)))
    rescued = 0
    for s, down in enumerate(SOME[:-1]):
        least = least_largest_load(case, stored, down)
        assert abs(least - 1) > 0.01, "too near to call"
        assert (found.status[s] == Status.UNSTABLE) == (least >= 1)
        if least >= 1:
            assert found.max_load[s] == pytest.approx(least, rel=0.01)
        rescued += least < 1 and simple.status[s] == Status.UNSTABLE
    assert rescued, "nothing that only a new schedule could serve"
    assert {Status.OK, Status.UNSTABLE, Status.INFEASIBLE} <= set(found.status)


def test_without_a_failure_nothing_changes():
    case = problems.grouped()
    probabilities, stored = plan(case, 7)
    found = evaluate_scenarios(case.problem(), probabilities, stored, downs(), "nearest")
    expected = problems.outcome(case, *(problems.of_files(case, a) for a in (probabilities, stored)))
    np.testing.assert_allclose(found.latency, expected.latency_s, rtol=1e-9)
    np.testing.assert_allclose(found.latency_shared_z, expected.latency_shared_z_s, rtol=1e-9)
    np.testing.assert_allclose(found.max_load, expected.load.max(), rtol=1e-9)


def test_writes_go_on_to_the_surviving_chunks_of_unavailable_files():
    files = problems.grouped().files.assign(write_rate_per_s=0.2)
    case = problems.Case(problems.moment_nodes(), files).at_load(0.3)
    probabilities, stored = plan(case, 8)
    found = evaluate_scenarios(case.problem(), probabilities, stored, SOME, "nearest")
    down = SOME[7]
    of_file = [problems.of_files(case, a) for a in (probabilities, stored)]
    expected, available = expected_nearest(case, *of_file, down)
    lost = ~available[:, None] & of_file[1][:, ~down].astype(bool)
    assert lost.any() and available.any()
    assert found.max_load[7] == pytest.approx(expected.load.max(), rel=1e-9)
    assert found.latency[7] == pytest.approx(expected.latency_s, rel=1e-8)


@settings(max_examples=10)
@given(st.integers(0, 2**31), st.booleans())
def test_files_are_unavailable_exactly_when_fewer_than_k_chunks_survive(seed, bare):
    case = problems.mixed()
    random = np.random.default_rng(seed)
    stored = np.zeros((problems.FILES, problems.NODES), bool)
    for row, k in zip(stored, case.k.astype(int), strict=True):
        row[random.permutation(problems.NODES)[: k if bare else random.integers(k, problems.NODES + 1)]] = (
            True
        )
    down = random.random((COUNT, problems.NODES)) < 0.3
    even = stored * (case.k / stored.sum(axis=1))[:, None]
    found = evaluate_scenarios(case.problem(), even, stored, down, "nearest")
    lost = (stored[None] & ~down[:, None]).sum(axis=-1) < case.k
    if bare:
        np.testing.assert_array_equal(lost, (stored[None] & down[:, None]).any(axis=-1))
    np.testing.assert_array_equal(found.unavailable_files, lost.sum(axis=1))
    rate = case.file("rate_per_s")
    np.testing.assert_allclose(found.unavailable_share, lost @ rate / rate.sum(), atol=1e-12)
    np.testing.assert_array_equal(np.isnan(found.latency), lost.all(axis=1))


def test_a_file_read_from_more_chunks_than_rebuild_it_is_read_from_those_that_are_left():
    """d = 3 chunks of a third of the file are read; k = 2 rebuild it, then of half the file each."""
    files = problems.mixed_files(k=(3,)).assign(min_extra_chunks=0)
    case = problems.Case(problems.moment_nodes(), files).at_load(0.4)
    stored = np.zeros((problems.FILES, problems.NODES))
    for i in range(problems.FILES):
        stored[i, np.arange(i, i + 3) % problems.NODES] = 1
    down = downs((0,), (0, 1), (0, 3))
    rebuild = np.full(problems.FILES, 2.0)
    found = evaluate_scenarios(case.problem(), stored, stored, down, "nearest", rebuild=rebuild)
    halves = replace(case, files=files.assign(k=2, rate_per_s=case.files["rate_per_s"]))
    for s in range(3):
        up = ~down[s]
        survivors = stored[:, up]
        whole, half, gone = (survivors.sum(axis=1) == n for n in (3, 2, 1))
        assert found.unavailable_files[s] == gone.sum() and half.any()
        k = np.where(whole, 3, 2)
        left = halves.files.assign(k=k, rate_per_s=case.files["rate_per_s"] * ~gone)
        own = replace(case, nodes=case.nodes[up].reset_index(drop=True), files=left)
        expected = problems.outcome(own, survivors * ~gone[:, None], survivors)
        assert found.latency[s] == pytest.approx(expected.latency_s, rel=1e-8)
        assert found.latency_shared_z[s] == pytest.approx(expected.latency_shared_z_s, rel=1e-8)
        assert found.max_load[s] == pytest.approx(expected.load.max(), rel=1e-9)


def test_sites_and_nodes():
    np.testing.assert_array_equal(node_scenarios(3), np.eye(3, dtype=bool))
    np.testing.assert_array_equal(site_scenarios([0, 1, 0, 2]), [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize("width", [1, 4, 9])
def test_scenarios_side_by_side_come_back_in_order(width):
    """Nine scenarios: in batches of four the last is repeated, and left out of the result."""
    pair = np.arange(9.0), np.arange(18.0).reshape(9, 2)
    found = scenarios.in_batches(lambda one: {"sum": one[0] + one[1].sum()}, pair, width)
    np.testing.assert_array_equal(found["sum"], pair[0] + pair[1].sum(axis=1))


def test_batches_are_even_and_fit_in_memory(monkeypatch):
    problem = problems.mixed().problem()
    assert scenarios.scenarios_at_once(problem, 12, 1e12) == 1, "on a CPU"
    monkeypatch.setattr(scenarios.jax, "default_backend", lambda: "gpu")
    each = problem.rows * problem.nodes.count * 8 * 30
    assert scenarios.scenarios_at_once(problem, 12, 1e12) == 12
    assert scenarios.scenarios_at_once(problem, 12, 7.5 * each) == 6
    assert scenarios.scenarios_at_once(problem, 12, 1.0) == 1


def test_an_unknown_scheduling_is_refused():
    case = problems.mixed()
    probabilities, stored = plan(case)
    with pytest.raises(ValueError, match="found 'fair'; allowed: nearest, optimal"):
        evaluate_scenarios(case.problem(), probabilities, stored, jnp.asarray(SOME), "fair")
