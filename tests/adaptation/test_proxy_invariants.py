"""What holds for every proxy, or can be proved for some."""

import numpy as np
import pytest
from drawn_proxies import Case, draw_case, draw_tasks, static
from hypothesis import given
from hypothesis import strategies as st

from ecjax.adaptation.proxy import EMPIRICAL

SEEDS = st.integers(0, 2**32 - 1)
LOADS = st.sampled_from([0.1, 0.5, 0.9, 1.3])
any_case = given(
    case=st.builds(
        lambda seed, threads, classes, k_max, extra, load, ties: draw_case(
            seed, 60, threads, classes, k_max, k_max + extra, load, ties
        ),
        seed=SEEDS,
        threads=st.integers(1, 12),
        classes=st.integers(1, 3),
        k_max=st.integers(1, 6),
        extra=st.integers(0, 6),
        load=LOADS,
        ties=st.booleans(),
    )
)


def codes(case, level):
    return case.strategy.n[case.class_of, level], case.strategy.k[case.class_of, level]


def assert_same(got, expected, factor=1.0):
    for name in ("latency_s", "admitted_s", "busy_s"):
        np.testing.assert_allclose(getattr(got, name), factor * getattr(expected, name), rtol=1e-9)
    np.testing.assert_array_equal(got.level, expected.level)
    assert got.tasks == expected.tasks


@any_case
def test_bounds(case):
    got = case.replay()
    n, k = codes(case, got.level)
    assert np.all(got.admitted_s >= case.arrival_s)
    assert np.all(np.diff(got.admitted_s) >= 0)
    tasks, c = case.tasks, case.class_of
    least = tasks.shift[c, k]
    if tasks.quantiles.size:
        least = np.where(tasks.kind[c] == EMPIRICAL, tasks.quantiles[c, k, 0], least)
    rounds = np.ceil(k / case.threads)
    done = case.arrival_s + got.latency_s
    assert np.all(done >= got.admitted_s + rounds * least - 1e-9 * done)
    kept = tasks.background[c]
    assert n[kept].sum() + k[~kept].sum() <= got.tasks <= n.sum()
    if not kept.any():
        assert got.busy_s <= case.threads * (done.max() - case.arrival_s[0]) * (1 + 1e-9)


@any_case
def test_threads_serve_one_task_each_and_none_is_idle_while_a_request_waits(case):
    run = case.simulate()
    start, end = (np.array([getattr(task, name) for task in run.tasks]) for name in ("start_s", "end_s"))
    for time in start:
        assert ((start <= time) & (time < end)).sum() <= case.threads
    for request in run.requests:
        served = np.minimum(end, request.admitted_s) - np.maximum(start, request.arrival_s)
        wait = request.admitted_s - request.arrival_s
        np.testing.assert_allclose(np.maximum(served, 0).sum(), case.threads * wait, rtol=1e-9, atol=1e-9)


@any_case
def test_the_future_does_not_matter(case):
    got, first = case.replay(), case._replace(arrival_s=case.arrival_s[:40]).replay()
    for name in ("latency_s", "admitted_s", "level"):
        np.testing.assert_array_equal(getattr(first, name), getattr(got, name)[:40])


@any_case
def test_the_unit_of_time_does_not_matter(case):
    tasks = case.tasks
    slower = tasks._replace(shift=2 * tasks.shift, scale=2 * tasks.scale, quantiles=2 * tasks.quantiles)
    slow = case._replace(arrival_s=2 * case.arrival_s, tasks=slower).replay()
    assert_same(slow, case.replay(), 2.0)


@any_case
def test_the_order_of_classes_does_not_matter(case):
    back = slice(None, None, -1)
    strategy = case.strategy._replace(
        edges=case.strategy.edges[back].copy(),
        n=case.strategy.n[back].copy(),
        k=case.strategy.k[back].copy(),
    )
    tasks = type(case.tasks)(*(part[back].copy() for part in case.tasks))
    other = case._replace(
        class_of=len(tasks.kind) - 1 - case.class_of, tasks=tasks, strategy=strategy
    ).replay()
    assert_same(other, case.replay())


@any_case
def test_levels_of_one_code_are_a_static_code(case):
    flat = case.strategy._replace(
        n=np.repeat(case.strategy.n[:, :1], case.strategy.n.shape[1], axis=1),
        k=np.repeat(case.strategy.k[:, :1], case.strategy.k.shape[1], axis=1),
    )
    once = static(*zip(flat.n[:, 0], flat.k[:, 0], strict=True))
    got, expected = case._replace(strategy=flat).replay(), case._replace(strategy=once).replay()
    np.testing.assert_array_equal(got.latency_s, expected.latency_s)
    assert got.tasks == expected.tasks


@given(seed=SEEDS, threads=st.integers(1, 6), k=st.integers(1, 5), load=LOADS)
def test_more_threads_or_shorter_delays_never_hurt_where_all_tasks_are_needed(seed, threads, k, load):
    """Without cancellation the tasks are customers of a G/G/L queue, whose every start is monotone in both."""
    rng = np.random.default_rng(seed)
    tasks = draw_tasks(rng, 2, k, background=[False, False])
    arrival = np.cumsum(rng.exponential(k / threads / load, 80))
    case = Case(arrival, rng.integers(2, size=80), tasks, static((k, k), (1, 1)), threads, seed)
    got = case.replay()
    more = case._replace(threads=threads + 1).replay()
    shorter = tasks._replace(
        shift=0.9 * tasks.shift, scale=0.9 * tasks.scale, quantiles=0.9 * tasks.quantiles
    )
    for better in (more, case._replace(tasks=shorter).replay()):
        assert np.all(better.admitted_s <= got.admitted_s * (1 + 1e-12))
        assert np.all(better.latency_s <= got.latency_s + 1e-9 * got.admitted_s[-1])
    assert more.busy_s == pytest.approx(got.busy_s)
    assert more.tasks == got.tasks == np.where(case.class_of == 0, k, 1).sum()


@given(seed=SEEDS, threads=st.integers(1, 6), load=LOADS)
def test_more_replicas_than_threads_are_never_started(seed, threads, load):
    rng = np.random.default_rng(seed)
    tasks = draw_tasks(rng, 1, 1, background=[False])
    arrival = np.cumsum(rng.exponential(1 / load, 60))
    case = Case(arrival, np.zeros(60, int), tasks, static((threads, 1)), threads, seed)
    assert_same(case._replace(strategy=static((threads + 3, 1))).replay(), case.replay())


@given(seed=SEEDS, classes=st.integers(1, 3))
def test_nothing_waits_where_threads_abound(seed, classes):
    case = draw_case(seed, 15, 15 * 8, classes, 4, 8, 0.5)
    got = case.replay()
    np.testing.assert_array_equal(got.admitted_s, case.arrival_s)
    assert got.tasks == codes(case, got.level)[0].sum()
