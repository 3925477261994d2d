"""Batches of plans: the points of a sweep that one compiled program plans, and the rows that come of it."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from ecjax import optimize
from ecjax.engine import Engine
from ecjax.optimize import BatchSettings, Lanes, Plans, scaled
from ecjax.problem import arrays
from ecjax.studies.optimize import rows as plan_tables
from ecjax.studies.optimize.examination import examined
from ecjax.studies.optimize.objective import for_objective
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.run import Item, Lane, Study, run_row, why_unstable
from ecjax.studies.spine.batches import TASKS_PER_WORKER


class Piece(NamedTuple):
    """A run in its batch."""

    item: Item
    width: int  # lanes of the batch's program
    runs: int  # of the batch, as it was made


def pieces(study: Study, missing: list[Item], widest: int) -> list[dict[str, Piece]]:
    """Batches, by run id, of the runs that are to be planned.

    The width of the program does not depend on what is already finished, so that a resumed study runs the same one.

    Args:
        study: what the runs belong to.
        missing: those of its runs that are not finished.
        widest: most lanes of a batch.
    """
    width = _even(len(lanes_of(study.run_ids)), widest)
    wanted = lanes_of(missing)
    found = []
    for first in range(0, len(wanted), width):
        lanes = set(wanted[first : first + width])
        items = [item for item in missing if item.queue == "fcfs" and item.lane in lanes]
        found.append({study.run_ids[item]: Piece(item, width, len(items)) for item in items})
    # queues by class are planned one run at a time
    return found + [{study.run_ids[item]: Piece(item, 1, 1)} for item in missing if item.queue != "fcfs"]


def widest(study: Study, lanes: int, engine: Engine) -> int:
    """Most lanes of a batch: what fits into memory, and leaves batches for all workers.

    At least two, if they fit: XLA rounds a program of one lane otherwise than wider ones, which all round alike.

    Args:
        study: one of the studies.
        lanes: of all studies together.
        engine: where they run.
    """
    options = study.options
    memory = options.memory_bytes or engine.memory_bytes
    fitting = optimize.lanes_per_batch(study.problem, memory, options.dtype)
    if engine.workers == 1:
        return fitting
    return min(fitting, max(2, math.ceil(lanes / (TASKS_PER_WORKER * engine.workers))))


def lanes_of(items: Any) -> list[Lane]:
    """The problems of runs with queue=fcfs, each once."""
    return list(dict.fromkeys(item.lane for item in items if item.queue == "fcfs"))


def plan_batch(study: Study, pieces: dict[str, Piece]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of ``runs`` and the other datasets of runs with queue=fcfs, planned by one program.

    Args:
        study: what they belong to.
        pieces: the runs by run id; of a batch that was halved, only as many lanes are planned as there are.
    """
    items = [piece.item for piece in pieces.values()]
    first, lanes = next(iter(pieces.values())), lanes_of(items)
    if len(pieces) == first.runs:
        lanes += [lanes[-1]] * (first.width - len(lanes))
    options = study.options
    given = None if study.given is None else (study.given.probabilities, study.given.stored)
    fresh = _lanes(lanes, study)
    plans = optimize.solve(study.problem, fresh, _settings(options), given)
    rows, tables = _tables(plans, lanes, items, study)
    if given is not None and options.compare_cold_start:
        _add_cold_start(rows, items, lanes, optimize.solve(study.problem, fresh, _settings(options)))
    return rows, tables


def _even(lanes: int, widest: int) -> int:
    """Width of batches that are all about as wide."""
    return math.ceil(lanes / math.ceil(lanes / widest)) if lanes else 1


def _settings(options: OptimizeOptions) -> BatchSettings:
    return BatchSettings(
        methods=tuple(name for name in optimize.METHODS if name in options.method),
        start=options.start if options.start in optimize.STARTS else "uniform",
        settings=optimize.settings(options.beta, options.eps, options.max_iterations, options.loop),
        dtype=options.dtype,
        seed=options.seed,
        certified=optimize.Certified(gap=options.gap, seed=options.seed),
    )


def _lanes(lanes: list[Lane], study: Study) -> Lanes:
    theta, rate, size = np.array(lanes).T
    count = study.problem.files.count if study.options.theta_per == "total" else 1
    return Lanes(theta * count, rate, size)


def _tables(plans: Plans, lanes: list[Lane], items: list[Item], study: Study):
    """Rows of the ``runs`` dataset, and the other datasets, of a batch."""
    times = {"solve_s": plans.solve_s / len(items), "compile_s": plans.compile_s / len(items)}
    rows, kept, scenarios = [], [], []
    for item in items:
        lane = lanes.index(item.lane)
        plan = jax.tree.map(lambda leaf, lane=lane: np.asarray(leaf[lane]), plans.by_method[item.method])
        unstable = None
        more: dict[str, Any] = {}
        if np.isfinite(plan.evaluation.objective):
            if study.options.objective != "bound":
                own = scaled(study.problem, item.rate_scale, item.size_scale)
                plan, more = for_objective(item, plan, study, own, _settings(study.options))
            plan, examination, table = examined(item, plan, study)
            more |= examination
            kept.append((study.run_ids[item], plan))
            scenarios += [table] if table is not None else []
        else:
            unstable = why_unstable(item, plan, plans.start_load[lane], study)
        bound = None if plans.lower_bound is None else float(plans.lower_bound[lane])
        rows.append(run_row(item, plan, unstable, study, times, bound) | more)
    share = np.asarray(study.problem.share)
    tables = plan_tables.datasets(kept, arrays.code_k(study.files), share, study.names)
    return rows, tables | {"scenarios": iter(scenarios)}


def _add_cold_start(rows: list[dict[str, Any]], items: list[Item], lanes: list[Lane], cold: Plans) -> None:
    """Objectives of the same runs without the earlier plan, where they have one."""
    for row, item in zip(rows, items, strict=True):
        objective = float(cold.by_method[item.method].evaluation.objective[lanes.index(item.lane)])
        row["cold_start_objective"] = objective if np.isfinite(objective) else None
