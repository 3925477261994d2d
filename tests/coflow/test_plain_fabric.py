"""The plain replay against what follows by hand, from definitions and from theory."""

import itertools

import numpy as np
import pytest
from plain_fabric import replay
from plain_rates import SCHEDULERS, State, bssi, exchange, fair

from ecjax.coflow.workload import Fabric, given_sources, reads

MADD = ("dtarget", "varys", "fifo", "sincronia")


def coflows(*rows, send, receive):
    """Rows: (arrival, [(source, destination, bytes), ...])."""
    flows = [flow for _, some in rows for flow in some]
    first = np.cumsum([0] + [len(some) for _, some in rows])
    source, destination, size = (np.array(column) for column in zip(*flows, strict=True))
    workload = given_sources(
        np.array([float(arrival) for arrival, _ in rows]), first, source, destination, size.astype(float)
    )
    return workload, Fabric(np.array(send, dtype=float), np.array(receive, dtype=float))


def one_port(*rows):
    """Coflows of one flow each, that share one sending port of capacity 1; rows: (arrival, bytes)."""
    return coflows(
        *[(arrival, [(0, c, size)]) for c, (arrival, size) in enumerate(rows)],
        send=[1.0],
        receive=[10.0] * len(rows),
    )


def processor_sharing(arrival, size):
    """Ends of jobs that share one server of speed 1 equally."""
    left, now, end = dict(enumerate(size)), 0.0, np.zeros(len(size))
    while left:
        here = [j for j in left if arrival[j] <= now]
        later = [arrival[j] for j in left if arrival[j] > now]
        if not here:
            now = min(later)
            continue
        step = min(left[j] for j in here) * len(here)
        step = min([step] + [t - now for t in later])
        now += step
        for j in here:
            left[j] -= step / len(here)
            if left[j] <= 1e-12:
                del left[j]
                end[j] = now
    return end


def shortest_remaining_first(arrival, size):
    left, now, end = dict(enumerate(size)), 0.0, np.zeros(len(size))
    while left:
        here = [j for j in left if arrival[j] <= now]
        later = [arrival[j] for j in left if arrival[j] > now]
        if not here:
            now = min(later)
            continue
        job = min(here, key=lambda j: (left[j], j))
        step = min([left[job]] + [t - now for t in later])
        now += step
        left[job] -= step
        if left[job] <= 1e-12:
            del left[job]
            end[job] = now
    return end


def first_come_first_served(arrival, size):
    end = np.zeros(len(size))
    for j, (a, b) in enumerate(zip(arrival, size, strict=True)):
        end[j] = max(a, end[j - 1] if j else 0.0) + b
    return end


THEORY = {
    "fair": processor_sharing,
    "equal_share": processor_sharing,
    "varys": shortest_remaining_first,
    "pfabric": shortest_remaining_first,
    "fifo": first_come_first_served,
}


@pytest.mark.parametrize("scheduler", THEORY)
def test_one_port_is_a_queue(scheduler):
    rng = np.random.default_rng(3)
    arrival = np.sort(rng.uniform(0, 10, 12))
    arrival[3] = arrival[4]
    size = rng.lognormal(0, 1, 12)
    got = replay(*one_port(*zip(arrival, size, strict=True)), scheduler).finish_s
    np.testing.assert_allclose(got, THEORY[scheduler](arrival, size), rtol=1e-12)


def test_one_port_by_bssi_starts_with_the_smallest():
    """All at once on one port: dual updates leave Smith's rule, the smallest first."""
    size = [4.0, 1.0, 3.0, 2.0]
    got = replay(*one_port(*[(0, s) for s in size]), "sincronia")
    np.testing.assert_allclose(got.completion_s, [10, 1, 6, 3])


def cost(order, loads, ports):
    """Sum of the ends of jobs of a concurrent open shop, served in this order at every port."""
    total, at = 0.0, dict.fromkeys(ports, 0.0)
    for job in order:
        for p, load in loads[job].items():
            at[p] += load
        total += max(at[p] for p in loads[job])
    return total


@pytest.mark.parametrize("seed", range(20))
def test_bssi_is_at_most_twice_the_best_order(seed):
    rng = np.random.default_rng(seed)
    jobs, ports = range(5), range(4)
    loads = {j: {int(p): float(rng.exponential()) for p in rng.choice(4, 2, replace=False)} for j in jobs}
    best = min(cost(order, loads, ports) for order in itertools.permutations(jobs))
    order = bssi(loads, ports)
    assert sorted(order) == list(jobs)
    assert best - 1e-12 <= cost(order, loads, ports) <= 2 * best


