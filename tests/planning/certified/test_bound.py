"""The lower bound against the brute-force optimum, and against independent relaxed values over z."""

from dataclasses import fields, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import problems
import pytest
from planning.brute_force import optimum
from planning.certified.untuned import (
    KINDS,
    at_largest_load,
    best_of,
    files_of,
    limited,
    nodes_of,
    passes_of,
    relaxed_at,
    tiny,
)

from ecjax.planning.certified import Certificate, Settings, certify, data, one_size_plan
from ecjax.planning.certified.bound import lower_bound
from ecjax.planning.certified.every_z import bound_every_z
from ecjax.planning.certified.march import Range, march
from ecjax.planning.certified.relax import Relaxed, groups_of, loads_of, relax, respond
from ecjax.planning.certified.smooth import Bins

SETTINGS = Settings()


def objective(case, problem, theta, certificate: Certificate) -> float:
    """What the whole choices are worth, in NumPy; infinite where a node is overloaded."""
    found = problems.outcome(case, certificate.probabilities, certificate.stored)
    cost = found.cost
    if problem.surcharge is not None:
        cost += (np.asarray(problem.surcharge) * certificate.stored).sum()
    if problem.reading is not None:
        cost += (np.asarray(problem.reading) * certificate.probabilities).sum()
    return found.latency_shared_z_s + theta * cost / len(case.files)


def compare(seed, kind, files, nodes, settings=SETTINGS):
    case, problem, theta = tiny(seed, kind, files, nodes)
    certificate = certify(passes_of(problem, theta), settings)
    best = best_of(seed, kind, files, nodes)
    found = objective(case, problem, theta, certificate)
    kept = problem.capacity is None or np.all(certificate.stored.sum(axis=0) <= np.asarray(problem.capacity))
    if best is None:  # no placement is stable and within the capacities: none is shown
        assert not kept or np.isinf(found)
        return certificate.lower_bound, np.inf
    assert certificate.lower_bound <= best.objective * (1 + 1e-9)
    if kept:
        assert best.objective <= found * (1 + 1e-7)
    return certificate.lower_bound, best.objective


# seeds that are quickly searched, and are searched in other modules
QUICK = {"mixed": 1, "capacity": 8}
SLOW = ("charges", "mask")  # each compiles programs of its own
EACH = [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in KINDS]


@pytest.mark.parametrize("kind", EACH)
def test_no_plan_is_below_the_bound(kind):
    bound, best = compare(
        QUICK.get(kind, 2), kind, 2, 4, Settings(gap=0.05) if kind.endswith("writes") else SETTINGS
    )
    # sizes that differ or writes leave a gap that prices of nodes do not close
    assert bound > (0 if kind.startswith("mixed") else 0.2 * best)


@pytest.mark.parametrize("edges", [2, 3])
@pytest.mark.parametrize("seed", [3, 4, 6])
def test_no_plan_is_below_the_bound_where_a_grid_is_coarser_than_the_sizes(seed, edges, monkeypatch):
    """Sizes within intervals, and those of their ends, which join the interval beside them where that has more."""
    monkeypatch.setattr(data, "MOST_SIZES", 2)
    monkeypatch.setattr(data, "_MOST_EDGES", edges)
    bound, best = compare(seed, "mixed", 4, 4)
    assert bound > 0.05 * best


def test_the_bound_holds_on_where_all_sizes_differ():
    """The gap of plans for 100 files of as many sizes, under which the bound once fell to the price of storage."""
    random = np.random.default_rng(5)
    files = files_of(random, 100, np.full(100, 4), 2)
    files["bytes"] *= np.exp(random.normal(0, 0.8, 100))
    case = at_largest_load(problems.Case(nodes_of(random, 8, 4.0), files), 0.54)
    problem, theta = case.problem(), 0.1 / 18
    certificate = certify(passes_of(problem, theta), SETTINGS)
    found = objective(case, problem, theta, certificate)
    assert 0.85 * found < certificate.lower_bound <= found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2, 8))
def test_no_plan_of_more_files_is_below_the_bound(kind, seed):
    random = np.random.default_rng(seed)
    compare(seed, kind, int(random.integers(1, 5)), int(random.integers(3, 6)))


def test_no_plan_of_groups_is_below_the_bound():
    """Two files of one group, of one size, are one file of both rates that costs twice as much."""
    case, _, theta = tiny(1, "plain", 3, 4)
    files = case.files.assign(k=[2, 2, 1], min_extra_chunks=[1, 1, 0], group=["a", "a", None])
    case = replace(case, files=files.assign(bytes=1e6 * files["k"])).scaled(rate=0.3)
    rate = case.file("rate_per_s")
    joined = {
        "bytes": [2e6, 1e6],
        "k": [2, 1],
        "rate_per_s": [rate[:2].sum(), rate[2]],
        "min_extra_chunks": [1, 0],
    }
    single = problems.Case(case.nodes, pd.DataFrame({"file_id": [0, 1], **joined})).problem()
    twice = limited(single, surcharge=np.stack([case.node("cost_per_chunk_dollars"), np.zeros(4)]))
    problem = case.problem()
    certificate = certify(passes_of(problem, theta), SETTINGS)
    best = optimum(twice, theta * 2 / 3)
    found = objective(case, problem, theta, _of_files(certificate, problem))
    assert 0.5 * best.objective < certificate.lower_bound <= best.objective * (1 + 1e-9)
    assert best.objective <= found * (1 + 1e-7)


