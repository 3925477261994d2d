"""Kernels on JAX's device, with the share of its limits that they reach; the CPU beside it where it is none."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ecjax.precision  # noqa: F401  (64-bit floats)
from ecjax import programs
from ecjax.planning import project_hypersimplex, starts
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.relax import Passes
from ecjax.planning.certified.smooth import Bins
from ecjax.planning.descent import Stopping
from ecjax.planning.fused.descent import descend, weights_of
from ecjax.planning.fused.kernel import TILE, Surrogate, Weights, moved
from ecjax.planning.problem import Problem
from ecjax.planning.slopes import latency_slopes
from ecjax.planning.smoothed.backend import jax_backend
from ecjax.planning.smoothed.exact import cheapest
from ecjax.planning.smoothed.newton import Settings
from ecjax.planning.smoothed.program import Request, solved
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Runner, Timing, compiled
from ecjax.studies.bench.setups.certified import LOAD, problem_of, thetas_of
from ecjax.studies.bench.setups.device_limits import LIMIT_RUNS, Work, against_limits, limits_of
from ecjax.studies.bench.setups.random_problem import random_problem

TYPES = ("float32", "float64")
_STEPS = 50  # of a descent; its start and its end are counted as a part of them


class Kernel(NamedTuple):
    """A function of arrays, with arrays, in one number type."""

    run: Callable[..., Any]
    arguments: tuple[Any, ...]
    work: Work
    dtype: str


def limits(runner: Runner) -> Iterator[Row]:
    """The limits themselves."""
    for device in _devices():
        place = "" if device == jax.devices()[0] else ", CPU beside"
        for dtype in TYPES:
            for name, per_s in zip(("copy", "matrix product"), limits_of(device, dtype), strict=True):
                unit = "bytes" if name == "copy" else "operations"
                amount = 1e9
                yield Row(
                    f"{name}, {dtype}{place}",
                    f"10^9 {unit}",
                    *(amount / per_s, amount / per_s, LIMIT_RUNS),
                    dtype=dtype,
                    bytes_moved=amount if name == "copy" else None,
                    operations=None if name == "copy" else amount,
                    limit_share=1.0,
                    note=f"{per_s / 1e9:,.0f} 10^9 {unit}/s on {device.device_kind}",
                )


def choices(runner: Runner, files: int, nodes: int) -> Iterator[Row]:
    """The cheapest whole choice of every file at prices: what the bound is made of."""
    random = np.random.default_rng(runner.seed)

    def kernel(dtype: str) -> Kernel:
        cold = random.uniform(1, 2, (files, nodes, 1)).astype(dtype)
        hot = cold + random.uniform(0, 2, (files, nodes, 1)).astype(dtype)
        k, extra = random.integers(4, 8, files), random.integers(0, 3, files)
        margin = np.full(files, 1e-3, dtype)

        def run(*arrays: jax.Array) -> jax.Array:
            hot, cold, k, extra, margin = arrays
            value: jax.Array = cheapest(jax_backend(), hot, cold, k, extra, 1, margin).value
            return value

        moved = 2 * files * nodes * np.dtype(dtype).itemsize
        return Kernel(run, (hot, cold, k, extra, margin), Work(bytes=moved), dtype)

    yield from _raced(runner, "choice pass", files, nodes, kernel)


def projections(runner: Runner, files: int, nodes: int) -> Iterator[Row]:
    """The projection on the capped simplex."""
    random = np.random.default_rng(runner.seed)

    def kernel(dtype: str) -> Kernel:
        points = random.normal(0.3, 0.7, (files, nodes)).astype(dtype)
        sums = random.integers(4, 8, files).astype(dtype)
        moved = 2 * points.nbytes
        return Kernel(project_hypersimplex, (points, sums), Work(bytes=moved), dtype)

    yield from _raced(runner, "projection", files, nodes, kernel)


def gradients(runner: Runner, files: int, nodes: int) -> Iterator[Row]:
    """The latency bound with its gradient, and a whole step of the descent: gradient, tangent, projection."""
    problem = random_problem(files, nodes, LOAD, False, runner.seed)

    def typed(dtype: str) -> tuple[Any, jax.Array, jax.Array]:
        arrays = jax.tree.map(lambda leaf: leaf.astype(dtype), problem)
        start = jnp.broadcast_to((arrays.k / nodes)[:, None], (files, nodes))
        return arrays, start, jnp.asarray(0.1, dtype)

    def gradient(problem: Any, point: jax.Array, z: jax.Array) -> jax.Array:
        return latency_slopes(problem, point, point, z).by_probability

    def step(problem: Any, point: jax.Array, z: jax.Array) -> jax.Array:
        slope = latency_slopes(problem, point, point, z).by_probability
        tangent = problem.nodes.cost_per_chunk[None] / (point + jnp.asarray(0.1, point.dtype))
        scale = jnp.asarray(1e-3, point.dtype) / problem.share[:, None]
        return project_hypersimplex(point - scale * (slope + tangent * problem.share[:, None]), problem.k)

    for name, function in (("bound and gradient", gradient), ("descent step", step)):

        def kernel(dtype: str, function: Callable[..., Any] = function) -> Kernel:
            moved = 2 * files * nodes * np.dtype(dtype).itemsize
            return Kernel(function, typed(dtype), Work(bytes=moved), dtype)

        yield from _raced(runner, name, files, nodes, kernel)


def steps_by_kernel(runner: Runner, files: int, nodes: int) -> Iterator[Row]:
    """The kernel of the descent's step, and a whole iteration by it: kernel, waits, z, slopes and judgement.

    Without a GPU the kernel is interpreted, for few files.
    """
    on_gpu = jax.default_backend() == "gpu"
    rows = files if on_gpu else min(files, TILE)
    problem = random_problem(rows, nodes, LOAD, False, runner.seed)
    surrogate = Surrogate(1e-3 / rows * problem.nodes.cost_per_chunk, 10.0)
    for dtype in TYPES:
        arrays = jax.tree.map(lambda leaf, dtype=dtype: leaf.astype(dtype), problem)
        start = starts.proportional(arrays, jax.random.key(runner.seed))
        weights = weights_of(arrays, start.dtype)
        point = jnp.pad(start.T, ((0, 0), (0, len(weights.k) - rows)))
        # a slope that moves probabilities to and fro on the way to their vertices
        slope, step = jnp.linspace(-1, 1, nodes), jnp.asarray(0.1)

        def one(
            point: jax.Array,
            weights: Weights,
            slope: jax.Array,
            step: jax.Array,
            surrogate: Surrogate = surrogate,
        ) -> Any:
            return moved(point, weights, slope, step, surrogate, None)

        def many(problem: Problem, start: jax.Array, surrogate: Surrogate = surrogate) -> jax.Array:
            # a descent that never settles
            stopping = Stopping(eps=-1.0, max_iterations=_STEPS)
            return descend(problem, surrogate, None, start, jnp.zeros((), start.dtype), stopping).iterations

        work = Work(bytes=2 * rows * nodes * np.dtype(dtype).itemsize)
        calls = {
            "descent step, the kernel": (1, *compiled(one, point, weights, slope, step)),
            "descent step, by the kernel": (_STEPS, *compiled(many, arrays, start)),
        }
        outcomes = runner.race({name: call for name, (_, call, _) in calls.items()})
        assert int(outcomes["descent step, by the kernel"].value) == _STEPS
        for name, (steps, _, compile_s) in calls.items():
            timing = outcomes[name].timing
            each = Timing(timing.median_s / steps, timing.min_s / steps, timing.repeats)
            yield _row(
                name, dtype, jax.devices()[0], _size(rows, nodes), each, work, 1, compile_s,
                note=None if on_gpu else "interpreted, not compiled",
            )  # fmt: skip


def prices(runner: Runner, files: int, nodes: int, racks: int, lanes: int) -> Iterator[Row]:
    """Prices of the relaxation by the smoothed dual: lanes of theta as one program."""
    programs.use_compilation_cache()
    requests = [_request(files, nodes, racks, theta, runner.seed) for theta in thetas_of(lanes)]
    for device in _devices():
        with jax.default_device(device):
            repeats = runner.repeats if device == jax.devices()[0] else 1
            outcome = replace(runner, repeats=repeats).time(partial(solved, requests))
        passes = int(max(solution.turns for solution in outcome.value))
        rows = len(requests[0].rows.rate)
        # one product of (2 rows, nodes) matrices a pass, in every lane
        operations = 4.0 * passes * lanes * rows * nodes**2
        yield _row(
            "prices", "float64", device, f"{rows:,} bins x {nodes}" + (f", {lanes} thetas" if lanes > 1 else ""),
            outcome.timing, Work(operations=operations), lanes, outcome.first.seconds,
            note=f"{passes} passes, {outcome.timing.min_s / passes * 1e3:.3g} ms each",
        )  # fmt: skip


def _request(files: int, nodes: int, racks: int, theta: float, seed: int) -> Request:
    """The relaxation of a problem over its fine bins, from the start to the end."""
    service, rows = flatten(problem_of(files, nodes, racks, seed))
    passes = Passes(service, rows, 1)
    passes.with_theta(theta / files)
    bins = Bins(passes)
    return Request(bins.cluster, bins.fine.rows, bins.sites, Settings(), *bins.start())


def _devices() -> list[jax.Device]:
    """JAX's device, and the CPU beside it where it is none."""
    first = jax.devices()[0]
    return [first] if first.platform == "cpu" else [first, jax.devices("cpu")[0]]


