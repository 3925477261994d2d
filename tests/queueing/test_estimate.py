"""The estimate against exact cases, against its own parts, and against simulation."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated_reads import Reads, simulate, summary

from ecjax.programs import program
from ecjax.queueing import (
    ServiceLaw,
    ServiceMoments,
    UnitLaw,
    Workload,
    estimate_latency,
    fcfs,
    latency_objective,
    tail_bound,
)
from ecjax.queueing.dependence import pair_correlation
from ecjax.queueing.workload import node_arrivals

# the programs run for longer than optimizing them takes
pytestmark = pytest.mark.usefixtures("optimized")

# one shape for most tests, so that few programs are compiled: 4 files, 6 nodes, k up to 4
R, M, MOST = 4, 6, 4
GROUPS = np.array([0, 1, 1, 2])
SIZES = np.array([1.0, 2.0, 2.0, 4.0])

plain_estimate = program(estimate_latency)
estimated = program(partial(estimate_latency, groups=GROUPS, group_count=4))
bounded = program(partial(tail_bound, groups=GROUPS, group_count=4))
objective = program(
    jax.value_and_grad(lambda pi, load: latency_objective(pi, load, 0.5, ((0.99, 0.25), (0.5, 0.1))))
)

UNEQUAL = np.array(
    [
        [0.9, 0.8, 0.7, 0.6, 0.6, 0.4],
        [1.0, 0.6, 0.4, 0.0, 0.5, 0.5],
        [0.4, 0.4, 0.4, 0.3, 0.3, 0.2],
        [0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
    ]
)
# nothing comes to the fifth node
ONE_UNREAD = np.array(
    [
        [1.0, 1.0, 1.0, 0.5, 0.0, 0.5],
        [1.0, 0.5, 0.5, 0.5, 0.0, 0.5],
        [0.5, 0.5, 0.5, 0.25, 0.0, 0.25],
        [0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
    ]
)
# half of the nodes for half of the files, as plans often are: waits hardly depend on each other across the halves
HALVES = np.array(
    [
        [1.0, 1.0, 1.0, 0.5, 0.5, 0.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
        [0.2, 0.0, 0.0, 0.9, 0.9, 1.0],
    ]
)
SPEEDS = np.array([1.4, 1.2, 1.0, 0.9, 0.8, 0.7])
SAMPLES = (0.4, 0.5, 0.5, 0.7, 1.0, 1.4, 2.5)
PARAMETERS = {"gamma": "shape", "weibull": "shape", "lognormal": "sigma"}


def unit_law(reads):
    if reads.kind == "empirical":
        return UnitLaw.empirical(reads.samples)
    return UnitLaw.named(
        reads.kind, **{PARAMETERS[reads.kind]: reads.parameter} if reads.kind in PARAMETERS else {}
    )


def workload(reads, load):
    """The same reads for the package, both with their rates scaled to this load of the busiest node."""
    r, m = reads.probabilities.shape
    service = ServiceLaw.of_nodes(
        unit_law(reads), reads.offset, reads.offset_per_byte, reads.scale, reads.scale_per_byte, nodes=m
    )
    jobs, mean = reads.background
    first = np.asarray(service.moments(reads.chunk_bytes[:, None])[0])
    reads.rates = reads.rates * (load - jobs * mean) / (reads.rates @ (reads.probabilities * first)).max()
    background = np.array([[jobs * mean], [2 * jobs * mean**2], [6 * jobs * mean**3]]) * np.ones((3, m))
    k = np.full(r, MOST) if m == M else np.round(reads.probabilities.sum(axis=1))
    return Workload.of(reads.rates, reads.chunk_bytes, k, service, reads.connect, background)


def cases():
    rate, size = np.ones(R), SIZES
    yield "constant", 0.5, Reads(UNEQUAL, rate, size, "deterministic", scale=1 / SPEEDS)
    yield "exponential", 0.8, Reads(UNEQUAL, rate, size, "exponential", scale=1 / SPEEDS)
    yield (
        "shifted, sizes, connection",
        0.6,
        Reads(
            UNEQUAL,
            np.array([4.0, 3.0, 2.0, 1.0]),
            SIZES,
            "exponential",
            offset=0.2,
            offset_per_byte=0.5 / SPEEDS,
            scale_per_byte=0.2,
            connect=(0.3, 0.04),
        ),
    )
    yield "lognormal", 0.3, Reads(UNEQUAL, rate, size, "lognormal", 1.0, scale=1 / SPEEDS)
    yield (
        "gamma beside other work",
        0.7,
        Reads(UNEQUAL, rate, size, "gamma", 3.0, scale=0.3 / SPEEDS, background=(0.2, 1.0)),
    )
    yield "shifted weibull", 0.6, Reads(UNEQUAL, rate, size, "weibull", 0.7, offset=0.4, scale=0.5 / SPEEDS)
    yield "halves", 0.85, Reads(HALVES, rate, np.ones(R), "exponential", offset=0.5, scale=0.5 * np.ones(M))
    yield "empirical", 0.5, Reads(UNEQUAL, rate, size, "empirical", scale=1 / SPEEDS, samples=SAMPLES)


SLOW = ("halves", "constant")  # each compiles programs of its own
EACH = [pytest.param(*case, marks=[pytest.mark.slow] if case[0] in SLOW else []) for case in cases()]


@pytest.mark.parametrize(("name", "load", "reads"), EACH, ids=[case[0] for case in cases()])
def test_estimate_and_bound_against_simulation(name, load, reads):
    system = workload(reads, load)
    found, bound = estimated(reads.probabilities, system), bounded(reads.probabilities, system)
    assert_allclose(found.load.max(), load, rtol=1e-6)
    latency, file = simulate(reads, 300_000 if load < 0.8 else 1_000_000, 11)
    value, half = summary(latency)
    assert abs(found.mean / value[0] - 1) < 0.03 + half[0]
    assert abs(found.quantiles[2] / value[3] - 1) < 0.05 + half[3]
    assert abs(found.quantiles[1] / value[2] - 1) < 0.05 + half[2]
    assert (np.asarray(bound.quantiles) > value[1:] * (1 - half[1:])).all()
    for i in range(R):
        value, half = summary(latency[file == i])
        assert abs(found.file_mean[i] / value[0] - 1) < 0.03 + half[0], i
        assert abs(found.file_quantiles[i, 2] / value[3] - 1) < 0.05 + half[3], i
        assert (np.asarray(bound.file_quantiles[i]) > value[1:] * (1 - half[1:])).all()
    assert (bound.quantiles > found.quantiles).all()
    assert (bound.file_quantiles > found.file_quantiles * (1 - 1e-3)).all()


def plain(load=0.6, probabilities=UNEQUAL):
    reads = Reads(probabilities, np.array([4.0, 3.0, 2.0, 1.0]), SIZES, "exponential", scale=1 / SPEEDS)
    return workload(reads, load)


def test_groups_and_files_agree():
    system = plain()
    found = estimated(UNEQUAL, system)
    share = np.asarray(system.rate / system.rate.sum())
    assert_allclose(found.mean, share @ found.file_mean, rtol=1e-12)
    # a group of one file is that file
    alone, own = np.array([0, 2]), np.array([0, 3])
    assert_allclose(found.group_mean[alone], found.file_mean[own], rtol=1e-12)
    assert_allclose(found.group_quantiles[alone], found.file_quantiles[own], rtol=5e-4)
    low, high = np.sort(found.file_quantiles[1:3], axis=0)
    assert ((found.group_quantiles[1] > low) & (found.group_quantiles[1] < high)).all()
    assert np.isnan(found.group_mean[3]) and np.isnan(found.group_quantiles[3]).all()
    bound = bounded(UNEQUAL, system)
    assert (bound.group_quantiles[alone] >= bound.file_quantiles[own] * (1 - 1e-12)).all()
    assert np.isnan(bound.group_quantiles[3]).all()


def test_one_node_per_read_is_exact():
    pi = np.array([[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]] * R)
    system = plain(0.7, pi)
    found = estimated(pi, system)
    rates = np.asarray(system.rate) @ pi
    sojourn = fcfs(jnp.asarray(rates), ServiceMoments.exponential(1 / SPEEDS))
    assert_allclose(found.file_mean, pi @ np.asarray(sojourn.mean), rtol=2e-3)

    def law(x):
        return 1 - pi[0] @ np.exp(-x[None] * (SPEEDS - rates)[:, None])

    assert_allclose(law(np.asarray(found.quantiles)), [0.5, 0.9, 0.99, 0.999], rtol=3e-4, atol=1e-4)
    # the union is exact as well; what the bound adds is its rounding
    promised = np.asarray(bounded(pi, system).quantiles)
    assert (promised > np.asarray(found.quantiles)).all()
    assert (promised < np.asarray(found.quantiles) * 1.03).all()


@pytest.mark.slow
def test_an_overloaded_node_concerns_its_readers_only():
    pi = UNEQUAL.copy()
    pi[1] = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    pi[2] = [0.5, 0.5, 1.0, 0.0, 0.0, 0.0]
    pi[0] = [1.0, 1.0, 1.0, 0.0, 0.5, 0.5]
    pi[3] = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    system = plain(0.5, pi)
    slow = np.where(np.arange(M) == 3, 1e4, 1.0)
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=slow / SPEEDS)
    system = Workload.of(system.rate, SIZES, MOST, service, (0.0, 0.0), np.asarray(system.background))
    found, bound = estimated(pi, system), bounded(pi, system)
    assert_allclose(np.isinf(found.file_mean), [False, False, False, True])
    assert np.isinf(found.mean) and np.isinf(bound.file_quantiles[3]).all()
    assert np.isfinite(found.file_quantiles[:3]).all() and np.isinf(found.file_quantiles[3]).all()
    assert np.isfinite(objective(pi, system)[1]).all()


@pytest.mark.slow
def test_derivatives_against_differences():
    system = plain()
    rng = np.random.default_rng(4)
    pi = np.clip(UNEQUAL, 0.05, 0.95)
    pi *= np.round(UNEQUAL.sum(axis=1, keepdims=True)) / pi.sum(axis=1, keepdims=True)
    along = rng.normal(size=pi.shape)
    along -= along.mean(axis=1, keepdims=True)
    step = 1e-3
    _, slope = objective(pi, system)
    difference = (objective(pi + step * along, system)[0] - objective(pi - step * along, system)[0]) / (
        2 * step
    )
    # lattices and points follow the probabilities in the differences, and not in the derivative
    assert_allclose(np.sum(slope * along), difference, rtol=2e-2)


@pytest.mark.slow
def test_derivatives_are_finite_at_0_and_1_and_descend():
    system = plain()
    value, slope = objective(UNEQUAL, system)
    assert np.isfinite(slope).all()
    assert np.isfinite(objective(ONE_UNREAD, system)[1]).all()
    inside = 0.5 * UNEQUAL + 0.5 * UNEQUAL.sum(axis=1, keepdims=True) / M
    before, slope = objective(inside, system)
    along = np.asarray(slope) - np.asarray(slope).mean(axis=1, keepdims=True)
    after, _ = objective(inside - 0.02 * along / np.abs(along).max(), system)
    assert after < before


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.2, 0.6, 0.9])
def test_two_queues_with_all_requests_in_common(rho):
    """Nelson and Tantawi: the longer of two sojourns of M/M/1 takes (12 - rho)/8 / (mu - lambda), exactly."""
    found = plain_estimate(np.ones((1, 2)), two_queues("exponential", rho))
    assert_allclose(found.mean, (12 - rho) / 8 / (1 - rho), rtol=0.015)


def test_alike_constant_services_finish_together():
    """Two M/D/1 queues with the same arrivals are one: E[T] = 1 + rho / (2 (1 - rho))."""
    found = plain_estimate(np.ones((1, 2)), two_queues("deterministic", 0.7))
    assert_allclose(found.mean, 1 + 0.7 / 0.6, rtol=0.01)


def two_queues(kind, rho):
    return Workload.of(rho, 1.0, 2, ServiceLaw.of_nodes(UnitLaw.named(kind), scale=1.0, nodes=2))


def test_correlation_of_waits_at_its_limits():
    work = jnp.array([0.0, 0.3, 0.5, 0.8, 1.0])
    for rho in (0.0, 0.5, 1.0):
        load = jnp.full(5, rho)
        assert_allclose(pair_correlation(jnp.zeros(5), jnp.zeros(5), load), 0)
        assert_allclose(pair_correlation(jnp.ones(5), jnp.ones(5), load), 1)
        together = pair_correlation(jnp.ones(5), work, load)
        assert (np.diff(together) > 0).all() and (together >= 0).all() and (together <= 1).all()
        apart = pair_correlation(work, 0.5 * work, load)
        assert (np.diff(apart) > 0).all() and apart[0] == 0


@pytest.mark.slow
def test_many_chunk_sizes_are_interpolated():
    r = 40
    size = np.geomspace(1.0, 20.0, r)
    pi = np.full((r, M), 0.5)
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), offset=0.3, scale_per_byte=0.1 / SPEEDS)
    rates = np.full(r, 0.3 / (0.5 * (0.3 * r + size.sum() * 0.1)))
    system = Workload.of(rates, size, 3, service)
    assert not system.exact and len(system.sizes) == 16
    found = plain_estimate(pi, system)
    # each file alone, on nodes with the same waits: one node per read makes the mean exact
    first, second, third = (np.asarray(moment) for moment in service.moments(size[:, None]))
    loads = [rates @ (0.5 * moment) for moment in (first, second, third)]
    assert_allclose(found.load, loads[0], rtol=1e-6)
    assert (np.diff(found.file_mean) > 0).all() and (np.diff(found.file_quantiles[:, 2]) > 0).all()
    single = Workload.of(rates * 3, size, 3, service)
    one_node = plain_estimate(np.full((r, M), 1 / M), single)
    wait = loads[1] / (2 * (1 - loads[0]))
    assert_allclose(one_node.file_mean, (first + wait[None]).mean(axis=1), rtol=3e-3)


def test_sizes_that_stand_for_a_range_are_within_it():
    """Of a byte to a gigabyte, in every range few large files among many small ones, and one size in the last."""
    size = np.append(np.geomspace(1.0, 1e9, 31)[:-2], 1e9)
    rates = np.resize([1.0, 1e-3, 1e-3, 0.1], 30)
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), offset=1e-3, scale_per_byte=1e-8, nodes=1)
    found, sizes = map(np.asarray, node_arrivals(Workload.of(rates, size, 1, service), np.ones((30, 1))))
    assert found.shape == (16, 1) and found.min() > 0
    assert sizes.min() >= 1.0 and sizes.max() <= 1e9 * (1 + 2e-6)
    for power in range(3):
        assert_allclose(np.sum(found * sizes**power), rates @ size**power, rtol=1e-9)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"must be \(4, 6\)"):
        estimate_latency(UNEQUAL[:, :5], plain())


@pytest.mark.slow
def test_house_case():
    """12 nodes, k = 6, unlike speeds: the mean and the 99 % point."""
    speeds = np.geomspace(0.75, 1.5, 12)
    pi = np.clip(6 * speeds / speeds.sum(), 0, 1)[None]
    reads = Reads(pi, np.ones(1), np.ones(1), "exponential", offset=0.5 / speeds, scale=0.5 / speeds)
    system = workload(reads, 0.7)
    found = plain_estimate(pi, system)
    value, half = summary(simulate(reads, 400_000, 3)[0])
    assert math.isfinite(found.mean)
    assert abs(found.mean / value[0] - 1) < 0.03 + half[0]
    assert abs(found.quantiles[2] / value[3] - 1) < 0.05 + half[3]


LOADS = [0.1, 0.3, 0.5, 0.7, 0.9]
READS = [(2, 2), (5, 5), (10, 10), (12, 6), (12, 9), (16, 4), (50, 10)]
LAWS = (
    ("deterministic", 1.0, 0.0),
    ("exponential", 1.0, 0.0),
    ("gamma", 2.0, 0.0),
    ("exponential", 1.0, 3.0),
    ("lognormal", 0.8, 0.0),
    ("weibull", 0.7, 0.5),
)


@pytest.mark.slow
@pytest.mark.parametrize("rho", LOADS)
@pytest.mark.parametrize(("m", "k"), READS)
def test_wide_grid(m, k, rho):
    """Half of the laws here, the others at the next load or kind of reads."""
    for kind, parameter, offset in LAWS[(LOADS.index(rho) + READS.index((m, k))) % 2 :: 2]:
        pi = np.full((1, m), k / m)
        reads = Reads(pi, np.ones(1), np.ones(1), kind, parameter, offset=offset, scale=np.ones(m))
        system = workload(reads, rho)
        found = plain_estimate(pi, system)
        value, half = summary(simulate(reads, 2_000_000 if rho < 0.8 else 6_000_000, 5)[0])
        assert abs(found.mean / value[0] - 1) < 0.03 + half[0], kind
        assert abs(found.quantiles[2] / value[3] - 1) < 0.05 + half[3], kind


def test_as_many_groups_as_files_are_not_held_at_once():
    """M/M/1 at a load of 0.3: numbers at the points of a law, of all pairs of 600 groups and files, are 740 MB."""
    files, mean = 600, 0.1
    service = ServiceLaw.of_nodes(UnitLaw.named("exponential"), scale=mean, nodes=2)
    load, reads = Workload.of(np.full(files, 6 / files), 1.0, 1, service), np.full((files, 2), 0.5)
    compiled = (
        jax.jit(partial(estimate_latency, groups=np.arange(files), group_count=files))
        .lower(reads, load)
        .compile()
    )
    assert compiled.memory_analysis().temp_size_in_bytes < 4e8
    found = compiled(reads, load)
    sojourn = mean / (1 - 0.3)
    assert_allclose(found.group_mean, sojourn, rtol=0.01)
    assert_allclose(found.group_quantiles[:, 2], sojourn * math.log(100), rtol=0.01)
