"""Rows of the replay benchmarks: the system is what they say, targets are of the work done, the rival agrees."""

import numpy as np
import pytest
from bench_cases import rows_of

from ecjax.queueing.workload import node_arrivals
from ecjax.studies.bench import run
from ecjax.studies.bench.run import Settings, clocked
from ecjax.studies.bench.setups import estimate, replay_simpy, simpy_rivals
from ecjax.studies.bench.setups.reference_system import (
    CLASSES,
    MEAN_S,
    NEED,
    NODES,
    SLOWEST,
    reference_system,
    replay,
)

QUICK = Settings(repeats=1, quick=True, seed=3)
MEANS = MEAN_S * np.linspace(1, SLOWEST, NODES)


@pytest.mark.parametrize("law", ["exponential", "shifted exponential", "lognormal"])
@pytest.mark.parametrize("n", [8, NODES])
def test_the_system_has_the_load_that_it_states(law, n):
    reference = reference_system(law, n, 0.7, seed=1)
    chunks = reference.rates @ reference.probabilities
    assert (chunks * MEANS).max() == pytest.approx(0.7)
    np.testing.assert_allclose(reference.probabilities.sum(axis=1), NEED)
    assert np.all((reference.probabilities > 0).sum(axis=1) == n) and reference.probabilities.max() < 1
    outcome, seconds = clocked(lambda: replay(reference, 40_000, seed=2))
    tally = outcome.tally
    assert outcome.requests == 40_000 and seconds > 0
    assert tally.sums[:, :CLASSES, 0].sum() == 40_000
    assert tally.sums[:, CLASSES : CLASSES + NODES, 0].sum() == 40_000 * NEED
    np.testing.assert_allclose(tally.busy.sum(axis=0) / outcome.span, chunks * MEANS, rtol=0.03)


def test_simpy_follows_the_same_paths():
    pytest.importorskip("simpy")
    reference = reference_system("lognormal", 8, 0.7, seed=1)
    outcome = replay(reference, 300, seed=5, paths=True)
    requests = replay_simpy.drawn(reference, 300, seed=5)
    np.testing.assert_allclose(replay_simpy.latencies(NODES, *requests), outcome.tally.paths, rtol=1e-9)
    ours, theirs = rows_of("replay_simulator", QUICK)
    assert (ours.variant, theirs.variant) == ("ecjax replay", "SimPy")
    assert "times as fast as SimPy; no latency differs by more than" in ours.note


def test_without_simpy_that_is_said(monkeypatch):
    monkeypatch.setattr(simpy_rivals, "find_spec", lambda name: None)
    (row,) = rows_of("replay_simulator", QUICK)
    assert row.note == "SimPy is not installed: nothing to compare with"


def test_targets_are_of_the_work_done():
    rows = rows_of("replay_fcfs", Settings(repeats=1, quick=False, seed=0), requests=3000)
    assert [row.size.split(",")[0] for row in rows] == ["shifted exponential"] * 2 + ["lognormal"] * 2
    for row, per_s in zip(rows, (15e6, 15e6, 10e6, 10e6), strict=True):
        assert row.rows == 3000 and row.target_s == pytest.approx(3000 * 6 / per_s)
        assert row.met == (row.min_s <= row.target_s)
        assert "million chunk accesses/s" in row.note
    assert all(row.met is None for row in rows_of("replay_fcfs", QUICK))


def test_reads_per_second_are_asked_of_policies():
    settings = Settings(repeats=1, quick=False, seed=0)
    row = rows_of("replay_policies", settings, requests=2000)[0]
    assert row.size.startswith("least loaded, 2,000 reads")
    assert row.target_s == pytest.approx(2000 / 2e6)


def test_memory_of_the_long_replay_is_that_of_the_short_one(monkeypatch):
    jobs = []

    def run_fresh(function, arguments):
        jobs.append((arguments["job"], arguments["large"]["requests"]))
        return {"seconds": [2.0], "first_s": 3.0, "peak_rss_bytes": 200_000_000 + len(jobs)}

    monkeypatch.setattr(run, "run_fresh", run_fresh)
    short, long = rows_of("replay_memory", Settings(repeats=1, quick=False, seed=0))
    assert jobs == [("replay:stream", n) for n in (10**7 // 6, 10**8 // 6)]
    assert short.target_bytes is None and short.met is None
    assert long.target_bytes == int(1.1 * 200_000_001) and long.met is True
    result = run.in_this_process(
        "replay:stream", {"requests": 100, "seed": 1}, {"requests": 500, "seed": 1}, repeats=1
    )
    assert result["seconds"][0] > 0 and result["peak_rss_bytes"] > 10_000_000


def test_the_estimate_is_of_the_same_reads():
    reference = reference_system("shifted exponential", 8, 0.6, seed=2)
    load = estimate.reads(reference)
    rates, size = node_arrivals(load, reference.probabilities)
    rho = np.asarray((rates * load.service.moments(size)[0]).sum(axis=0))
    # the law is a table, whose mean is right to four digits
    np.testing.assert_allclose(rho, reference.rates @ reference.probabilities * MEANS, rtol=1e-3)
    assert float(load.connect.mean[0]) == 1e-3