def _of_files(certificate, problem):
    row = np.asarray(problem.row)
    return replace(certificate, kinds=certificate.kinds[row])


@cache
def bounded(seed, kind, tol=1e-6):
    _, problem, theta = tiny(seed, kind, 3, 4)
    bins = Bins(passes_of(problem, theta))
    relaxation = bins.relax()
    for _ in range(4):
        bound = bound_every_z(bins, relaxation, tol, 2000)
        if bound.better is None:
            break
        relaxation = bins.relax(bound.better.z, bound.better)
    return bound, relaxation


@pytest.mark.parametrize(
    "kind",
    ["plain", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sites", "background", "charges"))],
)
@pytest.mark.parametrize("seed", [0])
def test_no_relaxed_value_at_any_z_is_below_the_bound(kind, seed):
    """One chunk size: the bound is the least relaxed value over z, up to the tolerance."""
    _, problem, theta = tiny(seed, kind, 3, 4)
    bound, relaxation = bounded(seed, kind)
    width = 3 * abs(relaxation.z) + np.asarray(problem.nodes.service)[0].max() * 1e6
    grid = np.append(relaxation.z + width * np.linspace(-1, 1, 7), relaxation.z)
    values = np.array([relaxed_at(problem, theta, z) for z in grid])
    assert bound.value <= values.min() + 1e-8 * values.min()
    assert bound.value >= values.min() * (1 - 1e-4)


def test_a_bad_start_finds_the_better_z():
    """A relaxation that stays at a poor z gives no bound above the best."""
    _, problem, theta = tiny(0, "plain", 3, 4)
    best, relaxation = bounded(0, "plain")
    bins = Bins(passes_of(problem, theta))
    poor = bins.relax(4 * relaxation.z, fixed_z=True)
    found = bound_every_z(bins, poor, 1e-6, 2000)
    assert poor.objective > relaxation.objective * 1.01
    assert found.better is not None or found.value <= best.value * (1 + 1e-5)
    if found.better is not None:
        assert found.better.objective < poor.objective


class At(NamedTuple):
    z: float


def test_what_is_proved_at_one_z_says_nothing_of_lower_ones():
    """f(z) = 1 + |z - 1| / 2, of which a search for 2.9 from z = 8 on meets less from z = 4.8 down."""

    def rest(prices, z, tol):
        return 1 + 0.5 * abs(z - 1) - z

    def range_to(target):
        return Range(0.0, 8.0, target, 0.01)

    met = Relaxed(*[None] * len(fields(Relaxed)))
    value, better = march(rest, lambda z, again: met if again else [], At(5.0), range_to(2.9))
    assert better is met and value <= 1.0
    value, better = march(rest, lambda z, again: [At(z)], At(5.0), range_to(2.9))
    assert better is None and 0.9 <= value <= 1.0


def test_from_a_poor_mixture_the_bound_of_mixed_sizes_holds():
    """Whether the search ends where it meets a better one or goes on."""
    best = best_of(1, "mixed", 2, 4).objective
    _, problem, theta = tiny(1, "mixed", 2, 4)
    passes = passes_of(problem, theta)
    kinds = np.zeros((2, 4), np.int8)
    z = respond(passes, kinds, None, np.zeros(4), 6, 1e-3, 0).z
    group = groups_of(passes.service, passes.rows)
    poor = relax(passes, group, kinds, 6 * z, 1e-3, 50, fixed_z=True)
    ended, on = (lower_bound(passes, poor, 1e-3, 50, last=last) for last in (False, True))
    assert poor.objective > best
    assert ended.better is not None and ended.value <= best
    assert on.better is None and 0 < on.value <= best * (1 + 1e-9)


def test_loose_prices_give_a_valid_bound():
    """Prices of a plan's own loads are poor: the bound is lower and holds."""
    for seed in range(3):
        _, problem, theta = tiny(seed, "plain", 3, 4)
        bins = Bins(passes_of(problem, theta))
        plan = one_size_plan.respond(bins, np.zeros((3, 4), np.int8), 1e-3, np.random.default_rng(0))
        loads = loads_of(bins.passes, plan.kinds)[0][:, 0]
        best = bounded(seed, "plain")[0]
        assert bound_every_z(bins, bins.at_loads(loads, plan.z), 1e-3, 0).value <= best.value * (1 + 1e-5)


@pytest.mark.slow
def test_more_sizes_than_the_grid_has():
    """30 sizes: the bound holds for the true ones, below the plan."""
    random = np.random.default_rng(0)
    case, problem, theta = tiny(0, "plain", 30, 4)
    case = replace(case, files=case.files.assign(bytes=1e6 * case.k * np.exp(random.uniform(-1, 1, 30))))
    problem = case.scaled(rate=0.5).problem()
    certificate = certify(passes_of(problem, theta), SETTINGS)
    found = objective(case.scaled(rate=0.5), problem, theta, certificate)
    assert 0 < certificate.lower_bound <= found
