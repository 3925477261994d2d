"""The plain simulator against latencies worked out by hand: services take 1 s, at some nodes longer."""

import numpy as np
import pytest
from plain_simulator import Simulation, simulate
from systems import law_table, make_system


def system(nodes=1, need=(1,), queues=None, service=1.0, placements=None, **others):
    placements = [range(nodes)] * len(need) if placements is None else placements
    law = law_table("deterministic", nodes, offset=service, scale=0.0)
    return make_system(need, placements, law, queues=queues, **others)


@pytest.mark.parametrize(
    "queue,files,expected",
    [
        ("fcfs", [0, 0, 0], [1.0, 1.9, 2.8]),
        ("fcfs", [1, 1, 0], [1.0, 1.9, 2.8]),
        ("priority", [1, 1, 0], [1.0, 2.9, 1.8]),
        ("partitioned", [1, 1, 0], [2.0, 3.9, 2.0]),
        # half speed from 0.2 on: the first ends at 1.8; the last at 2.2 (0.8 done at 1.8, with the second, 0.2 left)
        ("shared", [1, 1, 0], [1.8, 2.9, 2.0]),
    ],
)
def test_queues_of_a_node(queue, files, expected):
    one = system(need=(1, 1), queues=[0, 1])
    found = simulate(one, [0.0, 0.1, 0.2], files, 0, queue=queue, weights=[0.5, 0.5])
    np.testing.assert_allclose(found, expected)


def test_unequal_shares():
    # the first alone to 0.5; then speeds 3/4 and 1/4: it ends at 0.5 + 0.5 / 0.75; the second has 5/6 left then
    found = simulate(
        system(need=(1, 1), queues=[0, 1]), [0.0, 0.5], [0, 1], 0, queue="shared", weights=[3.0, 1.0]
    )
    np.testing.assert_allclose(found, [0.5 + 2 / 3, 1.5])


def test_fork_join_with_and_without_cancellation():
    two = system(2, service=[1.0, 3.0])
    run = Simulation(two, [0.0, 0.5], [0, 0], 0, policy="fork_join")
    np.testing.assert_allclose(run.latencies, [1.0, 1.5])
    np.testing.assert_allclose(run.busy, [2.0, 2.0])
    assert len(run.records) == 2
    run = Simulation(two, [0.0, 0.5], [0, 0], 0, policy="fork_join", cancel=False)
    np.testing.assert_allclose(run.latencies, [1.0, 1.5])
    np.testing.assert_allclose(run.busy, [2.0, 6.0])
    assert [record[3] for record in run.records] == [1.0, 2.0, 3.0, 6.0]


def test_cancelled_accesses_leave_the_queue():
    # node 0 takes both requests at once; node 1 serves the second from 1 on, node 0 would from 3 on
    run = Simulation(system(2, (1, 1), service=[3.0, 1.0]), [0.0, 0.25], [0, 1], 0, policy="fork_join")
    np.testing.assert_allclose(run.latencies, [1.0, 1.75])
    np.testing.assert_allclose(run.busy, [2.0, 2.0])  # 0 to 1 for the first, 1 to 2 for the second


def test_late_binding_binds_when_a_node_is_idle():
    # need 2 of 2: nodes of 1 s and 3 s; the second request is begun by node 0 at 1, by node 1 at 3
    run = Simulation(system(2, (2,), service=[1.0, 3.0]), [0.0, 0.5], [0, 0], 0, policy="late_binding")
    np.testing.assert_allclose(run.latencies, [3.0, 5.5])
    # need 1 of 2, three requests: whichever node is idle first takes the third
    run = Simulation(
        system(2, (1,), service=[1.0, 3.0]), [0.0, 0.1, 0.2], [0, 0, 0], 0, policy="late_binding"
    )
    np.testing.assert_allclose(run.latencies[2], 1.8 if run.latencies[0] == 1.0 else 1.9)
    assert sorted(run.latencies[:2]) == [1.0, 3.0]


