"""Thresholds on the backlog against the paper's algorithm, spelled out, and against root finding on the model."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from ecjax.adaptation import static_code, thresholds
from ecjax.adaptation.delays import BUILT_IN, LinearDelays
from ecjax.adaptation.proxy import IDLE, WAITING, RequestClass
from ecjax.adaptation.thresholds import Ladder

MB = 1e6
READ = LinearDelays(0.0113, 28.56e-9, 0.0857, 7.44e-9)
parts = st.one_of(st.just(0.0), st.floats(1e-3, 1.0))
models = st.builds(lambda a, b, c, d: LinearDelays(a + 1e-3, b / MB, c, d / MB), parts, parts, parts, parts)
limits = st.tuples(st.integers(1, 12), st.sampled_from([1.0, 1.1, 1.34, 1.5, 2.0, 3.0]))


def one(k_max=6, r_max=2.0, bytes_=3 * MB, name="read"):
    return RequestClass(name, "read", bytes_, 1.0, k_max, r_max, False)


def code_of(ladder, signal):
    level = int(np.sum(signal >= ladder.edges))
    return int(ladder.n[level]), int(ladder.k[level])


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("code", [1, 2, 5, 12])
def test_backlog_at_which_a_length_is_best(code, background):
    """Minimise Ds + Dq over real codes at the rate that leaves this backlog: the length is the one asked for."""
    threads, size = 16, 3 * MB
    price = static_code.price_of_length(READ, size, np.array([code]), background)
    backlog = static_code.backlog_of(price, threads)[0]
    x = (math.sqrt(backlog**2 + 4 * backlog) - backlog) / 2

    def cost(z):
        k, r = math.exp(z[0]), 1 + math.exp(z[1])
        delta, psi = (
            READ.delta_s + READ.delta_s_per_byte * size / k,
            READ.psi_s + READ.psi_s_per_byte * size / k,
        )
        slope = (2 * x - x**2) / (threads * (1 - x) ** 2)
        used = k * r * delta + (k * r if background else k) * psi
        return delta + psi * math.log(r / (r - 1)) + slope * used

    got = optimize.minimize(cost, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15}).x
    assert math.exp(got[0]) * (1 + math.exp(got[1])) == pytest.approx(code, rel=1e-3)


@given(models, limits, st.integers(1, 64), st.floats(0.1, 20.0), st.booleans())
def test_tofec_is_the_algorithm_of_the_paper(delays, limit, threads, megabytes, background):
    k_max, r_max = limit
    size = megabytes * MB
    delays = static_code.usable(delays, size)
    given_class = one(k_max, r_max, size)._replace(background=background)
    ladder = thresholds.tofec_ladder(given_class, delays, threads)
    longest = math.floor(r_max * k_max + 1e-9)

    def q(price):
        return static_code.backlog_of(price, threads)

    q_n = q(static_code.price_of_length(delays, size, np.arange(1, longest + 1), background))
    q_k = q(static_code.price_of_dimension(delays, size, np.arange(1, k_max + 1), background))
    h_n = [math.inf, *(0.5 * (q_n[1:] + q_n[:-1])), 0.0]
    h_k = [math.inf, *(0.5 * (q_k[1:] + q_k[:-1])), 0.0]
    middle = [0.5 * (a + b) for a, b in zip(sorted(h_n[1:-1]), sorted(h_n[1:-1])[1:], strict=False)]
    for smoothed in [0.0, 1e-9, 1e9, *h_n[1:-1], *h_k[1:-1], *middle, *np.geomspace(1e-4, 1e3, 30)]:
        n = next(n for n in range(1, longest + 1) if h_n[n] <= smoothed < h_n[n - 1])
        k = next(k for k in range(1, k_max + 1) if h_k[k] <= smoothed < h_k[k - 1])
        assert k <= n
        assert code_of(ladder, smoothed) == (min(n, math.floor(r_max * k + 1e-9)), k)
    assert np.all(np.diff(ladder.edges) > 0)
    codes = list(zip(ladder.n, ladder.k, strict=True))
    assert all(a != b for a, b in zip(codes, codes[1:], strict=False))
    assert (ladder.n[-1], ladder.k[-1]) == (1, 1)


def test_an_empty_queue_has_the_longest_code():
    for model in BUILT_IN.values():
        ladder = thresholds.tofec_ladder(one(), thresholds.fitted(one(), model), 16)
        assert code_of(ladder, 0.0) == (12, 6)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_fast_cloud_thresholds_are_where_curves_cross(k, background):
    threads, size = 16, 3 * MB
    ladder = thresholds.fast_cloud_ladder(one()._replace(background=background), READ, threads, k)
    assert list(ladder.n) == list(range(2 * k, k - 1, -1))
    assert set(ladder.k) == {k}

    def usage(n):
        delta = READ.delta_s + READ.delta_s_per_byte * size / k
        psi = READ.psi_s + READ.psi_s_per_byte * size / k
        return n * delta + (n if background else k) * psi

    def total(n, rate):
        used = usage(n)
        return static_code.service_delay(READ, size, n, k) + static_code.queueing_delay(rate, used, threads)

    for edge, n in zip(ladder.edges, range(2 * k - 1, k - 1, -1), strict=True):
        most = threads / usage(n + 1)
        rate = optimize.brentq(lambda rate, n=n: total(n, rate) - total(n + 1, rate), 1e-9, most * (1 - 1e-9))
        busy = [rate * usage(m) / threads for m in (n, n + 1)]
        assert edge == pytest.approx(np.mean([x**2 / (1 - x) for x in busy]), rel=1e-6)


@given(models, limits, st.integers(1, 64), st.booleans())
def test_fast_cloud_shortens_with_the_backlog(delays, limit, threads, background):
    k_max, r_max = limit
    given_class = one(k_max, r_max)._replace(background=background)
    delays = static_code.usable(delays, given_class.bytes)
    for k in range(1, k_max + 1):
        ladder = thresholds.fast_cloud_ladder(given_class, delays, threads, k)
        assert len(ladder.n) == len(ladder.edges) + 1 == len(ladder.k)
        assert np.all(ladder.edges > 0) and np.all(np.isfinite(ladder.edges))
        assert np.all(np.diff(ladder.edges) > 0)
        assert ladder.n[0] == math.floor(r_max * k + 1e-9) and ladder.n[-1] == k


def test_classes_are_padded():
    ladders = [
        Ladder(np.array([1.0, 2.5]), np.array([4, 3, 1]), np.array([2, 2, 1])),
        Ladder(np.empty(0), np.array([2]), np.array([1])),
    ]
    got = thresholds.joined("both", WAITING, 0.5, ladders)
    assert (got.name, got.signal, got.memory) == ("both", WAITING, 0.5)
    np.testing.assert_array_equal(got.edges, [[1.0, 2.5], [np.inf, np.inf]])
    np.testing.assert_array_equal(got.n, [[4, 3, 1], [2, 2, 2]])
    np.testing.assert_array_equal(got.k, [[2, 2, 1], [1, 1, 1]])
    assert got.n.dtype == got.k.dtype == np.int64


def test_table_for_a_proxy():
    ladders = [
        Ladder(np.array([1.0, 2.5]), np.array([4, 3, 1]), np.array([2, 2, 1])),
        Ladder(np.empty(0), np.array([2]), np.array([1])),
    ]
    classes = [one(name="read"), one(name="write")]
    rows = thresholds.threshold_table(thresholds.joined("both", IDLE, 0.25, ladders), classes)
    assert [tuple(row.values()) for row in rows] == [
        ("read", "idle", 0.25, 0.0, 1.0, 4, 2),
        ("read", "idle", 0.25, 1.0, 2.5, 3, 2),
        ("read", "idle", 0.25, 2.5, math.inf, 1, 1),
        ("write", "idle", 0.25, 0.0, math.inf, 2, 1),
    ]
    assert list(rows[0]) == ["class", "signal", "memory", "backlog_from", "backlog_below", "n", "k"]
