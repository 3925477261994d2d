"""Formulas against plain simulation: Lindley's recursion, 99.9 % intervals over independent replications."""

import numpy as np
from scipy import stats

from ecjax.queueing import ServiceMoments, fcfs, latency_bound

REPLICATIONS = 20


def waits(arrivals, services):
    """Wait before service of each job at one server, by W' = max(W + S - A, 0) written as a running minimum."""
    steps = np.concatenate([[0.0], services[:-1] - np.diff(arrivals)])
    walk = np.cumsum(steps)
    return walk - np.minimum.accumulate(np.minimum(walk, 0))


def assert_within_interval(samples, expected):
    samples = np.asarray(samples)
    half = stats.t.ppf(0.9995, len(samples) - 1) * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert (np.abs(samples.mean(axis=0) - expected) <= half).all(), (samples.mean(axis=0), half, expected)


def systematic_draws(rng, probabilities):
    """Nodes of every request (Q, m): intervals of length pi_j end to end, met at u, u + 1, ..., u in [0, 1)."""
    order = np.argsort(rng.random(probabilities.shape), axis=1)
    ends = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    ends[:, -1] = np.round(ends[:, -1])
    points = np.floor(ends + rng.random((len(order), 1)))
    taken = np.zeros(order.shape, bool)
    np.put_along_axis(taken, order, np.diff(points, axis=1, prepend=0) > 0, axis=1)
    return taken


def test_waits_are_lindley():
    rng = np.random.default_rng(0)
    arrivals, services = np.cumsum(rng.exponential(1.0, 200)), rng.exponential(0.8, 200)
    plain = [0.0]
    for i in range(1, 200):
        plain.append(max(plain[-1] + services[i - 1] - (arrivals[i] - arrivals[i - 1]), 0.0))
    np.testing.assert_allclose(waits(arrivals, services), plain, atol=1e-12)


def test_two_chunk_sizes_on_one_node():
    rates, shift, mean = np.array([0.3, 0.15]), np.array([0.5, 1.5]), np.array([0.3, 1.0])
    rng = np.random.default_rng(1)
    jobs, warm_up = 60_000, 2_000
    means, variances = [], []
    for _ in range(REPLICATIONS):
        arrivals = np.cumsum(rng.exponential(1 / rates.sum(), jobs))
        kind = (rng.random(jobs) < rates[1] / rates.sum()).astype(int)
        services = shift[kind] + rng.exponential(mean[kind])
        sojourn, kind = (waits(arrivals, services) + services)[warm_up:], kind[warm_up:]
        means.append([sojourn[kind == c].mean() for c in range(2)])
        variances.append([sojourn[kind == c].var() for c in range(2)])
    moments = ServiceMoments.shifted_exponential(shift[:, None], mean[:, None])
    delay = fcfs(rates[:, None], moments)
    assert_within_interval(means, np.asarray(delay.mean)[:, 0])
    assert_within_interval(variances, np.asarray(delay.variance)[:, 0])


def test_a_small_plan_stays_below_its_bound():
    rates = np.array([0.25, 0.15])
    probabilities = np.array([[0.5, 0.5, 0.6, 0.4], [1.0, 0.5, 0.7, 0.8]])
    shift, mean = np.array([0.6, 0.6, 0.9, 0.9]), np.full(4, 0.4)
    moments = ServiceMoments.shifted_exponential(shift, mean)
    delay = fcfs(rates @ probabilities, moments)
    bound = np.asarray(latency_bound(probabilities, delay))
    rng = np.random.default_rng(2)
    requests, warm_up = 10_000, 1_000
    latency, sojourn = [], []
    for _ in range(REPLICATIONS):
        arrivals = np.cumsum(rng.exponential(1 / rates.sum(), requests))
        file = (rng.random(requests) < rates[1] / rates.sum()).astype(int)
        taken = systematic_draws(rng, probabilities[file])
        times = np.full((requests, 4), np.nan)
        for j in range(4):
            used = taken[:, j]
            services = shift[j] + rng.exponential(mean[j], used.sum())
            times[used, j] = waits(arrivals[used], services) + services
        latest = np.nanmax(times, axis=1)[warm_up:]
        latency.append([latest[file[warm_up:] == i].mean() for i in range(2)])
        sojourn.append(np.nanmean(times[warm_up:], axis=0))
    # the nodes are as the theory says, although one request loads several at once
    assert_within_interval(sojourn, np.asarray(delay.mean))
    simulated = np.mean(latency, axis=0)
    assert (simulated < bound).all() and (bound < 2 * simulated).all()
