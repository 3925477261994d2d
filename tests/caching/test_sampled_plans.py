"""Plans from partitions: the vectors, what no scheme may break, and the study of the schemes."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_assignment import best_value, plan_value, valuations
from scipy.stats import chisquare

from ecjax.caching.clearing import Market
from ecjax.caching.partitions import Partitions
from ecjax.caching.sampling import SCHEMES, drawn_partitions, sampled_plan, samplex
from ecjax.caching.sampling_study import SamplingStudy
from ecjax.caching.valuation import valuation
from ecjax.errors import UserError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
NODES = np.array([520, 410, 690, 980, 140, 210])


def optimal(tau, capacity):
    """The best plan, by the best assignment to every partition (the paper's optimal scheme)."""
    items, k = tau.shape[0], tau.shape[1] - 1
    chi = Partitions(min(capacity, items * k), k, items)
    return Market(tau, min(chi.capacity, chi.items)).best_of_all(chi)[1]


def medium(items, k):
    m, chunk = np.arange(items)[:, None], np.arange(k)
    return 1_000_000 // np.arange(1, items + 1), NODES[(7 * m + 5 * chunk + (m * chunk) % 4) % 6]


@pytest.mark.parametrize("case", VECTORS["tiny"], ids=lambda case: case["name"])
def test_tiny(case):
    tau = np.array(case["tau"])
    assert Partitions(case["C"], case["K"], case["M"]).count == case["num_partitions"]
    assert plan_value(tau, optimal(tau, case["C"])) == case["optimum"]
    alone = samplex(tau, case["C"], samples=1)
    assert plan_value(tau, alone) == case["last_partition_value"]
    assert np.bincount(alone, minlength=case["K"] + 1)[1:].tolist() == case["last_partition"]
    # more samples than partitions: all of them
    assert plan_value(tau, samplex(tau, case["C"], samples=10_000)) == case["optimum"]


@pytest.mark.parametrize("case", VECTORS["medium"], ids=lambda case: f"{case['M']}")
def test_medium(case):
    tau = valuation(*medium(case["M"], case["K"]))
    assert tau[3].tolist() == case["tau_row_3"]
    chunks = optimal(tau, case["C"])
    assert plan_value(tau, chunks) == case["optimum"]
    assert np.bincount(chunks, minlength=7)[1:].tolist() == case["partition"]


@given(valuations())
def test_optimal_is_the_knapsack(drawn):
    tau, capacity = drawn
    chunks = optimal(tau, capacity)
    assert chunks.sum() == capacity and plan_value(tau, chunks) == pytest.approx(best_value(tau, capacity))


@given(valuations())
def test_theorem_1_stronger(drawn):
    """The last partition has 1 / K of the optimum, not 1 / (K + 1)."""
    tau, capacity = drawn
    value = plan_value(tau, samplex(tau, capacity, samples=1))
    assert value >= best_value(tau, capacity) / (tau.shape[1] - 1) * (1 - 1e-12)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_theorem_1_is_tight(k):
    tau = np.concatenate([np.zeros((k, 1)), np.ones((k, k))], axis=1)
    assert plan_value(tau, samplex(tau, k, samples=1)) * k == best_value(tau, k)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 4))
def test_a_cache_that_keeps_everything_leaves_nothing_to_wait_for(seed, items, k):
    rng = np.random.default_rng(seed)
    study = SamplingStudy(rng.random(items), rng.random((items, k)), items * k)
    assert study.all_latencies().tolist() == [0.0]
    assert study.sampled_latencies("samplex", 2, [0, 1]).tolist() == [0.0, 0.0]


def test_equation_14():
    """The paper's example, sigma = 100."""
    tau = np.array([[0, 99, 99, 100]] * 3 + [[0, 0, 0, 0.1]])
    assert plan_value(tau, samplex(tau, 3, samples=1)) == 100
    assert plan_value(tau, optimal(tau, 3)) == 297


@given(valuations(), st.sampled_from(list(SCHEMES)), st.integers(1, 6), st.integers(0, 3))
def test_every_scheme_fills_the_cache(drawn, scheme, samples, seed):
    tau, capacity = drawn
    chunks = sampled_plan(tau, capacity, scheme, samples, seed)
    assert chunks.sum() == capacity and chunks.min() >= 0 and chunks.max() < tau.shape[1]
    partitions = drawn_partitions(Partitions(capacity, tau.shape[1] - 1, len(tau)), scheme, samples, seed)
    assert len({tuple(x) for x in partitions}) == len(partitions) <= samples


