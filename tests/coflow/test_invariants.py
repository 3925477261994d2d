"""What every replay must keep, whatever the scheduler and the source rule: of the engine and of the plain replay."""

from typing import NamedTuple

import numpy as np
import pytest
from drawn_coflows import file_reads, first_of, transfers
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_fabric import replay as plain_replay
from plain_rates import SCHEDULERS

from ecjax.coflow.isolation import isolation_s
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.replay import SOURCES, replay
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, Workload

MADD = ("dtarget", "dtarget_remaining", "varys", "fifo", "sincronia", "local_search")
CONSERVING = (*MADD, "aalo", "baraat", "pfabric", "fair")
SEEDS = st.integers(0, 2**32 - 1)

each_scheduler = pytest.mark.parametrize("scheduler", SCHEDULERS)
few = settings(max_examples=6)


class Run(NamedTuple):
    completion: np.ndarray  # (C,)
    finish: np.ndarray  # (F,)
    source: np.ndarray  # (F,)
    segments: np.ndarray  # (n, 4) start, end, flow, rate


def plain(workload, fabric, scheduler, sources="given", seed=0):
    draws = np.random.default_rng(seed).uniform(size=len(workload.candidate))
    coflow = np.repeat(np.arange(len(workload.arrival_s)), np.diff(workload.first_candidate))
    got = plain_replay(workload, fabric, scheduler, sources, workload.candidate[np.lexsort((draws, coflow))])
    segments = [
        (start, end, f, rates[f]) for start, end, rates in got.intervals for f in np.flatnonzero(rates)
    ]
    return Run(got.completion_s, got.finish_s, got.source, np.array(segments))


def engine(workload, fabric, scheduler, sources="given", seed=0):
    got = replay(workload, fabric, scheduler, sources, seed, log=True)
    return Run(got.completion_s, got.finish_s, got.source, got.log)


ENGINES = {"plain": plain, "engine": engine}
each_engine = pytest.mark.parametrize("run", ENGINES.values(), ids=list(ENGINES))


