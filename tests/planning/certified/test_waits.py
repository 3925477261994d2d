"""Latency of nodes with its slopes and roots, against ``ecjax.queueing`` and its derivatives by JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning.certified.samples import latency, rates_of, service_of
from scipy.optimize import minimize_scalar

from ecjax.planning.certified.waits import NEARLY_FULL, best_z, node_value, slopes, waits, work_of

SEEDS = st.integers(0, 10**6)


def node_values(service, loads, z):
    """Sum of what the loops see, s."""
    work = work_of(service, loads)
    reads = np.ascontiguousarray(loads[:, : len(service.size)])
    penalty = service.penalty * service.rate
    return (
        sum(
            node_value(work[j], reads[j], service.mean[j], service.variance[j], z, service.alone, penalty)
            for j in range(len(work))
        )
        / service.rate
    )


def slope_of(point, loads):
    return point.read if loads.shape == point.read.shape else np.hstack([point.read, point.write])


def random_loads(service, seed, written):
    random = np.random.default_rng(seed + 1)
    return rates_of(service, random.uniform(0.2, 0.97, len(service.mean)), seed, written)


def z_of(service, seed):
    """Below, among and above the delays."""
    return float(np.random.default_rng(seed + 2).uniform(-1, 4) * service.mean.mean())


@given(SEEDS, st.integers(1, 4), st.booleans(), st.booleans(), st.booleans())
def test_values_are_those_of_the_bound(seed, sizes, written, other, alone):
    service = service_of(seed, sizes, other=other, alone=alone)
    loads, z = random_loads(service, seed, written), z_of(service, seed)
    exact = sum(float(latency(service, j, loads[j], z)) for j in range(3))
    assert slopes(service, loads, z).value == pytest.approx(exact, rel=1e-10)
    assert node_values(service, loads, z) == pytest.approx(exact, rel=1e-10)


def derivatives(service, loads, z):
    """Slopes (m, X) and second derivatives (m, X, X) by JAX."""

    @jax.jit
    def both(loads):
        of = [lambda x, j=j: latency(service, j, x, z) for j in range(len(loads))]
        slopes, bends = (
            [rule(f)(x) for f, x in zip(of, loads, strict=True)] for rule in (jax.grad, jax.hessian)
        )
        return jnp.stack(slopes), jnp.stack(bends)

    return (np.asarray(part) for part in both(jnp.asarray(loads)))


def positive(hessian):
    """Positive part in the metric that makes the diagonal 1 (or -1)."""
    scale = np.sqrt(np.abs(np.diagonal(hessian)))
    values, vectors = np.linalg.eigh(hessian / scale[:, None] / scale)
    return (vectors * np.maximum(values, 0)) @ vectors.T * scale[:, None] * scale


@pytest.mark.parametrize(
    ("seed", "sizes", "written", "other", "alone"),
    [
        (0, 1, False, False, False),
        (1, 1, False, True, True),
        (2, 3, False, True, False),
        (3, 2, True, False, False),
        (4, 4, True, True, False),
        (5, 2, True, True, True),
    ],
)
def test_slopes_and_roots_are_the_derivatives(seed, sizes, written, other, alone):
    service = service_of(seed, sizes, other=other, alone=alone)
    loads = random_loads(service, seed, written)
    z = float(np.mean(service.mean))
    point = slopes(service, loads, z)
    first, second = derivatives(service, loads, z)
    np.testing.assert_allclose(slope_of(point, loads), first, rtol=1e-8)
    for roots, hessian in zip(point.roots, second, strict=True):
        exact = positive(hessian)
        assert roots.shape[1] <= 5
        np.testing.assert_allclose(roots @ roots.T, exact, rtol=1e-7, atol=1e-7 * np.abs(hessian).max())


@given(SEEDS, st.booleans(), st.booleans())
def test_one_size_is_convex(seed, other, alone):
    """The one root's square is the whole second derivative, and no chord is below the curve."""
    service = service_of(seed, 1, other=other, alone=alone)
    z = z_of(service, seed)
    top = np.linspace(0.05, 0.99, 40)
    one, two = (
        np.array([rates_of(service, np.full(3, load), seed)[:, 0] for load in loads])
        for loads in (top, top[::-1])
    )
    scale = abs(slopes(service, one[-1][:, None], z).value)
    for a, b in zip(one, two, strict=True):
        middle = slopes(service, 0.5 * (a + b)[:, None], z).value
        ends = slopes(service, a[:, None], z).value + slopes(service, b[:, None], z).value
        assert middle <= 0.5 * ends + 1e-12 * scale
    loads = random_loads(service, seed, False)
    step = 1e-5 / service.moments[0] * (1 - work_of(service, loads)[:, :1])
    bend = (slopes(service, loads + step, z).read - slopes(service, loads - step, z).read) / (2 * step)
    roots = slopes(service, loads, z).roots
    np.testing.assert_allclose((roots**2).sum(axis=2), bend, rtol=1e-5, atol=1e-7 * bend.max())


