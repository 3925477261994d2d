"""The certified method on random problems: time, memory and proven gap, beside the published method and a full solve.

Times are those of ``optimize.solve``. What Numba compiles is compiled before, on a small problem of the kind; what JAX
compiles for the size at hand (to evaluate plans, and to share reads out where a gap is left) is in the time of what
runs once.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import jax.numpy as jnp
import numpy as np

from ecjax import planning, programs
from ecjax.planning import BatchSettings, Certified, Lanes, Plans, Problem
from ecjax.planning.certified.solvers import Device
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Clocked, Outcome, Runner
from ecjax.studies.bench.setups.random_problem import changed, random_problem, with_sizes

THETA = 0.02  # s per dollar: latency and cost weigh alike
THETAS_SPREAD = 30.0  # many thetas: from THETA divided by this to THETA times this
NODES = 12
LOAD = 0.6
GAP = 1e-4
CHANGED, FACTOR = 0.01, 2.0
_COMPILING_FILES, _COMPILING_GAP = 1000, 1e-3
_CERTIFIED, _PUBLISHED = "ecjax certified", "ecjax published"


def beside_published(runner: Runner, files: int, load: float, mixed_sizes: bool, gap: float) -> Iterator[Row]:
    """One theta by both methods; the bound of the certified one holds for both."""
    compile_s = compiling_s(mixed_sizes, runner.seed)
    problem = random_problem(files, NODES, load, mixed_sizes, runner.seed)
    outcomes = runner.race(
        {
            _CERTIFIED: partial(_solve, problem, (THETA,), gap),
            _PUBLISHED: partial(_solve, problem, (THETA,), gap, "published"),
        }
    )
    ours, published = (outcomes[name] for name in (_CERTIFIED, _PUBLISHED))
    words = f"load {load:g}" + (", mixed sizes" if mixed_sizes else "")
    yield _row(_CERTIFIED, words, problem, ours, compile_s)
    compile_s, bound = published.first.value.compile_s, ours.value.lower_bound
    yield _row(_PUBLISHED, words, problem, published, compile_s, bound=bound)


def planned(
    runner: Runner, files: int, gap: float, nodes: int = NODES, thetas: int = 1, racks: int = 0
) -> Iterator[Row]:
    """One theta, or many around it as one batch; with racks no more than one chunk of a file in each."""
    compile_s = compiling_s(False, runner.seed)
    problem = problem_of(files, nodes, racks, runner.seed)
    outcome = runner.time(partial(_solve, problem, thetas_of(thetas), gap))
    each_us = outcome.timing.min_s / (files * nodes) * 1e6
    words = f"load {LOAD:g}" + (f", {racks} racks" if racks else "")
    note = f"{each_us:.3g} µs per file and node"
    if thetas > 1:
        within = int(np.sum(_gaps(outcome.value, outcome.value.lower_bound) <= gap))
        words, note = f"{thetas} thetas, {words}", f"{within} gaps of {thetas} within {gap:g}"
    yield _row(_CERTIFIED, words, problem, outcome, compile_s, note)


def by_sizes(
    runner: Runner, files: int, nodes: int, sizes: int, k: tuple[int, ...], gap: float
) -> Iterator[Row]:
    """Files whose chunk sizes differ as in a log; ``sizes`` of them at most, and k drawn."""
    compile_s = compiling_s(True, runner.seed)
    problem = with_sizes(
        random_problem(files, nodes, LOAD, False, runner.seed), sizes, k, LOAD, runner.seed + 1
    )
    outcome = runner.time(partial(_solve, problem, (THETA,), gap))
    nearby = outcome.value.nearby_bound
    note = None if nearby is None else f"gap to plans nearby {float(_gaps(outcome.value, nearby).max()):.2g}"
    number = "sizes all different" if sizes >= files else f"{sizes} sizes"
    words = f"load {LOAD:g}, {number}, k {' to '.join(str(n) for n in sorted({min(k), max(k)}))}"
    yield _row(_CERTIFIED, words, problem, outcome, compile_s, note)


def by_devices(runner: Runner, files: int, nodes: int, racks: int, thetas: int) -> Iterator[Row]:
    """The same with prices by JAX and by the host."""
    programs.use_compilation_cache()
    problem = problem_of(files, nodes, racks, runner.seed)
    solve = partial(_solve, problem, thetas_of(thetas), GAP)
    calls = {"jax": partial(solve, device="jax"), "host": partial(solve, device="host")}
    words = f"load {LOAD:g}" + (f", {racks} racks" if racks else "")
    if thetas > 1:
        words = f"{thetas} thetas, {words}"
    for device, outcome in runner.race(calls).items():
        note = f"prices on {outcome.value.device['certified']}"
        yield _row(f"{_CERTIFIED}, device={device}", words, problem, outcome, note=note)


def problem_of(files: int, nodes: int, racks: int, seed: int) -> Problem:
    """A random problem; with racks no more than one chunk of a file in each."""
    problem = random_problem(files, nodes, LOAD, False, seed)
    return replace(problem, site=jnp.arange(nodes) % racks, per_site=1) if racks else problem


def thetas_of(count: int) -> tuple[float, ...]:
    """One theta, or many around it, s per dollar."""
    if count == 1:
        return (THETA,)
    return tuple(np.geomspace(THETA / THETAS_SPREAD, THETA * THETAS_SPREAD, count).tolist())


def after_change(runner: Runner, files: int, gap: float) -> Iterator[Row]:
    """Some files change in rate: a full solve beside one that starts from the plan before the change."""
    compile_s = compiling_s(False, runner.seed)
    before = random_problem(files, NODES, LOAD, False, runner.seed)
    old = _solve(before, (THETA,), gap).value.by_method["certified"]
    start = np.asarray(old.probabilities[0]), np.asarray(old.stored[0])
    problem = changed(before, CHANGED, FACTOR, runner.seed + 1)
    outcomes = runner.race(
        {
            "full solve": partial(_solve, problem, (THETA,), gap),
            "from the old plan": partial(_solve, problem, (THETA,), gap, start=start),
        }
    )
    full_s = outcomes["full solve"].timing.min_s
    for name, outcome in outcomes.items():
        stored = np.asarray(outcome.value.by_method["certified"].stored[0])
        note = (
            f"{int((stored & ~start[1]).sum()):,} of {int(stored.sum()):,} chunks moved, "
            f"{outcome.timing.min_s / full_s:.3g} of the time of the full solve"
        )
        words = f"{CHANGED:.0%} of the files changed"
        yield _row(f"{_CERTIFIED}, {name}", words, problem, outcome, compile_s, note)


@cache
def compiling_s(mixed_sizes: bool, seed: int) -> float:
    """Seconds that the first solve of a small problem of a kind compiles."""
    programs.use_compilation_cache()  # so that repeats do not compile again
    problem = random_problem(_COMPILING_FILES, NODES, LOAD, mixed_sizes, seed)
    return float(_solve(problem, (THETA,), _COMPILING_GAP).value.compile_s)


def _solve(
    problem: Problem,
    thetas: tuple[float, ...],
    gap: float,
    method: str = "certified",
    start: tuple[np.ndarray, np.ndarray] | None = None,
    device: Device = "auto",
) -> Clocked:
    """Plans by one method, and the time that solving took; from a plan's probabilities and chunks if there is one."""
    unit = jnp.ones(len(thetas))
    how = BatchSettings((method,), certified=Certified(gap=gap, device=device))
    arrays = None if start is None else (jnp.asarray(start[0]), jnp.asarray(start[1]))
    plans = planning.solve(problem, Lanes(jnp.asarray(thetas), unit, unit), how, arrays)
    return Clocked(plans, plans.solve_s[method])


