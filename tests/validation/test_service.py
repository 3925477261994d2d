import numpy as np
import pytest
from scipy import stats

from ecjax.predict.workload import node_laws
from ecjax.simulation import law_fit, laws
from ecjax.streams import streams
from ecjax.validation.replay import draw_service
from ecjax.validation.service import RELATIONS, WITH_STALLS, Samples, fit_service, tail_misfit, tails_apart

SIZES = np.array([1000.0, 2000.0, 8000.0])


def drawn(found, node, size, count=4000):
    work = np.empty(count)
    table, samples = found.laws
    draw_service(table, samples, np.full(count, node), np.full(count, float(size)), 1, work)
    return work


def sampled(law, count=6000, nodes=2, sizes=SIZES, seed=0):
    rng = np.random.default_rng(seed)
    node, size = rng.integers(nodes, size=count), rng.choice(sizes, count)
    return Samples(node, size, (1 + node) * law(rng, size))


@pytest.mark.parametrize(
    ("relation", "law"),
    [
        (RELATIONS[0], lambda rng, size: rng.lognormal(0.0, 0.5, len(size))),
        (RELATIONS[1], lambda rng, size: 1e-3 * size * rng.gamma(2.0, size=len(size))),
        (RELATIONS[2], lambda rng, size: (2 + 1e-3 * size) * rng.exponential(size=len(size))),
        (RELATIONS[3], lambda rng, size: 5.0 + (0.1 + 1e-3 * size) * rng.exponential(size=len(size))),
    ],
)
def test_the_relation_to_the_size_is_found(relation, law):
    found = fit_service(sampled(law), ["a", "b"], SIZES, "empirical")
    assert found.relation == relation and not found.pooled.any()
    rng = np.random.default_rng(1)
    for node in (0, 1):
        for size in (1000.0, 4000.0, 8000.0):  # 4000: between those seen
            true = (1 + node) * law(rng, np.full(4000, size))
            own = drawn(found, node, size)
            assert own.min() >= 0
            np.testing.assert_allclose([own.mean(), own.std()], [true.mean(), true.std()], rtol=0.09)
            assert stats.ks_2samp(own, true).statistic < 0.07


@pytest.mark.parametrize(
    ("body", "stall"),
    [
        (
            lambda rng, size: 2 + 1e-3 * size * (0.5 + 0.5 * rng.exponential(size=len(size))),
            lambda rng, n: 100.0,
        ),
        (lambda rng, size: (5 + 1e-3 * size) * rng.lognormal(0, 0.3, len(size)), lambda rng, n: 120.0),
    ],
)
def test_stalls_that_are_as_long_for_every_size_have_a_law_of_their_own(body, stall):
    """Of 3 and 6 % of the services, by node; sizes 64 times apart."""
    rng, sizes = np.random.default_rng(5), np.array([1e3, 8e3, 64e3])
    node, size = rng.integers(2, size=24_000), rng.choice(sizes, 24_000)
    stalled = rng.random(len(size)) < 0.03 * (1 + node)
    service = body(rng, size) + np.where(stalled, stall(rng, len(size)), 0.0)
    samples = Samples(node, size, service)
    fit = fit_service(samples, ["a", "b"], sizes, "empirical")
    assert fit.relation.endswith(WITH_STALLS)
    assert not tails_apart(tail_misfit(samples, fit.laws))
    moments = law_fit.polynomials(fit.laws, 2)
    for place in (0, 1):
        assert fit.laws.table[place, 4] == pytest.approx(np.mean(stalled[node == place]), rel=0.2)
        for each in sizes:
            measured, values = service[(node == place) & (size == each)], drawn(fit, place, each, 40_000)
            assert values.mean() == pytest.approx(measured.mean(), rel=0.05)
            assert np.mean(values**2) == pytest.approx(np.mean(measured**2), rel=0.15)
            of_law = moments[:, :, place] @ each ** np.arange(4)
            assert np.mean(values) == pytest.approx(of_law[0], rel=0.05)
            assert np.mean(values**2) == pytest.approx(of_law[1], rel=0.1)
    # twice as slow is twice as slow with its stalls, and of other nodes nothing changes
    slowed = law_fit.polynomials(fit.laws.slowed(np.array([2.0, 1.0])), 2)
    np.testing.assert_allclose(slowed[1, :, 0], 4 * moments[1, :, 0])
    np.testing.assert_allclose(slowed[:, :, 1], moments[:, :, 1])
    # as distributions of an estimate: of few values for the stalls
    for law, expected in zip(node_laws(fit.laws, 2).moments(sizes[:, None]), moments, strict=True):
        np.testing.assert_allclose(law.T, expected.T @ sizes ** np.arange(4)[:, None], rtol=0.06)