@given(SEEDS, st.floats(0.0, 3.0))
def test_beyond_nearly_full_the_inverse_is_below_and_keeps_its_derivatives(seed, over):
    random = np.random.default_rng(seed)
    work = random.uniform(0.1, 2, (1, 3))

    def at(room):
        work[:, 0] = 1 - room
        return [float(values[0]) for values in waits(work)]

    room = NEARLY_FULL * (1 - over)
    w, q, inverse, first, second = at(room)
    if room > 0:
        assert inverse <= 1 / room * (1 + 1e-9)  # rounding of 1 - room
    step = 1e-4 * NEARLY_FULL
    # by load, which room falls with
    before, after = at(room + step), at(room - step)
    assert first == pytest.approx((after[2] - before[2]) / (2 * step), rel=1e-3)
    if abs(over) > 1e-3:
        assert second == pytest.approx((after[3] - before[3]) / (2 * step), rel=1e-3)
    assert w == pytest.approx(work[0, 1] / 2 * inverse) and q == pytest.approx(work[0, 2] / 3 * inverse)


@given(SEEDS, st.integers(1, 3), st.booleans(), st.booleans())
def test_value_and_slopes_pass_nearly_full_without_a_step(seed, sizes, written, alone):
    service = service_of(seed, sizes, alone=alone)
    z = z_of(service, seed)
    ends = [
        rates_of(service, np.full(3, 1 - NEARLY_FULL * part), seed, written) for part in (1 + 1e-9, 1 - 1e-9)
    ]
    before, after = (slopes(service, loads, z) for loads in ends)
    assert after.value == pytest.approx(before.value, rel=1e-6)
    np.testing.assert_allclose(slope_of(after, ends[1]), slope_of(before, ends[0]), rtol=1e-6)


@given(SEEDS, st.floats(0.9995, 1.3), st.booleans(), st.booleans())
def test_an_overloaded_node_has_a_finite_price_with_right_slopes(seed, load, written, alone):
    service = service_of(seed, 2, other=True, alone=alone)
    loads, z = rates_of(service, np.full(3, load), seed, written), z_of(service, seed)
    point = slopes(service, loads, z)
    assert np.isfinite(point.value) and point.value == pytest.approx(
        node_values(service, loads, z), rel=1e-10
    )
    direction = np.random.default_rng(seed).uniform(0.5, 1, loads.shape)
    reads_and_writes = np.tile(service.moments[0], (1, 1 + written))
    step = 1e-3 * NEARLY_FULL / (direction * reads_and_writes).sum(axis=1).max()
    rise = (
        slopes(service, loads + step * direction, z).value
        - slopes(service, loads - step * direction, z).value
    )
    assert (slope_of(point, loads) * direction).sum() == pytest.approx(rise / (2 * step), rel=1e-4)
    # more work is never cheaper
    assert np.all(point.read >= 0) and np.all(point.write >= 0)


@given(SEEDS, st.integers(1, 3), st.floats(1.01, 12))
def test_best_z(seed, sizes, k):
    service = service_of(seed, sizes)
    loads = random_loads(service, seed, False)
    loads[0, 0] = 0  # a node and size that nobody reads must not count
    service = service._replace(rate=float(loads.sum() / k))
    z = best_z(service, loads)
    reach = 10 * float(np.sqrt(k) * (service.mean.max() + slopes(service, loads, 0.0).value))
    found = minimize_scalar(
        lambda y: y + slopes(service, loads, y).value,
        method="bounded",
        bounds=(z - reach, z + reach),
        options={"xatol": 1e-10 * reach},
    )
    value = z + slopes(service, loads, z).value
    assert value <= found.fun + 1e-11 * reach
    assert value == pytest.approx(found.fun, rel=1e-7)


def test_best_z_where_all_k_are_1():
    service = service_of(0, 2, alone=True)
    assert best_z(service, random_loads(service, 0, False)) == 0.0


def test_best_z_of_alike_nodes():
    """E + (k - 2) / (2 sqrt(k - 1)) sqrt(V)."""
    service = service_of(0, 1, nodes=1)
    loads = np.array([[0.5 / service.moments[0, 0, 0]]])
    service = service._replace(rate=float(loads[0, 0] / 5))
    w, q = (float(values[0]) for values in waits(work_of(service, loads))[:2])
    variance = q + w**2 + service.variance[0, 0]
    assert best_z(service, loads) == pytest.approx(
        w + service.mean[0, 0] + 3 / 4 * np.sqrt(variance), rel=1e-12
    )
