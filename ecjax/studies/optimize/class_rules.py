"""Options of ``ecjax optimize`` for queues by class: checked alone, then against the classes of the files.

Imports nothing heavy.
"""

import math
from typing import TYPE_CHECKING, Any

from ecjax.errors import UserError
from ecjax.options import Wrong, is_number

if TYPE_CHECKING:
    from ecjax.studies.optimize.options import OptimizeOptions

QUEUES = ("fcfs", "priority", "weighted")
CLASS_METHODS = {"priority": "jlop", "weighted": "jlwo"}
ORDERS = ("lexicographic", "joint")
_FCFS_STARTS = ("uniform", "proportional", "plan")
STARTS = (*_FCFS_STARTS, "certified", "search")
_CLASS_STARTS = ("certified", "search", *_FCFS_STARTS)
IMPORTANCES = "a number of at least 0 per service class, not all 0, or a list of such lists"
WEIGHTS = "a positive number per service class, that sum to 1"
Deadlines = float | list[float | None] | dict[str, float | None] | None
CLASS_RATES = "one positive number per service class, or a list of such lists"

# options that only plans for first come, first served know
_FCFS_ONLY: dict[str, Any] = {
    "polish": False,
    "scenarios": [],
    "robust": "none",
    "compare_cold_start": False,
    "dtype": "float64",
}
# options that need a queue by class
_BY_CLASS = ("importance", "weights", "deadline_s")


def check_classes(options: "OptimizeOptions", thetas: list[float]) -> dict[str, Any]:
    """Check queues by class against the other options; returns what follows from the queue: method, theta, start.

    Args:
        options: each checked alone.
        thetas: s/$, with queue=fcfs.

    Raises:
        UserError: options do not go together.
    """
    classes = [queue for queue in options.queue if queue != "fcfs"]
    for name in _BY_CLASS:
        if getattr(options, name) is not None and not classes:
            raise UserError(
                f"{name}: found {getattr(options, name)} with queue=fcfs; allowed: queue=priority or weighted"
            )
    if options.weights is not None and "weighted" not in classes:
        raise UserError(f"weights: found {options.weights} with queue=priority; allowed: queue=weighted")
    if options.objective in ORDERS and not classes:
        raise UserError(
            f"objective: found {options.objective} with queue=fcfs; allowed: queue=priority or weighted"
        )
    if options.exchange and ("weighted" not in classes or options.deadline_s is not None):
        beside = "queue=weighted" if "weighted" not in classes else "no deadline_s"
        raise UserError(f"exchange: found true; allowed: with {beside}")
    if classes:
        _check_objective(options, classes)
        for name, only in _FCFS_ONLY.items():
            if getattr(options, name) != only:
                value, allowed = getattr(options, name), str(only).lower()
                raise UserError(f"{name}: found {value} with queue={classes[0]}; allowed with it: {allowed}")
    return {
        "method": _methods(options, classes),
        "theta": options.theta or ([0.0] if classes else list(thetas)),
        "start": _start(options, classes),
    }


def _methods(options: "OptimizeOptions", classes: list[str]) -> list[str]:
    """Methods of queue=fcfs; those of queues by class follow from the queue."""
    if "fcfs" in options.queue:
        return ["certified"] if options.method is None else options.method
    for name in options.method or []:
        if name not in [CLASS_METHODS[queue] for queue in classes]:
            words = ", ".join(f"{CLASS_METHODS[queue]} (queue={queue})" for queue in classes)
            raise UserError(f"method: found {name}; allowed: {words}")
    return []


def _start(options: "OptimizeOptions", classes: list[str]) -> str:
    if options.start is None:
        return "search" if classes else "uniform"
    if classes and options.start not in _CLASS_STARTS:
        raise UserError(f"start: found {options.start!r}; allowed by class: {', '.join(_CLASS_STARTS)}")
    if not classes and options.start not in _FCFS_STARTS:
        raise UserError(
            f"start: found {options.start} with queue=fcfs; allowed with it: {', '.join(_FCFS_STARTS)}"
        )
    return options.start


