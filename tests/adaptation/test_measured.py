import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from ecjax.adaptation.arrivals import constant, poisson
from ecjax.adaptation.delays import BUILT_IN, linear_delays, mean_delay, quantile, tasks_of
from ecjax.adaptation.measured import LEAST_DELAYS, Delays, exponential_rho, measured
from ecjax.adaptation.proxy import EMPIRICAL, WAITING, RequestClass, Strategy
from ecjax.adaptation.replay import replay

SIZES = np.array([0.5e6, 1e6, 3e6])
GRID = np.linspace(0, 1, 2001)


def draws(law, rho, requests, tasks, seed, sizes=SIZES):
    """Delays of a known law, requests of one size each, normal scores of correlation rho: and (requests, tasks) s."""
    random = np.random.default_rng(seed)
    common, own = random.standard_normal((requests, 1)), random.standard_normal((requests, tasks))
    probability = special.ndtr(np.sqrt(rho) * common + np.sqrt(1 - rho) * own)
    size = random.choice(sizes, requests)
    seconds = np.empty((requests, tasks))
    for one in sizes:
        seconds[size == one] = quantile(law, one, probability[size == one])
    request = np.repeat(np.arange(requests), tasks)
    return Delays(np.repeat(size, tasks), seconds.ravel(), request), seconds, size


def distribution(law, size, seconds):
    """F(seconds) of a built-in law, from SciPy."""
    shift, scale = (
        getattr(law, part + "_s") + getattr(law, part + "_s_per_byte") * size for part in ("shift", "scale")
    )
    if law.shape:
        return stats.lognorm.cdf(seconds, law.shape, loc=shift, scale=scale)
    return stats.expon.cdf(seconds, loc=shift, scale=scale)


