"""The runs of ``ecjax optimize``, and which of them are planned together: the lanes of one compiled program."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax

from ecjax import planning
from ecjax.engine import Engine
from ecjax.options import identifying
from ecjax.planning.classes.together import lanes_per_program, width_of
from ecjax.studies.optimize.case import Case
from ecjax.studies.optimize.class_rules import CLASS_METHODS, importances
from ecjax.studies.optimize.floors import least_nines
from ecjax.studies.optimize.inputs import sweep
from ecjax.studies.optimize.objective_rules import TRACE
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.tables import TABLES
from ecjax.studies.spine.batches import TASKS_PER_WORKER, Batch
from ecjax.studies.spine.run import Run, json_text


class Way(NamedTuple):
    """How a run plans.

    Attributes:
        method: algorithm or baseline.
        queue: how nodes serve.
        importance: (K,) of queues by class, what a second of each class counts; else None.
    """

    method: str
    queue: str
    importance: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Item:
    """One run: a way to plan, at one lane of its case.

    Attributes:
        run: its identity.
        way: how it plans.
        lane: which lane of ``Case.lanes``; methods of one lane share its descent.
        width: lanes of the programs of its batch.
        batch_runs: runs of its batch, as it was made.
        base: run of the same options for the tables as they are, of runs for what would be otherwise; or None.
    """

    run: Run
    way: Way
    lane: int
    width: int = 1
    batch_runs: int = 1
    base: str | None = None


def items_of(case: Case, options: OptimizeOptions) -> list[Item]:
    """All runs of a case, lane after lane.

    Args:
        case: what they plan for.
        options: checked.

    Raises:
        UserError: ``importance`` does not fit the classes.
    """
    ways = _ways(case, options)
    points = [(lane, point._asdict(), way) for lane, point in enumerate(sweep(options)) for way in ways]
    together = [
        {"importance": way.importance, **point}
        for _, point, way in points
        if options.exchange and _weighted(way)
    ]
    return [
        Item(_run(case, options, point, way, together if len(together) > 1 else []), way, lane)
        for lane, point, way in points
    ]


def with_bases(runs: Sequence[tuple[Case, list[Item]]]) -> list[tuple[Case, list[Item]]]:
    """The runs of all cases, each with the run for the tables as they are at the same point of the sweep."""

    def point(case: Case, item: Item) -> tuple[object, ...]:
        return case.code, case.k, case.d, case.class_rate_scale, item.way, item.lane

    bases = {
        point(case, item): item.run.run_id for case, items in runs if case.what_if is None for item in items
    }
    return [
        (case, [replace(item, base=bases.get(point(case, item))) for item in items]) for case, items in runs
    ]


def _ways(case: Case, options: OptimizeOptions) -> list[Way]:
    """Methods for first come, first served, and importances of the classes for each queue by class."""
    ways: list[Way] = []
    for queue in options.queue:
        if queue == "fcfs":
            ways += [Way(method, queue) for method in options.method or []]
        else:
            assert case.classes is not None
            listed = importances(options.importance, case.classes.names)
            ways += [Way(CLASS_METHODS[queue], queue, importance) for importance in listed]
    return ways


def _run(
    case: Case, options: OptimizeOptions, point: dict[str, float], way: Way, together: list[dict[str, Any]]
) -> Run:
    """The run of a point of the sweep; ``together`` are the points whose plans those of weighted queues try."""
    by_class = None
    if way.importance is not None and case.classes is not None:
        by_class = dict(zip(case.classes.names, way.importance, strict=True))
    columns = point | {
        "method": way.method,
        "queue": way.queue,
        "importance": json_text(by_class),
        "class_rate_scale": case.class_rate_scale,
        "code": case.code,
        "durability_nines": options.durability_nines,
        "max_any_loss": options.max_any_loss,
        "floor_nines": least_nines(case.floors),
        "k": case.k,
        "d": case.d,
        "what_if": case.what_if,
        "theta_per": options.theta_per,
        "file_count": case.problem.files.count,
        "node_count": case.problem.nodes.count,
    }
    parameters = identifying(options) | case.parameters | point | way._asdict()
    if case.what_if is not None:  # scenarios may come to the same tables
        parameters["what_if"] = case.what_if
    if way.method == "certified" and options.method != ["certified"]:
        parameters["beside"] = "published"  # whose plan is taken where it is better, however small the gap
    if options.objective == TRACE and point["theta"] != (first := sweep(options)[0].theta):
        parameters["start_theta"] = first  # its relaxation is what the plan starts from
    if together and _weighted(way):
        parameters["exchange"] = together
    return Run(
        TABLES.job,
        parameters,
        case.input_id,
        options.seed,
        columns,
        remarks={"inputs": case.places} if case.places else {},
        dtype=options.dtype,
    )


def batches(
    items: Sequence[tuple[Case, Sequence[Item]]],
    widest: Callable[[Case], int],
    exchange: bool,
    finished: set[str],
    by_class: Callable[[Case, int], int] = lambda case, runs: 1,
) -> list[Batch]:
    """Batches of the runs that are to be planned.

    Of queues by class a batch is one run, those that exchange plans, or those that are planned side by side. With small
    reads its lanes have one ``size_scale``.

    The width of the program does not depend on what is already finished, so that a resumed study runs the same one. Of
    runs that exchange plans all are planned again where one is missing: its plan comes of all of them.

    Args:
        items: all runs of every case.
        widest: most lanes of a batch.
        exchange: whether runs of weighted queues of a case are planned together.
        finished: run ids.
        by_class: width of the programs for so many runs of a case with a queue by class.
    """
    parts = []
    for case, runs in items:
        missing = [item for item in runs if item.run.run_id not in finished]
        left = set(lanes_of(missing))
        for alike in _of_one_problem(case, lanes_of(runs)) if left else ():
            width = _even(len(alike), widest(case))
            lanes = [lane for lane in alike if lane in left]
            for first in range(0, len(lanes), width):
                among = set(lanes[first : first + width])
                parts.append((case, [item for item in missing if _fcfs(item) and item.lane in among], width))
        widths = {
            queue: by_class(case, sum(item.way.queue == queue for item in runs))
            for queue in _by_class(missing)
        }
        together = exchanging(runs) if exchange and any(_weighted(item.way) for item in missing) else []
        parts += [(case, together, widths["weighted"])] if together else []
        rest = [item for item in missing if not _fcfs(item) and not (exchange and _weighted(item.way))]
        parts += [(case, [item], 1) for item in rest if widths[item.way.queue] == 1]
        for queue, width in widths.items():
            own = [item for item in rest if item.way.queue == queue and width > 1]
            parts += [(case, own[first : first + width], width) for first in range(0, len(own), width)]
    return [
        Batch(case, {item.run.run_id: replace(item, width=width, batch_runs=len(runs)) for item in runs})
        for case, runs, width in parts
    ]


def widest_batch(case: Case, options: OptimizeOptions, lanes: int, engine: Engine) -> int:
    """Most lanes of a batch: what fits into memory, and leaves batches for all workers.

    At least two, if they fit: XLA rounds a program of one lane otherwise than wider ones, which all round alike.

    Args:
        case: one of the cases.
        options: checked.
        lanes: of all cases together.
        engine: where they run.
    """
    memory = options.memory_bytes or engine.memory_bytes
    fitting = planning.lanes_per_batch(case.problem, memory, options.dtype)
    if engine.workers == 1:
        return fitting
    return min(fitting, max(2, math.ceil(lanes / (TASKS_PER_WORKER * engine.workers))))


def side_by_side(options: OptimizeOptions) -> bool:
    """Whether plans by class of a sweep are made side by side, as one program: a GPU is idle with one.

    Not those that keep deadlines, which go ways of their own, nor on workers of a cluster unless ``device`` says so: a
    plan for each of them.
    """
    if options.deadline_s is not None or options.device == "host":
        return False
    return options.device == "jax" or (options.engine.name == "serial" and jax.default_backend() != "cpu")


def width_by_class(case: Case, runs: int, options: OptimizeOptions, engine: Engine) -> int:
    """Lanes of the programs for so many runs with a queue by class; 1 where they are planned one after the other.

    Args:
        case: that they plan for.
        runs: all of its runs with that queue.
        options: checked.
        engine: where they run.
    """
    if runs == 1 or not side_by_side(options):
        return 1
    widest = lanes_per_program(case.fixed_lengths, options.memory_bytes or engine.memory_bytes)
    if engine.workers > 1 and not options.exchange:
        widest = min(widest, max(2, math.ceil(runs / (TASKS_PER_WORKER * engine.workers))))
    return width_of(runs, widest)


def exchanging(items: Iterable[Item]) -> list[Item]:
    """Those runs of a case that go on from each other's plans where ``exchange`` says so."""
    return [item for item in items if _weighted(item.way)]


def lanes_of(items: Iterable[Item]) -> list[int]:
    """The lanes of runs with queue=fcfs, each once."""
    return list(dict.fromkeys(item.lane for item in items if _fcfs(item)))


def _of_one_problem(case: Case, lanes: Sequence[int]) -> list[list[int]]:
    """Lanes by what their placements are made for: one problem, but with small reads one for each size_scale."""
    groups: dict[float, list[int]] = {}
    for lane in lanes:
        groups.setdefault(1.0 if case.small is None else case.lane(lane).size_scale, []).append(lane)
    return list(groups.values())


def _by_class(items: Iterable[Item]) -> list[str]:
    """The queues by class of runs, each once."""
    return list(dict.fromkeys(item.way.queue for item in items if not _fcfs(item)))


def _weighted(way: Way) -> bool:
    return way.queue == "weighted"


def _fcfs(item: Item) -> bool:
    return item.way.queue == "fcfs"


def _even(lanes: int, widest: int) -> int:
    """Width of batches that are all about as wide."""
    return math.ceil(lanes / math.ceil(lanes / widest))
