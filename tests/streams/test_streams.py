"""Random numbers by counter: the reference generator, uniformity, independence of neighbours, laws against SciPy."""

import numpy as np
import pytest
from scipy import stats

from ecjax.machine_code import njit
from ecjax.streams import streams

COUNT = 200_000
LEAST = 1e-4  # p-value; seeds are fixed


@njit()
def uniforms(start, count, stride, advances):
    """Uniform numbers of counters 0, stride, ...; after so many advances."""
    found = np.empty(count)
    for i in range(count):
        state = streams.stream(start, i * stride)
        for _ in range(advances):
            state = streams.advance(state)
        found[i] = streams.uniform(state)
    return found


@njit()
def draws(start, count, law, shape):
    found = np.empty(count)
    for i in range(count):
        state = streams.stream(start, i)
        if law == 0:
            found[i] = streams.exponential(state)
        elif law == 1:
            found[i] = streams.normal(state)
        else:
            found[i] = streams.gamma(state, shape)
    return found


def key(seed, purpose=streams.SERVICE):
    return np.uint64(streams.key(seed, purpose))


def chi_square(values, bins=256):
    return stats.chisquare(np.bincount((values * bins).astype(int), minlength=bins)).pvalue


def joint(one, other, bins=32):
    """p-value of two series of uniform numbers being independent and uniform."""
    cells = (one * bins).astype(int) * bins + (other * bins).astype(int)
    return stats.chisquare(np.bincount(cells, minlength=bins**2)).pvalue


def test_published_outputs():
    """SplitMix64 from the seed 1234567, as implementations of it publish them."""
    found = [int(streams.mixed(np.uint64(streams.stream(np.uint64(1234567), n)))) for n in range(1, 6)]
    assert found == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def _unshift(value, bits):
    """The z with z ^ (z >> bits) = value."""
    found = value
    for _ in range(64 // bits):
        found = value ^ (found >> bits)
    return found


def _state_of(output):
    """The state whose 64 random bits these are."""
    whole = 1 << 64
    z = _unshift(output, 31) * pow(0x94D049BB133111EB, -1, whole) % whole
    z = _unshift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, whole) % whole
    return np.uint64(_unshift(z, 30))


def test_ends_of_the_interval_are_never_reached():
    """Whatever the bits: no number rounds to 0 or 1, no whole number drawn below n is n."""
    largest, smallest = _state_of((1 << 64) - 1), _state_of(0)
    assert int(streams.mixed(largest)) == (1 << 64) - 1
    assert 0 < streams.uniform(smallest) < 1e-15
    assert 1 - 1e-15 < streams.uniform(largest) < 1
    assert all(int(streams.uniform(largest) * n) == n - 1 for n in range(1, 2000))
    assert 0 < streams.exponential(largest) and streams.exponential(smallest) < np.inf


@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_uniform(seed):
    for purpose in (streams.SERVICE, streams.CONNECT, streams.DISPATCH):
        for advances in (0, 1):
            values = uniforms(key(seed, purpose), COUNT, 1, advances)
            assert chi_square(values) > LEAST
            assert chi_square(values * 2**16 % 1) > LEAST  # later bits


@pytest.mark.parametrize("lag", [1, 2, 12])
def test_neighbouring_counters_are_independent(lag):
    values = uniforms(key(5), COUNT, 1, 0)
    assert joint(values[:-lag], values[lag:]) > LEAST


def test_counters_far_apart_are_as_good():
    values = uniforms(key(5), COUNT, 12_000, 0)
    assert chi_square(values) > LEAST
    assert joint(values[:-1], values[1:]) > LEAST


def test_seeds_purposes_and_further_numbers_are_independent():
    values = uniforms(key(5), COUNT, 1, 0)
    for other in (
        uniforms(key(6), COUNT, 1, 0),
        uniforms(key(5, streams.CONNECT), COUNT, 1, 0),
        uniforms(key(5), COUNT, 1, 1),
        uniforms(key(5), COUNT, 1, 2),
        np.roll(uniforms(key(5), COUNT, 1, 1), 1),
    ):
        assert joint(values, other) > LEAST


def test_keys_are_distinct():
    keys = {int(key(seed, purpose)) for seed in range(100) for purpose in (1, 2, 3)}
    assert len(keys) == 300


@pytest.mark.parametrize(
    ("law", "shape", "expected"),
    [
        (0, 0.0, stats.expon()),
        (1, 0.0, stats.norm()),
        (2, 0.05, stats.gamma(0.05)),
        (2, 0.7, stats.gamma(0.7)),
        (2, 1.0, stats.gamma(1.0)),
        (2, 4.5, stats.gamma(4.5)),
        (2, 400.0, stats.gamma(400.0)),
    ],
)
def test_laws(law, shape, expected):
    values = draws(key(11), COUNT, law, shape)
    assert stats.kstest(values, expected.cdf).pvalue > LEAST
    mean, variance = expected.stats()
    assert abs(values.mean() - mean) < 4 * np.sqrt(variance / COUNT)
    assert values.var() == pytest.approx(variance, rel=0.05)


def test_neighbouring_normals_are_independent():
    values = stats.norm.cdf(draws(key(3), COUNT, 1, 0.0))
    assert joint(values[:-1], values[1:]) > LEAST
