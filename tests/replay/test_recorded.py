"""Recorded accesses: recursions by hand, and the same as fcfs where both read the same nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_systems import RANDOM_SYSTEMS, blocks
from systems import law_table, make_system, poisson

from ecjax.replay import completion, fcfs, recorded, streams, tally


def run(system, times, files, seed, start, node, size, work=None, cuts=(), classes=2):
    counts = tally.empty(len(times), classes, system.nodes, files=system.files, paths=True)
    free, finishes = np.zeros(system.nodes), np.full(len(node), np.nan)
    work = np.empty(0) if work is None else work
    for own_times, own_files, first in blocks(times, files, cuts):
        own = start[first : first + len(own_times) + 1]
        accesses = slice(own[0], own[-1]) if len(own_times) else slice(0, 0)
        recorded.replay_block(
            system, counts, own_times, own_files, first, seed, own - own[0], node[accesses], size[accesses],
            work[accesses], free, finishes[accesses],
        )  # fmt: skip
    return counts, finishes


@given(case=RANDOM_SYSTEMS, cut=st.integers(0, 120))
def test_equals_the_plan_that_leaves_no_choice(case, cut):
    """Every request reads all nodes of its row: draws, delays and links are those of fcfs."""
    system, times, files, seed = case
    need = np.diff(system.start)
    system = system._replace(need=need, chunks=np.ones_like(system.chunks), law=system.node)
    expected = tally.empty(len(times), 2, system.nodes, files=system.files, paths=True)
    turn = np.zeros(system.files, np.int64)
    free = np.zeros((system.nodes, 1))
    fcfs.replay_block(system, expected, times, files, 0, seed, fcfs.SAMPLED, np.ones(1), free, turn)
    start = np.concatenate(([0], np.cumsum(need[files])))
    node = np.concatenate([system.node[system.start[f] : system.start[f + 1]] for f in files])
    counts, finishes = run(
        system,
        times,
        files,
        seed,
        start,
        node,
        np.repeat(system.chunk_bytes[files], need[files]),
        cuts=(cut,),
    )
    np.testing.assert_allclose(counts.paths, expected.paths, rtol=1e-9)
    np.testing.assert_allclose(counts.busy, expected.busy, rtol=1e-9)
    np.testing.assert_allclose(counts.sums, expected.sums, rtol=1e-9)
    for j in range(system.nodes):
        own = finishes[node == j]
        assert np.all(np.diff(own) > 0) and (own.size == 0 or own[-1] == free[j, 0])


def test_recorded_service_times():
    """Two requests; the first has two accesses to node 0; one service time is not known and is drawn: 3 s."""
    service = law_table("deterministic", 2, offset=1.0, offset_per_byte=1.0)
    system = make_system([1], [[0]], service, extra_s=0.25)
    work = np.array([1.0, 2.0, 0.5, 4.0, np.nan])
    counts, finishes = run(
        system,
        times=np.array([10.0, 11.0]),
        files=np.zeros(2, np.int64),
        seed=1,
        start=np.array([0, 3, 5]),
        node=np.array([0, 0, 1, 0, 1]),
        size=np.full(5, 2.0),
        work=work,
    )
    np.testing.assert_allclose(finishes, [11.0, 13.0, 10.5, 17.0, 14.0])
    np.testing.assert_allclose(counts.paths, [3.25, 6.25])
    np.testing.assert_allclose(counts.busy.sum(axis=0), [7.0, 3.5])
    np.testing.assert_allclose(counts.sums[:, 2:4, :2].sum(axis=0), [[3, 10.0], [2, 3.5]])


def test_link_takes_chunks_one_by_one():
    system = make_system([1], [[0]], law_table("deterministic", 3, offset=[1.0, 1.5, 9.0]), link_s=2.0)
    counts, _ = run(
        system, np.zeros(1), np.zeros(1, np.int64), 1, np.array([0, 3]), np.array([0, 1, 2]), np.ones(3)
    )
    np.testing.assert_allclose(counts.paths, [11.0])  # 1..3, 3..5, 9..11


def test_repeats_at_a_node_draw_anew():
    """The draws of repeats are independent, and together they are those of chunks served together."""
    law = law_table("exponential", 1)
    times = np.arange(20_000) * 1e3
    files = np.zeros(len(times), np.int64)
    system = make_system([1], [[0]], law)
    start, node = np.arange(len(times) + 1) * 3, np.zeros(3 * len(times), np.int64)
    _, finishes = run(system, times, files, 4, start, node, np.ones(len(node)))
    draws = np.diff(np.column_stack((times, finishes.reshape(-1, 3))), axis=1)
    assert draws.mean(axis=0) == pytest.approx(1.0, abs=4 / np.sqrt(len(times)))
    correlation = np.corrcoef(draws.T) - np.eye(3)
    assert np.abs(correlation).max() < 4 / np.sqrt(len(times))
    together = tally.empty(len(times), 1, 1, paths=True)
    fcfs.replay_block(
        make_system([1], [[0]], law, chunks=3), together, times, files, 0, 4, fcfs.SAMPLED, np.ones(1),
        np.zeros((1, 1)), np.zeros(1, np.int64),
    )  # fmt: skip
    np.testing.assert_allclose(together.paths, draws.sum(axis=1), rtol=1e-6)


def test_connection_delays_of_repeats():
    """The first delay is that of every engine; the second access of a request has one of its own."""
    connect = np.array([[2.0], [0.5]])
    system = make_system([1], [[0]], law_table("deterministic", 1, offset=1e-3), connect=connect)
    counts, finishes = run(
        system, np.zeros(1), np.zeros(1, np.int64), 9, np.array([0, 2]), np.zeros(2, np.int64), np.ones(2)
    )
    state = np.uint64(streams.stream(np.uint64(streams.key(9, streams.CONNECT)), 0))
    repeat = np.uint64(streams.stream(np.uint64(streams.mixed(state)), 1))
    delays = [completion.connection(connect, 0, own) for own in (state, repeat)]
    assert delays[0] != delays[1]
    assert counts.paths[0] == pytest.approx(np.max(finishes + delays), rel=1e-12)


def test_writes_and_no_accesses_between_blocks():
    """A write makes a read wait and is not reported; an empty block changes nothing."""
    system = make_system([1, 1], [[0], [0]], law_table("deterministic", 1, offset=1.0), classes=[0, -1])
    times, files = np.array([0.0, 0.5]), np.array([1, 0])
    counts, _ = run(
        system, times, files, 1, np.arange(3), np.zeros(2, np.int64), np.ones(2), cuts=(1, 1), classes=1
    )
    np.testing.assert_allclose(counts.paths, [1.0, 1.5])
    assert counts.sums[:, 0, 0].sum() == 1 and counts.sums[:, 1, 0].sum() == 1
    assert counts.busy.sum() == 2.0


def test_poisson_reads_of_recorded_nodes_are_queues():
    """M/M/1 at every node."""
    times, files = poisson([1.4], 300_000, 6)
    system = make_system([1], [[0]], law_table("exponential", 2))
    node = np.random.default_rng(1).integers(0, 2, len(times))
    counts, _ = run(system, times, files, 3, np.arange(len(times) + 1), node, np.ones(len(times)), classes=1)
    batches = counts.paths.reshape(100, -1).mean(axis=1)
    assert abs(batches.mean() - 1 / (1 - 0.7)) < 4 * batches.std(ddof=1) / 10
