"""Cases of the proxy, small: targets are of the work done, the rival agrees."""

import numpy as np
import pytest
from bench_cases import rows_of

from ecjax.adaptation import strategies
from ecjax.adaptation.arrivals import constant, poisson
from ecjax.adaptation.delays import BUILT_IN, tasks_of
from ecjax.adaptation.replay import replay
from ecjax.studies.adapt import strategies as adapt_strategies
from ecjax.studies.bench.run import Runner, Settings
from ecjax.studies.bench.setups import adapt, adapt_simpy, simpy_rivals

QUICK = Settings(repeats=1, quick=True, seed=3)
LAW = BUILT_IN["shifted_exp"]


@pytest.mark.parametrize("name", ["(12,6)", "tofec"])
def test_simpy_follows_the_same_paths(name):
    pytest.importorskip("simpy")
    strategy = adapt.named_strategies(LAW)[name]
    requests, tasks = poisson(constant(30.0, np.ones(1)), 400, 5), tasks_of([adapt.READS], [LAW])
    units = adapt_simpy.drawn(400, int(strategy.n.max()), 5)
    found = adapt_simpy.latencies(
        requests.arrival_s, units, tasks.shift[0], tasks.scale[0], strategy, adapt.THREADS
    )
    np.testing.assert_allclose(
        found, replay(*requests, tasks, strategy, adapt.THREADS, 5).latency_s, rtol=1e-9
    )


def test_rows_say_what_was_replayed(monkeypatch):
    monkeypatch.setattr(adapt, "calibrated", strategies.tofec)  # its own thresholds take long
    rows = rows_of("adapt", QUICK, requests=500)
    own = [row for row in rows if ", " in row.variant and "thresholds" not in row.variant]
    assert len(own) == len(BUILT_IN) * (len(adapt.named_strategies(LAW)) + 1)
    assert all(row.rows == 500 for row in own)
    assert all(row.target_s is None and row.note.endswith("requests/s on one core") for row in own)
    simpy = [row for row in rows if "thresholds" not in row.variant and row not in own]
    assert len(rows) == len(own) + len(simpy) + len(BUILT_IN)
    assert [row.variant for row in simpy if row.variant.startswith("ecjax")] == ["ecjax (3,2)", "ecjax tofec"]


def test_without_simpy_that_is_said(monkeypatch):
    monkeypatch.setattr(simpy_rivals, "find_spec", lambda name: None)
    (row,) = adapt_simpy.beside_simpy(Runner(seed=3), "tofec", 100)
    assert row.note == "SimPy is not installed: nothing to compare with"


@pytest.mark.slow  # 64 replays and 32 capacities
def test_the_sweep_replays_every_code(monkeypatch):
    monkeypatch.setattr(adapt_strategies, "calibrated", lambda *given: strategies.tofec(*given[:3]))
    (row,) = rows_of("adapt_fig7", QUICK)
    assert row.rows == row.lanes * 10**4 and row.lanes >= 2 * (27 + 6)
