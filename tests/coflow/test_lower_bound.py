"""The bound against schedules: every order of tiny workloads under a plain fluid simulator, every choice of sources."""

from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest
from dense_order import ordered
from hypothesis import example, given
from hypothesis import strategies as st

from ecjax.coflow import lower_bound as module
from ecjax.coflow.isolation import isolation_s, port_loads
from ecjax.coflow.lower_bound import lower_bound
from ecjax.coflow.port_weights import by_port, weigh
from ecjax.coflow.single_port import shortest_remaining
from ecjax.coflow.workload import CHOSEN_LATER, Fabric, given_sources, reads
from ecjax.tables.importers.coflow_benchmark import read_coflow_benchmark

FACEBOOK = Path(__file__).parents[3] / "shared" / "data" / "FB2010-1Hr-150-0.txt"


def mean_time(workload, fabric, source, order):
    """Coflow by coflow in this order every flow gets what its two ports have left; anew at arrivals and ends."""
    flows = len(source)
    owner = workload.coflow_of_flow
    rank = np.argsort(order)[owner]
    remaining, end, now = workload.bytes.astype(float).copy(), np.zeros(flows), workload.arrival_s[0]
    while (remaining > 0).any():
        send, receive = fabric.send.astype(float).copy(), fabric.receive.astype(float).copy()
        rate = np.zeros(flows)
        for f in np.argsort(rank, kind="stable"):
            if remaining[f] > 0 and workload.arrival_s[owner[f]] <= now:
                rate[f] = min(send[source[f]], receive[workload.destination[f]])
                send[source[f]] -= rate[f]
                receive[workload.destination[f]] -= rate[f]
        later = workload.arrival_s[workload.arrival_s > now]
        until = later[0] if len(later) else np.inf
        served = np.flatnonzero(rate > 0)
        step = min(until - now, (remaining[served] / rate[served]).min() if len(served) else np.inf)
        done = served[remaining[served] / rate[served] <= step * (1 + 1e-12)]
        remaining -= rate * step
        now = until if step == until - now else now + step
        remaining[done] = 0
        end[done] = now
    return (np.maximum.reduceat(end, workload.first_flow[:-1]) - workload.arrival_s).mean()


def choices(workload):
    """Sources of all flows, in every way (flows of a coflow are alike)."""
    each = []
    for c in range(len(workload.arrival_s)):
        flows = slice(*workload.first_flow[c : c + 2])
        if workload.source[flows.start] == CHOSEN_LATER:
            some = workload.candidate[slice(*workload.first_candidate[c : c + 2])]
            each.append(list(combinations(some, int(flows.stop - flows.start))))
        else:
            each.append([tuple(workload.source[flows])])
    return [np.concatenate(one) for one in product(*each)]


@st.composite
def transfers(draw):
    """Few distinct arrivals, sizes and capacities: conflicts and ties are common."""
    coflows = draw(st.integers(1, 4))
    width = draw(st.lists(st.integers(1, 3), min_size=coflows, max_size=coflows))
    flows = sum(width)
    ports = st.lists(st.integers(0, 1), min_size=flows, max_size=flows)
    size = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 5.0]), min_size=flows, max_size=flows))
    arrival = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 1.5, 4.0]), min_size=coflows, max_size=coflows))
    capacity = st.lists(st.sampled_from([1.0, 1.0, 2.0]), min_size=2, max_size=2)
    return given_sources(
        np.sort(arrival),
        np.concatenate([[0], np.cumsum(width)]),
        np.array(draw(ports)),
        np.array(draw(ports)),
        np.array(size),
    ), Fabric(np.array(draw(capacity)), np.array(draw(capacity)))


@st.composite
def some_reads(draw):
    coflows = draw(st.integers(1, 3))

    def of(values):
        return np.array(draw(st.lists(values, min_size=coflows, max_size=coflows)))

    k = of(st.integers(1, 2))
    count = np.minimum(k + of(st.integers(0, 1)), 3)
    servers = [draw(st.permutations(range(3)))[:n] for n in count]
    return reads(
        np.sort(of(st.sampled_from([0.0, 0.0, 1.0, 2.0]))),
        of(st.integers(0, 1)),
        of(st.sampled_from([1.0, 2.0, 5.0])),
        k,
        np.concatenate([[0], np.cumsum(count)]),
        np.concatenate(servers),
    ), Fabric(np.array([1.0, 1.0, 2.0]), np.array(draw(st.sampled_from([[1.0, 2.0], [9.0, 9.0]]))))


def every_proof(workload, fabric):
    """Each on its own, also those that ``lower_bound`` would not try or take; sums of flow times."""
    loads, isolation = port_loads(workload, fabric), isolation_s(workload, fabric)
    arrival = workload.arrival_s - workload.arrival_s[0]
    entries = by_port(arrival, loads.coflow, loads.port, loads.load, loads.ports)
    bound, weight, gain = weigh(isolation, *entries, 100)
    found = {
        "isolation": isolation.sum(),
        "bottlenecks": module._at_bottlenecks(arrival, isolation, loads),
        "weights": bound,
        "prices": module._by_prices(arrival, isolation, loads, entries, weight, gain + 1.0),
    }
    if arrival[-1] == 0:
        dense = np.zeros((len(arrival), loads.ports))
        dense[loads.coflow, loads.port] = loads.load
        found["algorithm_1"] = ordered(dense)[1]
    return found


