"""Plans for deadlines: the cheapest by trying every placement with SciPy, and what cannot be kept by closed forms."""

from dataclasses import replace
from itertools import combinations, product

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from planning.classes.plain_classes import Plain, class_problem, latencies, plain_classes
from problems import Case
from scipy.optimize import minimize

from ecjax.planning.classes.alternate import Settings
from ecjax.planning.classes.deadlines import Deadlines, Kept, plan_deadlines
from ecjax.planning.classes.start import Start, start_plan

# compilation of its programs takes minutes in all
pytestmark = pytest.mark.slow

FILES, NODES = 3, 4  # one shape, so that tests share compiled programs
OF_CLASS = np.array([0, 1, 0])
# weighted queues take programs of their own, half a minute to compile
BOTH = ["priority", pytest.param("weighted", marks=pytest.mark.slow)]


def case(seed: int, load: float = 0.55) -> Case:
    """Nodes of all speeds, where a fast one need not be dear; files of one or two chunks and one more."""
    random = np.random.default_rng(seed)
    mean, variation = random.uniform(5, 15, NODES), random.uniform(0.3, 1.0, NODES)
    k = random.integers(1, 3, FILES)
    nodes = pd.DataFrame(
        {
            "node_id": np.arange(NODES),
            "service_mean_s": mean,
            "service_second_s2": mean**2 * (1 + variation**2),
            "service_third_s3": mean**3 * (1 + variation**2) ** 2 * (1 + variation),
            "reference_bytes": np.full(NODES, 1e6),
            "cost_per_chunk_dollars": np.round(40 / mean * random.uniform(0.6, 1.4, NODES), 2),
        }
    )
    files = pd.DataFrame(
        {
            "file_id": np.arange(FILES),
            "bytes": k * 1e6,
            "k": k,
            "rate_per_s": random.uniform(0.5, 1.5, FILES),
            "service_class": OF_CLASS + 1,
            "min_extra_chunks": np.ones(FILES, int),
        }
    )
    return Case(nodes, files).at_load(load)


def planned(given: Case, queue: str, deadlines, measure=None, seed: int = 0, **changes) -> Kept:
    model = class_problem(given, OF_CLASS, queue)
    start = start_plan(model.problem, 0.0, "uniform", seed)
    settings = Settings("joint", (1.0, 1.0), max_iterations=1000, seed=seed, **changes)
    return plan_deadlines(model, start, settings, Deadlines(np.array(deadlines, float), measure))


def cost_of(plain: Plain, kept: Kept) -> float:
    return float(np.sum(plain.price * np.asarray(kept.plan.stored)))


def holds(plain: Plain, kept: Kept, deadlines, lengths) -> None:
    """Sums and lengths of a plan, and its latencies and lateness by the plain formulas."""
    plan, most = kept.plan, np.array(deadlines, float)
    reads, stored = np.asarray(plan.probabilities), np.asarray(plan.stored)
    np.testing.assert_allclose(reads.sum(axis=1), plain.k, atol=1e-9)
    np.testing.assert_array_equal(stored.sum(axis=1), lengths)
    assert reads.min() >= 0 and reads.max() <= 1 + 1e-12 and not np.any(reads[~stored])
    weights = np.asarray(plan.weights)
    if plain.queue == "weighted":
        np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    told = latencies(plain, reads, stored.astype(float), weights)[0]
    np.testing.assert_allclose(plan.latency, told, rtol=1e-8)
    np.testing.assert_allclose(kept.latency, told, rtol=1e-8)
    late = np.where(np.isfinite(most), np.where(told > most * (1 + 1e-8), told - most, 0.0), np.nan)
    np.testing.assert_allclose(kept.late, late, rtol=1e-6, atol=1e-12)
    assert kept.met == (not np.any(late > 0))


