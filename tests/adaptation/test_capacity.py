"""Capacities found by replay against those that are known exactly."""

import numpy as np
import pytest

from ecjax.adaptation import strategies
from ecjax.adaptation.capacity import capacity
from ecjax.adaptation.delays import BUILT_IN, DelayModel, mean_delay, tasks_of
from ecjax.adaptation.proxy import EXPONENTIAL, IN_SYSTEM, WAITING, RequestClass, Strategy

MB = 1e6
THREADS = 16
READ = [RequestClass("read", "read", 3 * MB, 1.0, 6, 2.0, False)]
EXP = BUILT_IN["shifted_exp"]
BASIC = THREADS / 0.205  # (1, 1), requests/s
WHOLE = np.ones(1)


def found(strategy, models=(EXP,), classes=READ, requests=30_000):
    shares = np.array([c.share for c in classes])
    return capacity(strategy, shares, tasks_of(classes, list(models)), THREADS, 3, requests)


def agrees(got, exact):
    """Within twice the half width of the 95 % interval, which is narrow."""
    assert abs(got.per_s - exact) < 2 * got.ci_per_s
    assert 0 < got.ci_per_s < 0.03 * exact


def test_tasks_that_take_no_time_have_no_largest_rate():
    nothing = DelayModel("nothing", EXPONENTIAL)
    got = found(strategies.greedy(READ), [nothing], requests=2000)
    assert got.per_s == np.inf and got.ci_per_s == 0


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_no_coding(name):
    agrees(found(strategies.static([(1, 1)]), [BUILT_IN[name]]), THREADS / mean_delay(BUILT_IN[name], 3 * MB))


@pytest.mark.parametrize("n", [2, 4, 16])
def test_replication_on_groups_of_threads(n):
    """The n tasks of a request start and end together on n threads; 16 is a multiple of n."""
    shift, scale = 0.0113 + 0.02856 * 3, 0.0857 + 0.00744 * 3
    agrees(found(strategies.static([(n, 1)])), THREADS / n / (shift + scale / n))


def test_replication_is_two_thirds_of_the_capacity():
    assert found(strategies.replication(READ)).per_s / BASIC == pytest.approx(0.677, abs=0.008)


@pytest.mark.parametrize("k", [2, 6])
def test_chunks_without_redundancy(k):
    """No task is cancelled and no thread idles: L threads, k tasks per request."""
    agrees(found(strategies.static([(k, k)])), THREADS / k / mean_delay(EXP, 3 * MB / k))


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_fixed_dimension_ends_without_redundancy(name):
    model = BUILT_IN[name]
    got = found(strategies.fast_cloud(READ, [model], THREADS), [model])
    agrees(got, THREADS / 6 / mean_delay(model, 0.5 * MB))
    assert got.per_s * mean_delay(model, 3 * MB) / THREADS == pytest.approx(0.30, abs=0.02)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_adaptive_strategies_have_the_whole_capacity(name):
    model = BUILT_IN[name]
    for strategy in (strategies.greedy(READ), strategies.tofec(READ, [model], THREADS)):
        agrees(found(strategy, [model]), THREADS / mean_delay(model, 3 * MB))


def test_background_tasks_take_their_time():
    writes = [READ[0]._replace(op="write", background=True)]
    agrees(found(strategies.static([(4, 2)]), classes=writes), THREADS / 4 / mean_delay(EXP, 1.5 * MB))


def test_several_classes():
    classes = [READ[0]._replace(share=0.7), READ[0]._replace(share=0.3, bytes=30 * MB)]
    models = [EXP, BUILT_IN["shifted_lognormal"]]
    mean = 0.7 * mean_delay(models[0], 3 * MB) + 0.3 * mean_delay(models[1], 30 * MB)
    for strategy in (strategies.static([(1, 1)] * 2), strategies.tofec(classes, models, THREADS)):
        agrees(found(strategy, models, classes), THREADS / mean)


def test_codes_that_get_longer_with_the_backlog():
    """(1, 1) until more wait than ever do at a load of 0.9: the saturated proxy says nothing of such loads."""
    turned = Strategy("turned", IN_SYSTEM, 0.0, np.array([[400.0]]), np.array([[1, 12]]), np.array([[1, 6]]))
    got = found(turned)
    assert 0.9 * BASIC < got.per_s < 1.02 * BASIC
    assert got.ci_per_s < 0.06 * BASIC


def test_codes_that_get_shorter_too_late():
    """(6, 6) until 8000 of 30000 requests wait: all at once they do, from an empty start they drift there."""
    late = Strategy("late", WAITING, 0.0, np.array([[8000.0]]), np.array([[6, 1]]), np.array([[6, 1]]))
    got = found(late)
    assert got.per_s == pytest.approx(THREADS / 6 / mean_delay(EXP, 0.5 * MB), rel=0.08)


def test_seeds_differ_and_repeat():
    tasks = tasks_of(READ, [EXP])
    first, again, other = (
        capacity(strategies.static([(1, 1)]), WHOLE, tasks, THREADS, seed, 5000).per_s for seed in (1, 1, 2)
    )
    assert first == again != other
    assert other == pytest.approx(BASIC, rel=0.05)


def test_many_threads_get_many_requests():
    got = capacity(strategies.static([(1, 1)]), WHOLE, tasks_of(READ, [EXP]), 300, requests=100)
    agrees(got, 300 / 0.205)


def test_delays_that_never_vary():
    fixed = DelayModel("fixed", EXPONENTIAL, shift_s=0.1)
    got = found(strategies.static([(1, 1)]), [fixed])
    assert got.per_s == pytest.approx(160, rel=1e-3)


@pytest.mark.slow
def test_intervals_cover_what_is_exact():
    exact = THREADS / 6 / mean_delay(EXP, 0.5 * MB)
    tasks = tasks_of(READ, [EXP])
    hits = 0
    for seed in range(60):
        got = capacity(strategies.static([(6, 6)]), WHOLE, tasks, THREADS, seed, 20_000)
        hits += abs(got.per_s - exact) < got.ci_per_s
    assert hits >= 50  # 57 expected