def _raced(
    runner: Runner, name: str, files: int, nodes: int, kernel: Callable[[str], Kernel]
) -> Iterator[Row]:
    """Rows of a kernel in both number types, on every device."""
    kernels = {dtype: kernel(dtype) for dtype in TYPES}
    for device in _devices():
        programs: Mapping[str, tuple[Callable[[], Any], float]] = {
            dtype: compiled(each.run, *jax.device_put(each.arguments, device))
            for dtype, each in kernels.items()
        }
        how = (
            runner if device == jax.devices()[0] else runner.once()
        )  # the CPU beside takes a thousand times as long
        outcomes = how.race({dtype: program for dtype, (program, _) in programs.items()})
        for dtype, outcome in outcomes.items():
            work, compile_s = kernels[dtype].work, programs[dtype][1]
            yield _row(name, dtype, device, _size(files, nodes), outcome.timing, work, 1, compile_s)


def _row(
    name: str,
    dtype: str,
    device: jax.Device,
    size: str,
    timing: Timing,
    work: Work,
    lanes: int,
    compile_s: float,
    note: str | None = None,
) -> Row:
    place = "" if device == jax.devices()[0] else ", CPU beside"
    variant = f"ecjax {name}, {dtype}{place}"
    row = Row(variant, size, *timing, lanes=lanes, dtype=dtype, compile_s=compile_s, note=note)
    return against_limits(row, work, device)


def _size(files: int, nodes: int) -> str:
    return f"{files:,} files x {nodes}"
