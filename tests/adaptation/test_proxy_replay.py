"""The replay against the plain simulator, request by request, with the same delays."""

import numpy as np
import pytest
from drawn_proxies import Case, draw_case, draw_tasks, greedy, static
from hypothesis import given, settings
from hypothesis import strategies as st

from ecjax.adaptation.proxy import SIGNALS

SEEDS = st.integers(0, 2**32 - 1)
LOADS = st.sampled_from([0.05, 0.2, 0.5, 0.9, 1.3])


def compare(case):
    got, expected = case.replay(), case.simulate()
    np.testing.assert_array_equal(got.level, expected.level)
    np.testing.assert_allclose(got.admitted_s, expected.admitted_s, rtol=1e-9)
    np.testing.assert_allclose(got.latency_s, expected.latency_s, rtol=1e-9)
    np.testing.assert_allclose(got.busy_s, expected.busy_s, rtol=1e-9)
    assert got.tasks == len(expected.tasks)
    return got


@settings(max_examples=100)
@given(
    seed=SEEDS,
    threads=st.integers(1, 20),
    classes=st.integers(1, 3),
    k_max=st.integers(1, 12),
    extra=st.integers(0, 12),
    load=LOADS,
)
def test_any_proxy(seed, threads, classes, k_max, extra, load):
    compare(draw_case(seed, 50, threads, classes, k_max, k_max + extra, load))


@pytest.mark.parametrize("signal", range(3), ids=SIGNALS)
@settings(max_examples=30)
@given(seed=SEEDS, threads=st.integers(1, 8), k_max=st.integers(1, 4), load=st.sampled_from([0.3, 0.8, 1.1]))
def test_every_signal(signal, seed, threads, k_max, load):
    compare(draw_case(seed, 80, threads, 2, k_max, 2 * k_max, load, signal=signal))


@pytest.mark.parametrize("signal", range(3), ids=SIGNALS)
@settings(max_examples=40)
@given(seed=SEEDS, threads=st.integers(1, 6), k_max=st.integers(1, 4), load=LOADS)
def test_ties(signal, seed, threads, k_max, load):
    """Delays and arrivals are multiples of 1/4 s: completions and arrivals fall together."""
    compare(draw_case(seed, 60, threads, 2, k_max, k_max + 4, load, ties=True, signal=signal))


@settings(max_examples=25)
@given(seed=SEEDS, threads=st.integers(1, 20), classes=st.integers(1, 3), ties=st.booleans())
def test_static_and_greedy(seed, threads, classes, ties):
    rng = np.random.default_rng(seed)
    k = rng.integers(1, 7, classes)
    tasks = draw_tasks(rng, classes, 6, ties)
    arrival = np.cumsum(rng.exponential(1.5 / threads, 60))
    class_of = rng.integers(classes, size=60)
    for strategy in (
        static(*zip(k + rng.integers(0, 7, classes), k, strict=True)),
        greedy(k, rng.uniform(1, 2.5, classes), threads),
    ):
        compare(Case(arrival, class_of, tasks, strategy, threads, seed))


def test_one_request_and_none():
    case = draw_case(3, 1, 4, 1, 3, 6, 0.5)
    compare(case)
    none = case._replace(arrival_s=case.arrival_s[:0], class_of=case.class_of[:0]).replay()
    assert (len(none.latency_s), none.busy_s, none.tasks) == (0, 0.0, 0)


@pytest.mark.slow
@settings(max_examples=4000)
@given(
    seed=SEEDS,
    threads=st.integers(1, 20),
    classes=st.integers(1, 3),
    k_max=st.integers(1, 12),
    extra=st.integers(0, 12),
    load=LOADS,
    ties=st.booleans(),
)
def test_many_proxies(seed, threads, classes, k_max, extra, load, ties):
    compare(draw_case(seed, 60, threads, classes, k_max, k_max + extra, load, ties))


@pytest.mark.slow
def test_a_long_replay():
    compare(draw_case(11, 50_000, 16, 2, 6, 12, 0.6))
