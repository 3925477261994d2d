"""The projection on the capped simplex beside a Numba loop and 50 bisections in XLA."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax.planning import project_hypersimplex
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, compiled

NODES = 12
LANES = 10
BISECTIONS = 50


def rivals(runner: Runner, rows: int) -> Iterator[Row]:
    """Projection of rows in float64 and float32, as one batch and as lanes of a vmap, and its rivals."""
    rng = np.random.default_rng(runner.seed)
    points = rng.normal(0.3, 0.7, (rows, NODES))
    sums = rng.integers(4, 8, rows).astype(float)
    y, k = jnp.asarray(points), jnp.asarray(sums)
    programs = {
        "ecjax": compiled(project_hypersimplex, y, k),
        "ecjax_lanes": compiled(
            jax.vmap(project_hypersimplex), y.reshape(LANES, -1, NODES), k.reshape(LANES, -1)
        ),
        "ecjax_float32": compiled(project_hypersimplex, y.astype(jnp.float32), k.astype(jnp.float32)),
        "bisection_xla": compiled(bisection, y, k),
    }
    compile_s = {name: seconds for name, (_, seconds) in programs.items()}
    calls: dict[str, Callable[[], Any]] = {name: program for name, (program, _) in programs.items()}
    calls["numba_loop"] = partial(newton_loop, points, sums)
    for name, outcome in runner.race(calls).items():
        p = np.asarray(outcome.value).reshape(rows, NODES)
        yield Row(
            name,
            f"{rows:,} x {NODES}",
            *outcome.timing,
            rows=rows,
            node_count=NODES,
            lanes=LANES if name == "ecjax_lanes" else 1,
            dtype=str(p.dtype),
            compile_s=compile_s.get(name),
            note=f"sums off by at most {np.abs(p.sum(axis=1) - sums).max():.1e}",
        )


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
