"""The projection on the capped simplex beside a Numba loop and 50 bisections in XLA."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.optimize import project_hypersimplex
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import compiled, side_by_side, timed

NODES = 12
LANES = 10
TARGET_S = 0.25
BISECTIONS = 50


def rows(settings: Settings) -> list[Row]:
    """Projection of r rows in float64 and float32, as one batch and as lanes of a vmap, and its rivals."""
    r = 20_000 if settings.quick else 1_000_000
    rng = np.random.default_rng(settings.seed)
    points = rng.normal(0.3, 0.7, (r, NODES))
    sums = rng.integers(4, 8, r).astype(float)
    y, k = jnp.asarray(points), jnp.asarray(sums)
    by_lane = (y.reshape(LANES, -1, NODES), k.reshape(LANES, -1))
    single = (y.astype(jnp.float32), k.astype(jnp.float32))
    programs = {
        "ecjax": (project_hypersimplex, (y, k), 1),
        "ecjax_lanes": (jax.vmap(project_hypersimplex), by_lane, LANES),
        "ecjax_float32": (project_hypersimplex, single, 1),
        "bisection_xla": (bisection, (y, k), 1),
    }
    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    compile_s = {}
    for name, (function, arguments, _) in programs.items():
        program, compile_s[name] = compiled(function, *arguments)
        calls[name] = (program, arguments)
    calls["numba_loop"] = (newton_loop, (points, sums))
    times = side_by_side({name: timed(f, *a) for name, (f, a) in calls.items()}, settings.repeats)
    found = []
    for name, (function, arguments) in calls.items():
        p = np.asarray(function(*arguments)).reshape(r, NODES)
        found.append(
            Row(
                variant=name,
                size=f"{r:,} x {NODES}",
                rows=r,
                nodes=NODES,
                lanes=programs[name][2] if name in programs else 1,
                dtype=str(p.dtype),
                **times[name]._asdict(),
                compile_s=compile_s.get(name),
                target_s=TARGET_S if name in ("ecjax", "ecjax_lanes") and not settings.quick else None,
                note=f"sums off by at most {np.abs(p.sum(axis=1) - sums).max():.1e}",
            )
        )
    return found


def bisection(y: jax.Array, k: jax.Array) -> jax.Array:
    """The usual form in XLA: a fixed number of halvings of an interval that holds tau."""

    def halve(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low + high) / 2
        above = jnp.sum(jnp.clip(y - middle[:, None], 0, 1), axis=1) > k
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    ends = (jnp.min(y, axis=1) - 1, jnp.max(y, axis=1))
    low, high = jax.lax.fori_loop(0, BISECTIONS, halve, ends)
    return jnp.clip(y - ((low + high) / 2)[:, None], 0, 1)


@numba.njit(parallel=True, fastmath=True, cache=False)
def newton_loop(y: np.ndarray, k: np.ndarray) -> np.ndarray:
    """A plain loop over rows on all cores: Newton's method in tau, with a bracket for its missteps."""
    r, m = y.shape
    p = np.empty_like(y)
    for i in numba.prange(r):
        low, high, total = y[i, 0] - 1.0, y[i, 0], 0.0
        for j in range(m):
            low, high, total = min(low, y[i, j] - 1.0), max(high, y[i, j]), total + y[i, j]
        tau = min(max((total - k[i]) / m, low), high)
        for _ in range(100):
            value, free = -k[i], 0.0
            for j in range(m):
                x = y[i, j] - tau
                value += min(max(x, 0.0), 1.0)
                free += 1.0 if 0.0 < x < 1.0 else 0.0
            if abs(value) < 1e-13:
                break
            if value > 0:
                low = tau
            else:
                high = tau
            tau = tau + value / free if free > 0 else low
            if not low < tau < high:
                tau = (low + high) / 2
        for j in range(m):
            p[i, j] = min(max(y[i, j] - tau, 0.0), 1.0)
    return p
