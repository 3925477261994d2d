"""Relaxations by JAX, all lanes as one program: the plans and bounds of the host's."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planning.certified.untuned import limited, untuned

from ecjax.planning.certified import Settings, plan_lanes
from ecjax.planning.certified.smooth import fine_bins
from ecjax.planning.certified.solvers import on_jax

FILES = 30  # of all, so that they share a program
THETAS = np.array([0.1, 0.5, 2.0])


def planned(problem, device, thetas=THETAS, rates=None):
    scale = np.ones(len(thetas))
    rates = scale if rates is None else rates
    return plan_lanes(problem, thetas, rates, scale, Settings(device=device))


@cache
def by_jax():
    """Of the host's first two lanes, and of another that ends elsewhere."""
    return planned(untuned(21, FILES, 0.6).problem(), "jax", rates=np.array([1.0, 1.0, 0.9]))


slow = pytest.mark.slow  # a program each


@pytest.mark.parametrize(
    "kind", ["plain", pytest.param("racks", marks=slow), pytest.param("capacity", marks=slow)]
)
def test_plans_and_bounds_are_those_of_the_host(kind):
    problem = untuned(21, FILES, 0.6).problem()
    if kind == "racks":
        problem = limited(problem, site=np.arange(12) % 6, per_site=2)
    if kind == "capacity":
        chunks = float(np.asarray(problem.floor).sum())
        problem = limited(problem, capacity=np.full(12, np.ceil(chunks / 10)))
    host, host_bounds, on_host = planned(problem, "host")
    jaxed, bounds, on_device = by_jax() if kind == "plain" else planned(problem, "jax")
    same = slice(0, 2) if kind == "plain" else slice(0, 3)
    assert on_host == "cpu" and on_device == jax.devices()[0].device_kind
    np.testing.assert_allclose(bounds[same], host_bounds[same], rtol=2e-5)
    np.testing.assert_allclose(jaxed.evaluation.objective[same], host.evaluation.objective[same], rtol=3e-4)
    assert np.all(bounds <= jaxed.evaluation.objective * (1 + 1e-12))


def test_lanes_that_leave_are_not_waited_for():
    problem = untuned(21, FILES, 0.6).problem()
    # a lane beside its like, and the same one beside others that end earlier or later
    alike = THETAS[0] * (1 + 1e-9 * np.arange(len(THETAS)))  # lanes that are the same would be one
    alone = planned(problem, "jax", alike)[1]
    together = by_jax()[1]
    np.testing.assert_allclose(together[0], alone[0], rtol=1e-6)


def test_an_error_reaches_every_lane(monkeypatch):
    from ecjax.planning.certified import solvers

    def fails(requests):
        raise MemoryError("no room")

    monkeypatch.setattr(solvers, "solved", fails)
    with pytest.raises(MemoryError, match="no room"):
        planned(untuned(23, FILES, 0.5).problem(), "jax")


def test_processors_are_left_to_the_host():
    if jax.default_backend() == "cpu":
        assert not on_jax("auto", 3000, 1000, 64)
    assert on_jax("jax", 1, 1, 1) and not on_jax("host", 3000, 1000, 64)


def test_many_lanes_go_to_an_accelerator(monkeypatch):
    """64 lanes of 10^5 files on 12 nodes, and one on 300, gain by the measured table; one lane on 12 nodes does not."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert on_jax("auto", fine_bins(12), 12, 64) and on_jax("auto", fine_bins(300), 300, 1)
    assert not on_jax("auto", fine_bins(12), 12, 1)


def test_mixed_sizes_stay_on_the_host():
    problem = untuned(24, FILES, 0.5).problem()
    files = problem.files
    size = files.chunk_bytes * jnp.where(jnp.arange(files.count) % 2 == 0, 1.0, 0.5)
    case = untuned(24, FILES, 0.5)
    case.files["bytes"] = np.asarray(size * files.k)
    assert planned(case.problem(), "jax", THETAS[:1])[2] == "cpu"
