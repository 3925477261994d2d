"""The replay against exact results of queueing theory and of order statistics, within intervals of replications."""

import math

import numpy as np
import pytest
from drawn_proxies import greedy, make_tasks, static
from markov_proxy import Chain
from scipy import special, stats

from ecjax.adaptation.delays import BUILT_IN, tasks_of
from ecjax.adaptation.proxy import (
    EMPIRICAL,
    EXPONENTIAL,
    IN_SYSTEM,
    LOGNORMAL,
    WAITING,
    RequestClass,
    Strategy,
)
from ecjax.adaptation.replay import replay

WARM = 1000
QUANTILES = np.array([0.2, 0.5, 0.6, 0.9, 1.0, 3.0])  # of an empirical law
LAWS = {
    "exponential": dict(shift=[0.3], scale=[0.7], kind=EXPONENTIAL),
    "lognormal": dict(shift=[0.3], scale=[0.4], kind=LOGNORMAL, shape=1.1),
    "empirical": dict(shift=[0.0], scale=[0.0], kind=EMPIRICAL, quantiles=[[QUANTILES]]),
}
each_law = pytest.mark.parametrize("law", LAWS)


def same(law, dimensions, **others):
    """One class whose tasks have this law whatever the dimension."""
    given = {**LAWS[law], **others}
    for name in ("shift", "scale"):
        given[name] = [given[name] * dimensions]
    if "quantiles" in given:
        given["quantiles"] = np.tile(given["quantiles"], (1, dimensions, 1))
    return make_tasks(**given)


def delay(law, score):
    """Of the normal score of a task."""
    given = LAWS[law]
    if law == "empirical":
        return np.interp(special.ndtr(score), np.linspace(0, 1, len(QUANTILES)), QUANTILES)
    unit = np.exp(given["shape"] * score) if law == "lognormal" else -special.log_ndtr(-score)
    return given["shift"][0] + given["scale"][0] * unit


def moment_of_least(law, count, power):
    """E of a power of the least of independent delays."""
    z, step = np.linspace(-9, 9, 1801, retstep=True)
    density = count * special.ndtr(-z) ** (count - 1) * stats.norm.pdf(z)
    return delay(law, z) ** power @ density * step


def distribution(law, delay):
    given = LAWS[law]
    if law == "empirical":
        return np.interp(delay, QUANTILES, np.linspace(0, 1, len(QUANTILES)))
    unit = np.maximum((delay - given["shift"][0]) / given["scale"][0], 0)
    if law == "lognormal":
        with np.errstate(divide="ignore"):
            return special.ndtr(np.log(unit) / given["shape"])
    return -np.expm1(-unit)


def moments(law):
    """Mean and second moment of the delay of a task."""
    given = LAWS[law]
    if law == "empirical":
        a, b = QUANTILES[:-1], QUANTILES[1:]
        return ((a + b) / 2).mean(), ((a * a + a * b + b * b) / 3).mean()
    (shift,), (scale,) = given["shift"], given["scale"]
    first, second = 1.0, 2.0
    if law == "lognormal":
        first, second = (np.exp(p * p * given["shape"] ** 2 / 2) for p in (1, 2))
    return shift + scale * first, shift**2 + 2 * shift * scale * first + scale**2 * second


def poisson(rate, requests, seed):
    return np.cumsum(np.random.default_rng([seed, 1]).exponential(1 / rate, requests))


def replicate(tasks, strategy, threads, rate, shares=(1.0,), requests=16_000, replications=20):
    """Mean latency, mean wait and share of requests that wait: mean and 99.9 % margin."""
    found = []
    for seed in range(replications):
        arrival = poisson(rate, requests, seed)
        class_of = np.random.default_rng([seed, 2]).choice(len(shares), requests, p=shares)
        got = replay(arrival, class_of, tasks, strategy, threads, seed)
        wait = (got.admitted_s - arrival)[WARM:]
        found.append([got.latency_s[WARM:].mean(), wait.mean(), (wait > 0).mean()])
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / math.sqrt(replications)
    return found.mean(axis=0), stats.t.ppf(0.9995, replications - 1) * error


def assert_within(found, expected, percent):
    mean, margin = found
    expected = np.asarray(expected)
    assert np.all(np.abs(mean - expected) < margin), (mean, margin, expected)
    assert np.all(margin < percent / 100 * expected), (margin, expected)


def erlang_c(servers, load):
    """Probability of a wait in M/M/c; ``load`` in Erlang."""
    blocking = 1.0
    for c in range(1, servers + 1):
        blocking = load * blocking / (c + load * blocking)
    return blocking / (1 - load / servers * (1 - blocking))