@pytest.mark.parametrize("seed", range(10))
def test_exchanging_neighbours_ends_where_none_helps(seed):
    rng = np.random.default_rng(seed)
    loads = {j: {int(p): float(rng.exponential()) for p in rng.choice(4, 2, replace=False)} for j in range(6)}
    order = exchange(list(range(6)), loads)
    assert cost(order, loads, range(4)) <= cost(range(6), loads, range(4))
    for i in range(5):
        other = [*order[:i], order[i + 1], order[i], *order[i + 2 :]]
        assert cost(order, loads, range(4)) <= cost(other, loads, range(4)) + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_max_min_by_its_definition(seed):
    """Every flow has a port that is full, at which no flow is faster: no other rates are max-min fair."""
    rng = np.random.default_rng(seed)
    ports, flows = 4, 12
    workload, fabric = coflows(
        (0, [(rng.integers(ports), rng.integers(ports), 1.0) for _ in range(flows)]),
        send=rng.uniform(0.5, 3, ports),
        receive=rng.uniform(0.5, 3, ports),
    )
    state = State(workload, fabric)
    state.active = [0]
    rates = np.array(fair(state))
    at = [[f for f in range(flows) if p in state.ports(f)] for p in range(2 * ports)]
    used = np.array([rates[some].sum() for some in at])
    assert (used <= np.array(state.capacity) * (1 + 1e-12)).all()
    for f in range(flows):
        assert any(
            used[p] >= state.capacity[p] * (1 - 1e-12) and rates[f] >= rates[at[p]].max() * (1 - 1e-12)
            for p in state.ports(f)
        )


def read_twice(arrivals, sources, scheduler):
    """Section II of the paper: chunks of 1 over links of 1; nothing limits the clients."""
    candidate = np.array([server for some in sources for server in some])
    workload = reads(
        np.array(arrivals), np.arange(2), np.ones(2), np.array([2, 2]), np.array([0, 2, 4]), candidate
    )
    return replay(workload, Fabric(np.ones(4), np.full(2, 10.0)), scheduler, "random", candidate)


def test_example_of_source_selection():
    assert read_twice([0.0, 0.0], [(1, 2), (2, 3)], "fair").completion_s.mean() == pytest.approx(2, rel=1e-14)
    assert read_twice([0.0, 0.0], [(0, 1), (2, 3)], "fair").completion_s.mean() == pytest.approx(1, rel=1e-14)


def test_example_of_transfers():
    """Means of ends are 1.95 and 1.5, as printed; the paper calls them access times."""
    shared = read_twice([0.0, 0.1], [(0, 1), (1, 2)], "fair")
    assert shared.finish_s.reshape(2, 2).max(1).mean() == pytest.approx(1.95, rel=1e-14)
    assert shared.completion_s.mean() == pytest.approx(1.90, rel=1e-14)
    for scheduler in MADD:
        first = read_twice([0.0, 0.1], [(0, 1), (1, 2)], scheduler)
        assert first.finish_s.reshape(2, 2).max(1).mean() == pytest.approx(1.5, rel=1e-14)
        assert first.completion_s.mean() == pytest.approx(1.45, rel=1e-14)


def test_smallest_load_takes_what_is_idle_then_the_random_order():
    candidate = np.array([2, 0, 1, 3, 1, 2, 0, 3])
    workload = reads(
        np.array([0.0, 0.0]),
        np.arange(2),
        np.array([2.0, 1.0]),
        np.array([2, 3]),
        np.array([0, 4, 8]),
        candidate,
    )
    got = replay(workload, Fabric(np.ones(4), np.ones(2)), "fair", "smallest_load", candidate)
    assert got.source.tolist() == [2, 0, 1, 3, 2]
    got = replay(workload, Fabric(np.ones(4), np.ones(2)), "fair", "random", candidate)
    assert got.source.tolist() == [2, 0, 1, 2, 0]


def test_madd_slows_flows_that_need_not_hurry():
    """Coflow 0 is bound by source 0; its other flow leaves half of source 1 to coflow 1, from the beginning."""
    workload, fabric = coflows(
        (0, [(0, 0, 2.0), (1, 1, 1.0)]), (0, [(1, 2, 4.0)]), send=[1, 1], receive=[1, 1, 1]
    )
    for scheduler in MADD:
        got = replay(workload, fabric, scheduler)
        np.testing.assert_allclose(got.finish_s, [2, 2, 5])
        np.testing.assert_allclose(got.intervals[0][2], [1, 0.5, 0.5])


