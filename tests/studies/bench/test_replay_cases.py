"""Rows of the replay benchmarks: the system is what they say, targets are of the work done, the rival agrees."""

import numpy as np
import pytest

from ecjax.queueing.workload import node_arrivals
from ecjax.replay.run import Policy
from ecjax.studies.bench.rows import Settings
from ecjax.studies.bench.setups import estimate, replay, replay_simpy
from ecjax.studies.bench.setups.reference_system import CLASSES, MEAN_S, NEED, NODES, SLOWEST, house, replayed

QUICK = Settings(repeats=1, quick=True, seed=3)
MEANS = MEAN_S * np.linspace(1, SLOWEST, NODES)


@pytest.mark.parametrize("law", ["exponential", "shifted exponential", "lognormal"])
@pytest.mark.parametrize("n", [8, NODES])
def test_the_system_has_the_load_that_it_states(law, n):
    own = house(law, n, 0.7, seed=1)
    chunks = own.rates @ own.probabilities
    assert (chunks * MEANS).max() == pytest.approx(0.7)
    np.testing.assert_allclose(own.probabilities.sum(axis=1), NEED)
    assert np.all((own.probabilities > 0).sum(axis=1) == n) and own.probabilities.max() < 1
    outcome, seconds = replayed(own, 40_000, seed=2)
    found = outcome.tally
    assert outcome.requests == 40_000 and seconds > 0
    assert found.sums[:, :CLASSES, 0].sum() == 40_000
    assert found.sums[:, CLASSES : CLASSES + NODES, 0].sum() == 40_000 * NEED
    np.testing.assert_allclose(found.busy.sum(axis=0) / outcome.span, chunks * MEANS, rtol=0.03)


def test_simpy_follows_the_same_paths():
    pytest.importorskip("simpy")
    own = house("lognormal", 8, 0.7, seed=1)
    outcome, _ = replayed(own, 300, seed=5, paths=True)
    given = replay_simpy.drawn(own, 300, seed=5)
    np.testing.assert_allclose(replay_simpy.latencies(NODES, *given), outcome.tally.paths, rtol=1e-9)
    ours, theirs = replay_simpy.rows(QUICK)
    assert (ours.variant, theirs.variant) == ("ecjax replay", "SimPy")
    assert "times as fast as SimPy; no latency differs by more than" in ours.note


def test_without_simpy_that_is_said(monkeypatch):
    monkeypatch.setattr(replay_simpy, "find_spec", lambda name: None)
    (row,) = replay_simpy.rows(QUICK)
    assert row.note == "SimPy is not installed: nothing to compare with"


def test_targets_are_of_the_work_done(monkeypatch):
    monkeypatch.setattr(replay, "REQUESTS", 3000)
    rows = replay.fcfs(Settings(repeats=1, quick=False, seed=0))
    assert [row.size.split(",")[0] for row in rows] == ["shifted exponential"] * 2 + ["lognormal"] * 2
    for row, per_s in zip(rows, (15e6, 15e6, 10e6, 10e6), strict=True):
        assert row.rows == 3000 and row.target_s == pytest.approx(3000 * 6 / per_s)
        assert row.met == (row.min_s <= row.target_s)
        assert "million chunk accesses/s" in row.note
    assert all(row.met is None for row in replay.fcfs(QUICK))


def test_reads_per_second_are_asked_of_policies(monkeypatch):
    monkeypatch.setattr(replay, "REQUESTS", 2000)
    own = house("exponential", NODES, 0.5, seed=0)
    settings = Settings(repeats=1, quick=False, seed=0)
    row = replay._row(own, "least loaded", settings, 2e6 * NEED, policy=Policy("least_loaded"))
    assert row.target_s == pytest.approx(2000 / 2e6)


def test_memory_of_the_long_replay_is_that_of_the_short_one(monkeypatch):
    asked = []

    def run(function, arguments):
        asked.append((function, arguments["requests"]))
        return {"seconds": 2.0, "peak_rss_bytes": 200_000_000 + len(asked)}

    monkeypatch.setattr(replay, "run_fresh", run)
    short, long = replay.memory(Settings(repeats=1, quick=False, seed=0))
    assert asked == [("ecjax.studies.bench.setups.replay:streamed", n) for n in (10**7 // 6, 10**8 // 6)]
    assert short.target_bytes is None and short.met is None
    assert long.target_bytes == int(1.1 * 200_000_001) and long.met is True
    found = replay.streamed(500, 1)
    assert found["seconds"] > 0 and found["peak_rss_bytes"] > 10_000_000


def test_the_estimate_is_of_the_same_reads():
    own = house("shifted exponential", 8, 0.6, seed=2)
    load = estimate.reads(own)
    rates, size = node_arrivals(load, own.probabilities)
    rho = np.asarray((rates * load.service.moments(size)[0]).sum(axis=0))
    # the law is a table, whose mean is right to four digits
    np.testing.assert_allclose(rho, own.rates @ own.probabilities * MEANS, rtol=1e-3)
    assert float(load.connect.mean[0]) == 1e-3