@pytest.mark.parametrize("utilisation", [0.7, 0.85])
@pytest.mark.parametrize("threads,copies", [(16, 1), (16, 2), (12, 4), (3, 5)])
def test_replicas_of_exponential_tasks_are_an_mmc_queue(threads, copies, utilisation):
    """(n, 1): min(n, L) threads start and end together, a server n times as fast."""
    speed = min(copies, threads)
    servers = threads // speed
    rate = utilisation * threads
    waits = erlang_c(servers, rate / speed)
    mean_wait = waits / (threads - rate)
    tasks = make_tasks([[0.0]], [[1.0]])
    found = replicate(tasks, static((copies, 1)), threads, rate, requests=30_000)
    assert_within(found, [1 / speed + mean_wait, mean_wait, waits], 15)


@each_law
@pytest.mark.parametrize("code,background", [((1, 1), False), ((3, 2), False), ((3, 2), True)])
def test_one_thread_is_an_mg1_queue(law, code, background):
    """Service is that of all tasks that are started, one after another: k of them, or n (Pollaczek and Khinchine)."""
    n, k = code
    started = n if background else k
    mean, second = moments(law)
    service = started * mean
    service_2 = started * (second - mean**2) + service**2
    rate = 0.6 / service
    wait = rate * service_2 / 2 / (1 - rate * service)
    tasks = same(law, 2, background=background)
    assert_within(replicate(tasks, static(code), 1, rate), [k * mean + wait, wait, 0.6], 15)


@each_law
def test_replicas_on_all_threads_are_an_mg1_queue(law):
    """(n, 1) with n >= L: the first of L to end frees all."""
    service, service_2 = (moment_of_least(law, 3, power) for power in (1, 2))
    rate = 0.7 / service
    wait = rate * service_2 / 2 / (1 - 0.7)
    assert_within(replicate(same(law, 1), static((4, 1)), 3, rate), [service + wait, wait, 0.7], 15)


def test_one_thread_with_three_classes():
    shift, scale = np.array([[0.3], [0.1], [1.0]]), np.array([[0.2], [1.0], [0.0]])
    shares = np.array([0.5, 0.2, 0.3])
    mean = (shift + scale)[:, 0]
    second = (shift**2 + 2 * shift * scale + 2 * scale**2)[:, 0]
    rate = 0.7 / (shares @ mean)
    wait = rate * (shares @ second) / 2 / (1 - 0.7)
    found = replicate(make_tasks(shift, scale), static((1, 1), (1, 1), (1, 1)), 1, rate, shares)
    assert_within(found, [shares @ mean + wait, wait, 0.7], 10)


def ladder(signal, edges, n, k):
    return Strategy("ladder", signal, 0.0, np.array([edges], float), np.array([n]), np.array([k]))


@pytest.mark.parametrize(
    "strategy,threads,rate,room,background",
    [
        (static((3, 2)), 3, 0.8, 60, False),
        (static((2, 2)), 3, 0.9, 60, False),
        (static((5, 2)), 3, 0.8, 60, False),
        (static((3, 2)), 3, 0.5, 50, True),
        (static((4, 2)), 2, 0.4, 50, True),
        (ladder(WAITING, [1, 2], [4, 2, 1], [2, 2, 1]), 2, 0.5, 11, False),
        (ladder(IN_SYSTEM, [1, 3, 4], [5, 4, 2, 1], [3, 2, 2, 1]), 3, 0.9, 10, False),
        (ladder(IN_SYSTEM, [1, 3], [4, 3, 1], [2, 2, 1]), 3, 0.5, 9, True),
        (greedy([3], [1.5], 3), 3, 0.8, 10, False),
        (greedy([2], [2.0], 4), 4, 1.2, 10, False),
    ],
)
def test_exponential_tasks_are_a_markov_chain(strategy, threads, rate, room, background):
    mean = [1.0, 0.6, 0.45]  # s, by dimension
    chain = Chain(rate, [0.0, *mean], strategy, threads, room, background)
    assert chain.lost() < 1e-6
    tasks = make_tasks([[0.0] * 3], [mean], background=background)
    (latency, _, waits), margin = replicate(tasks, strategy, threads, rate)
    assert_within(((latency, waits), margin[[0, 2]]), [chain.mean_latency(), chain.waits()], 3)


@pytest.mark.parametrize("code", [(1, 1), (2, 1), (6, 6), (4, 4)])
def test_capacity(code):
    """All requests wait: min(n, L) tasks of a request start together where k = 1, all tasks are served where n = k."""
    n, k = code
    model = BUILT_IN["shifted_exp"]
    tasks = tasks_of([RequestClass("read", "read", 3e6, 1.0, 6, 2.0, False)], [model])
    usage = n * tasks.shift[0, k] + k * tasks.scale[0, k]
    got = replay(np.zeros(100_000), np.zeros(100_000, int), tasks, static(code), 16, 1)
    assert 100_000 / got.latency_s.max() == pytest.approx(16 / usage, rel=0.01)
    if code == (1, 1):
        assert 16 / usage == pytest.approx(78.05, abs=0.005)


