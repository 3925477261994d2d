"""Options of ``ecjax optimize`` for queues by class, checked: first alone, then against the classes of the files."""

import math
from typing import Any

from ecjax.errors import UserError
from ecjax.studies.spine.option import is_number

QUEUES = ("fcfs", "priority", "weighted")
METHODS = {"priority": "jlop", "weighted": "jlwo"}
ORDERS = ("lexicographic", "joint")
STARTS = ("certified", "search", "uniform", "proportional", "plan")

# options that only plans for first come, first served know
_FCFS_ONLY = {
    "polish": False,
    "scenarios": [],
    "robust": "none",
    "compare_cold_start": False,
    "dtype": "float64",
}
# options that need a queue by class
_BY_CLASS = ("importance", "weights", "deadline_s")


def check_class_options(values: dict[str, Any]) -> None:
    """Check what needs no table, and fill in what depends on the queue.

    Args:
        values: all options; queue, method, theta and start are completed in place.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values["queue"] = _words("queue", values["queue"], QUEUES)
    by_class = [queue for queue in values["queue"] if queue != "fcfs"]
    if values["method"] is None:
        values["method"] = ["certified"] if "fcfs" in values["queue"] else []
    if by_class and "fcfs" not in values["queue"]:
        named = values["method"] if isinstance(values["method"], list | tuple) else [values["method"]]
        wrong = [name for name in named if name not in [METHODS[queue] for queue in by_class]]
        if wrong:
            words = ", ".join(f"{METHODS[queue]} (queue={queue})" for queue in by_class)
            raise UserError(f"method: found {wrong[0]}; allowed: {words}")
        values["method"] = []
    if values["theta"] is None:
        values["theta"] = [0.0] if by_class else [3.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    for name in _BY_CLASS:
        if values[name] is not None and not by_class:
            raise UserError(
                f"{name}: found {values[name]} with queue=fcfs; allowed: queue=priority or weighted"
            )
    if values["weights"] is not None and "weighted" not in by_class:
        raise UserError(f"weights: found {values['weights']} with queue=priority; allowed: queue=weighted")
    if values["objective"] in ORDERS and not by_class:
        raise UserError(
            f"objective: found {values['objective']} with queue=fcfs; allowed: queue=priority or weighted"
        )
    if by_class:
        _check_objective(values, by_class)
        for name, only in _FCFS_ONLY.items():
            if (values[name] or only) != only:
                raise UserError(
                    f"{name}: found {values[name]} with queue={by_class[0]}; allowed with it: {str(only).lower()}"
                )
    if values["start"] is None:
        values["start"] = "search" if by_class else "uniform"
    elif by_class and values["start"] not in STARTS:
        raise UserError(f"start: found {values['start']!r}; allowed by class: {', '.join(STARTS)}")
    elif values["start"] in ("certified", "search") and not by_class:
        raise UserError(
            f"start: found {values['start']} with queue=fcfs; allowed with it: uniform, proportional, plan"
        )
    if values["deadline_by"] not in ("bound", "estimate"):
        raise UserError(f"deadline_by: found {values['deadline_by']!r}; allowed: bound, estimate")
    if values["weights"] is not None:
        values["weights"] = _shares(values["weights"])
    if values["importance"] is not None:
        values["importance"] = _importance(values["importance"])


def _check_objective(values: dict[str, Any], by_class: list[str]) -> None:
    if values["objective"] not in ("bound", *ORDERS):
        raise UserError(
            f"objective: found {values['objective']} with queue={by_class[0]}; allowed with it: {', '.join(ORDERS)}"
        )
    if values["objective"] == "lexicographic" and "weighted" in by_class:
        raise UserError(
            "objective: found lexicographic with queue=weighted; allowed with it: joint (shares of a node weigh "
            "classes against each other)"
        )
    if "fcfs" in values["queue"] and values["objective"] != "bound":
        raise UserError(
            f"objective: found {values['objective']} with queue=fcfs too; allowed: bound, one queue"
        )


def order_of(queue: str, objective: str) -> str:
    """Lexicographic or joint: what ``objective`` means for a queue."""
    if objective in ORDERS:
        return objective
    return "lexicographic" if queue == "priority" else "joint"


def importances(given: Any, names: list[str]) -> list[tuple[float, ...]]:
    """C_k of each run, (K,) each: those that are given, else ones.

    Raises:
        UserError: not one number per class.
    """
    found = [(1.0,) * len(names)] if given is None else [tuple(one) for one in given]
    for one in found:
        if len(one) != len(names):
            raise UserError(
                f"importance: found {list(one)}; allowed: one number per service class: {', '.join(names)}"
            )
    return found


def shares(given: list[float] | None, names: list[str]) -> list[float] | None:
    """Fixed shares of the classes.

    Raises:
        UserError: not one per class.
    """
    if given is not None and len(given) != len(names):
        raise UserError(
            f"weights: found {len(given)} numbers; allowed: one per service class: {', '.join(names)}"
        )
    return given


def deadlines(given: Any, names: list[str]) -> list[float] | None:
    """Deadlines of the classes, (K,) s, infinite where none is promised; None where no class has one.

    Raises:
        UserError: not one positive number, or null, per class.
    """
    if given is None:
        return None
    allowed = f"a positive number of seconds, or null, per service class: {', '.join(names)}"
    if isinstance(given, dict):
        told = {str(name): value for name, value in given.items()}
        for name in told:
            if name not in names:
                raise UserError(f"deadline_s: found class {name}; allowed: {allowed}")
        listed = [told.get(name) for name in names]
    else:
        listed = list(given) if isinstance(given, list | tuple) else [given]
    good = all(value is None or (is_number(value) and value > 0) for value in listed)
    if len(listed) != len(names) or not good:
        raise UserError(f"deadline_s: found {given}; allowed: {allowed}")
    if all(value is None for value in listed):
        return None
    return [math.inf if value is None else float(value) for value in listed]


def _words(name: str, value: Any, allowed: tuple[str, ...]) -> list[str]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    for word in listed:
        if word not in allowed:
            raise UserError(f"{name}: found {word!r}; allowed: {', '.join(allowed)}")
    if not listed:
        raise UserError(f"{name}: found an empty list; allowed: {', '.join(allowed)}")
    return list(dict.fromkeys(listed))


def _shares(value: Any) -> list[float]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    good = all(is_number(w) and w > 0 for w in listed)
    if not good or not math.isclose(sum(listed), 1.0, rel_tol=1e-9):
        raise UserError(
            f"weights: found {value}; allowed: a positive number per service class, that sum to 1"
        )
    return [float(w) for w in listed]


def _importance(value: Any) -> list[list[float]]:
    listed = list(value) if isinstance(value, list | tuple) else [value]
    several = [list(one) if isinstance(one, list | tuple) else None for one in listed]
    rows = [listed] if all(one is None for one in several) else several
    good = bool(listed) and all(
        row is not None and row and all(is_number(c) and c >= 0 for c in row) and any(c > 0 for c in row)
        for row in rows
    )
    if not good:
        raise UserError(
            f"importance: found {value}; allowed: a number of at least 0 per service class, not all 0, or a list of "
            "such lists"
        )
    return [[float(c) for c in row] for row in rows if row is not None]


def class_rate_scales(given: Any) -> list[tuple[float, ...]] | None:
    """The option as a list of lists, without repeats; None where it is not given.

    Raises:
        UserError: not positive numbers, or lists of them.
    """
    if given is None:
        return None
    listed = list(given) if isinstance(given, list | tuple) else [given]
    nested = listed if any(isinstance(one, list | tuple) for one in listed) else [listed]
    if not all(isinstance(one, list | tuple) and one and all(map(_positive, one)) for one in nested):
        raise UserError(
            f"class_rate_scale: found {given}; allowed: one positive number per service class, or a list of such lists"
        )
    return list(dict.fromkeys(tuple(float(value) for value in one) for one in nested))


def _positive(value: Any) -> bool:
    return is_number(value) and value > 0