@given(valuations(), st.integers(1, 4))
def test_more_samples_are_never_worse_than_the_last_partition(drawn, samples):
    tau, capacity = drawn
    alone, more = (plan_value(tau, samplex(tau, capacity, s, seed=2)) for s in (1, samples))
    assert more >= alone * (1 - 1e-12)


@pytest.mark.parametrize("capacity", [6, 7, 1000])
def test_room_for_all(capacity):
    tau = np.array([[0.0, 1, 2, 2], [0, 0, 0, 3]])
    assert samplex(tau, capacity).tolist() == optimal(tau, capacity).tolist() == [3, 3]


def test_nothing_to_keep():
    assert samplex(np.array([[0.0, 1.0]]), 0).tolist() == optimal(np.array([[0.0, 1.0]]), 0).tolist() == [0]
    assert samplex(np.zeros((0, 4)), 5).shape == optimal(np.zeros((0, 4)), 5).shape == (0,)


def test_systematic_samples():
    """The last of each interval: the paper's example takes the 25th, 50th, 75th and 100th."""
    chi = Partitions(40, 6, 1000)
    ranks = [chi.rank(x) for x in drawn_partitions(chi, "syss", 4, 0)]
    assert ranks == [922, 1845, 2768, 3691]  # of 3692


def test_clusters():
    """CluS takes every x_K alike, ProbS by equation 15; both then stay in the cluster."""
    chi = Partitions(12, 4, 12)
    for scheme, weights in (("clus", np.ones(4) / 4), ("probs", np.array([4, 3, 2, 1]) / 10)):
        found = np.zeros(4)
        for seed in range(1500):
            drawn = drawn_partitions(chi, scheme, 3, seed)
            assert len({int(x[-1]) for x in drawn}) == 1
            found[drawn[0][-1]] += 1
        assert chisquare(found, 1500 * weights).pvalue > 0.001


def test_clusters_that_few_items_leave():
    # 10 chunks of 4 items of 3: at least two are whole
    for scheme in ("clus", "probs"):
        for seed in range(20):
            assert drawn_partitions(Partitions(10, 3, 4), scheme, 2, seed)[0][-1] in (2, 3)


def test_study():
    rates, latency_s = medium(30, 4)
    study = SamplingStudy(rates, latency_s / 1e3, 12)
    latencies = study.all_latencies()
    # by hand for one partition: its plan, then the slowest chunk that is left of each item
    tau = valuation(rates, latency_s / 1e3)
    chunks = optimal(tau, 12)
    left = [np.sort(row)[::-1][j] if j < 4 else 0.0 for row, j in zip(latency_s / 1e3, chunks, strict=True)]
    assert latencies.min() == pytest.approx((rates * left).sum() / rates.sum())
    assert len(latencies) == study.partitions.count
    for scheme in SCHEMES:
        few = study.sampled_latencies(scheme, 3, range(8))
        assert ((few >= latencies.min() * (1 - 1e-12)) & (few <= latencies.max() * (1 + 1e-12))).all()
    assert study.sampled_latencies("samplex", 10_000, [1])[0] == pytest.approx(latencies.min())
    assert study.sampled_latencies("syss", 1, [1])[0] == pytest.approx(latencies[-1])


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda tau: samplex(tau, -1), ["capacity", "-1"]),
        (lambda tau: samplex(tau, 2.5), ["capacity", "2.5"]),
        (lambda tau: samplex(tau, 2, samples=0), ["samples", "0", "at least 1"]),
        (lambda tau: samplex(tau, 2, seed=-1), ["seed", "-1"]),
        (lambda tau: samplex(-tau, 2), ["tau", "item 1"]),
        (lambda tau: sampled_plan(tau, 2, "best", 2), ["scheme", "'best'", "samplex, rands"]),
        (lambda tau: SamplingStudy(np.zeros(2), np.ones((2, 3)), 2), ["rates", "above 0"]),
        (lambda tau: SamplingStudy(np.ones(2), np.ones((2, 3)), 7), ["capacity", "7", "6"]),
        (lambda tau: SamplingStudy(np.ones((1, 2)), np.ones((2, 3)), 7), ["rates", "(1, 2)"]),
        (lambda tau: SamplingStudy(np.ones(9), np.ones((9, 3)), 6).all_latencies(3), ["capacity", "7", "3"]),
        (lambda tau: drawn_partitions(Partitions(7, 3, 2), "rands", 2, 0), ["capacity", "7", "6"]),
    ],
)
def test_refused(call, names):
    tau = np.arange(4.0) * np.arange(9)[:, None]
    with pytest.raises(UserError) as error:
        call(tau)
    assert all(name in str(error.value) for name in [*names, "allowed"]) and "\n" not in str(error.value)
