"""What reads of a node cost by their rate: against the queueing formulas, finite differences and SciPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planning.smoothed.samples_of_rows import sample
from scipy.optimize import minimize_scalar

from ecjax.planning.smoothed import latency
from ecjax.planning.smoothed.backend import NUMPY, jax_backend
from ecjax.queueing import waiting


def loads_of(law, share: float) -> np.ndarray:
    return share * (1 - law.background[0]) / law.moments[0]


@pytest.mark.parametrize("z", [-0.01, 0.02, 0.3])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.95])
def test_cost_and_slopes(z, share):
    law = sample(1).law
    loads = loads_of(law, share)
    at = latency.cost(np, law, loads, z)
    work = law.background + loads * law.moments
    wait = waiting(*(jnp.asarray(each) for each in work))
    d = np.asarray(wait.mean) + law.mean - z
    expected = loads / law.rate * 0.5 * (d + np.sqrt(d**2 + np.asarray(wait.variance) + law.variance))
    np.testing.assert_allclose(at.value, expected, rtol=1e-12)
    step = 1e-6 * law.rate
    near, far = (latency.cost(np, law, loads + sign * step, z) for sign in (-1, 1))
    np.testing.assert_allclose(at.slope, (far.value - near.value) / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(at.bend, (far.slope - near.slope) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("backend", [NUMPY, jax_backend()], ids=["numpy", "jax"])
def test_rates_at_prices_are_the_inverse_of_slopes(backend):
    law = sample(2).law
    for share in (1e-6, 0.2, 0.999):
        loads = loads_of(law, share)
        prices = latency.cost(np, law, loads, 0.03).slope
        found = latency.rates_at(backend, law, backend.xp.asarray(prices), 0.03, 0.5 * latency.most(law))
        np.testing.assert_allclose(found, loads, rtol=1e-8)
    idle = latency.cost(np, law, 0 * law.mean, 0.03).slope
    assert not np.any(latency.rates_at(NUMPY, law, 0.5 * idle, 0.03, latency.most(law)))


@pytest.mark.parametrize("backend", [NUMPY, jax_backend()], ids=["numpy", "jax"])
def test_the_best_z(backend):
    law = sample(3).law
    loads = loads_of(law, 0.5)
    found = float(latency.best_z(backend, law, backend.xp.asarray(loads)))
    expected = minimize_scalar(
        lambda z: z + latency.cost(np, law, loads, z).value.sum(), (0, 0.05), options={"xtol": 1e-12}
    )
    assert found + latency.cost(np, law, loads, found).value.sum() == pytest.approx(expected.fun, rel=1e-12)
    assert found == pytest.approx(expected.x, rel=1e-5)
    assert latency.best_z(NUMPY, law._replace(alone=1.0), loads) == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("backend", [NUMPY, jax_backend()], ids=["numpy", "jax"])
def test_the_best_z_of_nodes_that_differ(backend, seed):
    random = np.random.default_rng(seed)
    nodes = int(random.choice([2, 7, 29]))
    mean = random.lognormal(-3, random.choice([0.0, 0.3, 1.5]), nodes)
    spread = random.choice([0.1, 1.0, 4.0])
    moments = np.stack([mean, mean**2 * (1 + spread**2), mean**3 * (1 + 3 * spread**2 + 2 * spread**4)])
    loads = random.uniform(0, 0.99, nodes) / mean
    rate = loads.sum() / random.choice([1.01, 1.3, 3.0, 8.0])
    law = latency.NodeLaw(
        moments, mean, moments[1] - mean**2 + random.choice([0.0, 1e-4]), np.zeros((3, nodes)), rate, 0.0
    )
    best_z = partial(latency.best_z, backend)
    z = float((best_z if backend is NUMPY else jax.jit(best_z))(law, backend.xp.asarray(loads)))
    value = z + latency.cost(np, law, loads, z).value.sum()
    expected = minimize_scalar(
        lambda at: at + latency.cost(np, law, loads, at).value.sum(), (z - 1, z + 1), options={"xtol": 1e-12}
    )
    assert value == pytest.approx(expected.fun, rel=1e-11)