def served_alone(tasks, n, k, seed, requests=25_000):
    return replay(1e4 * np.arange(requests), np.zeros(requests, int), tasks, static((n, k)), n, seed)


@each_law
@pytest.mark.parametrize("n,k", [(1, 1), (3, 2), (6, 3), (12, 6)])
def test_a_request_alone_is_an_order_statistic(law, n, k):
    """The k-th least of n independent delays: P(at most t) = I(F(t); k, n - k + 1)."""
    found = served_alone(same(law, k), n, k, n).latency_s
    law_of_latency = special.betainc(k, n - k + 1, distribution(law, np.sort(found)))
    assert stats.kstest(law_of_latency, "uniform").pvalue > 1e-3


def test_usage_and_service_of_a_shifted_exponential():
    """Harmonic sums: service shift + scale (H_n - H_{n-k}), usage n shift + k scale."""
    shift, scale = 0.2, 0.5
    for n, k in [(2, 1), (3, 3), (6, 3), (12, 6), (24, 12)]:
        got = served_alone(make_tasks([[shift] * k], [[scale] * k]), n, k, 1)
        harmonic = sum(1 / j for j in range(n - k + 1, n + 1))
        error = got.latency_s.std() / math.sqrt(len(got.latency_s))
        assert abs(got.latency_s.mean() - shift - scale * harmonic) < 3.5 * error
        assert got.busy_s / len(got.latency_s) == pytest.approx(n * shift + k * scale, rel=0.01)
        assert got.tasks == n * len(got.latency_s)


def delays_of_tasks(tasks, count, seed):
    """(N, count): task by task, from sums of order statistics: the same tasks whatever the code."""
    sums = [
        sum(served_alone(tasks, n, k, seed).latency_s for k in range(1, n + 1)) for n in range(1, count + 1)
    ]
    return np.diff(np.stack(sums, axis=1), prepend=0.0, axis=1)


@each_law
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_scores_of_a_request_are_equicorrelated_normals(law, rho):
    found = delays_of_tasks(same(law, 3, rho=rho), 3, 5)
    probability = np.clip(distribution(law, found), 1e-12, 1 - 1e-12)
    for task in probability.T:
        assert stats.kstest(task, "uniform").pvalue > 1e-3  # the law of one task does not depend on rho
    score = special.ndtri(probability)
    error = 4 / math.sqrt(len(score))
    correlation = np.corrcoef(score.T)
    np.testing.assert_allclose(correlation[~np.eye(3, dtype=bool)], rho, atol=error)
    # independent given the common score, and so are requests: no moment of the third or fourth order is left
    a, b = score[:, :-1], score[:, 1:]
    assert np.all(np.abs((a**2 * b).mean(axis=0)) < 4 * error)
    assert np.all(np.abs((a * b**2).mean(axis=0)) < 4 * error)
    np.testing.assert_allclose((a**2 * b**2).mean(axis=0), 1 + 2 * rho**2, atol=8 * error)
    for place in range(3):
        assert abs(np.corrcoef(score[1:, place], score[:-1, 0])[0, 1]) < error


@each_law
@pytest.mark.parametrize("rho", [0.3, 0.9])
@pytest.mark.parametrize("n,k", [(3, 1), (6, 3), (6, 6)])
def test_order_statistics_of_dependent_tasks(law, rho, n, k):
    """Given the common score Z_0 they are those of independent tasks."""
    score = np.linspace(-7, 7, 281)
    common, step = np.linspace(-8, 8, 161, retstep=True)
    alone = special.ndtr((score - math.sqrt(rho) * common[:, None]) / math.sqrt(1 - rho))
    expected = stats.norm.pdf(common) @ special.betainc(k, n - k + 1, alone) * step
    found = served_alone(same(law, k, rho=rho), n, k, 2).latency_s
    found = special.ndtri(distribution(law, found))
    assert stats.kstest(np.interp(found, score, expected), "uniform").pvalue > 1e-3


def test_the_correlated_model_has_the_correlation_of_a_shared_key():
    model = BUILT_IN["correlated"]
    tasks = tasks_of([RequestClass("read", "read", 3e6, 1.0, 1, 2.0, False)], [model])
    tasks = make_tasks(
        np.repeat(tasks.shift[:, 1:], 2, axis=1),
        np.repeat(tasks.scale[:, 1:], 2, axis=1),
        LOGNORMAL,
        model.shape,
        model.rho,
    )
    found = np.concatenate([delays_of_tasks(tasks, 2, seed) for seed in range(6)])
    assert np.corrcoef(found.T)[0, 1] == pytest.approx(0.14, abs=0.02)
