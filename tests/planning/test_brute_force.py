"""The judge of tiny problems against closed forms, a grid, and every placement with another solver inside."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import problems
import pytest
from planning.brute_force import optimum
from planning.brute_model import model_of
from scipy.optimize import LinearConstraint, minimize


def alike_nodes(count: int, price=1.0) -> pd.DataFrame:
    """Nodes with one service law: mean 1, second moment 1.5, third moment 3."""
    return pd.DataFrame(
        {
            "node_id": np.arange(count),
            "service_mean_s": 1.0,
            "service_second_s2": 1.5,
            "service_third_s3": 3.0,
            "reference_bytes": 1e6,
            "cost_per_chunk_dollars": price,
        }
    )


def like_files(k, rate) -> pd.DataFrame:
    """Files of one chunk size."""
    return pd.DataFrame(
        {"file_id": np.arange(len(k)), "bytes": 1e6 * np.array(k), "k": k, "rate_per_s": rate}
    )


def alike_latency(k: int, rate: float) -> float:
    """E + sqrt((k - 1) V), the bound where every file reads k of alike nodes that each serve ``rate`` chunks."""
    idle, wait = 1 - rate, 1.5 * rate / (2 * (1 - rate))
    return 1 + wait + np.sqrt((k - 1) * (1.5 - 1 + 3 * rate / (3 * idle) + wait**2))


@pytest.mark.parametrize("theta", [0.0, 0.01, 0.1, 0.3, 3.0])
def test_one_file_on_alike_nodes_takes_the_best_number_of_them(theta):
    """Spread evenly over n nodes, by symmetry and convexity; n by trying all."""
    found = optimum(problems.Case(alike_nodes(5), like_files([3], [0.8])).problem(), theta)
    by_n = {n: alike_latency(3, 0.8 * 3 / n) + theta * n for n in (3, 4, 5)}
    best = min(by_n, key=by_n.get)
    assert found.objective == pytest.approx(by_n[best], rel=1e-9)
    assert found.stored.sum() == best and found.cost == pytest.approx(best)
    np.testing.assert_allclose(found.probabilities[found.stored], 3 / best, atol=1e-5)


def test_free_storage_spreads_the_reads_of_all_files_over_all_nodes():
    """Whatever the files, every alike node serves as many chunks as the others."""
    case = problems.Case(alike_nodes(4), like_files([2, 2, 2], [0.5, 0.3, 0.1]))
    found = optimum(case.problem(), 0.0)
    assert found.objective == pytest.approx(alike_latency(2, 0.9 * 2 / 4), rel=1e-9)
    np.testing.assert_allclose(case.file("rate_per_s") @ found.probabilities, 0.9 * 2 / 4, rtol=1e-4)
    assert found.latency == pytest.approx(found.objective) and np.isfinite(found.z)


def test_dear_storage_takes_the_cheapest_nodes():
    prices = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    files = like_files([2, 1, 2, 3], [0.05] * 4).assign(min_extra_chunks=[1, 2, 0, 0])
    found = optimum(problems.Case(alike_nodes(5, prices), files).problem(), 1e4)
    for stored, n in zip(found.stored, [3, 3, 2, 3], strict=True):
        np.testing.assert_array_equal(np.flatnonzero(stored), np.sort(np.argsort(prices)[:n]))
    assert found.cost == pytest.approx(6 + 6 + 3 + 6)
    assert found.objective == pytest.approx(found.latency + 1e4 / 4 * 21, rel=1e-12)


def test_single_chunk_reads_have_no_z():
    """Replicas on alike nodes: the mean delay of an M/G/1 queue."""
    found = optimum(problems.Case(alike_nodes(3), like_files([1, 1], [0.6, 0.3])).problem(), 0.0)
    assert found.z == -np.inf
    assert found.objective == pytest.approx(alike_latency(1, 0.3), rel=1e-9)


def test_one_file_on_three_nodes_against_a_grid():
    """Two probabilities on a grid that closes in on its best point; any support comes with a probability of 0."""
    case = problems.Case(problems.moment_nodes(7, 3), like_files([2], [1.0])).at_load(0.8)
    stored_all = np.ones((1, 3))
    price = case.node("cost_per_chunk_dollars") + 1e6 * case.node("cost_per_byte_dollars")
    for theta in (0.0, 0.05, 0.5):
        centre, width, best = np.array([0.5, 0.5]), 0.5, np.inf
        for _ in range(13):
            values = {}
            for first, second in itertools.product(*np.linspace(centre - width, centre + width, 7).T):
                reads = np.array([[first, second, 2 - first - second]])
                if np.all((reads >= 0) & (reads <= 1)):
                    mean, variance = problems.chunk_delay(case, problems.node_work(case, reads, stored_all))
                    latency = problems.least_bound(reads, mean, variance)[0]
                    values[first, second] = latency + theta * price[reads[0] > 0].sum()
            centre, width = np.array(min(values, key=values.get)), width / 2
            best = min(best, min(values.values()))
        assert optimum(case.problem(), theta).objective == pytest.approx(best, rel=1e-7)


def placements(k, nodes: int, floor):
    """Every choice of at least the floor of nodes for each file."""
    sets = list(itertools.product([False, True], repeat=nodes))
    for rows in itertools.product(sets, repeat=len(k)):
        stored = np.array(rows)
        if np.all(stored.sum(axis=1) >= np.maximum(k, floor)):
            yield stored


def least_objective(case, stored, theta, reading, surcharge) -> float:
    """SciPy's SLSQP with differences for gradients, over the reads of a fixed placement and z, one for all files."""
    kept = stored.astype(float)
    share = case.file("rate_per_s") / case.file("rate_per_s").sum()
    free = int(stored.sum())
    rows, columns = np.nonzero(stored)
    sums = np.zeros((len(stored), free))
    sums[rows, np.arange(free)] = 1
    price = (
        case.node("cost_per_chunk_dollars")
        + case.node("cost_per_byte_dollars") * ((case.file("bytes") / case.k)[:, None])
    )
    cost = ((price + surcharge) * kept).sum()
    weight = theta / len(stored)

    def spread(x):
        reads = np.zeros(stored.shape)
        reads[stored] = x
        return reads

    def value(x, bound=problems.least_bound):
        reads = spread(x)
        work = problems.node_work(case, reads, kept)
        if work[0].max() >= 1:
            return 1e3 * work[0].max()
        latency = bound(share[:, None] * reads, *problems.chunk_delay(case, work))[0]
        return latency + weight * (cost + (reads * reading).sum())

    def value_at(x):
        """Where all reads are of one chunk there is no z."""
        if share @ case.k < 1 + 1e-9:
            return value(x[:-1])
        return value(x[:-1], lambda *parts: (problems.bound_at(x[-1], *parts), x[-1]))

    random = np.random.default_rng(0)
    start = (case.k / stored.sum(axis=1))[rows]
    if np.all(start == 1):
        return value(start)
    best = np.inf
    for attempt in range(2):
        if attempt:  # near a corner
            corner = np.zeros(free)
            for i, k in enumerate(case.k):
                corner[random.permutation(np.flatnonzero(rows == i))[: int(k)]] = 1
            start = 0.2 * start + 0.8 * corner
        found = minimize(
            value_at,
            np.append(start, 1.0),
            method="SLSQP",
            bounds=[(0, 1)] * free + [(None, None)],
            constraints=LinearConstraint(np.pad(sums, ((0, 0), (0, 1))), case.k, case.k),
            options={"ftol": 1e-10, "maxiter": 60},
        )
        if np.allclose(sums @ found.x[:-1], case.k, atol=1e-9):
            best = min(best, value(found.x[:-1]))
    return best


