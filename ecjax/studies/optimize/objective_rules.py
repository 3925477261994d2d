"""What option ``objective`` of ``ecjax optimize`` may be. Imports nothing heavy."""

import re
from typing import Any

from ecjax.options import Wrong, is_number
from ecjax.studies.optimize.class_rules import ORDERS

OBJECTIVES = (
    "bound, mean, a quantile as p50, p95 or p999, weights as in {mean: 0.5, p99: 0.1}, trace; by class: lexicographic, "
    "joint"
)
TRACE = "trace"  # plans for the arrivals of a log


def objective(value: Any) -> str | dict[str, float]:
    """``objective`` as it is, if it is one.

    Raises:
        Wrong: it is none.
    """
    if value not in ("bound", TRACE, *ORDERS):
        objective_weights(value)
    return value


def objective_weights(value: Any) -> tuple[float, list[tuple[float, float]]]:
    """Weight of the mean, and level and weight of each quantile of an estimated objective.

    Args:
        value: "mean", "p50", "p99", "p999", ... or weights, as in {mean: 0.5, p99: 0.1}.

    Raises:
        Wrong: anything else.
    """
    by_name = {value: 1.0} if isinstance(value, str) else value
    if not isinstance(by_name, dict) or not by_name:
        raise Wrong(str(value))
    mean, levels = 0.0, []
    for name, weight in by_name.items():
        if not (is_number(weight) and weight >= 0):
            raise Wrong(str(value))
        if name == "mean":
            mean = float(weight)
        elif re.fullmatch(r"p\d\d+", str(name)):
            levels.append((float(f"0.{str(name)[1:]}"), float(weight)))
        else:
            raise Wrong(str(value))
    if mean + sum(weight for _, weight in levels) <= 0:
        raise Wrong(str(value))
    return mean, levels