def workload_of(seed):
    """Transfers, reads, or both, with the rule that chooses sources."""
    kind = seed % 3
    if kind == 0:
        return *transfers(seed), "given"
    return *file_reads(seed, given=0.3 * (kind - 1)), SOURCES[seed // 3 % len(SOURCES)]


def rates_between(segments, flows):
    """Moments (M,) at which rates change, and rates (M - 1, F) from one to the next."""
    moments = np.unique(segments[:, :2])
    rates = np.zeros((len(moments) - 1, flows))
    for start, end, flow, rate in segments:
        rates[np.searchsorted(moments, start) : np.searchsorted(moments, end), int(flow)] += rate
    return moments, rates


def incidence(source, destination, fabric):
    """(F, P): the two ports of every flow."""
    ports = np.zeros((len(source), len(fabric.send) + len(fabric.receive)))
    ports[np.arange(len(source)), source] = 1
    ports[np.arange(len(source)), len(fabric.send) + destination] = 1
    return ports


def alone(workload, source, fabric, coflow):
    """Seconds that a coflow takes alone."""
    flows = slice(*workload.first_flow[coflow : coflow + 2])
    ports = incidence(source[flows], workload.destination[flows], fabric)
    return (workload.bytes[flows] @ ports / np.concatenate(fabric)).max()


def isolation(workload, source, fabric):
    return np.array([alone(workload, source, fabric, c) for c in range(len(workload.arrival_s))])


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_rates(run, scheduler, seed):
    """Ports carry no more than they can, flows their bytes, and only between arrival and end.

    Where work is conserved no flow could be faster than it is.
    """
    workload, fabric, sources = workload_of(seed)
    got = run(workload, fabric, scheduler, sources, seed)
    later = workload.source == CHOSEN_LATER
    np.testing.assert_array_equal(got.source[~later], workload.source[~later])
    moments, rates = rates_between(got.segments, len(workload.bytes))
    assert (rates >= 0).all()
    capacity = np.concatenate(fabric)
    ports = incidence(got.source, workload.destination, fabric)
    used = rates @ ports
    assert (used <= capacity * (1 + 1e-9)).all()
    np.testing.assert_allclose(np.diff(moments) @ rates, workload.bytes, rtol=1e-9)

    arrival = workload.arrival_s[workload.coflow_of_flow]
    tolerance = 1e-9 * moments[-1]
    np.testing.assert_allclose(
        np.maximum.reduceat(got.finish, workload.first_flow[:-1]) - workload.arrival_s,
        got.completion,
        atol=tolerance,
    )
    waits = (moments[:-1, None] >= arrival - tolerance) & (moments[1:, None] <= got.finish + tolerance)
    assert (waits | (rates == 0)).all()

    long = np.diff(moments) > tolerance
    free = used < capacity * (1 - 1e-8)
    if scheduler in CONSERVING:
        could = np.where(ports > 0, free[:, None, :], True).all(2)
        assert not (could & waits)[long].any()
    count = waits @ ports
    if scheduler == "equal_share":
        part = np.divide(capacity, count, out=np.full(count.shape, np.inf), where=count > 0)
        expected = np.where(ports > 0, part[:, None, :], np.inf).min(2)
        np.testing.assert_allclose(rates[long], np.where(waits, expected, 0)[long], rtol=1e-9)
    if scheduler == "fair":
        fastest = np.where(ports > 0, rates[:, :, None], 0).max(1)
        bound = ~free[:, None, :] & (rates[:, :, None] >= fastest[:, None, :] * (1 - 1e-8))
        assert ((bound & (ports > 0)).any(2) | ~waits)[long].all()


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_no_coflow_is_faster_than_alone(run, scheduler, seed):
    workload, fabric, sources = workload_of(seed)
    got = run(workload, fabric, scheduler, sources, seed)
    least = isolation(workload, got.source, fabric)
    assert (got.completion >= least * (1 - 1e-9)).all()
    assert (least >= isolation_s(workload, fabric) * (1 - 1e-12)).all()


@few
@given(seed=SEEDS)
def test_no_scheduler_beats_the_lower_bound(seed):
    workload, fabric, sources = workload_of(seed)
    bound = lower_bound(workload, fabric).mean_s
    for scheduler in SCHEDULERS:
        assert engine(workload, fabric, scheduler, sources, seed).completion.mean() >= bound * (1 - 1e-9)


@each_engine
@pytest.mark.parametrize("scheduler", MADD)
@few
@given(seed=SEEDS)
def test_a_coflow_alone_takes_as_long_as_its_bottleneck(run, scheduler, seed):
    workload, fabric = transfers(seed, coflows=1, width=8)
    got = run(workload, fabric, scheduler)
    assert got.completion[0] == pytest.approx(alone(workload, got.source, fabric, 0), rel=1e-9)


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_a_read_alone_takes_as_long_as_its_bottleneck(run, scheduler, seed):
    """Chunks of one size: under every scheduler, pfabric where no server is slower than the client."""
    workload, fabric = file_reads(seed, coflows=1)
    if scheduler == "pfabric":
        fabric = Fabric(fabric.send + fabric.receive.max(), fabric.receive)
    got = run(workload, fabric, scheduler, SOURCES[seed % len(SOURCES)], seed)
    assert got.completion[0] == pytest.approx(alone(workload, got.source, fabric, 0), rel=1e-9)


@each_engine
@each_scheduler
def test_the_same_seed_gives_the_same(run, scheduler):
    workload, fabric = file_reads(7, coflows=10, given=0.2)
    for sources in SOURCES:
        one, other, third = (run(workload, fabric, scheduler, sources, seed) for seed in (3, 3, 4))
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
        if sources == "random":
            assert (one.source != third.source).any()


@each_engine
@each_scheduler
@few
@given(seed=SEEDS, scale=st.sampled_from([2.0**-10, 0.25, 8.0, 2.0**13]))
def test_scales(run, scheduler, seed, scale):
    """Bytes and arrivals times a give times times a; so do arrivals times a and capacities divided by it.

    The limits of the queues of aalo are bytes: only the second holds there. Powers of two keep ties between servers.
    """
    workload, fabric, sources = workload_of(seed)
    got = run(workload, fabric, scheduler, sources, seed)
    slow = workload._replace(arrival_s=workload.arrival_s * scale)
    ports = Fabric(fabric.send / scale, fabric.receive / scale)
    same(run(slow, ports, scheduler, sources, seed), got, scale)
    if scheduler != "aalo":
        same(run(slow._replace(bytes=workload.bytes * scale), fabric, scheduler, sources, seed), got, scale)


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_later_is_the_same(run, scheduler, seed):
    workload, fabric, sources = workload_of(seed)
    sources = "given" if sources == "given" else "random"  # others meet ties that rounding decides
    later = workload._replace(arrival_s=workload.arrival_s + 1000)
    got = run(workload, fabric, scheduler, sources, seed)
    moved = run(later, fabric, scheduler, sources, seed)
    np.testing.assert_array_equal(moved.source, got.source)
    np.testing.assert_allclose(moved.completion, got.completion, rtol=1e-8)


def same(run, other, scale=1.0):
    np.testing.assert_array_equal(run.source, other.source)
    np.testing.assert_allclose(run.completion, other.completion * scale, rtol=1e-9)
    np.testing.assert_allclose(run.finish, other.finish * scale, rtol=1e-9)


def relabelled(workload, fabric, send, receive):
    """Port p becomes ``send[p]`` or ``receive[p]``; numbers that no port has are ports of any capacity."""
    fabrics = []
    for capacity, number in zip(fabric, (send, receive), strict=True):
        fabrics.append(np.full(number.max() + 1, 1.0))
        fabrics[-1][number] = capacity
    source = np.where(workload.source == CHOSEN_LATER, CHOSEN_LATER, send[workload.source])
    moved = workload._replace(
        source=source, destination=receive[workload.destination], candidate=send[workload.candidate]
    )
    return moved, Fabric(*fabrics)


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_unused_ports_change_nothing(run, scheduler, seed):
    workload, fabric, sources = workload_of(seed)
    rng = np.random.default_rng(seed)
    numbers = [np.sort(rng.permutation(2 * len(capacity))[: len(capacity)]) for capacity in fabric]
    got = run(workload, fabric, scheduler, sources, seed)
    moved = run(*relabelled(workload, fabric, *numbers), scheduler, sources, seed)
    np.testing.assert_array_equal(moved.source, numbers[0][got.source])
    same(moved._replace(source=got.source), got)


@each_engine
@pytest.mark.parametrize("scheduler", ["fair", "equal_share"])
@few
@given(seed=SEEDS)
def test_labels_of_ports_mean_nothing(run, scheduler, seed):
    """Where no backfill goes by the numbers of ports. Which flow of a read has which of its servers may change."""
    workload, fabric, sources = workload_of(seed)
    rng = np.random.default_rng(seed)
    send, receive = (rng.permutation(len(capacity)) for capacity in fabric)
    got = run(workload, fabric, scheduler, sources, seed)
    moved = run(*relabelled(workload, fabric, send, receive), scheduler, sources, seed)
    for flows in np.split(np.arange(len(workload.bytes)), workload.first_flow[1:-1]):
        if workload.source[flows[0]] == CHOSEN_LATER:
            assert sorted(moved.source[flows]) == sorted(send[got.source[flows]])
        else:
            np.testing.assert_array_equal(moved.source[flows], send[got.source[flows]])
    np.testing.assert_allclose(moved.completion, got.completion, rtol=1e-9)


@each_engine
@each_scheduler
@few
@given(seed=SEEDS)
def test_labels_mean_nothing_to_coflows_of_one_flow(run, scheduler, seed):
    workload, fabric = transfers(seed, coflows=12, width=1)
    rng = np.random.default_rng(seed)
    got = run(workload, fabric, scheduler)
    moved = run(*relabelled(workload, fabric, *(rng.permutation(len(c)) for c in fabric)), scheduler)
    same(moved._replace(source=got.source), got)


@each_engine
@pytest.mark.parametrize("scheduler", ["fair", "equal_share"])
@few
@given(seed=SEEDS)
def test_coflows_without_common_ports_do_not_meet(run, scheduler, seed):
    """Two fabrics side by side: each has the times it has alone, where events change no rates by themselves.

    Elsewhere every event, of whatever coflow, is a moment at which orders are looked at anew.
    """
    one, one_fabric = transfers(seed, coflows=5, ports=3)
    two, two_fabric = transfers(seed + 1, coflows=5, ports=3)
    order = np.argsort(np.concatenate([one.arrival_s, two.arrival_s]), kind="stable")
    both = joined(one, two, order, 3)
    fabric = Fabric(*(np.concatenate(pair) for pair in zip(one_fabric, two_fabric, strict=True)))
    got = run(both, fabric, scheduler)
    apart = [run(one, one_fabric, scheduler).completion, run(two, two_fabric, scheduler).completion]
    np.testing.assert_allclose(got.completion, np.concatenate(apart)[order], rtol=1e-9)


def joined(one, two, order, ports):
    """The coflows of both in this order, those of the second at ports of their own."""
    width = np.concatenate([one.width, two.width])
    first = first_of(width)
    flows = np.concatenate([np.arange(first[c], first[c + 1]) for c in order])
    none = np.zeros(len(order) + 1, dtype=np.int64)
    return Workload(
        np.concatenate([one.arrival_s, two.arrival_s])[order],
        first_of(width[order]),
        np.concatenate([one.source, two.source + ports])[flows],
        np.concatenate([one.destination, two.destination + ports])[flows],
        np.concatenate([one.bytes, two.bytes])[flows],
        none,
        np.empty(0, dtype=np.int64),
    )