def two_files(k=(1, 2), load=0.7, **columns) -> problems.Case:
    """On three nodes."""
    files = problems.mixed_files(5, 2, k).assign(**{"min_extra_chunks": 0} | columns)
    return problems.Case(problems.moment_nodes(5, 3), files).at_load(load)


CASES = {
    "mixed sizes": (two_files(), 0.3, {}),
    "one size, dear": (two_files((2, 2), bytes=2e6), 3.0, {}),
    "floor": (two_files(min_extra_chunks=[1, 1], bytes=[1e6, 2e6]), 0.1, {}),
    "writes": (two_files(write_rate_per_s=[0.05, 0.1]), 0.0, {}),
    "sites": (two_files(min_extra_chunks=[1, 0]), 0.0, {"site": [0, 1, 1], "per_site": 1}),
    "capacity": (two_files(), 0.1, {"capacity": [1, 2, 1]}),
    "allowed": (two_files((1, 1)), 0.1, {"allowed": [[True, True, True], [False, True, True]]}),
    "charges": (
        two_files(bytes=[1e6, 2e6]),
        0.2,
        {"surcharge": [[0.0, 3.0, 1.0], [2.0, 0.0, 0.5]], "reading": [[0.0, 2.0, 1.0], [4.0, 0.0, 0.0]]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_the_best_of_all_placements(name):
    case, theta, limits = CASES[name]
    none = np.zeros((2, 3))
    allowed = np.array(limits.get("allowed", none == 0))
    site, capacity = np.array(limits.get("site", [0] * 3)), np.array(limits.get("capacity", [2] * 3))
    charges = [np.array(limits.get(charge, none)) for charge in ("reading", "surcharge")]
    best, best_stored = np.inf, None
    for stored in placements(case.k, 3, case.k + case.file("min_extra_chunks")):
        of_site = np.array([stored[:, site == s].sum(axis=1) for s in (0, 1)])
        if (
            np.any(stored & ~allowed)
            or np.any(stored.sum(axis=0) > capacity)
            or of_site.max() > limits.get("per_site", 3)
        ):
            continue
        value = least_objective(case, stored, theta, *charges)
        if value < best:
            best, best_stored = value, stored
    found = optimum(case.problem(), theta, **limits)
    # what follows shows that the plan is feasible and its objective right, so that lower is better
    assert best * (1 - 1e-5) < found.objective <= best * (1 + 1e-7)
    if theta > 0:
        np.testing.assert_array_equal(found.stored, best_stored)
    assert not np.any(found.probabilities[~found.stored])
    np.testing.assert_allclose(found.probabilities.sum(axis=1), case.k, atol=1e-9)
    expected = problems.outcome(case, found.probabilities, found.stored.astype(float))
    assert expected.load.max() < 1
    assert found.latency == pytest.approx(expected.latency_shared_z_s, rel=1e-9)
    charged = (found.probabilities * charges[0]).sum() + charges[1][found.stored].sum()
    assert found.cost == pytest.approx(expected.cost + charged, rel=1e-9)


@pytest.mark.parametrize("make", [problems.mixed, problems.fixed, problems.affine, problems.written])
def test_slopes_of_the_bound_against_differences(make):
    case = make()
    model, random = model_of(case.problem()), np.random.default_rng(1)
    reads, stored = random.uniform(0.1, 0.6, case.even.shape), random.uniform(0, 1, case.even.shape)
    z, step = 1.0, 1e-6
    value, by_reads, by_stored, by_z = model.latency(reads, stored, z)
    mean, variance = problems.chunk_delay(case, problems.node_work(case, reads, stored))
    share = (case.file("rate_per_s") / case.file("rate_per_s").sum())[:, None]
    assert value == pytest.approx(problems.bound_at(z, share * reads, mean, variance), rel=1e-12)
    for _ in range(10):
        i, j = random.integers(reads.shape[0]), random.integers(reads.shape[1])
        change = np.zeros_like(reads)
        change[i, j] = step
        for slope, low, high in (
            (by_reads[i, j], (reads - change, stored, z), (reads + change, stored, z)),
            (by_stored[i, j], (reads, stored - change, z), (reads, stored + change, z)),
            (by_z, (reads, stored, z - step), (reads, stored, z + step)),
        ):
            difference = (model.latency(*high)[0] - model.latency(*low)[0]) / (2 * step)
            assert slope == pytest.approx(difference, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "load, limits",
    [
        (0.7, {"capacity": [1, 1, 0]}),
        (0.7, {"site": [0, 0, 0], "per_site": 1}),
        (0.7, {"allowed": [[False] * 3, [True] * 3]}),
        (3.0, {}),
    ],
    ids=["capacity", "site", "allowed", "overload"],
)
def test_no_plan_where_there_is_none(load, limits):
    assert optimum(two_files(load=load).problem(), 1.0, **limits) is None


def test_limits_and_charges_of_the_problem_count_unless_others_are_given():
    case, theta, charges = CASES["charges"]
    limits = {"capacity": np.array([1.0, 2.0, 1.0])} | {name: np.array(v) for name, v in charges.items()}
    given = optimum(case.problem(), theta, **limits)
    own = optimum(replace(case.problem(), **limits), theta)
    assert own.objective == given.objective > optimum(case.problem(), theta).objective