def least_ratio(plain: Plain, stored: np.ndarray, deadlines: np.ndarray) -> float:
    """The least max_k L_k / D_k over the spreads of reads on these chunks, by SLSQP."""
    free = stored > 0
    rows = np.nonzero(free)[0]
    sums = (rows == np.arange(FILES)[:, None]).astype(float)

    def ratios(values: np.ndarray) -> np.ndarray:
        spread = np.zeros(stored.shape)
        spread[free] = values
        return np.minimum(latencies(plain, spread, stored)[0], 1e6) / deadlines

    even = (stored * (plain.k / stored.sum(axis=1))[:, None])[free]
    found = minimize(
        lambda values: values[-1],
        np.append(even, ratios(even).max()),
        jac=lambda values: np.append(np.zeros(len(even)), 1.0),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(even) + [(0.0, None)],
        constraints=[
            {"type": "eq", "fun": lambda values: sums @ values[:-1] - plain.k},
            {"type": "ineq", "fun": lambda values: values[-1] - ratios(values[:-1])},
        ],
        options={"maxiter": 100, "ftol": 1e-9},
    )
    return float(ratios(found.x[:-1]).max()) if np.abs(sums @ found.x[:-1] - plain.k).max() < 1e-6 else np.inf


def cheaper_and_kept(plain: Plain, lengths, deadlines, cost: float) -> list[float]:
    """Costs of all placements below a cost that can keep the deadlines."""
    ways = [
        [np.isin(np.arange(NODES), chosen) for chosen in combinations(range(NODES), int(length))]
        for length in lengths
    ]
    found = []
    for rows in product(*ways):
        stored = np.array(rows, float)
        own = float(np.sum(plain.price * stored))
        if own < cost * (1 - 1e-9) and least_ratio(plain, stored, np.array(deadlines)) <= 1:
            found.append(own)
    return found


def cheapest(plain: Plain, lengths) -> float:
    return sum(np.sort(row)[: int(length)].sum() for row, length in zip(plain.price, lengths, strict=True))


def lengths_of(given: Case) -> np.ndarray:
    return given.k + 1


# between the fastest plan and the cheapest: placements that cost less are few, and none of them keeps the deadlines
@pytest.mark.parametrize(
    ("seed", "deadlines"),
    [
        (0, (17, 33)),
        pytest.param(1, (20, 57), marks=pytest.mark.slow),
        (3, (14, 44)),
        pytest.param(5, (15, 58), marks=pytest.mark.slow),
    ],
)
def test_no_cheaper_placement_keeps_the_deadlines(seed, deadlines):
    given = case(seed)
    plain, lengths = plain_classes(given, OF_CLASS, "priority"), lengths_of(given)
    kept = planned(given, "priority", deadlines)
    holds(plain, kept, deadlines, lengths)
    assert kept.met
    assert cost_of(plain, kept) > cheapest(plain, lengths)
    assert not cheaper_and_kept(plain, lengths, deadlines, cost_of(plain, kept))


@pytest.mark.parametrize("queue", BOTH)
def test_loose_deadlines_take_the_cheapest_nodes(queue):
    given = case(2, load=0.3)
    plain, lengths = plain_classes(given, OF_CLASS, queue), lengths_of(given)
    kept = planned(given, queue, (500, 500))
    holds(plain, kept, (500, 500), lengths)
    assert kept.met
    assert cost_of(plain, kept) == pytest.approx(cheapest(plain, lengths))


@pytest.mark.parametrize(
    ("queue", "scales"),
    [
        ("priority", (20.0, 4.0, 2.0, 0.5)),
        pytest.param("weighted", (20.0, 4.0, 3.0, 0.5), marks=pytest.mark.slow),
    ],
)
def test_tighter_deadlines_cost_more_until_they_cannot_be_kept(queue, scales):
    given = case(4, load=0.3)
    plain, lengths = plain_classes(given, OF_CLASS, queue), lengths_of(given)
    costs, met = [], []
    for scale in scales:
        deadlines = (8 * scale, 10 * scale)
        kept = planned(given, queue, deadlines)
        holds(plain, kept, deadlines, lengths)
        costs.append(cost_of(plain, kept))
        met.append(kept.met)
    assert met == [True, True, True, False]
    assert costs[0] <= costs[1] <= costs[2]
    assert costs[0] < costs[2]


