"""The whole table of what estimates under a log's arrivals are worth; ``pytest -m slow -s`` of this file prints it.

Every estimate stands beside plain simulations of the same log, every interval beside a second half that the estimate
has not seen. Bursts have 5 times the mean rate, a tenth of the time; 5 reads/s; 4 of 12 nodes, exponential services.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "traffic"))
from plain_queues import bursts, latencies
from test_trace_estimates import estimate

RATE, NODES, K = 5.0, 12, 4
EVERYWHERE, TOGETHER = [list(range(NODES))], [list(range(K))]
# length of the log in s; of what the mean and the 99 % point may be off, over three logs
KINDS = {
    "poisson": (2000.0, 0.03, 0.05),
    "bursts 0.1": (2000.0, 0.08, 0.12),
    "bursts 10": (4000.0, 0.05, 0.08),
    "bursts 100": (20_000.0, 0.05, 0.08),
    "day": (10_000.0, 0.05, 0.08),
}
pytestmark = pytest.mark.slow


def log_of(kind, length, rng):
    """Arrivals of a kind of log."""
    if kind.startswith("bursts"):
        return bursts(length, RATE, float(kind.split()[1]), rng)
    high = RATE if kind == "poisson" else 1.8 * RATE
    times = np.sort(rng.uniform(0, length, rng.poisson(high * length)))
    if kind == "poisson":
        return times
    level = RATE * (1 + 0.8 * np.sin(2 * np.pi * times / 1000))
    return times[rng.uniform(size=len(times)) * high < level]


def mean_service(load, sets):
    """Of a chunk, s, at a mean load of the nodes that are read."""
    return load * len(sets[0]) / (RATE * K)


def figures(times, sets, load, length):
    """The estimate, and its file of each read."""
    return estimate(times, np.zeros(len(times), int), sets, K, mean_service(load, sets), NODES, length)


def simulated(times, sets, load, seed):
    """Mean and 99 % point of one replay."""
    run = latencies(times, np.zeros(len(times), int), sets, K, mean_service(load, sets), NODES, seed)
    return np.array([run.mean(), np.quantile(run, 0.99)])


@pytest.mark.parametrize("load", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("kind", [*KINDS, "together"])
def test_estimates_of_the_same_log(kind, load):
    """Over three logs: one has too few bursts to tell its estimate's error from those of its replay's services."""
    sets = TOGETHER if kind == "together" else EVERYWHERE
    length, mean, p99 = KINDS["poisson" if kind == "together" else kind]
    ratios = []
    for seed in range(3):
        times = log_of("poisson" if kind == "together" else kind, length, np.random.default_rng(seed))
        found = figures(times, sets, load, length)
        replayed = np.mean([simulated(times, sets, load, each) for each in range(2)], axis=0)
        ratios.append([found.mean[0] / replayed[0], found.quantiles[0, 2] / replayed[1]])
    off = np.mean(ratios, axis=0) - 1
    print(f"{kind}, load {load}: mean {off[0]:+.1%}, p99 {off[1]:+.1%}")
    assert abs(off[0]) <= mean
    assert abs(off[1]) <= p99


def test_second_halves_lie_in_the_interval():
    """Of 40 logs of each kind, at loads of 0.3 and 0.6 in turn."""
    inside = []
    for kind, (length, _, _) in KINDS.items():
        of_kind = []
        for seed in range(40):
            load = (0.3, 0.6)[seed % 2]
            times, half = log_of(kind, length, np.random.default_rng(100 + seed)), length / 2
            found = figures(times[times < half], EVERYWHERE, load, half)
            seen = simulated(times[times >= half] - half, EVERYWHERE, load, seed)
            bounds = [found.interval(place) for place in (0, 3)]
            of_kind.append([low <= value <= high for (low, high), value in zip(bounds, seen, strict=True)])
        print(f"{kind}: {np.mean(of_kind, axis=0)} of second halves within the 95 % interval of mean and p99")
        inside.append(np.mean(of_kind, axis=0))
    # 200 logs: 95 % less two standard errors
    assert np.mean(inside, axis=0).min() >= 0.92