def test_stalls_are_told_by_the_sizes_that_vary_least():
    """Of 1 kB and 100 MB, half a second for 1 % of all: among large chunks nobody sees them."""
    rng, sizes = np.random.default_rng(7), np.array([1e3, 1e8])
    node, size = rng.integers(3, size=60_000), rng.choice(sizes, 60_000)
    service = 2e-3 + 1e-8 * size + (4e-3 + 3e-9 * size) * rng.exponential(size=len(size))
    samples = Samples(node, size, service + 0.5 * (rng.random(len(size)) < 0.01))
    fit = fit_service(samples, ["a", "b", "c"], sizes, "empirical")
    assert fit.relation.endswith(WITH_STALLS)
    for place in range(3):
        small = (node == place) & (size == 1e3)
        values = drawn(fit, place, 1e3, 40_000)
        assert values.mean() == pytest.approx(samples.service[small].mean(), rel=0.15)


def test_services_that_hardly_vary_but_for_a_few_are_told_by_their_moments():
    """Lines that are off by a little make no two sizes look alike: the simplest relation was taken, twice too slow."""
    rng = np.random.default_rng(6)
    node, size = rng.integers(2, size=24_000), rng.choice(SIZES, 24_000)
    service = 2 + 1e-3 * size + np.where(rng.random(len(size)) < 0.02, rng.exponential(50.0, len(size)), 0.0)
    fit = fit_service(Samples(node, size, service), ["a", "b"], SIZES, "empirical")
    for place in (0, 1):
        for each in SIZES:
            measured, values = service[(node == place) & (size == each)], drawn(fit, place, each, 40_000)
            assert values.mean() == pytest.approx(measured.mean(), rel=0.1)
            assert np.mean(values**2) == pytest.approx(np.mean(measured**2), rel=0.3)


def test_rare_long_services_of_one_size_are_seen_not_to_fit():
    """2 % of the smallest take 80 s: neither a relation between sizes nor stalls of all have them."""
    rng = np.random.default_rng(3)
    node, size = rng.integers(2, size=12_000), rng.choice(SIZES, 12_000)
    service = (2 + 1e-3 * size) * (0.5 + 0.5 * rng.exponential(size=len(size)))
    stalled = (rng.random(len(size)) < 0.02) & (size == SIZES[0])
    service = np.where(stalled, 80.0, service)
    samples = Samples(node, size, service)
    where, of_size, measured, law = tail_misfit(
        samples, fit_service(samples, ["a", "b"], SIZES, "empirical").laws
    )
    assert measured == np.quantile(service[(node == where) & (size == of_size)], 0.99)
    assert tails_apart((where, of_size, measured, law))
    plain = Samples(node[~stalled], size[~stalled], service[~stalled])
    _, _, measured, law = tail_misfit(plain, fit_service(plain, ["a", "b"], SIZES, "empirical").laws)
    assert 1 / 1.25 < law / measured < 1.25
    few = Samples(node[:300], size[:300], service[:300])
    assert tail_misfit(few, fit_service(few, ["a", "b"], SIZES, "empirical").laws) is None


def test_services_shorter_than_a_tick_of_the_clock_have_no_tail():
    """In whole milliseconds 99 % of the small chunks take none, which no factor is from what a law says."""
    rng = np.random.default_rng(2)
    size = np.repeat([4096.0, 1e6], [1000, 100])
    ticks = np.concatenate([np.repeat([0, 1], [995, 5]), rng.integers(3, 8, 100)])
    samples = Samples(np.zeros(1100, int), size, 1e-3 * ticks)
    fit = fit_service(samples, ["a"], np.unique(size), "empirical")
    assert fit.misfit is None
    alike = law_fit.empirical([np.full(10, 2e-3)], np.zeros((2, 1)), np.array([[1.0], [0.0]]))
    assert tail_misfit(samples, alike) is None