def test_a_class_without_a_deadline():
    given = case(0)
    plain, lengths = plain_classes(given, OF_CLASS, "priority"), lengths_of(given)
    both, first = (planned(given, "priority", most) for most in ((17, 33), (17, np.inf)))
    holds(plain, first, (17, np.inf), lengths)
    assert first.met and np.isnan(first.late[1])
    assert cost_of(plain, first) <= cost_of(plain, both)


def on_one_node(rates=(0.03, 0.02, 0.01)) -> tuple[Case, np.ndarray]:
    """Whole files, each on one node; only the first node can carry any. Its latencies, by closed form, of priority."""
    mean = np.array([10.0, 1e4, 1e4, 1e4])
    nodes = pd.DataFrame(
        {
            "node_id": np.arange(NODES),
            "service_mean_s": mean,
            "service_second_s2": 2 * mean**2,
            "service_third_s3": 6 * mean**3,
            "reference_bytes": np.full(NODES, 1e6),
            "cost_per_chunk_dollars": np.full(NODES, 1.0),
        }
    )
    files = pd.DataFrame(
        {
            "file_id": np.arange(FILES),
            "bytes": np.full(FILES, 1e6),
            "k": np.ones(FILES, int),
            "rate_per_s": np.array(rates),
            "service_class": OF_CLASS + 1,
            "min_extra_chunks": np.zeros(FILES, int),
        }
    )
    rho = 10.0 * np.array([rates[0] + rates[2], rates[1]])
    residual = sum(rates) * 2 * 10.0**2 / 2
    return Case(nodes, files), 10.0 + residual / np.array([1 - rho[0], (1 - rho[0]) * (1 - rho.sum())])


@pytest.mark.parametrize("late", [(True, False), (False, True), (True, True)])
def test_what_cannot_be_kept_and_by_how_much(late):
    given, least = on_one_node()
    deadlines = np.where(late, 0.75, 1.25) * least
    kept = planned(given, "priority", deadlines)
    holds(plain_classes(given, OF_CLASS, "priority"), kept, deadlines, np.ones(FILES))
    assert not kept.met
    np.testing.assert_allclose(kept.latency, least, rtol=1e-9)
    np.testing.assert_allclose(kept.late, np.where(late, 0.25 * least, 0.0), rtol=1e-9)
    np.testing.assert_allclose(kept.alone, np.where(late, least, np.nan), rtol=1e-9)


def test_an_earlier_class_comes_first():
    """The first class keeps what only the second could give up; alone the second would be faster."""
    given = case(4, load=0.3)
    plain, lengths = plain_classes(given, OF_CLASS, "priority"), lengths_of(given)
    loose = planned(given, "priority", (200, 1))
    tight = planned(given, "priority", (14, 1))
    for kept, first in ((loose, 200), (tight, 14)):
        holds(plain, kept, (first, 1), lengths)
        assert kept.late[0] == 0 and kept.late[1] > 0
        assert kept.alone[1] <= kept.latency[1] * (1 + 1e-6)
    assert loose.latency[1] <= tight.latency[1] * 1.01


def test_what_is_measured_is_what_is_kept():
    given = case(0)
    plain, lengths = plain_classes(given, OF_CLASS, "priority"), lengths_of(given)

    def measure(point):
        return 0.8 * latencies(plain, np.asarray(point.probabilities), np.asarray(point.stored, float))[0]

    deadlines = np.array([17.0, 33.0])
    kept = planned(given, "priority", 0.8 * deadlines, measure)
    plan = kept.plan
    holds(plain, kept._replace(latency=np.asarray(plan.latency)), deadlines, lengths)
    np.testing.assert_allclose(kept.latency, 0.8 * np.asarray(plan.latency), rtol=1e-8)
    assert kept.met
    assert cost_of(plain, kept) == pytest.approx(cost_of(plain, planned(given, "priority", deadlines)))


