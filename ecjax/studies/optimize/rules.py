"""The options of ``ecjax optimize``, checked: every mistake names the option, what was found and what is allowed."""

import re
from numbers import Integral
from typing import Any

from ecjax import optimize
from ecjax.errors import UserError
from ecjax.optimize.estimated import Mix
from ecjax.replay.law_fit import FAMILIES
from ecjax.studies.optimize.class_rules import check_class_options, class_rate_scales
from ecjax.studies.optimize.figures import plans as figures
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.spine.checks import numbers, whole_numbers, words_of
from ecjax.studies.spine.option import is_number

ABOVE = {"beta": 1.0, "eps": 0.0, "gap": 0.0, "memory_bytes": 0.0}
# least and largest; the history of a run has a place for every iteration
WHOLE_NUMBERS = {
    "max_iterations": (1, 10**6),
    "max_chunks_per_node": (1, 10**6),
    "max_chunks_per_site": (1, 10**6),
    "min_extra_chunks": (0, 10**6),
    "seed": (0, 2**63 - 1),
    "robust_trials": (1, 10**6),
}
OPTIONAL = ("memory_bytes", "max_chunks_per_site", "min_extra_chunks")


def checked(options: OptimizeOptions) -> OptimizeOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = {name: getattr(options, name) for name in vars(options)}
    check_class_options(values)
    for name, least in (("theta", 0.0), ("rate_scale", None), ("size_scale", None)):
        values[name] = numbers(name, values[name], least)
    for name, allowed in (("method", optimize.METHODS), ("figures", figures.KINDS)):
        values[name] = words_of(name, values[name], tuple(allowed))
    if not values["method"] and "fcfs" in values["queue"]:
        raise UserError(f"method: found an empty list; allowed: {', '.join(optimize.METHODS)}")
    choices: dict[str, tuple[str, ...]] = {
        "theta_per": ("file", "total"),
        "size_scaling": ("proportional", "none"),
        "start": (*optimize.STARTS, "plan", "certified", "search"),
        "loop": ("merged", "nested"),
        "dtype": ("float64", "float32"),
        "scheduling": ("nearest", "optimal"),
        "robust": ("none", "mean", "worst"),
        "service": FAMILIES,
    }
    for name, words in choices.items():
        if values[name] not in words:
            raise UserError(f"{name}: found {values[name]!r}; allowed: {', '.join(words)}")
    if values["start"] == "plan" and values["plan"] is None:
        raise UserError("start=plan: plan=FOLDER is missing, the folder of an earlier optimize")
    if values["plan"] is None and (values["plan_run"] or values["plan_where"]):
        raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
    if values["plan"] is not None:
        values["start"] = "plan"
    if mix_of(values["objective"]) is not None and values["max_chunks_per_node"] != 1:
        raise UserError(
            f"objective={values['objective']}: found max_chunks_per_node={values['max_chunks_per_node']}; allowed: 1, "
            "as chunks served together have no estimate"
        )
    for name in ("k", "d"):
        if values[name] is not None:
            values[name] = whole_numbers(name, values[name])
    values["class_rate_scale"] = class_rate_scales(values["class_rate_scale"])
    cost = values["migration_dollars_per_byte"]
    if not (is_number(cost) and cost >= 0):
        raise UserError(f"migration_dollars_per_byte: found {cost}; allowed: a number, at least 0")
    given = values["scenarios"] or []
    values["scenarios"] = list(given) if isinstance(given, list | tuple) else [given]
    if (values["max_chunks_per_site"] or 10**6) < values["max_chunks_per_node"]:
        raise UserError(
            f"max_chunks_per_site: found {values['max_chunks_per_site']}; allowed: at least max_chunks_per_node="
            f"{values['max_chunks_per_node']}"
        )
    if values["robust"] != "none" and not values["scenarios"]:
        raise UserError(
            f"robust={values['robust']}: scenarios is empty; allowed: scenarios=node, site or both"
        )
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    if not (values["write"] is None or isinstance(values["write"], list | tuple)):
        raise UserError(f"write: found {values['write']}; allowed: names of datasets")
    _check_numbers(values)
    return OptimizeOptions(**values)


def _check_numbers(values: dict[str, Any]) -> None:
    for name, above in ABOVE.items():
        value = values[name]
        if not (is_number(value) and value > above) and not (value is None and name in OPTIONAL):
            raise UserError(f"{name}: found {value}; allowed: a number above {above:g}")
    for name, (least, most) in WHOLE_NUMBERS.items():
        value = values[name]
        whole = is_number(value) and isinstance(value, Integral)
        if not (whole and least <= value <= most) and not (value is None and name in OPTIONAL):
            raise UserError(f"{name}: found {value}; allowed: a whole number from {least} to {most}")


def mix_of(objective: Any) -> Mix | None:
    """The mix that ``objective`` asks for; None for the bound.

    Args:
        objective: "bound", "mean", "p50", "p99", "p999", ... or weights, as in {mean: 0.5, p99: 0.1}.

    Raises:
        UserError: anything else.
    """
    if objective in ("bound", "lexicographic", "joint"):
        return None
    weights = {objective: 1.0} if isinstance(objective, str) else objective
    if not isinstance(weights, dict) or not weights:
        raise _unknown(objective)
    mean, levels = 0.0, []
    for name, weight in weights.items():
        if not (is_number(weight) and weight >= 0):
            raise _unknown(objective)
        if name == "mean":
            mean = float(weight)
        elif re.fullmatch(r"p\d\d+", str(name)):
            levels.append((float(f"0.{str(name)[1:]}"), float(weight)))
        else:
            raise _unknown(objective)
    if mean + sum(weight for _, weight in levels) <= 0:
        raise _unknown(objective)
    return Mix(mean, tuple(levels))


def _unknown(objective: Any) -> UserError:
    return UserError(
        f"objective: found {objective}; allowed: bound, mean, p50, p90, p99, p999, or weights as in "
        "{mean: 0.5, p99: 0.1}"
    )