def test_full_sizes_do_not_change_on_the_way():
    """At 1.5 s coflow 0 has 0.5 left, less than coflow 1, but is larger as printed; both ports are busy to the end."""
    workload, fabric = one_port((0, 2.0), (1.5, 1.0))
    np.testing.assert_allclose(replay(workload, fabric, "dtarget").finish_s, [3, 2.5])
    np.testing.assert_allclose(replay(workload, fabric, "dtarget_remaining").finish_s, [2, 3])


def test_full_sizes_set_the_rates():
    """Of two flows of 2 one has 0.5 left, the other 1.5, when a coflow arrives: both go on at the same rate."""
    workload, fabric = coflows(
        (0, [(0, 0, 2.0), (1, 1, 2.0)]), (0.5, [(2, 1, 9.0)]), send=[1, 3, 9], receive=[1, 3]
    )
    got = replay(workload, fabric, "dtarget")
    np.testing.assert_allclose([rates for _, _, rates in got.intervals][:2], [[1, 3, 0], [1, 1, 2]])


def test_backfill_goes_by_ports():
    """Coflow 1 finds destination 0 full: its flow to 1 is backfilled alone, at all that is left there."""
    workload, fabric = coflows(
        (0, [(0, 0, 1.0)]), (0, [(1, 1, 2.0), (1, 0, 1.0)]), send=[1, 1], receive=[1, 1]
    )
    got = replay(workload, fabric, "varys")
    np.testing.assert_allclose(got.finish_s, [1, 3, 3])
    np.testing.assert_allclose(got.intervals[0][2], [1, 1, 0])
    np.testing.assert_allclose(got.intervals[1][2], [0, 0.5, 0.5])


def test_queues_share_ports_by_weight():
    """Coflow 0 is in the second queue after 1 s, at 10 MB; coflow 1 has 10 parts of 19 until its end at 10 MB."""
    workload, fabric = coflows((0, [(0, 0, 100e6)]), (1, [(0, 1, 10e6)]), send=[10e6], receive=[1e9, 1e9])
    got = replay(workload, fabric, "aalo")
    np.testing.assert_allclose(got.completion_s, [11, 1.9])
    assert [end for _, end, _ in got.intervals] == pytest.approx([1, 2.9, 11])


def test_queues_serve_the_first_first_and_backfill():
    """Coflow 0 is bound by its destination; coflow 1, in the same queue, has the rest of the source."""
    workload, fabric = coflows((0, [(0, 0, 4e6)]), (0, [(0, 1, 9e6)]), send=[4e6], receive=[1e6, 9e6])
    got = replay(workload, fabric, "aalo")
    np.testing.assert_allclose(got.completion_s, [4, 3])


def test_heavy_coflows_share_with_the_next():
    """Of sizes 1, 1, 1, 1, 11 the 80 % quantile is 3: from 3 s on the large coflow shares with one after the other."""
    workload, fabric = coflows(
        (0, [(0, 0, 11.0)]),
        *[(1, [(0, 1 + c, 1.0)]) for c in range(4)],
        send=[1],
        receive=[10] * 5,
    )
    got = replay(workload, fabric, "baraat")
    np.testing.assert_allclose(got.finish_s, [15, 5, 7, 9, 11])


def test_equal_share_leaves_what_others_cannot_use():
    workload, fabric = coflows(
        (0, [(0, 0, 1.0)]), (0, [(0, 1, 1.0)]), (0, [(1, 0, 1.0)] * 3), send=[1, 9], receive=[1, 9]
    )
    got = replay(workload, fabric, "equal_share")
    np.testing.assert_allclose(got.intervals[0][2], [1 / 4, 1 / 2, 1 / 4, 1 / 4, 1 / 4])
    assert replay(workload, fabric, "fair").intervals[0][2][1] == pytest.approx(3 / 4)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_intervals_carry_all_bytes(scheduler):
    rng = np.random.default_rng(1)
    rows = [
        (c // 2, [(rng.integers(3), rng.integers(3), rng.uniform(1, 9)) for _ in range(rng.integers(1, 5))])
        for c in range(8)
    ]
    workload, fabric = coflows(*rows, send=rng.uniform(1, 3, 3), receive=rng.uniform(1, 3, 3))
    got = replay(workload, fabric, scheduler)
    carried = sum((end - start) * rates for start, end, rates in got.intervals)
    np.testing.assert_allclose(carried, workload.bytes, rtol=1e-11)