def test_hedging_sends_another_access_after_the_delay():
    slow_first = system(2, service=[9.0, 1.0], probabilities=[[1.0, 0.0]])
    run = Simulation(slow_first, [0.0], [0], 0, policy="hedged", hedge_delay=2.0)
    np.testing.assert_allclose(run.latencies, [3.0])
    np.testing.assert_allclose(run.busy, [3.0, 1.0])
    run = Simulation(slow_first, [0.0], [0], 0, policy="hedged", hedge_delay=2.0, cancel=False)
    np.testing.assert_allclose(run.latencies, [3.0])
    np.testing.assert_allclose(run.busy, [9.0, 1.0])
    assert run.records[0] == (0, 1, 2.0, 3.0)
    run = Simulation(slow_first, [0.0], [0], 0, policy="hedged", hedge_delay=9.0)
    np.testing.assert_allclose(run.busy, [9.0, 0.0])
    writes = system(2, service=[9.0, 1.0], probabilities=[[1.0, 0.0]], classes=[-1])
    assert simulate(writes, [0.0], [0], 0, policy="hedged", hedge_delay=2.0) == 9.0


def test_least_loaded_and_round_robin_take_turns_at_equal_nodes():
    three = system(3)
    for policy in ("least_loaded", "round_robin"):
        np.testing.assert_allclose(
            simulate(three, [0.0, 0.1, 0.2, 0.3], [0] * 4, 0, policy=policy), [1, 1, 1, 1.7]
        )
    run = Simulation(system(3, (2,)), [0.0, 0.1], [0, 0], 0, policy="power_of_d", probes=1)
    assert sorted(run.busy) in ([0.0, 2.0, 2.0], [1.0, 1.0, 2.0])


def test_connection_delay_link_and_decoding():
    late = system(2, (2,), connect=[[0.0, 0.0], [0.25, 0.5]], extra_s=0.125)
    assert simulate(late, [0.0], [0], 0) == 1.625
    linked = system(3, (3,), service=[1.0, 1.1, 5.0], link_s=0.5)
    np.testing.assert_allclose(simulate(linked, [0.0], [0], 0), [5.5])
    linked = system(3, (2,), service=[1.0, 1.1, 5.0], link_s=0.5)
    np.testing.assert_allclose(simulate(linked, [0.0], [0], 0, policy="fork_join"), [2.0])


def test_an_outage_sends_lost_accesses_elsewhere_or_lets_them_wait():
    two = system(2, service=[4.0, 1.0], probabilities=[[1.0, 0.0]])
    run = Simulation(two, [0.0, 0.5], [0, 0], 0, outages=[(0, 3.0, 10.0)])
    np.testing.assert_allclose(run.latencies, [4.0, 4.5])  # lost at 3, served at node 1 one after the other
    np.testing.assert_allclose(run.busy, [3.0, 2.0])
    one = system(1)
    np.testing.assert_allclose(
        simulate(one, [0.0, 0.2], [0, 0], 0, outages=[(0, 0.5, 2.0), (0, 1.5, 4.0)]), [5.0, 5.8]
    )
    # a new read of two nodes of which one is down waits there, and one of one node goes to the other
    pair = system(2, (2, 1), probabilities=[[1.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(simulate(pair, [1.0, 1.5], [0, 1], 0, outages=[(0, 0.5, 3.0)]), [3.0, 1.5])
    assert np.isnan(simulate(one, [1.0], [0], 0, outages=[(0, 0.5, np.inf)]))[0]
    # at 0.5 the up node has two accesses, one of them the request's own; at 3 the down one is back
    spread = system(3, (1,), service=[4.0, 1.0, 9.0], probabilities=[[1.0, 0.0, 0.0]])
    assert simulate(spread, [0.0], [0], 0, outages=[(0, 0.5, 8.0), (1, 0.0, 8.0)]) == 9.5


def test_late_binding_gives_a_lost_access_back():
    two = system(2, (1,), service=[2.0, 2.0])
    run = Simulation(two, [0.0, 0.5, 0.6], [0, 0, 0], 0, policy="late_binding", outages=[(0, 1.0, 9.0)])
    first = 0 if np.isclose(run.latencies[0], 2.0) else 1  # the request that node 1 served first
    times = np.array([0.0, 0.5, 0.6])
    begun = 0.0 if first == 0 else 0.5
    np.testing.assert_allclose(run.latencies[first] + times[first], begun + 2.0)
    np.testing.assert_allclose(run.latencies[1 - first] + times[1 - first], begun + 4.0)  # before the third
    np.testing.assert_allclose(run.latencies[2] + 0.6, begun + 6.0)
