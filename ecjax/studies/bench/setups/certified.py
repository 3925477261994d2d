"""The certified method on random problems: time, memory and proven gap, beside the published method and a full solve.

Times are those of ``optimize.solve``. What Numba compiles is compiled before, on a small problem of the kind; what JAX
compiles for the size at hand (to evaluate plans, and to share reads out where a gap is left) is in the time of cases
that run once.
"""

from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np

from ecjax import optimize, precision
from ecjax.optimize import BatchSettings, Certified, Lanes, Plans, Problem
from ecjax.studies.bench.rows import Row, Settings
from ecjax.studies.bench.run import Timing, peak_rss_bytes, side_by_side
from ecjax.studies.bench.setups.random_problem import changed, random_problem

THETA = 0.02  # s per dollar: latency and cost weigh alike
LOADS = (0.6, 0.9)
FILES, NODES = 1000, 12
GAP, TARGET_S = 1e-4, 1.0
LANES, TARGET_THETAS_S = 64, 10.0
WIDE_FILES, WIDE_NODES = 100_000, 100
WIDE_GAP, TARGET_WIDE_S = 1e-3, 60.0
MANY_FILES = (10_000, 100_000, 1_000_000)
TARGET_MILLION_S, TARGET_MILLION_BYTES = 60.0, 4_000_000_000
CHANGED, FACTOR = 0.01, 2.0
_WARM_UP_FILES = 1000
_CERTIFIED, _PUBLISHED = "ecjax certified", "ecjax published"


def rows(settings: Settings) -> list[Row]:
    """1000 files at two loads and with mixed sizes, both methods in turns."""
    found = []
    for load, mixed in ((LOADS[0], False), (LOADS[1], False), (LOADS[0], True)):
        ours, published = _beside_published(load, mixed, settings)
        found += [
            ours if mixed or settings.quick else replace(ours, target_s=TARGET_S, target_gap=GAP),
            published,
        ]
    return found


def _beside_published(load: float, mixed: bool, settings: Settings) -> tuple[Row, Row]:
    compile_s = _compile(mixed, settings)
    problem = random_problem(100 if settings.quick else FILES, NODES, load, mixed, settings.seed)
    plans: dict[str, list[Plans]] = {"certified": [], "published": []}

    def run(method: str) -> float:
        plans[method].append(_solve(problem, (THETA,), GAP, (method,)))
        return plans[method][-1].solve_s

    times = side_by_side({name: partial(run, name) for name in plans}, settings.repeats)
    words = f"load {load:g}" + (", mixed sizes" if mixed else "")
    ours, published = plans["certified"], plans["published"]
    return (
        replace(_row(_CERTIFIED, words, problem, ours[-1], times["certified"]), compile_s=compile_s),
        replace(
            _row(_PUBLISHED, words, problem, published[-1], times["published"], ours[-1].lower_bound),
            compile_s=published[0].compile_s,
        ),
    )


def thetas(settings: Settings) -> list[Row]:
    """Many thetas of 1000 files as one batch, once."""
    values = tuple(np.geomspace(THETA / 30, THETA * 30, 4 if settings.quick else LANES).tolist())
    compile_s = _compile(False, settings)
    problem = random_problem(100 if settings.quick else FILES, NODES, LOADS[0], False, settings.seed)
    plans = _solve(problem, values, GAP)
    within = int(np.sum(_gaps(plans, plans.lower_bound) <= GAP))
    row = _row(_CERTIFIED, f"{len(values)} thetas, load {LOADS[0]:g}", problem, plans)
    row = replace(
        row, compile_s=compile_s, note=_joined(f"{within} gaps of {len(values)} within {GAP:g}", row.note)
    )
    return [row if settings.quick else replace(row, target_s=TARGET_THETAS_S, target_gap=GAP)]


def wide(settings: Settings) -> list[Row]:
    """10^5 files on 100 nodes, once."""
    count, nodes = (500, 30) if settings.quick else (WIDE_FILES, WIDE_NODES)
    compile_s = _compile(False, settings)
    problem = random_problem(count, nodes, LOADS[0], False, settings.seed)
    row = _row(_CERTIFIED, f"load {LOADS[0]:g}", problem, _solve(problem, (THETA,), WIDE_GAP))
    row = replace(row, compile_s=compile_s, peak_rss_bytes=peak_rss_bytes())
    return [row if settings.quick else replace(row, target_s=TARGET_WIDE_S, target_gap=WIDE_GAP)]