def _row(
    variant: str,
    words: str,
    problem: Problem,
    outcome: Outcome,
    compile_s: float | None = None,
    note: str | None = None,
    bound: np.ndarray | None = None,
) -> Row:
    """A row of plans by one method, with the lower bound given where they have none of their own."""
    plans: Plans = outcome.value
    (plan,) = plans.by_method.values()
    lower = np.asarray(plans.lower_bound if bound is None else bound, float)
    gaps = _gaps(plans, lower)
    also = "a gap was left: the published method, tried too, is in the time" if plans.compared else None
    return Row(
        variant,
        f"{problem.rows:,} files x {problem.nodes.count}, {words}",
        *outcome.timing,
        rows=problem.rows,
        node_count=problem.nodes.count,
        lanes=len(gaps),
        dtype="float64",
        compile_s=compile_s,
        objective=float(plan.evaluation.objective[0]) if len(gaps) == 1 else None,
        lower_bound=float(lower[0]) if len(gaps) == 1 else None,
        gap=float(gaps.max()),
        iterations=int(np.max(plan.iterations)),
        note="; ".join(text for text in (note, also) if text) or None,
    )


def _gaps(plans: Plans, bound: np.ndarray | None) -> np.ndarray:
    """(L,) relative gaps of the plans of the one method to lower bounds."""
    (plan,) = plans.by_method.values()
    lower = np.asarray(bound, float)
    return (np.asarray(plan.evaluation.objective) - lower) / np.abs(lower)
