"""Small reads that choose their kind: beside a plain simulator, request by request, and beside M/G/1."""

import numpy as np
import pytest
from simulation.systems import law_table, make_system

from ecjax.simulation import tally
from ecjax.simulation.run import Outages, Policy, Queue, replay
from ecjax.streams import arrivals

SERVICE = np.array([0.010, 0.013, 0.017, 0.011, 0.019])  # s, constant
PLACED = [[0, 1, 2, 3], [2, 0, 1, 4], [4, 3, 1]]  # the chunk's own node first
CHOOSING = Policy("direct_or_degraded")


def system_of(laws, placed=PLACED, need=2, extra_s=0.0):
    """Small reads that choose, each in a row of its own."""
    one = make_system([need] * len(placed), placed, laws, classes=[0] * len(placed), extra_s=extra_s)
    return one._replace(either=np.ones(len(placed), np.int64))


def paths_of(system, times, files):
    counts = tally.empty(len(times), 2, system.nodes, paths=True)
    outcome = replay(system, iter([(times, files)]), counts, 1, CHOOSING, Queue())
    return outcome.tally


def test_requests_of_a_plain_simulator():
    random = np.random.default_rng(0)
    times, files = np.cumsum(random.exponential(0.006, 4000)), random.integers(0, 3, 4000)
    counts = paths_of(system_of(law_table("deterministic", 5, offset=SERVICE)), times, files)
    free, expected, degraded = np.zeros(5), [], 0
    for time, file in zip(times, files, strict=True):
        own, *others = PLACED[file]
        answer = np.maximum(free - time, 0) + SERVICE
        # constant services: nothing is added for the last of two
        two = sorted(others, key=lambda j: answer[j])[:2]
        decode = max(answer[j] for j in two) < answer[own]
        chosen = two if decode else [own]
        degraded += decode
        for j in chosen:
            free[j] = max(free[j], time) + SERVICE[j]
        expected.append(max(free[j] for j in chosen) - time)
    assert counts.paths == pytest.approx(np.array(expected), abs=1e-9)
    assert 0.05 < degraded / len(times) < 0.95
    assert counts.sums[:, 1, 0].sum() == degraded


def test_the_spread_of_services_is_charged_to_degraded_reads():
    # node 0 waits 30 ms; the others are idle, and two of them are expected after 10 + sqrt(V) = 10 + 12 ms
    table = law_table("exponential", 3, scale=np.array([0.01, 0.012, 0.012]))
    table.table[:, 0] = 0.0
    system = system_of(table, [[0, 1, 2]])
    first = paths_of(system, np.array([0.0]), np.array([0]))
    assert first.sums[:, 0, 0].sum() == 1
    slow = law_table("exponential", 3, scale=np.array([0.03, 0.012, 0.012]))
    assert paths_of(system_of(slow, [[0, 1, 2]]), np.array([0.0]), np.array([0])).sums[:, 1, 0].sum() == 1
    near = law_table("exponential", 3, scale=np.array([0.023, 0.012, 0.012]))
    assert paths_of(system_of(near, [[0, 1, 2]]), np.array([0.0]), np.array([0])).sums[:, 0, 0].sum() == 1


def test_reads_without_enough_other_chunks_are_direct():
    system = system_of(law_table("deterministic", 2, offset=np.array([0.1, 0.001])), [[0, 1]])
    counts = paths_of(system, np.array([0.0, 0.01]), np.array([0, 0]))
    assert counts.paths == pytest.approx([0.1, 0.19])


def test_decoding_is_added_to_degraded_reads_only():
    laws = law_table("deterministic", 5, offset=SERVICE)
    files = np.array([0, 0])
    counts = paths_of(system_of(laws, extra_s=1.0), np.array([0.0, 1e-6]), files)
    assert counts.paths[0] == pytest.approx(0.010)
    assert counts.paths[1] == pytest.approx(1.013)


def test_they_choose_by_one_queue_only():
    system = system_of(law_table("deterministic", 5, offset=SERVICE))
    outages = Outages(np.array([0]), np.array([0.0]), np.array([1.0]))
    block = arrivals.of_trace(np.array([0.0]), np.array([0]))
    with pytest.raises(ValueError, match="one queue"):
        replay(system, block, tally.empty(1, 2, 5), 1, CHOOSING, Queue(), outages)
