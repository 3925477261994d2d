"""The least Lagrangian of a node with one chunk size, against SciPy's bounded minimisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning.certified.samples import latency, service_of
from scipy.optimize import minimize_scalar

from ecjax.planning.certified import one_size
from ecjax.planning.certified.waits import node_value, work_of

SEEDS = st.integers(0, 10**6)


def minima(service, most, price, z):
    """(Z, m)."""
    result = np.full((len(z), len(most)), np.nan)
    one_size.least(
        0,
        len(most),
        np.ascontiguousarray(service.moments[:, :, 0]),
        np.ascontiguousarray(service.mean[:, 0]),
        np.ascontiguousarray(service.variance[:, 0]),
        service.background,
        most,
        price,
        z,
        service.rate,
        service.alone,
        result,
    )
    return result


def exact(service, j, most, price, z):
    """The least value at any stable load, and how large its terms are."""
    full = (1 - service.background[j, 0]) / service.moments[0, j, 0]

    def value(x):
        loads = np.zeros((len(service.mean), 1))
        loads[j] = x
        work = work_of(service, loads)[j]
        latency = node_value(work, loads[j], service.mean[j], service.variance[j], z, service.alone, 0.0)
        return latency / service.rate - price * x

    # by the logarithm of the room that is left, so that the pole is far away
    end = -np.log(max(1 - most / full, 1e-3))
    found = minimize_scalar(
        lambda t: value(-full * np.expm1(-t)),
        method="bounded",
        bounds=(0, end),
        options={"xatol": 1e-10 * end},
    )
    x = -full * np.expm1(-found.x)
    ends = [0.0, value(min(most, -full * np.expm1(-end)))]
    return min(found.fun, *ends), price * x


def case(seed, other, alone, dear, part):
    """Nodes, limits of their reads up to ``part`` of what they can serve, prices near those of an optimum, z."""
    random = np.random.default_rng(seed)
    service = service_of(seed, 1, nodes=4, other=other, alone=alone)
    full = (1 - service.background[:, 0]) / service.moments[0, :, 0]
    most = part * full * random.uniform(0.5, 1, 4)
    price = dear * 3 * service.mean[:, 0] * random.lognormal(0, 0.5, 4) / service.rate
    return service, most, price, np.sort(random.uniform(-2, 4, 5)) * service.mean.mean()


@given(SEEDS, st.booleans(), st.booleans(), st.floats(0.01, 100), st.floats(0.05, 0.99))
def test_never_above_and_close_to_the_minimum(seed, other, alone, dear, part):
    service, most, price, z = case(seed, other, alone, dear, part)
    found = minima(service, most, price, z)
    for i in range(len(z)):
        for j in range(len(most)):
            least, scale = exact(service, j, most[j], price[j], z[i])
            assert found[i, j] <= least + 1e-12 * scale
            assert found[i, j] >= least - 1e-9 * (scale + abs(least))


@given(SEEDS, st.booleans())
def test_never_above_any_load_where_nothing_but_the_pole_limits(seed, alone):
    """Reads without an end, at high prices: the minimum is near the pole."""
    service, most, price, z = case(seed, True, alone, 1000.0, 1.0)
    found = minima(service, 50 * most, price, z)
    full = (1 - service.background[:, 0]) / service.moments[0, :, 0]
    room = np.geomspace(1, 1e-6, 300)
    for j in range(4):
        for i, at in enumerate(z):
            x = full[j] * (1 - room)
            work = service.background[j] + x[:, None] * service.moments[:, j, 0]
            w, q = work[:, 1] / (2 * (1 - work[:, 0])), work[:, 2] / (3 * (1 - work[:, 0]))
            d = w + service.mean[j] - at
            each = w + service.mean[j]
            if not alone:
                each = 0.5 * (d + np.sqrt(d**2 + q + w**2 + service.variance[j]))
            values = x * (each / service.rate - price[j])
            assert found[i, j] <= values.min() + 1e-12 * price[j] * full[j]
            assert found[i, j] >= values.min() - 1e-2 * abs(values.min())  # the grid is coarse


@given(SEEDS)
def test_falls_with_z(seed):
    service, most, price, z = case(seed, True, False, 1.0, 0.9)
    found = minima(service, most, price, z)
    assert np.all(np.diff(found, axis=0) <= 1e-12 * np.abs(found[1:]).max() + 1e-15)


def test_dear_reads_leave_a_node_empty():
    service, most, price, z = case(0, True, False, 1e-6, 0.9)
    assert np.all(minima(service, most, price, z[:1]) == 0)


def test_a_limit_of_none():
    service, most, price, z = case(1, False, False, 10.0, 0.9)
    assert np.all(minima(service, 0 * most, price, z) == 0)


def test_value_by_the_queueing_package():
    """At a limit that binds the minimum is the value there."""
    service, most, price, z = case(2, True, False, 1000.0, 0.3)
    found = minima(service, most, price, z)
    for j in range(4):
        at_limit = float(latency(service, j, np.array([most[j]]), z[1])) - price[j] * most[j]
        assert found[1, j] == pytest.approx(at_limit, rel=1e-11)
