"""TOFEC's static model against direct sums, quadrature, sampling, scipy.optimize and brute force."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize
from theorem_1 import best_real_codes, code_at, price_of

from ecjax.adaptation import static_code
from ecjax.adaptation.delays import BUILT_IN, LinearDelays, linear_delays
from ecjax.adaptation.proxy import RequestClass
from ecjax.errors import UserError

MB = 1e6
READ = LinearDelays(0.0113, 28.56e-9, 0.0857, 7.44e-9)
WRITE = LinearDelays(0.030, 60e-9, 0.050, 20e-9)
LONG = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 4000, "maxfev": 4000, "adaptive": True}
parts = st.one_of(st.just(0.0), st.floats(1e-4, 1.0))
models = st.builds(lambda a, b, c, d: LinearDelays(a, b / MB, c, d / MB), parts, parts, parts, parts)


def one(bytes_=3 * MB, share=1.0, k_max=6, r_max=2.0):
    return RequestClass("read", "read", bytes_, share, k_max, r_max, False)


MIXED = [
    (one(3 * MB, 0.5), READ),
    (one(1 * MB, 0.3), READ),
    (one(5 * MB, 0.2), WRITE),
]


# a write is answered before all of its tasks have ended
LATE = [(one(3 * MB, 0.4)._replace(op="write", background=True), WRITE), MIXED[1]]


@pytest.mark.parametrize(
    ("r_max", "k", "n"),
    [
        (2.0, 6, 12),
        (1.5, 2, 3),
        (1.1, 10, 11),
        (1.2, 5, 6),
        (0.1 + 1.2, 10, 13),
        (1.0, 7, 7),
        (1.99, 1, 1),
        (2.5, 3, 7),
    ],
)
def test_longest_code(r_max, k, n):
    assert static_code.longest(r_max, k) == n


def test_all_codes():
    codes = static_code.all_codes(6, 2.0)
    assert len(codes) == 27
    assert set(codes) == {(n, k) for k in range(1, 7) for n in range(1, 13) if k <= n <= 2 * k}
    assert static_code.all_codes(3, 1.0) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (6, 3), (12, 6), (7, 7)])
def test_service_delay_is_the_mean_order_statistic(n, k):
    chunk = 3 * MB / k
    delta, psi = READ.delta_s + READ.delta_s_per_byte * chunk, READ.psi_s + READ.psi_s_per_byte * chunk

    def later(t):  # fewer than k of n exponentials before t
        done = -math.expm1(-t)
        return sum(math.comb(n, j) * done**j * (1 - done) ** (n - j) for j in range(k))

    mean = integrate.quad(later, 0, np.inf, epsabs=1e-12)[0]
    got = static_code.service_delay(READ, 3 * MB, n, k)
    np.testing.assert_allclose(got, delta + psi * mean, rtol=1e-9)
    np.testing.assert_allclose(got, delta + psi * sum(1 / j for j in range(n - k + 1, n + 1)), rtol=1e-13)


def test_service_delay_of_real_codes():
    n, k = np.array([1.3, 5.5, 47.0]), np.array([0.7, 2.25, 6.5])
    chunk = 3 * MB / k
    sums = [float(mpmath.digamma(a + 1) - mpmath.digamma(a - b + 1)) for a, b in zip(n, k, strict=True)]
    delta, psi = READ.delta_s + READ.delta_s_per_byte * chunk, READ.psi_s + READ.psi_s_per_byte * chunk
    np.testing.assert_allclose(static_code.service_delay(READ, 3 * MB, n, k), delta + psi * sums, rtol=1e-12)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 2), (12, 6)])
def test_usage_is_the_mean_thread_time(n, k, background):
    draws = READ.psi_s * np.random.default_rng(1).standard_exponential((50_000, n))
    chunk = 3 * MB / k
    draws = (
        draws * (1 + READ.psi_s_per_byte * chunk / READ.psi_s) + READ.delta_s + READ.delta_s_per_byte * chunk
    )
    spent = (draws if background else np.minimum(draws, np.sort(draws)[:, k - 1 : k])).sum(axis=1)
    error = spent.std() / math.sqrt(len(spent))
    assert abs(spent.mean() - static_code.usage(READ, 3 * MB, n, k, background)) < 4 * error


def test_capacity_of_no_coding():
    read = linear_delays(BUILT_IN["shifted_exp"], np.array([MB]))
    assert 16 / static_code.usage(read, 3 * MB, 1, 1) == pytest.approx(16 / 0.205, rel=1e-12)
    assert 16 / static_code.usage(read, 3 * MB, 1, 1) == pytest.approx(78.05, abs=0.005)


def test_queue_is_an_mm1_with_rate_threads_per_usage():
    rate, used, threads = 40.0, np.array([0.1, 0.3, 0.39, 0.4, 0.5]), 16
    service = threads / used
    with np.errstate(divide="ignore"):
        expected = np.where(service > rate, rate / service / (service - rate), np.inf)
    np.testing.assert_allclose(static_code.queueing_delay(rate, used, threads), expected, rtol=1e-12)


@pytest.mark.parametrize("backlog", [1e-12, 1e-3, 1.0, 50.0, 1e6])
def test_price_is_the_slope_of_the_queueing_delay(backlog):
    threads = 16
    price = price_of(backlog, threads)
    np.testing.assert_allclose(static_code.backlog_of(price, threads), backlog, rtol=1e-9)
    with mpmath.workdps(60):
        q, threads = mpmath.mpf(backlog), mpmath.mpf(threads)
        x = (mpmath.sqrt(q**2 + 4 * q) - q) / 2
        # with one request/s usage is x L
        slope = mpmath.diff(lambda u: u**2 / (threads * (threads - u)), x * threads, h=mpmath.mpf(10) ** -30)
        np.testing.assert_allclose(price, float(slope), rtol=1e-9)


def total_delay(classes, rate, threads, log_k, log_extra):
    """The objective of the paper, with numbers per class."""
    mean = used = 0.0
    for (c, d), a, b in zip(classes, log_k, log_extra, strict=True):
        k, r = math.exp(a), 1 + math.exp(b)
        chunk = c.bytes / k
        delta, psi = d.delta_s + d.delta_s_per_byte * chunk, d.psi_s + d.psi_s_per_byte * chunk
        mean += c.share * (delta + psi * math.log1p(math.exp(-b)))
        used += c.share * (k * r * delta + (k * r if c.background else k) * psi)
    x = rate * used / threads
    return mean + rate * used**2 / (threads * (threads - rate * used)) if x < 1 else 1e6 * x


@pytest.mark.parametrize("classes", [MIXED[:1], MIXED[:2], MIXED, LATE])
@pytest.mark.parametrize("rate", [0.5, 60.0, 95.0])
def test_closed_form_against_a_general_optimizer(classes, rate):
    threads = 16
    share = sum(c.share for c, _ in classes)
    classes = [(c._replace(share=c.share / share), d) for c, d in classes]
    found = best_real_codes([c for c, _ in classes], [d for _, d in classes], threads, rate)
    count = len(classes)

    def objective(z):
        return total_delay(classes, rate, threads, z[:count], z[count:])

    best = None
    for start in (-1.0, 0.0, 1.0):
        z = np.full(2 * count, start)
        for _ in range(3):  # the simplex shrinks too soon in six dimensions
            got = optimize.minimize(objective, z, method="Nelder-Mead", options=LONG)
            z = got.x
        best = got if best is None or got.fun < best.fun else best
    at = np.concatenate([np.log(found.k), np.log(found.n / found.k - 1)])
    assert objective(at) <= best.fun * (1 + 1e-12)
    assert objective(at) == pytest.approx(best.fun, rel=1e-6)
    if count == 1:
        np.testing.assert_allclose(np.exp(best.x[0]), found.k[0], rtol=1e-3)
        np.testing.assert_allclose(1 + np.exp(best.x[1]), found.n[0] / found.k[0], rtol=1e-3)


@pytest.mark.parametrize("part", [1e-11, 1e-5, 0.01, 0.3, 0.7, 0.99, 1 - 1e-5])
def test_equations_6_and_7(part):
    """At a rate that is a part of the largest."""
    threads = 16
    classes = [c for c, _ in MIXED]
    delays = [d for _, d in MIXED]
    most = threads / sum(c.share * c.bytes * (d.delta_s_per_byte + d.psi_s_per_byte) for c, d in MIXED)
    rate = part * most
    found = best_real_codes(classes, delays, threads, rate)
    x = found.utilisation
    assert 0 < x < 1
    np.testing.assert_allclose(found.backlog, x**2 / (1 - x), rtol=1e-6)
    used = sum(
        c.share
        * (n * d.delta_s + n / k * d.delta_s_per_byte * c.bytes + k * d.psi_s + d.psi_s_per_byte * c.bytes)
        for (c, d), n, k in zip(MIXED, found.n, found.k, strict=True)
    )
    np.testing.assert_allclose(rate * used / threads, x, rtol=1e-9)
    for (c, d), n, k in zip(MIXED, found.n, found.k, strict=True):
        r, extra, j = n / k, (n - k) / k, c.bytes
        left = k * (d.psi_s * k + d.psi_s_per_byte * j) / (j * (d.delta_s * k + d.delta_s_per_byte * j))
        right = (
            r
            * extra
            * (d.delta_s_per_byte + d.psi_s_per_byte * np.log(r / extra))
            / (d.delta_s * r + d.psi_s)
        )
        np.testing.assert_allclose(left, right, rtol=1e-6)
        price = (d.psi_s * k + d.psi_s_per_byte * j) / (
            k * r * extra * (d.delta_s * k + d.delta_s_per_byte * j)
        )
        np.testing.assert_allclose((2 * x - x**2) / (threads * (1 - x) ** 2), price, rtol=1e-6)


@given(models, st.floats(0.05, 50.0), st.integers(1, 64))
def test_codes_fall_strictly_with_the_backlog(delays, megabytes, threads):
    """Corollary 1, also where parts of the model are 0."""
    size = megabytes * MB
    if sum(delays) == 0:
        with pytest.raises(UserError, match="positive and finite"):
            static_code.usable(delays, size)
        return
    delays = static_code.usable(delays, size)
    backlog = np.geomspace(1e-6, 1e4, 60)
    n, k = code_at(delays, size, price_of(backlog, threads))
    assert np.all(np.isfinite(n)) and np.all(k > 0) and np.all(n > k)
    assert np.all(np.diff(n) < 0)
    assert np.all(np.diff(k) < 0)
    # the ratio may move less than its rounding where it has a limit
    assert np.all(np.diff(n / k) < 1e-12 * (n / k)[:-1])


@given(models, st.floats(0.05, 50.0), st.booleans())
def test_inverses_of_the_codes(delays, megabytes, background):
    size = megabytes * MB
    if sum(delays) == 0:
        return
    delays = static_code.usable(delays, size)
    lengths = np.arange(1, 41)
    price = static_code.price_of_length(delays, size, lengths, background)
    assert np.all(np.diff(price) < 0)
    np.testing.assert_allclose(code_at(delays, size, price, background)[0], lengths, rtol=1e-6)
    price = static_code.price_of_dimension(delays, size, lengths, background)
    assert np.all(np.diff(price) < 0)
    np.testing.assert_allclose(code_at(delays, size, price, background)[1], lengths, rtol=1e-6)


def test_one_backlog_gives_the_codes_of_every_class():
    """Corollary 1: whatever the mix, a class has the code that it has alone at the same backlog."""
    found = best_real_codes([c for c, _ in MIXED], [d for _, d in MIXED], 16, 50.0)
    price = price_of(found.backlog, 16)
    for i, (c, d) in enumerate(MIXED):
        n, k = code_at(d, c.bytes, price)
        np.testing.assert_allclose([n, k], [found.n[i], found.k[i]], rtol=1e-6)


def test_usable_leaves_positive_models():
    np.testing.assert_allclose(static_code.usable(READ, 3 * MB), READ, rtol=1e-12)


@pytest.mark.parametrize(
    "delays",
    [
        LinearDelays(-0.01, 40e-9, 0.05, 5e-9),
        LinearDelays(0.2, -10e-9, 0.05, 5e-9),
        LinearDelays(0.01, 40e-9, -0.001, 5e-9),
        LinearDelays(0.01, 40e-9, 0.05, -5e-9),
        LinearDelays(-0.1, 10e-9, 0.2, 5e-9),
        LinearDelays(0.1, 10e-9, -0.1, 5e-9),
        LinearDelays(0.0, 0.0, 0.0, 5e-9),
    ],
)
def test_usable_keeps_the_capacity(delays):
    size = 3 * MB
    got = static_code.usable(delays, size)
    assert min(got) > 0
    np.testing.assert_allclose(
        static_code.usage(got, size, 1, 1), static_code.usage(delays, size, 1, 1), rtol=1e-12
    )
    n, k = code_at(got, size, np.geomspace(1e-4, 1e2, 10))
    assert np.all(np.diff(n) < 0) and np.all(np.diff(k) < 0)


@pytest.mark.parametrize(
    "delays", [LinearDelays(0, 0, 0, 0), LinearDelays(-1, 0, 0.5, 0), LinearDelays(np.nan, 0, 1, 0)]
)
def test_unusable_models(delays):
    with pytest.raises(UserError, match=r"a chunk of 3e\+06 bytes takes .* s in the linear model"):
        static_code.usable(delays, 3 * MB)


def brute_force(classes, threads, rate):
    best = math.inf
    for codes in itertools.product(*(static_code.all_codes(c.k_max, c.r_max) for c, _ in classes)):
        mean = used = 0.0
        for (c, d), (n, k) in zip(classes, codes, strict=True):
            chunk = c.bytes / k
            delta, psi = d.delta_s + d.delta_s_per_byte * chunk, d.psi_s + d.psi_s_per_byte * chunk
            mean += c.share * (delta + psi * sum(1 / j for j in range(n - k + 1, n + 1)))
            used += c.share * (n * delta + (n if c.background else k) * psi)
        if rate * used < threads:
            best = min(best, mean + rate * used**2 / (threads * (threads - rate * used)))
    return best


@pytest.mark.parametrize("classes", [MIXED[:1], MIXED[1:], LATE])
@pytest.mark.parametrize("load", [0.01, 0.3, 0.6, 0.95])
def test_best_whole_codes_against_brute_force(classes, load):
    threads = 16
    share = sum(c.share for c, _ in classes)
    classes = [(c._replace(share=c.share / share), d) for c, d in classes]
    rate = load * threads / sum(c.share * static_code.usage(d, c.bytes, 1, 1) for c, d in classes)
    codes = static_code.best_codes([c for c, _ in classes], [d for _, d in classes], threads, rate)
    mean = sum(
        c.share * static_code.service_delay(d, c.bytes, *code)
        for (c, d), code in zip(classes, codes, strict=True)
    )
    used = sum(
        c.share * static_code.usage(d, c.bytes, *code, c.background)
        for (c, d), code in zip(classes, codes, strict=True)
    )
    total = mean + static_code.queueing_delay(rate, used, threads)
    assert total == pytest.approx(brute_force(classes, threads, rate), rel=1e-12)


def test_overload_has_the_codes_of_the_least_usage():
    assert static_code.best_codes([one(), one(MB)], [READ, READ], 16, 1e4) == [(1, 1), (1, 1)]
