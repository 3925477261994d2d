"""The strategies by name: which code at which signal, for several classes with limits and delays of their own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.adaptation import strategies, thresholds
from ecjax.adaptation.delays import BUILT_IN, DelayModel, tasks_of
from ecjax.adaptation.proxy import EMPIRICAL, EXPONENTIAL, IDLE, WAITING, RequestClass
from ecjax.adaptation.replay import replay

MB = 1e6
THREADS = 16


def one(k_max=6, r_max=2.0, bytes_=3 * MB):
    return RequestClass("read", "read", bytes_, 1.0, k_max, r_max, False)


classes = st.lists(
    st.builds(one, st.integers(1, 10), st.sampled_from([1.0, 1.1, 1.5, 1.9, 2.0, 4.0]), st.floats(1e3, 1e9)),
    min_size=1,
    max_size=4,
)


def all_of(given, models):
    return [
        strategies.static([(1, 1)] * len(given)),
        strategies.replication(given),
        strategies.greedy(given),
        strategies.fast_cloud(given, models, THREADS),
        strategies.fast_cloud(given, models, THREADS, 3),
        strategies.tofec(given, models, THREADS),
    ]


def code_at(strategy, c, signal):
    level = int(np.sum(signal >= strategy.edges[c]))
    return int(strategy.n[c, level]), int(strategy.k[c, level])


def test_static_codes_of_two_classes():
    got = strategies.static([(3, 2), (12, 6)])
    assert got.edges.shape == (2, 0)
    assert code_at(got, 0, 5) == (3, 2)
    assert code_at(got, 1, 0) == (12, 6)


def test_replication_as_far_as_allowed():
    got = strategies.replication([one(), one(r_max=1.5), one(r_max=4.0)])
    assert got.name == "replication"
    assert [code_at(got, c, 0) for c in range(3)] == [(2, 1), (1, 1), (2, 1)]
    assert code_at(strategies.replication([one(r_max=4.0)], 3), 0, 0) == (3, 1)


@given(classes)
def test_greedy_is_its_formula(given):
    got = strategies.greedy(given)
    assert (got.signal, got.memory) == (IDLE, 0.0)
    for c, own in enumerate(given):
        assert code_at(got, c, 0) == (1, 1)
        for idle in range(1, 50):
            k = min(own.k_max, idle)
            assert code_at(got, c, idle) == (min(math.floor(own.r_max * k + 1e-9), idle), k)


def test_fast_cloud_has_one_dimension():
    models = [BUILT_IN["shifted_exp"]] * 2
    given = [one(), one(k_max=2)]
    got = strategies.fast_cloud(given, models, THREADS)
    assert (got.signal, got.memory) == (WAITING, 0.0)
    assert set(got.k[0]) == {6} and set(got.k[1]) == {2}
    got = strategies.fast_cloud(given, models, THREADS, 3)
    assert set(got.k[0]) == {3} and set(got.k[1]) == {2}
    assert code_at(got, 0, 0) == (6, 3) and code_at(got, 0, 1e9) == (3, 3)


def test_tofec_remembers():
    got = strategies.tofec([one()], [BUILT_IN["shifted_exp"]], THREADS, 0.9)
    assert (got.name, got.signal, got.memory) == ("tofec", WAITING, 0.9)
    assert strategies.tofec([one()], [BUILT_IN["shifted_exp"]], THREADS).memory == 0.99


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_tofec_replicates_where_it_may_not_chunk(name):
    """The model is fitted on more than the one size that is used, so that it knows what chunks would bring."""
    got = strategies.tofec([one(k_max=1)], [BUILT_IN[name]], THREADS)
    assert list(got.n[0]) == [2, 1]
    assert 1 < got.edges[0, 0] < 10


@given(classes, st.sampled_from(sorted(BUILT_IN)))
def test_codes_are_allowed(given, name):
    for strategy in all_of(given, [BUILT_IN[name]] * len(given)):
        levels = strategy.edges.shape[1] + 1
        assert strategy.n.shape == strategy.k.shape == (len(given), levels)
        assert strategy.n.dtype == strategy.k.dtype == np.int64
        assert np.all(strategy.k >= 1) and np.all(strategy.n >= strategy.k)
        for c, own in enumerate(given):
            assert np.all(strategy.k[c] <= own.k_max)
            assert np.all(strategy.n[c] <= own.r_max * strategy.k[c] + 1e-9)
            finite = strategy.edges[c][np.isfinite(strategy.edges[c])]
            assert np.all(np.diff(finite) > 0) and np.all(finite > 0)
            assert np.all(np.isinf(strategy.edges[c][len(finite) :]))
            assert np.all(np.diff(strategy.n[c] * (1 if strategy.signal == IDLE else -1)) >= 0)
        rows = thresholds.threshold_table(strategy, given)
        for row in rows:
            c = next(c for c, own in enumerate(given) if own.name == row["class"])
            if len(given) == 1:
                assert code_at(strategy, c, row["backlog_from"]) == (row["n"], row["k"])


def test_every_strategy_is_replayed_with_several_classes():
    """Reads of two sizes and writes, every class with its own law of delays and its own limits."""
    measured = DelayModel(
        "measured",
        EMPIRICAL,
        sizes=np.array([0.5, 4.0]) * MB,
        quantiles=np.array([np.linspace(0.02, 0.2, 11), np.linspace(0.1, 0.6, 11)]),
    )
    fixed = DelayModel("fixed", EXPONENTIAL, shift_s=0.01, shift_s_per_byte=1e-8)
    models = [BUILT_IN["shifted_lognormal"], measured, fixed]
    given = [
        RequestClass("read_3MB", "read", 3 * MB, 0.6, 6, 2.0, False),
        RequestClass("read_1MB", "read", MB, 0.3, 3, 1.5, False),
        RequestClass("write_5MB", "write", 5 * MB, 0.1, 10, 1.2, True),
    ]
    class_of = np.random.default_rng(1).choice(3, 400, p=[c.share for c in given])
    arrival = np.cumsum(np.random.default_rng(2).standard_exponential(400)) / 40
    for strategy in all_of(given, models):
        got = replay(arrival, class_of, tasks_of(given, models), strategy, THREADS, 0)
        k = strategy.k[class_of, got.level]
        assert np.all(got.latency_s > 0)
        assert got.tasks >= k.sum()
        if strategy.edges.shape[1] > 1:
            assert len(set(got.level)) > 1


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_single_code_leaves_nothing_to_adapt(name):
    given = [one(k_max=1, r_max=1.0)]
    for strategy in all_of(given, [BUILT_IN[name]]):
        assert {code_at(strategy, 0, signal) for signal in (0, 1, 5, 1e6)} == {(1, 1)}
