"""Newton's method on the smoothed dual: the same prices by NumPy and by JAX, on one device and lowered for others."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from planning.smoothed.samples_of_rows import Sample, sample

from ecjax.planning.smoothed import latency, newton
from ecjax.planning.smoothed.backend import NUMPY, jax_backend
from ecjax.planning.smoothed.demand import demand_of
from ecjax.planning.smoothed.host_demand import host_demand
from ecjax.planning.smoothed.newton import Cluster, Settings
from ecjax.planning.smoothed.response import Rows


def start(drawn: Sample, share: float = 0.5):
    loads = share * (1 - drawn.law.background[0]) / drawn.law.moments[0]
    z = latency.best_z(NUMPY, drawn.law, loads)
    return float(z), latency.cost(np, drawn.law, loads, z).slope, np.full(len(loads), 1e-6)


def by_host(drawn: Sample, capacity: np.ndarray, last: float = 1e-5) -> newton.Solution:
    demand = host_demand(
        drawn.by_node, drawn.sites, bool(np.isfinite(capacity).any()), lambda number, part: [part(0, number)]
    )
    return newton.solve(NUMPY, Cluster(drawn.law, capacity), demand, Settings(last=last), *start(drawn))


def program(per_site: int, with_places: bool, law, grid, rows, capacity, z, read, place):
    """The whole solve by JAX."""
    backend = jax_backend()
    demand = demand_of(backend, rows._replace(per_site=per_site), grid, with_places)
    return newton.solve(backend, Cluster(law, capacity), demand, Settings(last=1e-3), z, read, place)


def arguments(drawn: Sample, capacity: np.ndarray):
    rows = drawn.by_place._replace(per_site=0)
    return jax.tree.map(jnp.asarray, (drawn.law, drawn.grid, rows, capacity, *start(drawn)))


@pytest.mark.parametrize(("nodes", "sites", "per_site"), [(8, 0, 1), (9, 4, 2)])
def test_demand_is_offer_at_the_end(nodes, sites, per_site):
    drawn = sample(11, nodes, 30, sites, per_site)
    found = by_host(drawn, np.full(nodes, np.inf))
    assert found.promise < 1e-9 and found.unfinished == 0
    np.testing.assert_allclose(found.answer.requested, found.loads, atol=0.02 * found.loads.max())
    # z is the best for these loads
    assert found.z == pytest.approx(float(latency.best_z(NUMPY, drawn.law, found.loads)), rel=1e-3)


def test_places_are_kept_and_priced_where_they_bind():
    drawn = sample(12, 8, 30, masked=False)
    free = by_host(drawn, np.full(8, np.inf))
    capacity = np.full(8, np.inf)
    fullest = int(np.argmax(free.answer.chunks))
    capacity[fullest] = 0.7 * free.answer.chunks[fullest]
    found = by_host(drawn, capacity)
    assert found.answer.chunks[fullest] <= capacity[fullest] * (1 + 1e-6)
    assert found.place[fullest] > 0 and not np.any(np.delete(found.place, fullest))
    assert found.objective > free.objective * (1 - 1e-6)


@pytest.mark.parametrize(
    ("nodes", "sites", "per_site"), [(7, 0, 1), pytest.param(9, 4, 2, marks=pytest.mark.slow)]
)
def test_jax_finds_the_same_prices(nodes, sites, per_site):
    drawn = sample(13, nodes, 20, sites, per_site)
    capacity = np.full(nodes, np.inf)
    # with limits per site the program relies on NumPy's promotions, as users have them
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        found = jax.jit(partial(program, per_site, False))(*arguments(drawn, capacity))
    expected = by_host(drawn, capacity, 1e-3)
    assert found.promise < 1e-9
    assert float(found.objective) == pytest.approx(float(expected.objective), rel=1e-5)
    np.testing.assert_allclose(found.read, expected.read, rtol=1e-3)


@pytest.mark.parametrize("device", ["host", "jax"])
def test_a_row_that_costs_nothing_leaves_prices_alone(device):
    """It is never read, and keeps its chunks for nothing: prices are those of the other rows."""
    drawn = sample(15, 7, 8)
    names = ("rate", "cold_cost", "reading")

    def free(rows: Rows) -> Rows:
        values = {name: getattr(rows, name).copy() for name in names}
        for value in values.values():
            value[0] = np.where(np.isfinite(value[0]), 0.0, np.inf)
        return rows._replace(**values)

    def others(rows: Rows) -> Rows:
        return Rows(*(value[1:] for value in rows[:-1]), rows.per_site)

    beside, alone = (
        drawn._replace(by_place=change(drawn.by_place), by_node=change(drawn.by_node))
        for change in (free, others)
    )
    capacity = np.full(7, np.inf)
    expected = by_host(alone, capacity, 1e-3)
    if device == "host":
        found = by_host(beside, capacity, 1e-3)
    else:
        found = jax.jit(partial(program, 1, False))(*arguments(beside, capacity))
    assert float(found.objective) == pytest.approx(float(expected.objective), rel=1e-6)
    np.testing.assert_allclose(found.read, expected.read, rtol=1e-5)


@pytest.mark.parametrize(("with_places", "sites", "per_site"), [(False, 0, 1), (True, 0, 1), (False, 3, 2)])
def test_the_program_lowers_for_cuda(with_places, sites, per_site):
    """Without a device: what would run on one exports."""
    drawn = sample(14, 6, 10, sites, per_site)
    capacity = np.full(6, 1e4 if with_places else np.inf)
    lowered = jax.export.export(
        jax.jit(partial(program, per_site, with_places)),
        platforms=["cuda"],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("cusolver_potrf_ffi")],
    )
    # as users run JAX: sums over the chunks of a site mix ranks and types as NumPy does
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exported = lowered(*arguments(drawn, capacity))
    assert exported.platforms == ("cuda",)
