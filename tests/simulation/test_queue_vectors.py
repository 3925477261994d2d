"""Replays of single queues against exact means and variances: FCFS, priority of two and three classes, weighted."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from systems import make_system

from ecjax.simulation import laws, summary, tally
from ecjax.simulation.run import Outages, Policy, Queue, replay
from ecjax.streams import arrivals

VECTORS = json.loads((Path(__file__).parent / "queue_vectors.json").read_text())
REQUESTS, REPLICATIONS = 300_000, 4


def law(name, mean, variation):
    """A row of the table of laws: offset, scale, shape, kind."""
    offset, scale, shape, kind = mean, 0.0, 0.0, "deterministic"
    if name == "exp":
        offset, scale, kind = 0.0, mean, "exponential"
    if name == "sexp":
        offset, scale, kind = mean * (1 - variation), mean * variation, "exponential"
    if name == "gamma":
        offset, scale, shape, kind = 0.0, mean * variation**2, variation**-2, "gamma"
    if name == "lognormal":
        sigma = math.sqrt(math.log1p(variation**2))
        offset, scale, shape, kind = 0.0, mean * math.exp(-(sigma**2) / 2), sigma, "lognormal"
    return [offset, 0.0, scale, 0.0, shape, 0.0, laws.KINDS.index(kind), 0.0, 0.0]


def replayed(rates, dists, queue, requests=REQUESTS, seeds=range(REPLICATIONS)):
    """Statistics of one node with a class per rate, each with a law of its own."""
    count = len(rates)
    table = laws.Laws(np.array([law(*dist) for dist in dists]), np.zeros(1))
    system = make_system(
        [1] * count,
        [[0]] * count,
        laws.Laws(table.table[:1], table.samples),
        classes=range(count),
        queues=range(count),
    )
    system = system._replace(laws=table, law=np.arange(count))
    runs = []
    for seed in seeds:
        counts = tally.empty(requests, count, 1)
        runs.append(replay(system, arrivals.poisson(rates, requests, seed), counts, seed, Policy(), queue))
    return summary.summarise([run.tally for run in runs], [run.span for run in runs])


def agrees(found, expected, slack=0.0):
    """Means are within their 95 % intervals, few of them outside by chance but none by far."""
    off = np.abs(found.mean[: len(expected)] - expected) / (found.half_width[: len(expected)] + slack)
    assert np.all(off < 1.8), off  # 3.5 standard errors
    return off < 1


FCFS = [(case["inputs"]["lam"], case["inputs"]["dist"], case["expected"]) for case in VECTORS["a_mg1_fcfs"]]
FCFS += [(0.7, ["exp", 1.0, None], {"ET": 1 / 0.3, "VarT": 1 / 0.09})]  # M/M/1
FCFS += [(0.8, ["det", 1.0, None], {"ET": 3.0, "VarT": 0.8 / (3 * 0.2) + 4.0})]  # M/D/1
PRIORITY = [*VECTORS["e_priority_K2"], *VECTORS["e_priority_K3"]]


def test_first_come_first_served():
    inside = []
    for rate, dist, expected in FCFS:
        found = replayed([rate], [dist], Queue())
        inside.append(agrees(found, [expected["ET"]]))
        assert found.deviation[0] ** 2 == pytest.approx(expected["VarT"], rel=0.06)
    assert stats.binom.cdf(np.sum(inside), np.size(inside), 0.95) > 1e-3


def test_priority_of_two_and_three_classes():
    inside = []
    for case in PRIORITY:
        found = replayed(case["inputs"]["lam"], case["inputs"]["dist"], Queue("priority"))
        inside.append(agrees(found, case["expected"]["ET"]))
        classes = len(case["inputs"]["lam"])
        assert found.deviation[:classes] ** 2 == pytest.approx(case["expected"]["VarT"], rel=0.15)
    assert stats.binom.cdf(sum(map(np.sum, inside)), sum(map(np.size, inside)), 0.95) > 1e-3


def test_weighted_queues_partitioned_and_shared():
    inside = []
    for case in VECTORS["f_weighted"]:
        rates, weights = case["inputs"]["lam"], tuple(case["inputs"]["w"])
        dists = [case["inputs"]["dist"]] * len(rates)
        parted = replayed(rates, dists, Queue("partitioned", weights))
        inside.append(agrees(parted, case["expected"]["ET"]))
        assert parted.deviation[: len(rates)] ** 2 == pytest.approx(case["expected"]["VarT"], rel=0.15)
        shared = replayed(rates, dists, Queue("shared", weights))
        agrees(shared, case["sharing"]["GPS_ET"], np.array(case["sharing"]["GPS_ET_ci"]))
        assert np.all(shared.mean[: len(rates)] < parted.mean[: len(rates)])
    assert stats.binom.cdf(sum(map(np.sum, inside)), sum(map(np.size, inside)), 0.95) > 1e-3


@pytest.mark.parametrize("outages", [None, Outages(np.zeros(1, np.int64), np.full(1, 1e9), np.full(1, 2e9))])
def test_every_class_has_its_own_share_of_every_node(outages):
    """M/G/1 of service X / w by class and node, by the recursion and, with an outage after the end, by events."""
    weights, rates = np.array([[0.7, 0.25], [0.3, 0.75]]), np.array([[0.4, 0.1], [0.1, 0.5]])
    shape = 2.5
    table = laws.Laws(np.array([law("gamma", 1.0, shape**-0.5)] * 2), np.zeros(1))
    system = make_system([1] * 4, [[0], [1]] * 2, table, classes=range(4), queues=[0, 0, 1, 1])
    first = 1 / weights
    second, third = first**2 * (1 + 1 / shape), first**3 * (1 + 1 / shape) * (1 + 2 / shape)
    wait = rates * second / (2 * (1 - rates * first))
    variance = second - first**2 + rates * third / (3 * (1 - rates * first)) + wait**2
    runs = []
    for seed in range(REPLICATIONS):
        counts = tally.empty(REQUESTS, 4, 2)
        blocks = arrivals.poisson(rates.ravel(), REQUESTS, seed)
        runs.append(replay(system, blocks, counts, seed, Policy(), Queue("partitioned", weights), outages))
    found = summary.summarise([run.tally for run in runs], [run.span for run in runs])
    agrees(found, (first + wait).ravel())
    assert found.deviation[:4] ** 2 == pytest.approx(variance.ravel(), rel=0.06)


@pytest.mark.parametrize("case", [VECTORS["e_priority_K2"][3], VECTORS["e_priority_K3"][0]])
def test_intervals_of_classes_cover_as_often_as_they_say(case):
    expected, inside = np.array(case["expected"]["ET"]), []
    for seed in range(100):
        found = replayed(case["inputs"]["lam"], case["inputs"]["dist"], Queue("priority"), 40_000, [seed])
        off = np.abs(found.mean[: len(expected)] - expected)
        inside.append(off <= found.half_width[: len(expected)])
    share = np.mean(inside, axis=0)
    assert np.all((share >= 0.9) & (share <= 0.98)), share
