"""The bounds of Fig. 7: exact queues where they are exact, and never below a replay of what they bound."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from ecjax.queueing.earlier_bounds import forks_bound, largest_moments, split_merge_bound
from ecjax.simulation import fcfs, fork_join, laws, tally
from ecjax.simulation.summary import summarise
from ecjax.simulation.system import System, whole_units

LEVELS = np.concatenate((np.linspace(0, 0.9, 4000), 1 - np.geomspace(0.1, 1e-12, 4000)[1:], [1.0]))


def tabulated(law) -> tuple[np.ndarray, np.ndarray]:
    values = law.ppf(LEVELS)
    values[-1] = values[-2]
    return values, LEVELS


def alike(n: int, k: int, mean: float) -> System:
    """One file on n alike nodes with exponential service."""
    table = np.zeros((n, 9))
    table[:, 2], table[:, 6] = mean, laws.EXPONENTIAL
    zero, start = np.zeros(1), np.array([0, n])
    return System(
        laws=laws.Laws(table, zero),
        connect=np.zeros((2, n)),
        need=np.array([k]),
        chunk_bytes=np.ones(1),
        extra_s=zero,
        link_s=zero,
        group=np.array([0]),
        queue=np.array([0]),
        row=np.array([0]),
        start=start,
        node=np.arange(n),
        law=np.arange(n),
        units=whole_units(np.full(n, k / n), start, np.array([k])),
        chunks=np.ones(n, np.int64),
    )


def replayed(system: System, rate: float, engine: str, requests: int = 60_000) -> tuple[float, float]:
    """Mean latency and half width of its interval; Poisson arrivals."""
    n = system.nodes
    counts = tally.empty(requests, 1, n)
    times = np.cumsum(np.random.default_rng(1).exponential(1 / rate, requests))
    files = np.zeros(requests, np.int64)
    if engine == "fork_join":
        fork_join.replay_block(system, counts, times, files, 0, 5, True, np.zeros((n, 1)))
    else:
        free, turn = np.zeros((n, 1)), np.zeros(1, np.int64)
        fcfs.replay_block(system, counts, times, files, 0, 5, fcfs.SAMPLED, np.ones((n, 1)), free, turn)
    found = summarise([counts], [times[-1]]).all
    return float(found.mean[0]), float(found.half_width[0])


@pytest.mark.parametrize("load", [0.0, 0.3, 0.95])
def test_one_node_is_an_mm1_queue(load):
    mean = 3.0
    expected = mean / (1 - load)
    assert split_merge_bound(load / mean, mean, 1, 1) == pytest.approx(expected, rel=1e-12)
    values, levels = tabulated(stats.expon(scale=mean))
    assert forks_bound(load / mean, values, levels, 1) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (4, 1), (7, 4), (5, 5), (14, 10)])
def test_the_order_statistic_of_exponential_times(n, k):
    """Moments by integrating Pr(fewer than k of n are done), in many digits."""

    def unfinished(x):
        done = 1 - mpmath.exp(-x)
        return mpmath.fsum(mpmath.binomial(n, i) * done**i * (1 - done) ** (n - i) for i in range(k))

    first = mpmath.quad(unfinished, [0, 1, 5, 40, 200])
    second = mpmath.quad(lambda x: 2 * x * unfinished(x), [0, 1, 5, 40, 200])
    rate, mean = 0.4 / float(first), 2.0
    expected = mean * first + rate / mean * mean**2 * second / (2 * (1 - rate * first))
    assert split_merge_bound(rate / mean, mean, n, k) == pytest.approx(float(expected), rel=1e-10)


@pytest.mark.parametrize(("n", "k"), [(7, 4), (6, 6), (12, 6)])
@pytest.mark.parametrize("load", [0.2, 0.6, 0.9])
def test_fork_join_is_never_slower_than_split_merge(n, k, load):
    mean = 2.0
    rate = load / split_merge_bound(0.0, mean, n, k)  # of its own limit
    found, half_width = replayed(alike(n, k, mean), float(rate), "fork_join")
    assert found - half_width < split_merge_bound(rate, mean, n, k)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_for_one_of_n_fork_join_is_split_merge(load):
    """Every node works on the same request: M/M/1 with n times the rate."""
    mean, n = 2.0, 4
    rate = load * n / mean
    bound = float(split_merge_bound(rate, mean, n, 1))
    assert bound == pytest.approx(mean / n / (1 - load), rel=1e-12)
    found, half_width = replayed(alike(n, 1, mean), rate, "fork_join", 200_000)
    assert abs(found - bound) < 1.6 * half_width


@pytest.mark.parametrize("load", [0.2, 0.6, 0.9])
def test_reads_of_any_k_of_n_nodes_are_never_slower_than_forks(load):
    mean, n, k = 2.0, 7, 4
    values, levels = tabulated(stats.expon(scale=mean))
    rate = load / largest_moments(values, levels, k)[0]
    found, half_width = replayed(alike(n, k, mean), rate, "fcfs")
    assert found - half_width < forks_bound(rate, values, levels, k)


@pytest.mark.parametrize("count", [1, 4, 12])
def test_largest_of_uniform_and_constant_times(count):
    first, second = largest_moments([2.0, 5.0], [0.0, 1.0], count)  # uniform on [2, 5]
    mean, square = count / (count + 1), count / (count + 2)  # of the largest of uniform numbers
    assert first == pytest.approx(2 + 3 * mean, rel=1e-13)
    assert second == pytest.approx(4 + 12 * mean + 9 * square, rel=1e-13)
    assert largest_moments([3.0, 3.0], [0.0, 1.0], count) == pytest.approx((3.0, 9.0), rel=1e-13)
    # 1 with probability 1/4, else 2: a jump is two points with one value
    jump = largest_moments([1.0, 1.0, 2.0, 2.0], [0.0, 0.25, 0.25, 1.0], count)
    assert jump == pytest.approx((2 - 0.25**count, 4 - 3 * 0.25**count), rel=1e-13)


@pytest.mark.parametrize("law", [stats.expon(1.0, 2.0), stats.gamma(2.5), stats.lognorm(0.8)])
@pytest.mark.parametrize("count", [1, 6])
def test_largest_of_other_times(law, count):
    """Against the integral of Pr(max > x), in SciPy."""
    node, weight = np.polynomial.legendre.leggauss(60)
    knots = np.array([0.0, *law.isf([0.5, 1e-2, 1e-4, 1e-8, 1e-13])])
    half = np.diff(knots)[:, None] / 2
    x = knots[:-1, None] + half * (node + 1)
    larger = -np.expm1(count * law.logcdf(x))
    for power, value in enumerate(largest_moments(*tabulated(law), count), start=1):
        assert value == pytest.approx((half * weight * power * x ** (power - 1) * larger).sum(), rel=2e-4)


def test_beyond_their_limit_they_are_infinite():
    rates = np.array([[0.1, 0.49], [0.5, 2.0]])
    found = split_merge_bound(rates, 2.0, 1, 1)
    assert found.shape == (2, 2)
    np.testing.assert_array_equal(np.isinf(found), [[False, False], [True, True]])
    assert np.isinf(forks_bound(1.0, [1.0, 1.0], [0.0, 1.0], 3))


def test_what_is_no_code_or_no_law():
    for n, k in ((3, 0), (3, 4)):
        with pytest.raises(ValueError, match="k must be within 1 and n = 3"):
            split_merge_bound(0.1, 1.0, n, k)
    with pytest.raises(ValueError, match="at least one"):
        largest_moments([1.0, 2.0], [0.0, 1.0], 0)
    for values, levels in (([1.0, 2.0], [0.1, 1.0]), ([2.0, 1.0], [0.0, 1.0]), ([1.0, 2.0, 3.0], [0.0, 1.0])):
        with pytest.raises(ValueError, match="levels from 0 to 1"):
            largest_moments(values, levels, 2)