@pytest.mark.parametrize("name", BUILT_IN)
def test_quantiles_and_correlation_of_a_known_law_come_back(name):
    law = BUILT_IN[name]
    rho = law.rho or 0.4
    delays, _, _ = draws(law, rho, 8000, 3, 1)
    found = measured(delays, "log")
    assert found.model.kind == EMPIRICAL and found.model.name == "log"
    np.testing.assert_array_equal(found.model.sizes, SIZES)
    assert found.counts.sum() == 24_000 and found.requests == 8000
    for size, count in zip(SIZES, found.counts, strict=True):
        for level in (0.01, 0.1, 0.5, 0.9, 0.99, 0.999):
            # tasks of a request depend on each other: fewer independent ones
            error = np.sqrt(level * (1 - level) / (count / (1 + 2 * rho)))
            seconds = quantile(found.model, size, np.array(level))
            assert abs(distribution(law, size, seconds) - level) < 4 * error
    assert abs(found.model.rho - rho) < 4 * found.rho_error
    assert found.rho_error < 0.02


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_the_error_of_the_correlation_is_its_spread_over_samples(rho):
    law = BUILT_IN["shifted_lognormal"]
    found = [measured(draws(law, rho, 400, 3, 100 + seed)[0], "log") for seed in range(120)]
    # one below 0 counts as 0: look at those above
    values = np.array([one.model.rho for one in found])
    error = np.mean([one.rho_error for one in found])
    spread = values.std(ddof=1) if rho else np.sqrt(np.mean(values**2) * 2)
    assert spread == pytest.approx(error, rel=0.3)
    assert values.mean() == pytest.approx(rho, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shifted_lognormal", "correlated"])
def test_a_replay_under_the_measured_law_is_one_under_the_law(name):
    law = BUILT_IN[name]
    one = RequestClass("read", "read", 3e6, 1.0, 6, 2.0, False)
    delays, _, _ = draws(law, law.rho, 60_000, 3, 11, sizes=3e6 / np.array([1, 3, 6]))
    models = [law, measured(delays, "log").model]
    arrivals = poisson(constant(8.0, np.ones(1)), 60_000, 12)
    for n, k in ((1, 1), (6, 3), (9, 6)):
        code = Strategy("static", WAITING, 0.0, np.empty((1, 0)), np.array([[n]]), np.array([[k]]))
        means, tails = [], []
        for model in models:
            latency = replay(*arrivals, tasks_of([one], [model]), code, 16, 13).latency_s
            means.append(latency.mean())
            tails.append(np.quantile(latency, 0.99))
        assert means[1] == pytest.approx(means[0], rel=0.03)
        assert tails[1] == pytest.approx(tails[0], rel=0.05)


def test_pearsons_correlation_comes_back_too():
    """The paper measured 0.14 between the delays of tasks that read one object."""
    law = BUILT_IN["correlated"]
    delays, seconds, size = draws(law, law.rho, 60_000, 2, 2, sizes=np.array([1e6]))
    model = measured(delays, "log").model
    logged = np.corrcoef(seconds.T)[0, 1]
    random = np.random.default_rng(3)
    common, own = random.standard_normal((60_000, 1)), random.standard_normal((60_000, 2))
    scores = np.sqrt(model.rho) * common + np.sqrt(1 - model.rho) * own
    drawn = np.corrcoef(quantile(model, 1e6, special.ndtr(scores)).T)[0, 1]
    assert logged == pytest.approx(0.14, abs=0.03)
    assert drawn == pytest.approx(logged, abs=0.03)


def test_correlation_of_sizes_is_no_correlation_of_tasks():
    delays, seconds, _ = draws(BUILT_IN["shifted_exp"], 0.0, 4000, 3, 4, sizes=np.array([1e5, 1e8]))
    assert np.corrcoef(seconds.T)[0, 1] > 0.5
    found = measured(delays, "log")
    assert found.model.rho < 4 * found.rho_error


def test_requests_of_one_task_tell_no_correlation():
    delays, _, _ = draws(BUILT_IN["correlated"], 0.5, 500, 1, 5)
    found = measured(delays, "log")
    assert found.model.rho == 0.0 and np.isnan(found.rho_error) and found.requests == 0


@given(
    st.integers(LEAST_DELAYS, 5000),
    st.floats(0.2, 2.5),
    st.integers(0, 1000),
)
def test_the_mean_is_that_of_the_delays(count, shape, seed):
    seconds = np.random.default_rng(seed).lognormal(0, shape, count)
    model = measured(Delays(np.full(count, 1e6), seconds, np.arange(count)), "log").model
    assert mean_delay(model, 1e6) == pytest.approx(seconds.mean(), rel=1e-3 if count < 2000 else 1e-9)
    assert np.all(np.diff(model.quantiles) >= 0)


@pytest.mark.parametrize("count", [100, 137, 20_000])
def test_quantiles_are_hazens(count):
    seconds = np.random.default_rng(6).exponential(1.0, count)
    model = measured(Delays(np.full(count, 1e6), seconds, np.arange(count)), "log").model
    expected = np.quantile(seconds, GRID[:-1], method="hazen")
    np.testing.assert_allclose(model.quantiles[0, :-1], expected, rtol=1e-12)


def test_equal_delays_stay_what_they_are():
    model = measured(Delays(np.full(200, 1e6), np.full(200, 0.25), np.repeat(np.arange(100), 2)), "log").model
    np.testing.assert_allclose(model.quantiles, 0.25, rtol=1e-12)
    assert model.rho == 0.0


def test_one_size_is_the_law_of_all_sizes():
    delays, _, _ = draws(BUILT_IN["shifted_exp"], 0.0, 300, 1, 7, sizes=np.array([1e6]))
    model = measured(delays, "log").model
    assert mean_delay(model, 9e6) == mean_delay(model, 1e6)


@pytest.mark.parametrize(
    ("large", "size", "expected"),
    [
        # the line through 10 ms at 1 MB and 40 ms at 2 MB is 0 at 2/3 MB
        (0.04, 0.5e6, 0.005),
        (0.04, 0.9e6, 0.009),
        (0.04, 1.5e6, 0.025),
        (0.04, 3e6, 0.070),
        # that of 16 ms at 2 MB is 4 ms for nothing
        (0.016, 0.5e6, 0.007),
        (0.016, 1e3, 0.004006),
    ],
)
def test_towards_smaller_chunks_delays_fall_in_proportion_to_the_size_at_most(large, size, expected):
    seconds = np.repeat([0.01, large], 100)
    model = measured(Delays(np.repeat([1e6, 2e6], 100), seconds, np.arange(200)), "log").model
    assert mean_delay(model, size) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(quantile(model, size, np.array([0.0, 0.5, 0.99])), expected, rtol=1e-9)


def test_few_sizes_are_exact_and_small_groups_join_the_nearer_neighbour():
    sizes = np.repeat([1e5, 9e5, 1e6, 4e6], [500, 40, 300, 60])
    found = measured(Delays(sizes, np.random.default_rng(8).exponential(1, 900), np.arange(900)), "log")
    # the 40 of 0.9 MB go to 1 MB, the 60 of 4 MB as well: nothing else is beside them
    np.testing.assert_array_equal(found.counts, [500, 400])
    np.testing.assert_allclose(found.model.sizes, [1e5, (40 * 9e5 + 300 * 1e6 + 60 * 4e6) / 400])
    np.testing.assert_array_equal(found.least, [1e5, 9e5])
    np.testing.assert_array_equal(found.most, [1e5, 4e6])


@given(st.integers(100, 3000), st.floats(0.01, 3.0), st.integers(0, 100))
def test_groups_of_many_sizes_are_ranges_with_enough_delays(count, spread, seed):
    random = np.random.default_rng(seed)
    sizes = np.round(random.lognormal(12, spread, count)) + 1
    found = measured(Delays(sizes, random.exponential(1, count), np.arange(count)), "log")
    assert len(found.counts) <= 16 and found.counts.sum() == count
    assert found.counts.min() >= LEAST_DELAYS
    assert np.all(found.most[:-1] < found.least[1:])
    for least, most, size, own in zip(found.least, found.most, found.model.sizes, found.counts, strict=True):
        here = (sizes >= least) & (sizes <= most)
        assert here.sum() == own
        assert size == pytest.approx(sizes[here].mean())


def test_tofecs_lines_are_those_of_the_delays_themselves():
    """The worst 10 % of every size dropped, mean and deviation of the others by least squares on the size."""
    delays, _, _ = draws(BUILT_IN["shifted_lognormal"], 0.0, 20_000, 1, 9)
    found = linear_delays(measured(delays, "log").model, SIZES)
    moments = []
    for size in SIZES:
        own = np.sort(delays.seconds[delays.bytes == size])
        kept = own[: round(0.9 * len(own))]
        moments.append((kept.mean(), kept.std()))
    mean, deviation = np.array(moments).T
    design = np.stack([np.ones(3), SIZES], axis=1)
    psi = np.linalg.lstsq(design, deviation, rcond=None)[0]
    delta = np.linalg.lstsq(design, mean - deviation, rcond=None)[0]
    assert found.psi_s == pytest.approx(psi[0], rel=2e-3)
    assert found.psi_s_per_byte == pytest.approx(psi[1], rel=2e-3)
    assert found.delta_s == pytest.approx(delta[0], rel=2e-3)
    assert found.delta_s_per_byte == pytest.approx(delta[1], rel=2e-3)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_normal_scores_of_correlated_exponentials(rho):
    """E[X X'] of unit exponentials with a Gaussian copula, by quadrature in two dimensions."""
    one, step = np.linspace(-8.5, 8.5, 601, retstep=True)
    other = one[:, None]
    score = rho * one + np.sqrt(1 - rho**2) * other
    product = special.log_ndtr(-one) * special.log_ndtr(-score) * stats.norm.pdf(one) * stats.norm.pdf(other)
    expected = product.sum() * step**2 - 1
    assert exponential_rho(expected) == pytest.approx(rho, abs=1e-4)


def test_a_negative_correlation_counts_as_none():
    assert exponential_rho(-0.2) == 0.0 and exponential_rho(1.0) == 0.99
