"""What rules compute by themselves, against closed forms."""

import numpy as np
import pytest

from ecjax.simulation import tally
from ecjax.studies.reproduce.claims.jlcm.theorems import mixed_bounds, mixing
from ecjax.studies.reproduce.claims.small import (
    Small,
    interval,
    poisson,
    priority_waits_by_transform,
    replayed,
    wait_by_transform,
)

SERVICE = (13.9, 211.8, 3476.8)


@pytest.mark.parametrize("load", [0.2, 0.9])
def test_waits_of_an_exponential_server(load):
    """The wait is 0 with probability 1 - rho and else exponential with mean 1 / (1 - rho)."""
    mean, variance = wait_by_transform(load, 1.0, 2.0, 6.0)
    assert mean == pytest.approx(load / (1 - load), rel=1e-12)
    assert variance == pytest.approx(load * (2 - load) / (1 - load) ** 2, rel=1e-12)


def test_waits_of_two_classes_by_transforms():
    """Cobham's means; and either class without the other is an M/G/1 queue."""
    rates, moments = (0.3, 0.25), ((1.0, 1.5, 3.0), (1.6, 4.0, 15.0))
    work = [rate * second for rate, (_, second, _) in zip(rates, moments, strict=True)]
    load = [rate * first for rate, (first, _, _) in zip(rates, moments, strict=True)]
    residual = sum(work) / 2
    (high, _), (low, _) = priority_waits_by_transform(rates, moments)
    assert high == pytest.approx(residual / (1 - load[0]), rel=1e-12)
    assert low == pytest.approx(residual / ((1 - load[0]) * (1 - sum(load))), rel=1e-12)
    for alone in (0, 1):
        found = priority_waits_by_transform([rates[0] * (alone == 0), rates[1] * (alone == 1)], moments)
        assert found[alone] == pytest.approx(wait_by_transform(load[alone], *moments[alone]), rel=1e-12)


def test_variances_of_two_classes_by_transforms():
    """Against a replay event by event of one node in plain Python."""
    rates, means = (0.25, 0.3), (0.8, 1.2)
    random = np.random.default_rng(5)
    count = 400_000
    ends = [np.cumsum(random.exponential(1 / rate, count)).tolist() for rate in rates]
    horizon = min(times[-1] for times in ends)
    services = [random.exponential(mean, count).tolist() for mean in means]
    place, now, waits = [0, 0], 0.0, ([], [])
    while now < horizon:
        ready = [ends[item][place[item]] for item in (0, 1)]
        item = 0 if ready[0] <= now or ready[0] <= ready[1] and ready[1] > now else 1
        now = max(now, ready[item])
        waits[item].append(now - ready[item])
        now += services[item][place[item]]
        place[item] += 1
    moments = [(mean, 2 * mean**2, 6 * mean**3) for mean in means]
    for found, (mean, variance) in zip(waits, priority_waits_by_transform(rates, moments), strict=True):
        assert np.mean(found) == pytest.approx(mean, rel=0.03)
        assert np.var(found) == pytest.approx(variance, rel=0.08)


def test_small_systems_are_replayed():
    """Two constant chunks of 1 s together at load 0.5: a wait of 1 s, as rho S / (2 (1 - rho)) with S = 2."""
    small = Small((1,), ((0,),), [1.0], [0.0], chunks=2)
    mean, half = interval(replayed(small, poisson([0.25], 200_000, 2)).paths[10_000:])
    assert abs(mean - 3.0) <= 1.5 * half
    assert half < 0.1


def test_a_few_reads_show_which_nodes_served_each():
    """Three files that are read from given nodes, in turn: as many reads as a tally has batches."""
    places = (0, 2), (1, 2), (0, 3)
    small = Small((2, 2, 2), places, [0.0] * 4, [1e-6] * 4)
    files = np.arange(tally.BATCHES) % 3
    served = replayed(small, (np.arange(float(tally.BATCHES)), files)).batches[1:, :, 0]
    expected = np.zeros_like(served)
    for read, file in enumerate(files):
        expected[list(places[file]), read] = 1
    np.testing.assert_array_equal(served, expected)


def test_of_one_kind_of_read_bounds_are_those_of_alike_nodes():
    """E + sqrt((k - 1) V), with six nodes of one chunk and three of two."""
    load = 0.5
    first, second, third = SERVICE
    pair = 2 * first, 2 * second + 2 * first**2, 2 * third + 6 * first * second
    for place, count, moments in ((0, 6, SERVICE), (-1, 3, pair)):
        rate = load / moments[0]
        wait = rate * moments[1] / (2 * (1 - load))
        variance = moments[1] - moments[0] ** 2 + rate * moments[2] / (3 * (1 - load)) + wait**2
        expected = moments[0] + wait + np.sqrt((count - 1) * variance)
        assert mixed_bounds(load, SERVICE)[place] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("load", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97])
def test_several_chunks_from_a_node_do_not_pay_where_serving_takes_time(load):
    """Lemma 4's number of chunks per node as a decision: every share of reads that takes two makes it worse."""
    assert (np.diff(mixed_bounds(load, SERVICE, 0.08, 256e-6)) > 0).all()


def test_several_chunks_from_a_node_pay_where_connections_vary():
    assert (np.diff(mixed_bounds(0.1, (0.001, 2e-6, 6e-9), 1.0, 1.0)) < 0).all()


def test_connections_that_take_long_but_never_vary_do_not_make_several_chunks_pay():
    """The mean of a connection is added to either kind of read; of its variance fewer nodes take less."""
    load, long = 0.5, 1000.0
    without, constant = mixed_bounds(load, SERVICE), mixed_bounds(load, SERVICE, long)
    np.testing.assert_allclose(constant - without, long, rtol=1e-9)
    assert (np.diff(constant) > 0).all()
    first, second, third = SERVICE
    bounds = {}
    for count, moments in (
        (6, SERVICE),
        (3, (2 * first, 2 * second + 2 * first**2, 2 * third + 6 * first * second)),
    ):
        rate = load / moments[0]
        wait = rate * moments[1] / (2 * (1 - load))
        variance = moments[1] - moments[0] ** 2 + rate * moments[2] / (3 * (1 - load)) + wait**2
        for of_connections in (0.0, long**2):
            bound = moments[0] + wait + np.sqrt((count - 1) * (variance + of_connections))
            bounds[count, of_connections] = bound
    same, varied = (bounds[3, each] - bounds[6, each] for each in (0.0, long**2))
    assert same > 0 > varied
    said = mixing()
    assert (
        f"{same:+.0f} s where a connection takes" in said
        and f"{varied:+.0f} s where that is the mean" in said
    )