def _check_objective(options: "OptimizeOptions", classes: list[str]) -> None:
    if options.objective not in ("bound", *ORDERS):
        raise UserError(
            f"objective: found {options.objective} with queue={classes[0]}; allowed with it: {', '.join(ORDERS)}"
        )
    if options.objective == "lexicographic" and "weighted" in classes:
        raise UserError(
            "objective: found lexicographic with queue=weighted; allowed with it: joint (shares of a node weigh "
            "classes against each other)"
        )
    if "fcfs" in options.queue and options.objective != "bound":
        raise UserError(
            f"objective: found {options.objective} with queue=fcfs too; allowed: bound, one queue"
        )


def order_of(queue: str, objective: str | dict[str, float]) -> str:
    """Lexicographic or joint: what ``objective`` means for a queue."""
    if objective in ORDERS:
        return str(objective)
    return "lexicographic" if queue == "priority" else "joint"


def importances(rows: list[list[float]] | None, names: list[str]) -> list[tuple[float, ...]]:
    """C_k of each run, (K,) each; ones where option ``importance`` is not set.

    Raises:
        UserError: not one number per class.
    """
    for row in rows or []:
        if len(row) != len(names):
            raise UserError(
                f"importance: found {row}; allowed: one number per service class: {', '.join(names)}"
            )
    return [(1.0,) * len(names)] if rows is None else [tuple(row) for row in rows]


def shares(fixed: list[float] | None, names: list[str]) -> list[float] | None:
    """Fixed shares of the classes.

    Raises:
        UserError: not one per class.
    """
    if fixed is not None and len(fixed) != len(names):
        raise UserError(
            f"weights: found {len(fixed)} numbers; allowed: one per service class: {', '.join(names)}"
        )
    return fixed


def deadlines(promised: Deadlines, names: list[str]) -> list[float] | None:
    """Deadlines of the classes, (K,) s, infinite where none is promised; None where no class has one.

    Raises:
        UserError: not one positive number, or null, per class.
    """
    if promised is None:
        return None
    allowed = f"a positive number of seconds, or null, per service class: {', '.join(names)}"
    if isinstance(promised, dict):
        by_name = {str(name): value for name, value in promised.items()}
        for name in by_name:
            if name not in names:
                raise UserError(f"deadline_s: found class {name}; allowed: {allowed}")
        listed = [by_name.get(name) for name in names]
    else:
        listed = list(promised) if isinstance(promised, list | tuple) else [promised]
    good = all(value is None or (is_number(value) and value > 0) for value in listed)
    if len(listed) != len(names) or not good:
        raise UserError(f"deadline_s: found {promised}; allowed: {allowed}")
    if all(value is None for value in listed):
        return None
    return [math.inf if value is None else float(value) for value in listed]


def weights(value: Any) -> list[float]:
    """Shares of the classes.

    Raises:
        Wrong: not positive numbers that sum to 1.
    """
    values = list(value) if isinstance(value, list | tuple) else [value]
    good = all(is_number(weight) and weight > 0 for weight in values)
    if not good or not math.isclose(sum(values), 1.0, rel_tol=1e-9):
        raise Wrong(str(value))
    return [float(weight) for weight in values]


def importance(value: Any) -> list[list[float]]:
    """What a second of each class counts: a list per run, without repeats.

    Raises:
        Wrong: not such numbers, or lists of them.
    """
    values = list(value) if isinstance(value, list | tuple) else [value]
    several = [list(one) if isinstance(one, list | tuple) else None for one in values]
    rows = [values] if all(one is None for one in several) else several
    good = bool(values) and all(
        row is not None and row and all(is_number(c) and c >= 0 for c in row) and any(c > 0 for c in row)
        for row in rows
    )
    if not good:
        raise Wrong(str(value))
    return [
        list(row) for row in dict.fromkeys(tuple(float(c) for c in row) for row in rows if row is not None)
    ]


def class_rate_scales(value: Any) -> list[tuple[float, ...]]:
    """What the rates of the classes are multiplied by: a tuple per sweep point, without repeats.

    Raises:
        Wrong: not positive numbers, or lists of them.
    """
    values = list(value) if isinstance(value, list | tuple) else [value]
    nested = values if any(isinstance(one, list | tuple) for one in values) else [values]
    if not all(isinstance(one, list | tuple) and one and all(map(_positive, one)) for one in nested):
        raise Wrong(str(value))
    return list(dict.fromkeys(tuple(float(each) for each in one) for one in nested))


def _positive(value: Any) -> bool:
    return is_number(value) and value > 0
