"""Every program that a GPU may run lowers for CUDA, without a device; prices and the kernel in Triton: their tests."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulation.systems import law_table, make_system, poisson

from ecjax.caching import batched
from ecjax.planning import Jlcm, Lanes, batch, problem, project_hypersimplex
from ecjax.planning.classes import alternate, search
from ecjax.planning.classes.certificate import scheduling_gap
from ecjax.planning.classes.matching import place
from ecjax.planning.classes.model import class_model, kind_reads, other_work
from ecjax.planning.classes.scheduling import STOPPING, Fixed, Goal, schedule
from ecjax.planning.classes.together import _several
from ecjax.planning.classes.weights import weigh
from ecjax.planning.slopes import latency_slopes
from ecjax.planning.smoothed.backend import jax_backend
from ecjax.planning.smoothed.exact import cheapest
from ecjax.simulation import scan
from ecjax.studies.bench.setups.random_problem import random_problem
from ecjax.traffic import lindley
from ecjax.traffic.two_moments import Constants, workload_path_traced

FILES, NODES, BINS = 9, 8, 12


@dataclass(frozen=True)
class Kernel:
    """A function, what it takes, and which of that is no array."""

    function: Any
    arguments: tuple[Any, ...]
    static: tuple[int, ...] = ()


def descent():
    how = batch._Descent(Jlcm(), "float64")
    planned, lanes = random_problem(FILES, NODES, 0.5, False, 0), Lanes(*map(jnp.asarray, 3 * ([0.1, 0.2],)))
    start = jnp.broadcast_to((planned.k / NODES)[:, None], (2, FILES, NODES))
    return Kernel(batch._PUBLISHED.__wrapped__, (planned, lanes, start, how), (3,))


def evaluation():
    planned = random_problem(FILES, NODES, 0.5, False, 0)
    point = jnp.broadcast_to((planned.k / NODES)[:, None], (FILES, NODES))
    return Kernel(problem.EVALUATE.__wrapped__, (planned, point, point > 0, jnp.asarray(0.1)))


def gradient():
    planned = random_problem(FILES, NODES, 0.5, False, 0)
    point = jnp.broadcast_to((planned.k / NODES)[:, None], (FILES, NODES))
    return Kernel(latency_slopes, (planned, point, point, jnp.asarray(0.1)))


def projection():
    return Kernel(project_hypersimplex, (jnp.ones((FILES, NODES)), jnp.full(FILES, 3.0)))


def choices(per_site: int):
    hot = jnp.ones((FILES, NODES // per_site, per_site))
    k = jnp.full(FILES, 2)
    run = partial(cheapest, jax_backend())
    return Kernel(run, (hot, hot, k, k, per_site, jnp.full(FILES, 1e-3)), (4,))


def replay(**counted):
    system = make_system([2, 1], [[0, 1, 2], [1, 2]], law_table("exponential", 3))
    times, files = poisson([0.5, 0.5], 200, 1)
    fixed, lanes = scan._prepared(
        system, np.stack([times] * 2), np.stack([files] * 2), [1, 2], None, *counted.values()
    )
    return Kernel(scan._run.__wrapped__, (fixed, system, lanes), (0,))


def caches():
    return Kernel(batched._plans.__wrapped__, (np.ones((3, 20, 4)), np.full((3, 1), 7, np.int32), 10), (2,))


def waits():
    return Kernel(lindley.waits, (np.ones(BINS), np.ones((BINS, NODES)), np.full(NODES, 0.01)))


def moments():
    constants = Constants(np.full(NODES, 0.01), np.full(NODES, 0.02))
    return Kernel(workload_path_traced, (np.ones((BINS, NODES)), np.ones(BINS), constants))


def classes(step: str, queue: str = "weighted"):
    """A step of plans by class, for two lanes."""
    planned = random_problem(FILES, NODES, 0.5, False, 0)
    model = class_model(planned, np.arange(FILES) % 2, 2, queue)
    reads = jnp.broadcast_to((planned.k / NODES)[:, None], (FILES, NODES))
    stored, free = jnp.ones((FILES, NODES), bool), jnp.zeros((FILES, NODES))
    goal = Goal(model.share, jnp.full(2, jnp.inf), free, free, jnp.ones(FILES, bool))
    fixed = Fixed(stored, other_work(model, stored), jnp.full((2, NODES), 0.5))
    z = jnp.zeros(2)
    several = jnp.stack([reads] * 3)
    steps = {
        "state": (alternate._STATE, model, reads, *fixed[1:], z),
        "schedule": (schedule, model, goal, fixed, reads, z),
        "gap": (scheduling_gap, model, goal, fixed, reads, z, z),
        "weigh": (weigh, model, goal.coefficient, goal.limit, kind_reads(model, reads), *fixed[1:], z),
        "place": (place, model, goal, fixed, reads, z, jax.random.key(0)),
        "divide": (search._DIVIDE, model, fixed.other, reads, several),
        "descend": (search._DESCEND, model, goal, fixed.other, several),
    }
    function, *arguments = steps[step]
    static = (("stopping", STOPPING),) if step == "schedule" else ()
    return Kernel(_several(function, static).__wrapped__, ((tuple(arguments),) * 2,))


KERNELS = {
    "descent": descent,
    "evaluation": evaluation,
    "bound and gradient": gradient,
    "projection": projection,
    "choices": partial(choices, 1),
    "choices in racks": partial(choices, 2),
    "replay, latencies": partial(replay, classes=0, counts=None, paths=True),
    "replay, tallies": partial(replay, classes=2, counts=None, paths=False),
    "plans of caches": caches,
    "waits under a log": waits,
    "two moments under a log": moments,
    **{
        f"classes side by side, {step}": partial(classes, step)
        for step in ("state", "schedule", "gap", "weigh", "place", "divide", "descend")
    },
    "classes side by side, gap under priority": partial(classes, "gap", "priority"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_it_lowers_for_cuda(name):
    kernel = KERNELS[name]()
    jitted = jax.jit(kernel.function, static_argnums=kernel.static)
    exported = jax.export.export(jitted, platforms=["cuda"])(*kernel.arguments)
    assert exported.platforms == ("cuda",) and exported.mlir_module()