def test_free_nodes_that_are_too_slow():
    """The cheapest plan costs nothing: prices of deadlines cannot be in units of it."""
    mean = np.array([1.0, 1.0, 0.1, 0.1])
    nodes = pd.DataFrame(
        {
            "node_id": np.arange(NODES),
            "service_mean_s": mean,
            "service_second_s2": 2 * mean**2,
            "service_third_s3": 6 * mean**3,
            "reference_bytes": np.full(NODES, 1e6),
            "cost_per_chunk_dollars": [0.0, 0.0, 5.0, 5.0],
        }
    )
    files = pd.DataFrame(
        {
            "file_id": np.arange(FILES),
            "bytes": np.full(FILES, 1e6),
            "k": np.ones(FILES, int),
            "rate_per_s": np.full(FILES, 1e-3),
            "service_class": OF_CLASS + 1,
            "min_extra_chunks": np.ones(FILES, int),
        }
    )
    given = Case(nodes, files)
    plain = plain_classes(given, OF_CLASS, "priority")
    kept = planned(given, "priority", (0.5, 0.5))
    holds(plain, kept, (0.5, 0.5), lengths_of(given))
    # a file needs a fast chunk: a class of two of which one has none takes (1 + 0.1) / 2 s and more
    assert kept.met
    assert cost_of(plain, kept) == pytest.approx(3 * 5.0)


def test_a_cheaper_start_that_breaks_limits_is_no_plan():
    """One chunk per node, the last node closed: the only placement is the second file, then the first, then the third.

    On their cheapest nodes the first two share one. The second, least read and moved first, has no other; the first
    could move only to where the third is.
    """
    given, _ = on_one_node((2e-4, 1e-4, 3e-4))
    nodes = given.nodes.assign(
        service_mean_s=1.0,
        service_second_s2=2.0,
        service_third_s3=6.0,
        cost_per_chunk_dollars=[1.0, 2.0, 3.0, 4.0],
    )
    model = class_problem(Case(nodes, given.files), OF_CLASS, "priority")
    allowed = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]], bool)
    problem = replace(model.problem, allowed=jnp.asarray(allowed), capacity=jnp.ones(NODES))
    only = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]], bool)
    kept = plan_deadlines(
        replace(model, problem=problem),
        Start(jnp.asarray(only, float), jnp.asarray(only)),
        Settings("joint", (1.0, 1.0), max_iterations=1000),
        Deadlines(np.array([1000.0, 1000.0])),
    )
    assert kept.met
    np.testing.assert_array_equal(kept.plan.stored, only)


@pytest.mark.slow
def test_fixed_shares_stay():
    given = case(4, load=0.2)
    plain, lengths = plain_classes(given, OF_CLASS, "weighted"), lengths_of(given)
    kept = planned(given, "weighted", (60, 60), weights=np.array([0.6, 0.4]))
    holds(plain, kept, (60, 60), lengths)
    assert kept.met
    np.testing.assert_allclose(kept.plan.weights, [[0.6] * NODES, [0.4] * NODES])


def test_without_a_stable_start_there_is_no_plan():
    kept = planned(case(0, load=0.55).scaled(rate=10.0), "priority", (100, 100))
    assert np.isinf(kept.plan.latency).all() and not kept.plan.converged


def test_no_step_is_lost():
    """Every outer iteration has its steps, in order."""
    kept = planned(case(0), "priority", (17, 33))
    numbers = [step.iteration for step in kept.plan.steps]
    assert numbers[0] == 0 and kept.plan.steps[0].name == "start"
    assert numbers == sorted(numbers) and numbers[-1] == kept.plan.iterations


def test_steps_tell_what_classes_take_and_no_dollars():
    given = case(0)
    plain, kept = plain_classes(given, OF_CLASS, "priority"), planned(given, "priority", (17, 33))
    steps = kept.plan.steps
    told = [step for step in steps if step.objective is not None]
    # the start and what is spread at the end; in between dollars are searched, and classes one by one
    assert 1 < len(told) < len(steps) and steps[0].objective is not None and steps[-1].objective is not None
    for step in told:
        assert step.objective == pytest.approx(float(plain.class_share @ step.latency), rel=1e-9)