def check(workload, fabric):
    orders = list(permutations(range(len(workload.arrival_s))))
    best = min(mean_time(workload, fabric, source, order) for source in choices(workload) for order in orders)
    found = every_proof(workload, fabric)
    for kind, value in found.items():
        assert value / len(workload.arrival_s) <= best * (1 + 1e-9), kind
    bound = lower_bound(workload, fabric)
    assert isolation_s(workload, fabric).mean() * (1 - 1e-12) <= bound.mean_s <= best * (1 + 1e-9)
    assert bound.mean_s >= found["bottlenecks"] / len(workload.arrival_s) * (1 - 1e-12)
    assert lower_bound(workload, fabric) == bound


@given(transfers())
def test_no_order_is_better(drawn):
    check(*drawn)


@given(some_reads())
def test_no_choice_of_sources_is_better(drawn):
    check(*drawn)


@given(st.integers(0, 10_000))
@example(0)
def test_one_port_is_solved(seed):
    """All sources differ and are fast: only the one destination matters."""
    rng = np.random.default_rng(seed)
    coflows = 30
    arrival = np.sort(rng.exponential(10, coflows))
    size = rng.lognormal(0, 1.5, coflows)
    workload = given_sources(
        arrival, np.arange(coflows + 1), np.arange(coflows), np.zeros(coflows, dtype=np.int64), size
    )
    fabric = Fabric(np.full(coflows, 1e3), np.array([2.0]))
    best = shortest_remaining(arrival, size / 2, np.empty(coflows)) / coflows
    assert lower_bound(workload, fabric).mean_s == pytest.approx(best, rel=1e-12)


def test_coflows_that_never_meet_take_their_time_alone():
    workload = given_sources(
        np.array([0.0, 0.0, 10.0]), np.arange(4), np.array([0, 1, 0]), np.array([0, 1, 1]), np.full(3, 4.0)
    )
    bound = lower_bound(workload, Fabric(np.full(2, 2.0), np.full(2, 1.0)))
    assert bound.mean_s == 4.0


def test_coflows_whose_weights_gain_by_rounding_alone():
    """Sizes for which the bound by weights is above the mean of 7 and 9 bytes alone in its last digit."""
    workload = given_sources(
        np.zeros(2), np.arange(3), np.array([0, 1]), np.array([1, 0]), np.array([7.0, 9.0])
    )
    bound = lower_bound(workload, Fabric(np.full(2, 125e6), np.full(2, 125e6)))
    assert bound.mean_s == pytest.approx(8 / 125e6, rel=1e-12)


def test_the_calendar_costs_no_digits():
    """Seconds since 1970, transfers of a thousandth."""
    rng = np.random.default_rng(3)
    arrival = np.arange(12) // 4 / 1024
    workload = given_sources(
        arrival,
        np.arange(0, 25, 2),
        rng.integers(3, size=24),
        rng.integers(3, size=24),
        rng.exponential(1e3, 24),
    )
    fabric = Fabric(np.full(3, 1e6), np.full(3, 1e6))
    here = lower_bound(workload, fabric)
    assert lower_bound(workload._replace(arrival_s=arrival + 2.0**31), fabric) == here


def test_servers_taken_together():
    """Reads of many clients from two servers that can choose freely: the servers are what is scarce."""
    coflows = 6
    workload = reads(
        np.zeros(coflows),
        np.arange(coflows),
        np.arange(1.0, coflows + 1),
        np.ones(coflows, dtype=np.int64),
        2 * np.arange(coflows + 1),
        np.tile([0, 1], coflows),
    )
    bound = lower_bound(workload, Fabric(np.ones(2), np.full(coflows, 100.0)))
    # both as one of capacity 2: shortest first
    assert bound.mean_s >= np.cumsum(np.arange(1, 7)).mean() / 2 * (1 - 1e-12)


def test_ports_that_share_coflows():
    """Many coflows over all ports, with loads that differ: prices prove most, and near a good schedule."""
    rng = np.random.default_rng(1)
    coflows, ports = 25, 4
    first = np.arange(0, coflows * ports + 1, ports)
    workload = given_sources(
        np.sort(rng.uniform(0, 40, coflows)),
        first,
        np.concatenate([rng.permutation(ports) for _ in range(coflows)]),
        np.concatenate([rng.permutation(ports) for _ in range(coflows)]),
        rng.lognormal(0, 1, coflows * ports),
    )
    fabric = Fabric(np.ones(ports), np.ones(ports))
    alone = isolation_s(workload, fabric)
    good = mean_time(workload, fabric, workload.source, np.argsort(alone))
    bound = lower_bound(workload, fabric)
    found = every_proof(workload, fabric)
    assert found["prices"] > found["weights"] > found["bottlenecks"]
    assert bound.kind == "prices"
    assert 0.8 * good <= bound.mean_s <= good


@pytest.mark.skipif(not FACEBOOK.exists(), reason="needs ../shared/data")
def test_the_trace_of_facebook():
    """8 ms per megabyte: 22.225 s is reached by a schedule, 14.721 s is the mean time alone."""
    read = read_coflow_benchmark(FACEBOOK)
    column = {name: read.table[name].to_numpy() for name in ("arrival_s", "src", "dst", "bytes")}
    workload = given_sources(
        column["arrival_s"][read.first_flow[:-1]],
        np.asarray(read.first_flow),
        column["src"],
        column["dst"],
        column["bytes"],
    )
    fabric = Fabric(np.full(150, 125e6), np.full(150, 125e6))
    assert isolation_s(workload, fabric).mean() == pytest.approx(14.721, abs=5e-4)
    bound = lower_bound(workload, fabric)
    assert 20.7 < bound.mean_s < 22.225
    assert bound.kind == "prices"
