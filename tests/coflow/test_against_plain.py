"""The engine against the plain replay, coflow by coflow and flow by flow."""

import numpy as np
import pytest
from drawn_coflows import file_reads, shuffles, ties, transfers
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_fabric import replay as plain_replay
from plain_rates import SCHEDULERS

from ecjax.coflow.replay import SCHEDULERS as ALL
from ecjax.coflow.replay import SOURCES, replay
from ecjax.coflow.sources import random_order
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, reads

each_scheduler = pytest.mark.parametrize("scheduler", SCHEDULERS)
SEEDS = st.integers(0, 2**32 - 1)


def compare(workload, fabric, scheduler, sources="given", seed=0):
    got = replay(workload, fabric, scheduler, sources, seed)
    order = random_order(workload, seed)
    expected = plain_replay(workload, fabric, scheduler, sources, order, taken=got.source)
    np.testing.assert_allclose(got.completion_s, expected.completion_s, rtol=1e-9)
    mine, other = (flows_of(workload, some, sources) for some in (got, expected))
    np.testing.assert_array_equal(got.source[mine], expected.source[other])
    np.testing.assert_allclose(got.finish_s[mine], expected.finish_s[other], rtol=1e-9)


def flows_of(workload, outcome, sources):
    """Flows, those of reads by server: which of them moves where is open where chunks are chosen anew."""
    place = np.arange(len(workload.bytes))
    if sources == "least_work_ahead":
        place = np.where(workload.source == CHOSEN_LATER, outcome.source, place)
    return np.lexsort((place, workload.coflow_of_flow))


def test_all_schedulers_are_compared():
    assert set(ALL) == set(SCHEDULERS)


@each_scheduler
@settings(max_examples=10)
@given(
    seed=SEEDS,
    coflows=st.integers(1, 12),
    ports=st.integers(1, 6),
    width=st.integers(1, 9),
    even=st.booleans(),
)
def test_transfers(scheduler, seed, coflows, ports, width, even):
    compare(*transfers(seed, coflows, ports, width, even), scheduler)


@each_scheduler
@settings(max_examples=8)
@given(seed=SEEDS, coflows=st.integers(1, 8), ports=st.integers(2, 7), even=st.booleans())
def test_shuffles(scheduler, seed, coflows, ports, even):
    """Rows of many flows: most keep their rate at most events."""
    compare(*shuffles(seed, coflows, ports, even), scheduler)


@each_scheduler
@pytest.mark.parametrize("sources", SOURCES)
@settings(max_examples=8)
@given(
    seed=SEEDS,
    coflows=st.integers(1, 15),
    servers=st.integers(2, 8),
    clients=st.integers(1, 5),
    share_given=st.sampled_from([0.0, 0.3]),
    even=st.booleans(),
)
def test_reads(scheduler, sources, seed, coflows, servers, clients, share_given, even):
    compare(*file_reads(seed, coflows, servers, clients, share_given, even), scheduler, sources, seed)


@each_scheduler
def test_many_flows(scheduler):
    compare(*transfers(11, coflows=30, ports=5, width=9), scheduler)


@each_scheduler
def test_the_calendar_costs_no_digits(scheduler):
    """Seconds since 1970, of which no double tells moments apart that are nearer than 2e-7; coflows of 1e-5."""
    workload, fabric = transfers(7)
    # halves of 2^-20 s are whole digits of both
    gaps = np.round(workload.arrival_s * 4) * 2.0**-20
    small = workload._replace(arrival_s=gaps, bytes=workload.bytes * 2.0**-20)
    at_zero = plain_replay(small, fabric, scheduler)
    got = replay(small._replace(arrival_s=gaps + 2.0**30), fabric, scheduler, log=True)
    np.testing.assert_allclose(got.completion_s, at_zero.completion_s, rtol=1e-9)
    np.testing.assert_allclose(got.finish_s - 2.0**30, at_zero.finish_s, atol=2.0**-22)
    assert got.log[0, 0] == 2.0**30 + gaps[0]


@pytest.mark.parametrize("scheduler", ["dtarget", "fifo", "aalo", "baraat", "fair", "equal_share"])
@settings(max_examples=10)
@given(seed=SEEDS, coflows=st.integers(1, 12), ports=st.integers(1, 4), width=st.integers(1, 5))
def test_ties(scheduler, seed, coflows, ports, width):
    """Where no order depends on what is left: elsewhere rounding decides which of two that are equal comes first."""
    compare(*ties(seed, coflows, ports, width), scheduler)


@pytest.mark.parametrize(
    ("arrivals", "servers", "scheduler", "end", "completion"),
    [
        ([0.0, 0.0], [1, 2, 2, 3], "fair", 2, 2),
        ([0.0, 0.0], [0, 1, 2, 3], "fair", 1, 1),
        ([0.0, 0.1], [0, 1, 1, 2], "fair", 1.95, 1.90),
        ([0.0, 0.1], [0, 1, 1, 2], "dtarget", 1.5, 1.45),
        ([0.0, 0.1], [0, 1, 1, 2], "varys", 1.5, 1.45),
    ],
)
def test_examples_of_the_paper(arrivals, servers, scheduler, end, completion):
    """Section II: means over two reads of two chunks of 1 over links of 1; nothing limits the clients."""
    first = np.array([0, 2, 4])
    workload = reads(np.array(arrivals), np.arange(2), np.ones(2), np.array([2, 2]), first, np.array(servers))
    got = replay(workload, Fabric(np.ones(4), np.full(2, 10.0)), scheduler, "random")
    assert np.maximum.reduceat(got.finish_s, first[:-1]).mean() == pytest.approx(end, rel=1e-12)
    assert got.completion_s.mean() == pytest.approx(completion, rel=1e-12)