def million(settings: Settings) -> list[Row]:
    """More and more files, timed once each; the peak memory is that of the process so far, which the largest made."""
    compile_s = _compile(False, settings)
    found = []
    for count in MANY_FILES:
        problem = random_problem(
            count // 100 if settings.quick else count, NODES, LOADS[0], False, settings.seed
        )
        if count < MANY_FILES[-1]:
            _solve(
                problem, (THETA,), GAP
            )  # what JAX compiles would hide how the time of the smaller ones grows
        plans = _solve(problem, (THETA,), GAP)
        row = _row(_CERTIFIED, f"load {LOADS[0]:g}", problem, plans)
        each = f"{plans.solve_s / (problem.rows * NODES) * 1e6:.3g} us per file and node"
        found.append(
            replace(row, compile_s=compile_s, peak_rss_bytes=peak_rss_bytes(), note=_joined(each, row.note))
        )
    if not settings.quick:
        found[-1] = replace(
            found[-1], target_s=TARGET_MILLION_S, target_bytes=TARGET_MILLION_BYTES, target_gap=GAP
        )
    return found


def warm(settings: Settings) -> list[Row]:
    """Some files change in rate: a full solve beside one that starts from the plan before the change, once each."""
    compile_s = _compile(False, settings)
    found = []
    for count in (1000,) if settings.quick else MANY_FILES[1:]:
        before = random_problem(count, NODES, LOADS[0], False, settings.seed)
        old = _solve(before, (THETA,), GAP).by_method["certified"]
        given = np.asarray(old.probabilities[0]), np.asarray(old.stored[0])
        problem = changed(before, CHANGED, FACTOR, settings.seed + 1)
        full = _solve(problem, (THETA,), GAP)
        again = _solve(problem, (THETA,), GAP, given=given)
        for variant, plans in (("full solve", full), ("from the old plan", again)):
            stored = np.asarray(plans.by_method["certified"].stored[0])
            row = _row(f"{_CERTIFIED}, {variant}", f"{CHANGED:.0%} of the files changed", problem, plans)
            moved = (
                f"{int((stored & ~given[1]).sum()):,} of {int(stored.sum()):,} chunks moved, "
                f"{plans.solve_s / full.solve_s:.3g} of the time of the full solve"
            )
            found.append(replace(row, compile_s=compile_s, note=_joined(moved, row.note)))
    return found


def _solve(
    problem: Problem,
    thetas: tuple[float, ...],
    gap: float,
    methods: tuple[str, ...] = ("certified",),
    given: tuple[np.ndarray, np.ndarray] | None = None,
) -> Plans:
    unit = jnp.ones(len(thetas))
    how = BatchSettings(methods, certified=Certified(gap=gap))
    start = None if given is None else (jnp.asarray(given[0]), jnp.asarray(given[1]))
    return optimize.solve(problem, Lanes(jnp.asarray(thetas), unit, unit), how, start)


def _compile(mixed: bool, settings: Settings) -> float:
    """Seconds that the first solve of a small problem of a kind takes longer than the second."""
    precision.use_compilation_cache()  # so that repeats do not compile again
    problem = random_problem(_WARM_UP_FILES, NODES, LOADS[0], mixed, settings.seed)
    first, second = (_solve(problem, (THETA,), WIDE_GAP) for _ in range(2))
    return max(first.solve_s - second.solve_s, 0.0)


def _row(
    variant: str,
    words: str,
    problem: Problem,
    plans: Plans,
    timing: Timing | None = None,
    bound: np.ndarray | None = None,
) -> Row:
    """A row of plans by one method, with the lower bound given where they have none of their own."""
    ((_, plan),) = plans.by_method.items()
    lower = np.asarray(plans.lower_bound if bound is None else bound, float)
    gaps = _gaps(plans, lower)
    # what the certified method itself compiles counts as solving
    compared = plans.lower_bound is not None and plans.compile_s > 0
    return Row(
        variant=variant,
        size=f"{problem.rows:,} files x {problem.nodes.count}, {words}",
        **(timing or Timing(plans.solve_s, plans.solve_s, 1))._asdict(),
        rows=problem.rows,
        nodes=problem.nodes.count,
        lanes=len(gaps),
        dtype="float64",
        objective=float(plan.evaluation.objective[0]) if len(gaps) == 1 else None,
        lower_bound=float(lower[0]) if len(gaps) == 1 else None,
        gap=float(gaps.max()),
        iterations=int(np.max(plan.iterations)),
        note="a gap was left: the published method, tried too, is in the time" if compared else None,
    )


def _gaps(plans: Plans, bound: np.ndarray | None) -> np.ndarray:
    """(L,) relative gaps of the plans of the one method to lower bounds."""
    ((_, plan),) = plans.by_method.items()
    lower = np.asarray(bound, float)
    return (np.asarray(plan.evaluation.objective) - lower) / np.abs(lower)


def _joined(*notes: str | None) -> str:
    return "; ".join(note for note in notes if note)