def test_sizes_that_are_all_different():
    def law(rng, size):
        return (2 + 1e-3 * size) * rng.exponential(size=len(size))

    found = fit_service(sampled(law, 8000, sizes=np.linspace(1e3, 9e3, 500)), ["a", "b"], SIZES, "empirical")
    assert found.relation == RELATIONS[2]
    np.testing.assert_allclose(found.laws.table[0, 2] / found.laws.table[0, 3], 2000, rtol=0.15)


def test_relation_from_few_samples_at_each_of_many_nodes():
    def law(rng, size):
        return (2 + 1e-3 * size) * rng.exponential(size=len(size))

    samples = sampled(law, 1200, nodes=40)  # 30 at a node, 10 of each size
    found = fit_service(samples, list(range(40)), SIZES, "empirical")
    assert found.relation == RELATIONS[2]
    line = found.laws.table[:, 2:4].mean(axis=0)
    np.testing.assert_allclose(line[0] / line[1], 2000, rtol=0.3)


def test_constant_service_that_is_affine_in_the_size():
    samples = sampled(lambda rng, size: 0.1 + 1e-4 * size)
    found = fit_service(samples, ["a", "b"], SIZES, "empirical")
    assert found.relation == RELATIONS[2]
    for node in (0, 1):
        np.testing.assert_allclose(drawn(found, node, 3000.0, 50), (1 + node) * 0.4, rtol=1e-9)


def test_one_size_keeps_the_samples():
    samples = sampled(lambda rng, size: rng.exponential(size=len(size)), sizes=np.array([5.0]))
    found = fit_service(samples, ["a", "b"], np.array([5.0]), "empirical")
    assert found.relation is None
    own = np.unique(drawn(found, 1, 5.0))
    assert np.isin(own, samples.service[samples.node == 1]).all()
    # another size comes later
    later = fit_service(samples, ["a", "b"], np.array([5.0, 10.0]), "empirical")
    assert later.relation == RELATIONS[1]
    np.testing.assert_allclose(drawn(later, 1, 10.0), 2 * drawn(found, 1, 5.0))


def test_nodes_with_few_samples_have_the_law_of_all():
    samples = sampled(lambda rng, size: rng.exponential(size=len(size)), nodes=1)
    few = Samples(
        np.append(samples.node, [1, 1]),
        np.append(samples.bytes, [1e3, 1e3]),
        np.append(samples.service, [9, 9]),
    )
    found = fit_service(few, ["a", "b", "c"], SIZES, "empirical")
    assert found.pooled.tolist() == [False, True, True]
    np.testing.assert_allclose(found.laws.table[1], found.laws.table[2])
    assert found.laws.table[1, 8] == len(few.node)


@pytest.mark.parametrize("family", ["auto", "gamma", "shifted_exponential", "lognormal", "exponential"])
def test_families_keep_the_moments_that_they_have(family):
    samples = sampled(lambda rng, size: (1 + 1e-3 * size) * (0.5 + rng.gamma(2.0, size=len(size))))
    found = fit_service(samples, ["a", "b"], SIZES, family)
    assert {laws.KINDS[int(kind)] for kind in found.laws.table[:, 6]} <= {
        "weibull", "gamma", "exponential", "lognormal", "two_point"
    }  # fmt: skip
    here = (samples.node == 1) & (samples.bytes == 2000.0)
    own = drawn(found, 1, 2000.0, 20_000)
    np.testing.assert_allclose(own.mean(), samples.service[here].mean(), rtol=0.05)
    if family != "exponential":
        np.testing.assert_allclose(own.std(), samples.service[here].std(), rtol=0.1)


def test_draws_are_those_of_the_streams():
    samples = sampled(lambda rng, size: rng.exponential(size=len(size)))
    found = fit_service(samples, ["a", "b"], SIZES, "gamma")
    start = np.uint64(streams.key(1, streams.SERVICE))
    own = drawn(found, 0, 1000.0, 5)
    for i in range(5):
        state = np.uint64(streams.stream(start, i))
        one = laws.service(found.laws.table, found.laws.samples, 0, 1000.0, 1, state)
        np.testing.assert_allclose(own[i], one, rtol=1e-13)
